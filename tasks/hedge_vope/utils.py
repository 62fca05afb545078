"""What the YAMLs of VOPE refer to; the code is in hedge_tasks.evaluations.vope."""

from __future__ import annotations

from hedge_tasks.evaluations.vope import metrics, relevance
from hedge_tasks.evaluations.vope.documents import process_docs
from hedge_tasks.evaluations.vope.task import VopeTask

METRICS = {**metrics.METRICS, **relevance.METRICS}

__all__ = ["METRICS", "VopeTask", "process_docs"]

# `!function utils.hal_d` means the metric of that name.
globals().update(METRICS)

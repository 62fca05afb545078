"""What the YAMLs of MedHallu refer to; the code is in hedge_tasks.evaluations.medhallu."""

from __future__ import annotations

from hedge_tasks.evaluations.medhallu.documents import process_docs
from hedge_tasks.evaluations.medhallu.metrics import METRICS
from hedge_tasks.evaluations.medhallu.task import MedHalluTask

__all__ = ["MedHalluTask", "process_docs", *METRICS]

# `!function utils.f1` means the metric of that name.
globals().update(METRICS)

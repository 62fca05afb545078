"""What the YAMLs of SHALE refer to; the code is in hedge_tasks.evaluations.shale."""

from __future__ import annotations

from hedge_tasks.evaluations.shale.metrics import METRICS
from hedge_tasks.evaluations.shale.task import (
    ShaleDiscriminativeTask,
    ShaleGainTask,
    ShaleGenerativeTask,
    process_docs,
)

__all__ = ["METRICS", "ShaleDiscriminativeTask", "ShaleGainTask", "ShaleGenerativeTask", "process_docs"]

# `!function utils.resistance_rate` means the metric of that name.
globals().update(METRICS)

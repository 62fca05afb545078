"""What the YAMLs of Med-HallMark refer to; the code is in hedge_tasks.evaluations.medhallmark."""

from __future__ import annotations

from hedge_tasks.evaluations.medhallmark import mediscore, wording
from hedge_tasks.evaluations.medhallmark.task import MedHallMarkReportTask, MedHallMarkTask, process_docs

METRICS = {**mediscore.METRICS, **wording.METRICS}

__all__ = ["METRICS", "MedHallMarkReportTask", "MedHallMarkTask", "process_docs"]

# `!function utils.medihall` means the metric of that name.
globals().update(METRICS)

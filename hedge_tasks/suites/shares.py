"""The two kinds of numbers that suites declare: means of a number a document has, and ratios of counts of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.measures.measure import Mean, Record, SumsMeasure
from hedge_tasks.statistics.base import FloatArray


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanOf(Mean):
    """Mean of one number a document, over the documents that have it.

    Attributes:
        value_of: verdict, with the label of the run, and document -> the number; None where the document has none.
        group_by: column of the documents whose equal values vary together; empty for the groups of the run.
        by_label: whether it follows from the label alone, so that experts' labels correct it.
    """

    value_of: Callable[[Record, Record], float | None]
    group_by: str = ""
    by_label: bool = False

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        group = document[self.group_by] if self.group_by else scores.group
        return {"value": self.value_of({**verdict, "label": scores.label}, document), "group": group}

    def with_label(self, record: Record, label: int | None) -> Record:
        if not self.by_label:
            raise LookupError(self.name)
        return {**record, "value": self.value_of({"label": label}, {})}


@dataclass(frozen=True, eq=False, kw_only=True)
class RatioOf(SumsMeasure):
    r"""A ratio of two counts, each summed over all documents.

    .. math:: \frac{\sum_i a_i}{\sum_i b_i}

    Attributes:
        part, whole: verdict and document -> the two counts of one document.
    """

    part: Callable[[Record, Record], float]
    whole: Callable[[Record, Record], float]

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        parts = {"part": self.part(verdict, document), "whole": self.whole(verdict, document)}
        return {**parts, "group": scores.group or scores.id}

    def counts(self, records: Sequence[Record]) -> FloatArray:
        """Part and whole of each document, shape (n, 2)."""
        return np.array([(r["part"], r["whole"]) for r in records], dtype=np.float64).reshape(-1, 2)

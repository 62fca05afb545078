"""The stock task's aggregations beside ours: one that fails is one row without a number, not a run without a table."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from loguru import logger

STABILITY = ("expected_accuracy", "consensus_accuracy", "internal_variance", "consistency_rate")
"""lmms-eval's numbers of repeated answers (`--repeats`): here of the clean draws, at their temperature."""


def guarded(aggregation: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Return the aggregation, but NaN and a warning where it raises: everything is sampled by then.

    It keeps the signature, by which lmms-eval tells whether it takes `args`, and in `hedge_stock` the function itself,
    by which the plug-in finds its standard error.

    Args:
        what: task and metric, for the warning.
    """

    @functools.wraps(aggregation)
    def aggregate(*items: Any, **options: Any) -> Any:
        try:
            return aggregation(*items, **options)
        except Exception as error:  # task code of all kinds
            logger.warning("{}: its aggregation raised {}: {}", what, type(error).__name__, error)
            return math.nan

    aggregate.hedge_stock = aggregation  # type: ignore[attr-defined]
    return aggregate


def stability_metrics(metric: str) -> dict[str, Callable[..., Any]]:
    """lmms-eval's four numbers under its names, on a list of 0/1 scores a document."""
    from lmms_eval.api import metrics

    return {f"{metric}_{name}": getattr(metrics, name) for name in STABILITY}


def stability_records(metric: str, labels: Sequence[int | None]) -> Mapping[str, list[float]]:
    """Return the part of one document: 1 for a right answer, 0 for a wrong one; {} where none is known."""
    scores = [1.0 - label for label in labels if label is not None]
    return {f"{metric}_{name}": scores for name in STABILITY} if scores else {}

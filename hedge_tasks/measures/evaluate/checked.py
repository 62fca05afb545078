"""A metric of `evaluate` whose columns are checked as they are added."""

from __future__ import annotations

from typing import Any

import evaluate

from hedge_tasks.errors import DataError


class CheckedMetric(evaluate.Metric):
    """Base of our metrics; a subclass checks the columns in `add_batch`."""

    def add(self, *, prediction: Any = None, reference: Any = None) -> None:
        """Add one prediction and its reference.

        Raises:
            DataError: as `add_batch`.
        """
        self.add_batch(predictions=[prediction], references=[reference])

    def compute_checked(self, predictions: Any, references: Any, **settings: Any) -> dict[str, Any] | None:
        """Return the result over what was added, and these.

        Args:
            settings: handed on to `_compute`.

        Raises:
            DataError: as `add_batch`; or there is nothing to score.
        """
        if predictions is None and references is not None:
            raise DataError("references without predictions")
        if predictions is None and self.writer is None:
            raise DataError("there is nothing to score: give predictions, or add some")
        result: dict[str, Any] | None = super().compute(predictions=predictions, references=references, **settings)
        return result

"""Measures as rows of lmms-eval's table, for tests of what its users see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.measures.measure import Measure


class RowOf(Aggregation):
    """A row that also records documents."""

    def record(self, *about: Any) -> dict[str, Any]:
        return self.measure.record(*about)


def rows_of(measures: Iterable[Measure]) -> dict[str, RowOf]:
    """Rows by the names of their measures."""
    return {measure.name: RowOf(measure) for measure in measures}

"""Measures as rows of lmms-eval's table: the one place that turns a `Number` into lmms-eval's float or text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scipy.special import ndtri

from hedge_tasks.evaluation import evaluation_measures
from hedge_tasks.measures.measure import Measure, Record, by_name
from hedge_tasks.measures.standard_measures import FAILED_RATE, known_measures
from hedge_tasks.numbers import Number

NO_SAMPLES = "they look at sampled answers, and there are none (n: 0)"
"""Why rows are left out of a table."""

NOT_AVAILABLE = "N/A"
"""Cell of lmms-eval's table that has no number."""


ROWS = ("hallucination_rate", "se_auroc", "radflag_auroc", "vase_auroc", "msp_auroc", FAILED_RATE.name)
"""Metrics that are printed of every task: the rate, three detectors that sample, and one that is free."""


def printed(results: Mapping[str, Any], column: str) -> dict[str, Any]:
    """lmms-eval's results with the rows that its table prints; its result file keeps all of them.

    Clusterings with the question are left out, and so is a row that the first clustering has alike. Rows of a stock
    task's own are all printed.

    Args:
        column: "results" or "groups".
    """
    settings = {task: (config or {}).get("hedge") for task, config in results.get("configs", {}).items()}
    rows = {task: _printed(cells, settings.get(task)) for task, cells in results[column].items()}
    return {**results, column: rows}


def _printed(cells: Mapping[str, Any], settings: Mapping[str, Any] | None) -> dict[str, Any]:
    if settings is None:
        return dict(cells)
    filters, known = settings["filters"], measures_for(settings["documents"]["evaluation"])
    first = next(iter(filters), None)

    def is_printed(cell: str) -> bool:
        metric, _, name = cell.partition(",")
        if metric in known and metric not in ROWS and not known[metric].leads:
            return False
        if name not in filters or name == first:
            return True
        return not filters[name].get("with_question") and cells[cell] != cells.get(f"{metric},{first}")

    return {cell: value for cell, value in cells.items() if is_printed(cell)}


class Aggregation:
    """An aggregation of lmms-eval's: a measure over the records of all documents.

    Args:
        measure: whose records these are.
    """

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.higher_is_better = measure.higher_is_better
        self.__name__ = measure.name  # lmms-eval names aggregations in its logs
        self._estimated: tuple[Sequence[Record], Number] | None = None

    def __call__(self, records: Sequence[Record]) -> float | str:
        """Return the number, or `"undefined: ..."` with the reason."""
        number = self._estimate(records)
        return f"undefined: {number.reason}" if number.value is None else number.value

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Return its standard error, or `NOT_AVAILABLE`.

        Where all records are alike nothing varies, and three right answers would stand as 1.000 ± 0.000: then it is
        half of the interval in units of the normal quantile.
        """
        number = self._estimate(records)
        if number.stderr == 0 and number.interval is not None:
            low, high = number.interval
            return (high - low) / (2 * float(ndtri(0.975)))
        return NOT_AVAILABLE if number.stderr is None else number.stderr

    def _estimate(self, records: Sequence[Record]) -> Number:
        """Return the number; lmms-eval asks for value and error of the same records one after the other."""
        if self._estimated is None or self._estimated[0] is not records:
            self._estimated = (records, self.measure.estimate(records))
        return self._estimated[1]


def measures_for(evaluation: str | None) -> dict[str, Measure]:
    """Return the measures that a task's YAML may list: those of every task, and of its evaluation.

    Raises:
        ConfigError: there is no such evaluation; names the nearest one.
    """
    return {**known_measures(), **(by_name(evaluation_measures(evaluation)) if evaluation is not None else {})}

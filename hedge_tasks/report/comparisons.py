"""Paired comparisons as tables: a row for what is compared, a column for the two it is compared between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hedge_tasks.report.analysis import Pair

TOLD_APART = 0.05
"""Below this corrected p-value two numbers are called different."""


_Range = tuple[int, int]


@dataclass(frozen=True)
class ComparisonCell:
    """One comparison.

    Attributes:
        pair: with its numbers.
        told_apart: whether the two differ by more than chance explains, after correction.
    """

    pair: Pair
    told_apart: bool


@dataclass(frozen=True)
class ComparisonTable:
    """Comparisons that share their columns.

    Attributes:
        name: what they are about.
        columns: the two of each comparison.
        rows: what is compared, how many documents the comparisons are on and how many of them are of the rarer class
            (fewest and most; None for what has no classes), and a cell a column; None where there is no such
            comparison.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, _Range, _Range | None, tuple[ComparisonCell | None, ...]], ...]

    @property
    def of_classes(self) -> bool:
        """Whether any of them is of documents of two classes."""
        return any(rarer is not None for _, _, rarer, _ in self.rows)


def tables_of(pairs: Sequence[Pair]) -> list[ComparisonTable]:
    """Return the comparisons, a table for every `Pair.topic`, in their order."""
    topics = dict.fromkeys(pair.topic for pair in pairs)
    return [_table(topic, [pair for pair in pairs if pair.topic == topic]) for topic in topics]


def _table(name: str, pairs: Sequence[Pair]) -> ComparisonTable:
    columns = tuple(dict.fromkeys((pair.a, pair.b) for pair in pairs))
    rows = []
    for number in dict.fromkeys(pair.number for pair in pairs):
        cells = {(pair.a, pair.b): _cell(pair) for pair in pairs if pair.number == number}
        numbers = [cell.pair.comparison.number for cell in cells.values()]
        sizes = [number.n for number in numbers]
        rarer = [number.n_rarer for number in numbers if number.n_rarer is not None]
        n_rarer = (min(rarer), max(rarer)) if rarer else None
        row = tuple(cells.get(column) for column in columns)
        rows.append((number, (min(sizes), max(sizes)), n_rarer, row))
    return ComparisonTable(name, columns, tuple(rows))


def _cell(pair: Pair) -> ComparisonCell:
    return ComparisonCell(pair, pair.p_adjusted is not None and pair.p_adjusted < TOLD_APART)

"""Paired comparisons as tables: a row for what is compared, a column for the two it is compared between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """The comparisons, a table for every `Pair.of`, in their order."""
    return [_table(name, [pair for pair in pairs if pair.of == name]) for name in dict.fromkeys(p.of for p in pairs)]


def _table(name: str, pairs: Sequence[Pair]) -> ComparisonTable:
    columns = tuple(dict.fromkeys((pair.a, pair.b) for pair in pairs))
    rows = []
    for what in dict.fromkeys(pair.what for pair in pairs):
        known = {(pair.a, pair.b): _cell(pair) for pair in pairs if pair.what == what}
        numbers = [cell.pair.comparison.number for cell in known.values()]
        sizes = [number.n for number in numbers]
        rarer = [number.n_rarer for number in numbers if number.n_rarer is not None]
        of_rarer = (min(rarer), max(rarer)) if rarer else None
        rows.append((what, (min(sizes), max(sizes)), of_rarer, _row(known, columns)))
    return ComparisonTable(name, columns, tuple(rows))


def _row(
    known: Mapping[tuple[str, str], ComparisonCell], columns: Sequence[tuple[str, str]]
) -> tuple[ComparisonCell | None, ...]:
    return tuple(known.get(column) for column in columns)


def _cell(pair: Pair) -> ComparisonCell:
    return ComparisonCell(pair, pair.p_adjusted is not None and pair.p_adjusted < TOLD_APART)

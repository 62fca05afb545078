"""Content of a figure, apart from how it is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hedge_tasks.io.tables import as_csv

Kind = Literal["line", "curve", "points", "bars"]


@dataclass(frozen=True)
class Series:
    """One line, row of points or row of bars.

    Attributes:
        name: in the legend.
        x, y: of equal length. In a chart with categories x (or, in a forest, y) is the category's index.
        low, high: interval of each y (in a forest: of each x), None where there is none; both may be empty.
        kind: how it is drawn; a curve is a line without marks at its points.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()
    kind: Kind = "line"

    def __post_init__(self) -> None:
        for name, values in (("y", self.y), ("low", self.low), ("high", self.high)):
            if len(values) != len(self.x) and (values or name == "y"):
                raise ValueError(f"series {self.name!r}: {len(values)} values of {name} for {len(self.x)} of x")

    def bounds(self, i: int) -> tuple[float, float] | None:
        """Return the interval at a point, None where there is none."""
        low, high = (self.low[i], self.high[i]) if self.low and self.high else (None, None)
        return None if low is None or high is None else (low, high)


@dataclass(frozen=True)
class Chart:
    """A figure with one pair of axes.

    Attributes:
        name: short, for files and anchors, such as "roc".
        title: for people.
        x_label, y_label: of the axes.
        series: in the order of the legend.
        x_range, y_range: of the axes; None fits the data.
        categories: names of the whole numbers 0, 1, ... on the category axis.
        forest: whether the categories are on the y axis, from top to bottom, and intervals lie along x.
        diagonal: whether the line of chance is drawn.
        guides: (value on the value axis, label) of reference lines.
        note: what a reader must know; the reason where there is nothing to draw.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...] = ()
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    forest: bool = False
    diagonal: bool = False
    guides: tuple[tuple[float, str], ...] = ()
    note: str = ""

    @property
    def empty(self) -> bool:
        return not any(series.x for series in self.series)

    def to_csv(self) -> str:
        """Return one line a point: series, category (where there are any), x, y, low, high."""
        header = ["series", *(["category"] if self.categories else []), "x", "y", "low", "high"]
        return as_csv([header, *self._rows()])

    def _rows(self) -> Iterator[Sequence[object]]:
        for series in self.series:
            for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
                place = [self.categories[round(y if self.forest else x)]] if self.categories else []
                yield [series.name, *place, x, y, *(series.bounds(i) or (None, None))]

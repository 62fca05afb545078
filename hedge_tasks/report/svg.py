"""Charts as inline SVG: this module computes where things are, a template draws them, a style sheet colours them."""

# Why not matplotlib's SVG, which `hedge_tasks.report.plots.drawing` writes for papers: of the nine charts of a run of
# 400 questions it takes 2.2 s of CPU time and 172 kB where this takes 0.02 s and 49 kB, the numbers of a point cannot
# be read by pointing at it (170 texts here), and its ids clash where two figures stand on one page.

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hedge_tasks.numbers import THREE_DIGITS, format_interval
from hedge_tasks.report.figures import thinned
from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.report.texts import shortened

N_COLOURS = 6
_WIDTH, _HEIGHT = 420.0, 280.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 50.0, 14.0, 14.0, 42.0
_ROW = 30.0
_CATEGORY_CHARS = 19
# A forest of many rows, or of long names, is a figure of its own: wider, its rows closer, its names longer.
_MANY_ROWS = 8
_WIDE, _WIDE_LEFT, _WIDE_ROW, _WIDE_CHARS = 720.0, 260.0, 22.0, 38
_CLOSEST = 12.0
_CHARS_ACROSS = 50
_MANY = 40


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Mark:
    """A point with its error bar, or a bar, with the text that is shown when it is pointed at."""

    x: float
    y: float
    width: float
    height: float
    low: float | None
    high: float | None
    text: str


@dataclass(frozen=True)
class DrawnSeries:
    """A series: number of its colour, the class that colours it, and its parts in pixels."""

    name: str
    colour: int
    style: str
    kind: str
    path: str
    band: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class ChartPicture:
    """A chart in pixels; y runs downwards."""

    chart: Chart
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    series: tuple[DrawnSeries, ...]
    guides: tuple[Tick, ...]
    diagonal: str

    @property
    def wide(self) -> bool:
        """Whether it takes the whole width of a page."""
        return self.width > _WIDTH


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start), 2)


def picture(chart: Chart) -> ChartPicture:
    """Lay a chart out."""
    wide = _is_wide(chart)
    row, width = _row(chart), _WIDE if wide else _WIDTH
    height = _TOP + _BOTTOM + row * len(chart.categories) if chart.forest else _HEIGHT
    left = _WIDE_LEFT if wide else _LEFT + (95 if chart.forest else 0)
    bottom, right = height - _BOTTOM, width - _RIGHT
    x = _Scale(*_x_bounds(chart), left, right)
    y = _Scale(*_y_bounds(chart), bottom, _TOP)
    if chart.forest:
        y = _Scale(-0.5, len(chart.categories) - 0.5, _TOP, bottom)
    drawn = tuple(_draw(chart, thinned(series), i, x, y) for i, series in enumerate(chart.series))
    value_axis = x if chart.forest else y
    guides = tuple(Tick(value_axis(value), label) for value, label in chart.guides if _inside(value_axis, value))
    diagonal = f"M{x(0)} {y(0)}L{x(1)} {y(1)}" if chart.diagonal else ""
    # Side by side they share the width; the whole name is said when a bar is pointed at.
    names_room = _WIDE_CHARS if wide else _CATEGORY_CHARS
    room = names_room if chart.forest else max(3, _CHARS_ACROSS // max(len(chart.categories), 1))
    named = tuple(Tick((y if chart.forest else x)(i), shortened(name, room)) for i, name in enumerate(chart.categories))
    x_ticks = named if named and not chart.forest else _ticks(x)
    y_ticks = named if chart.forest else _ticks(y)
    return ChartPicture(chart, width, height, left, right, _TOP, bottom, x_ticks, y_ticks, drawn, guides, diagonal)


def _is_wide(chart: Chart) -> bool:
    return chart.forest and (
        len(chart.categories) > _MANY_ROWS or max(map(len, chart.categories), default=0) > _CATEGORY_CHARS
    )


def _row(chart: Chart) -> float:
    """Height of a row of a forest: its series have room beside each other."""
    return max(_WIDE_ROW if _is_wide(chart) else _ROW, _CLOSEST * len(chart.series))


def nice_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers within bounds, at most `most` of them.

    Example:
        >>> nice_ticks(0, 1), nice_ticks(0.43, 0.78)
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.5, 0.6, 0.7])
    """
    raw = (high - low) / max(most - 1, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _draw(chart: Chart, series: Series, i: int, x: _Scale, y: _Scale) -> DrawnSeries:
    from markupsafe import Markup

    colour = i % N_COLOURS
    look = (colour, f"tone-{series.tone}" if series.tone else f"c{colour}")
    places = [(x(a), y(b)) for a, b in zip(series.x, series.y, strict=True)]
    if chart.forest or series.kind in ("points", "bars"):
        return DrawnSeries(series.name, *look, series.kind, "", "", _marks(chart, series, i, x, y))
    path = "M" + "L".join(f"{a} {b}" for a, b in places) if places else ""
    bounds = [(x(a), series.bounds(k)) for k, a in enumerate(series.x)]
    banded = [(a, y(_clamp(b[0], y)), y(_clamp(b[1], y))) for a, b in bounds if b is not None]
    upper, lower = [f"{a} {h}" for a, _, h in banded], [f"{a} {low}" for a, low, _ in reversed(banded)]
    band = f"M{'L'.join([*upper, *lower])}Z" if len(banded) > 1 else ""
    marks = _marks(chart, series, i, x, y) if series.kind == "line" and len(series.x) <= _MANY else ()
    # Numbers of our own, of any length: as texts from outside they would be cut short.
    return DrawnSeries(series.name, *look, series.kind, Markup(path), Markup(band), marks)


def _marks(chart: Chart, series: Series, i: int, x: _Scale, y: _Scale) -> tuple[Mark, ...]:
    bars = [s for s in chart.series if s.kind == "bars"]
    step = min((b - a for a, b in zip(series.x, series.x[1:], strict=False)), default=1.0)
    breadth = 0.8 * abs(x(x.low + step) - x(x.low)) / max(len(bars), 1)
    row = _row(chart)
    shift = (i - (len(chart.series) - 1) / 2) * (row * 0.6 / max(len(chart.series), 1))
    marks = []
    for k, (a, b) in enumerate(zip(series.x, series.y, strict=True)):
        bounds = series.bounds(k)
        text = _text(chart, series, k)
        if chart.forest:
            low, high = (x(_clamp(v, x)) for v in bounds) if bounds else (None, None)
            marks.append(Mark(x(a), round(y(b) + shift, 2), 0, 0, low, high, text))
        elif series.kind == "bars":
            start = x(a) + breadth * (i - len(bars) / 2)
            marks.append(Mark(round(start, 2), y(b), round(breadth, 2), round(y(y.low) - y(b), 2), None, None, text))
        else:
            low, high = (y(_clamp(v, y)) for v in bounds) if bounds and series.kind == "points" else (None, None)
            marks.append(Mark(x(a), y(b), 0, 0, low, high, text))
    return tuple(marks)


def _text(chart: Chart, series: Series, i: int) -> str:
    x, y = series.x[i], series.y[i]
    bounds = series.bounds(i)
    interval = f" {format_interval(bounds)}" if bounds else ""
    if chart.forest:
        return f"{chart.categories[round(y)]}, {series.name}: {THREE_DIGITS(x)}{interval}"
    place = chart.categories[round(x)] if chart.categories else f"{x:.4g}"
    return f"{series.name}, {place}: {THREE_DIGITS(y)}{interval}"


def _x_bounds(chart: Chart) -> tuple[float, float]:
    if chart.categories and not chart.forest:
        return -0.6, len(chart.categories) - 0.4
    return chart.x_range or _spread([v for series in chart.series for v in series.x])


def _y_bounds(chart: Chart) -> tuple[float, float]:
    if chart.y_range:
        return chart.y_range
    values = [v for series in chart.series for v in (*series.y, *series.low, *series.high) if v is not None]
    if any(series.kind == "bars" for series in chart.series):
        return 0.0, max(values, default=0.0) * 1.05 or 1.0
    return _spread([*values, *(value for value, _ in chart.guides)])


def _spread(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.04 * (high - low) or 0.5
    return low - room, high + room


def _ticks(scale: _Scale) -> tuple[Tick, ...]:
    return tuple(Tick(scale(value), f"{value:g}") for value in nice_ticks(scale.low, scale.high))


def _inside(scale: _Scale, value: float) -> bool:
    return scale.low <= value <= scale.high


def _clamp(value: float, scale: _Scale) -> float:
    return min(max(value, scale.low), scale.high)

"""Figures for papers: PNG, SVG or PDF by the name's ending, in colours that the colour-blind can tell apart."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.report.plots.charts import Chart, Series

FORMATS = (".png", ".svg", ".pdf")
TABLE_FORMAT = ".csv"

# Okabe and Ito's palette: told apart by people with any kind of colour blindness.
TONES = {"supported": "#1B6E3C", "hallucinated": "#B3261E", "others": "0.6"}
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))

# Columns of a two-column paper, in inches; fonts as large as a caption's.
WIDTHS = {"column": 3.4, "page": 7.0}
_STYLE: Any = {
    "figure.dpi": 300,
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "svg.hashsalt": "hedge",  # the same figure is the same file
    "pdf.fonttype": 42,  # text stays text, as publishers ask
    "svg.fonttype": "none",
    "text.parse_math": False,  # a "$" in a model's name is no formula
}
_GREY = "0.6"


def check_format(path: Path, *, table: bool = False) -> None:
    """Refuse an ending that no figure can have, before hours of work.

    Args:
        table: whether `.csv` is one of them.

    Raises:
        ConfigError: names the endings there are.
    """
    formats = (*FORMATS, TABLE_FORMAT) if table else FORMATS
    if path.suffix.lower() not in formats:
        raise ConfigError(f"{path}: a figure's name must end with {', '.join(formats)}")


def draw(chart: Chart, path: Path, *, width: str = "column", title: bool = False) -> None:
    """Draw a chart into a file, or write its numbers where the name ends with `.csv`.

    Args:
        width: "column" (3.4 inches) or "page" (7 inches).
        title: whether the chart's title stands above it; papers have captions instead.

    Raises:
        ConfigError: an ending or a width that there is not.
        DataError: the file cannot be written.
    """
    check_format(path, table=True)
    if width not in WIDTHS:
        raise ConfigError(f"unknown width {width!r}. Valid: {', '.join(WIDTHS)}")
    if path.suffix.lower() == TABLE_FORMAT:
        write_whole(path, chart.to_csv())
        return
    with _style():
        figure = _figure(chart, WIDTHS[width])
        if title:
            figure.suptitle(chart.title)
        _save(figure, path)


def svg_of(chart: Chart, *, width: str = "page") -> str:
    """Return a chart with its title as SVG, for a notebook."""
    with _style():
        figure, text = _figure(chart, WIDTHS[width]), io.StringIO()
        figure.suptitle(chart.title)
        figure.savefig(text, format="svg")
    return text.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_STYLE):
        yield


def _figure(chart: Chart, width: float) -> Any:
    # Without pyplot there is no state to leak from one figure to the next, and no display is looked for.
    from matplotlib.figure import Figure

    rows = len(chart.categories) if chart.forest else 0
    height = max(1.2, 0.6 + 0.22 * rows) if chart.forest else min(width, 4.5) * 0.75
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    bars = [series for series in chart.series if series.kind == "bars"]
    for i, series in enumerate(chart.series):
        _draw_series(axes, chart, series, i, len(bars) or len(chart.series))
    _finish(axes, chart)
    if len(chart.series) > 1:
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": 3}
        axes.legend(**(above if chart.forest or len(chart.series) > 4 else {"loc": "best"}))
    return figure


def _draw_series(axes: Any, chart: Chart, series: Series, i: int, count: int) -> None:
    hue = i if series.look is None else series.look[0]
    colour, marker = TONES.get(series.tone) or COLOURS[hue % len(COLOURS)], MARKERS[hue % len(MARKERS)]
    bounds = [series.bounds(k) for k in range(len(series.x))]
    if chart.forest:
        y = [v + _shift(i, count) for v in series.y]
        axes.errorbar(series.x, y, xerr=_arms(series.x, bounds), fmt=marker, color=colour, label=series.name, **_ERROR)
    elif series.kind == "bars":
        step = min((b - a for a, b in zip(series.x, series.x[1:], strict=False)), default=1.0)
        breadth = 0.8 * step / count
        x = [v + breadth * (i - (count - 1) / 2) for v in series.x]
        error = _arms(series.y, bounds)
        axes.bar(x, series.y, breadth, yerr=error, color=colour, label=series.name, error_kw={"linewidth": 0.6})
    elif series.kind == "points":
        error = _arms(series.y, bounds)
        axes.errorbar(series.x, series.y, yerr=error, fmt=marker, color=colour, label=series.name, **_ERROR)
    else:
        _draw_line(axes, series, bounds, colour, marker, i)


_ERROR = {"markersize": 3, "linewidth": 0.8, "capsize": 1.5}


def _draw_line(axes: Any, series: Series, bounds: list[Any], colour: str, marker: str, i: int) -> None:
    few = series.kind == "line"
    style: dict[str, Any] = {"color": colour, "linewidth": 1, "label": series.name}
    style |= {"marker": marker, "markersize": 3} if few else {"linestyle": _DASHES[i % len(_DASHES)]}
    if series.look is not None:
        style["linestyle"] = _DASHES[series.look[1] % len(_DASHES)]
    axes.plot(series.x, series.y, **style)
    banded = [(x, b) for x, b in zip(series.x, bounds, strict=True) if b]
    if banded:
        x = [x for x, _ in banded]
        axes.fill_between(x, [b[0] for _, b in banded], [b[1] for _, b in banded], color=colour, alpha=0.15, lw=0)


def _finish(axes: Any, chart: Chart) -> None:
    if chart.diagonal:
        axes.plot([0, 1], [0, 1], color=_GREY, linewidth=0.8, linestyle=":", zorder=0)
    for value, label in chart.guides:
        line = axes.axvline if chart.forest else axes.axhline
        line(value, color=_GREY, linewidth=0.8, linestyle=":", zorder=0)
        if label and not chart.forest:
            axes.text(1, value, label, transform=axes.get_yaxis_transform(), **_GUIDE_TEXT)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if chart.x_range:
        axes.set_xlim(*_margin(chart.x_range))
    if chart.y_range:
        axes.set_ylim(*_margin(chart.y_range))
    if chart.categories:
        place = axes.set_yticks if chart.forest else axes.set_xticks
        place(range(len(chart.categories)), [_short(name) for name in chart.categories])
    if chart.forest:
        axes.set_ylim(len(chart.categories) - 0.5, -0.5)


_GUIDE_TEXT = {"fontsize": 6, "color": "0.4", "ha": "right", "va": "bottom"}


def _margin(bounds: tuple[float, float]) -> tuple[float, float]:
    room = 0.01 * (bounds[1] - bounds[0])
    return bounds[0] - room, bounds[1] + room


def _short(name: str, most: int = 28) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"


def _shift(i: int, count: int) -> float:
    return (i - (count - 1) / 2) * 0.6 / max(count, 1)


def _arms(values: tuple[float, ...], bounds: list[Any]) -> Any:
    """Lengths of error bars; nan draws none."""
    if not any(bounds):
        return None
    nan = float("nan")
    low = [max(0.0, v - b[0]) if b else nan for v, b in zip(values, bounds, strict=True)]
    high = [max(0.0, b[1] - v) if b else nan for v, b in zip(values, bounds, strict=True)]
    return [low, high]


def _save(figure: Any, path: Path) -> None:
    try:
        figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error

"""Figures for papers: PNG, SVG or PDF by the name's ending, in colours that the colour-blind can tell apart."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.report.texts import shortened

FORMATS = (".png", ".svg", ".pdf")
TABLE_FORMAT = ".csv"

# Okabe and Ito's palette: told apart by people with any kind of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))

# A column of a two-column paper, in inches; fonts as large as a caption's.
WIDTH = 3.4
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
_GUIDE_TEXT = {"fontsize": 6, "color": "0.4", "ha": "right", "va": "bottom"}
_LONGEST = 28
"""Characters of a category's name."""
_ROW = 45
"""Characters of names in a row of a legend."""


def draw(chart: Chart, path: Path) -> None:
    """Draw a chart into a file, or write its numbers where the name ends with `.csv`. Papers have titles in captions.

    Raises:
        ConfigError: an ending that there is not.
        DataError: the file cannot be written.
    """
    from matplotlib import rc_context

    ending = path.suffix.lower()
    if ending not in (*FORMATS, TABLE_FORMAT):
        raise ConfigError(f"{path}: a figure's name must end with {', '.join((*FORMATS, TABLE_FORMAT))}")
    if ending == TABLE_FORMAT:
        write_whole(path, chart.to_csv())
        return
    with rc_context(_STYLE):
        try:
            _figure(chart).savefig(path, metadata={"Date": None} if ending == ".svg" else None)
        except OSError as error:
            raise DataError(f"cannot write {path}: {error.strerror}") from error


def svg_of(chart: Chart, *, title: bool = True) -> str:
    """Return a chart as SVG, for a notebook or a page.

    Args:
        title: whether its title stands above it.
    """
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context(_STYLE):
        figure = _figure(chart)
        if title:
            figure.suptitle(chart.title)
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def _figure(chart: Chart) -> Any:
    # Without pyplot there is no state to leak from one figure to the next, and no display is looked for.
    from matplotlib.figure import Figure

    rows = len(chart.categories) if chart.forest else 0
    height = max(1.2, 0.6 + 0.22 * rows) if chart.forest else WIDTH * 0.75
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    for i, series in enumerate(chart.series):
        _draw_series(axes, series, i, len(chart.series))
    _finish(axes, chart)
    if len(chart.series) > 1:
        columns = min(3, max(1, _ROW // max(len(series.name) for series in chart.series)))
        above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "ncols": columns}
        axes.legend(**(above if chart.forest or len(chart.series) > 4 else {"loc": "best"}))
    return figure


def _draw_series(axes: Any, series: Series, i: int, count: int) -> None:
    colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
    about = {"color": colour, "label": series.name}
    place = (i - (count - 1) / 2) / count
    if series.kind == "points":
        arms = _arms(series)
        y = [v + 0.6 * place for v in series.y]
        axes.errorbar(series.x, y, xerr=arms, fmt=marker, markersize=3, linewidth=0.8, capsize=1.5, **about)
    elif series.kind == "bars":
        axes.bar([v + 0.8 * place for v in series.x], series.y, 0.8 / count, **about)
    elif series.kind == "line":
        axes.plot(series.x, series.y, linewidth=1, marker=marker, markersize=3, **about)
        low, high = ([math.nan if v is None else v for v in bounds] for bounds in (series.low, series.high))
        if low:
            axes.fill_between(series.x, low, high, color=colour, alpha=0.15, linewidth=0)
    else:
        axes.plot(series.x, series.y, linewidth=1, linestyle=_DASHES[i % len(_DASHES)], **about)


def _arms(series: Series) -> Any:
    """Return lengths of error bars, shape `(2, n)`; nan draws none."""
    bounds = [series.bounds(i) or (math.nan, math.nan) for i in range(len(series.x))]
    return np.abs(np.array(bounds).reshape(-1, 2).T - np.array(series.x))


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
    for bounds, limit in ((chart.x_range, axes.set_xlim), (chart.y_range, axes.set_ylim)):
        if bounds:
            room = 0.01 * (bounds[1] - bounds[0])
            limit(bounds[0] - room, bounds[1] + room)
    if chart.categories:
        names = range(len(chart.categories)), [shortened(name, _LONGEST) for name in chart.categories]
        if chart.forest:
            axes.set_yticks(*names)
        else:
            axes.set_xticks(*names, rotation=30, ha="right")
    if chart.forest:
        axes.set_ylim(len(chart.categories) - 0.5, -0.5)

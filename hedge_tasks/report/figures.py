"""Surroundings of a chart on a page: its caption, and its numbers for saving."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

import numpy as np

from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.report.texts import clean, script_json

if TYPE_CHECKING:
    from markupsafe import Markup

_POINTS = 400
"""Of a curve: no screen shows more."""

_LONGEST = 200


def caption_of(chart: Chart) -> str:
    """Return what a figure shows, for readers from outside the field; "" for a chart that is not known.

    Example:
        >>> caption_of(Chart("distribution-se", "", "", ""))
        'How the scores of hallucinated ...'
    """
    captions = _captions()
    return captions.get(chart.name) or captions.get(chart.name.partition("-")[0], "")


def numbers_of(chart: Chart) -> Markup:
    """Return a chart's name and numbers (as `Chart.to_csv` has them) as JSON for a script element.

    Curves are thinned to some hundred points, as they are drawn.
    """
    from markupsafe import Markup

    categories = tuple(clean(name, _LONGEST) for name in chart.categories)
    series = tuple(replace(thinned(curve), name=clean(curve.name, _LONGEST)) for curve in chart.series)
    csv = replace(chart, categories=categories, series=series).to_csv()
    # Safe: nothing in it can end the script element it stands in.
    return Markup(script_json({"name": chart.name, "title": clean(chart.title, _LONGEST), "csv": csv}))


def thinned(series: Series) -> Series:
    """Return a curve with at most some hundred of its points, first and last included; other series as they are."""
    if series.kind != "curve" or len(series.x) <= _POINTS:
        return series
    chosen = np.unique(np.linspace(0, len(series.x) - 1, _POINTS).astype(int)).tolist()
    columns = (series.x, series.y, series.low, series.high)
    x, y, low, high = (tuple(values[i] for i in chosen) if values else () for values in columns)
    return replace(series, x=x, y=y, low=low, high=high)


@cache
def _captions() -> Mapping[str, str]:
    return tomllib.loads((resources.files(__package__) / "assets" / "captions.toml").read_text("utf-8"))

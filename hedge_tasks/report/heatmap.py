"""Several runs at a glance: models by tasks, a panel for every number that they have, and their paired comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.io.tables import as_csv
from hedge_tasks.plots.figures import categories_chart, rates_chart
from hedge_tasks.report.analysis import Analysis, compare_between, hallucination_rate
from hedge_tasks.report.comparisons import tables_of
from hedge_tasks.report.svg import picture
from hedge_tasks.report.texts import clean, script_json
from hedge_tasks.runs.model_names import short_names
from hedge_tasks.statistics import Estimate, Measured

if TYPE_CHECKING:
    from markupsafe import Markup

LEVELS = 9
"""Shades of a cell above none."""

_MOST_COMPARED = 6
"""Runs of more models than this are not compared in pairs: nobody reads fifteen pairs a score."""

_MODEL = 200
_HALF = 0.5


@dataclass(frozen=True)
class Scale:
    """How a number becomes a shade.

    Attributes:
        low, high: values without a shade, and of the darkest.
        good: whether the darkest is the best.
        digits: that are shown.
        percent: whether it is shown in per cent.
    """

    low: float
    high: float
    good: bool
    digits: int = 3
    percent: bool = False

    def level(self, value: float) -> int:
        """Number of the shade, from 0 to `LEVELS`."""
        share = (value - self.low) / (self.high - self.low)
        return round(LEVELS * min(max(share, 0.0), 1.0))

    def text(self, value: float) -> str:
        """The number as it is shown."""
        return f"{100 * value:.1f} %" if self.percent else f"{value:.{self.digits}f}"


@dataclass(frozen=True)
class Cell:
    """The number of one run.

    Attributes:
        run: its place on the page.
        text, interval: as they are shown; the interval "" where there is none.
        level: its shade.
        found: the number; its value is None where it is undefined.
    """

    run: int
    text: str
    interval: str
    level: int
    found: Estimate | Measured


@dataclass(frozen=True)
class Panel:
    """One number of all runs.

    Attributes:
        name, about: what it is.
        scale: of its shades.
        rows: short name of a model, its whole name, and a cell a run, for every task.
        numbers: name, title and CSV, for whoever saves it.
    """

    name: str
    about: str
    scale: Scale
    rows: tuple[tuple[str, str, tuple[tuple[Cell, ...], ...]], ...]
    numbers: Markup

    @property
    def defined(self) -> int:
        """How many runs have the number."""
        return sum(cell.found.value is not None for _, _, row in self.rows for cells in row for cell in cells)


Found = Mapping[int, Estimate | Measured | None]

_AUROC = Scale(_HALF, 1.0, good=True)
_RATE = Scale(0.0, 1.0, good=False, percent=True)


def side_by_side(analyses: Sequence[Analysis], names: Sequence[str]) -> dict[str, Any]:
    """What the page shows of several runs together.

    Args:
        names: of the runs, no two the same.
    """
    models = short_names([_model(a) for a in analyses])
    tasks = sorted({a.run.task for a in analyses})
    few = all(sum(a.run.task == task for a in analyses) <= _MOST_COMPARED for task in tasks)
    within_task = names_within_tasks(analyses, names)
    pairs = compare_between(analyses, dict(enumerate(within_task))) if few else []
    labelled = list(zip(within_task if len(tasks) == 1 else names, (a.run for a in analyses), strict=True))
    categories = categories_chart(labelled)
    charts = [*([] if categories.empty else [categories]), rates_chart(labelled)]
    return {
        "tasks": tasks,
        # What most runs have stands first.
        "panels": sorted(_panels(analyses, models, tasks), key=lambda panel: -panel.defined),
        "levels": LEVELS,
        "n_pairs": len(pairs),
        "comparisons": tables_of(pairs),
        "many": None if few else _MOST_COMPARED,
        "pictures": [picture(chart) for chart in charts],
    }


def names_within_tasks(analyses: Sequence[Analysis], names: Sequence[str]) -> list[str]:
    """The models' short names where a task has each only once, else the names of the runs."""
    models = short_names([_model(a) for a in analyses])
    place = [(a.run.task, models[_model(a)]) for a in analyses]
    return [name if place.count(at) > 1 else at[1] for name, at in zip(names, place, strict=True)]


def _panels(analyses: Sequence[Analysis], models: Mapping[str, str], tasks: Sequence[str]) -> Iterator[Panel]:
    led = {metric.title: metric for a in analyses for metric, _ in a.suite if metric.leads}
    for title, metric in led.items():
        found = {i: next((f for m, f in a.suite if m.title == title), None) for i, a in enumerate(analyses)}
        better = "Higher is better." if metric.higher_is_better else "Lower is better."
        scale = Scale(*metric.bounds, metric.higher_is_better)
        yield _panel(title, f"{metric.about} {better}", scale, found, analyses, models, tasks)
    rates = {i: hallucination_rate(a) for i, a in enumerate(analyses)}
    about = "Share of the labelled baseline answers that the judge calls hallucinated. Lower is better."
    yield _panel("hallucination rate", about, _RATE, rates, analyses, models, tasks)
    for clustering in dict.fromkeys(clustering for a in analyses for clustering in a.scores):
        for score in dict.fromkeys(score for a in analyses for score in a.shown):
            found = {i: a.estimates.get(clustering, {}).get(score) for i, a in enumerate(analyses)}
            about = f"ROC-AUC of {name_of(score)}, clustering {clustering}: how well it finds the hallucinations."
            yield _panel(f"{clustering}, {name_of(score)}", about, _AUROC, found, analyses, models, tasks)


def _panel(
    name: str,
    about: str,
    scale: Scale,
    found: Found,
    analyses: Sequence[Analysis],
    models: Mapping[str, str],
    tasks: Sequence[str],
) -> Panel:
    places: dict[tuple[str, str], list[Cell]] = {}
    for i, analysis in enumerate(analyses):
        if (one := found[i]) is not None:
            places.setdefault((_model(analysis), analysis.run.task), []).append(_cell(i, one, scale))
    rows = tuple(
        (short, model, tuple(tuple(places.get((model, task), ())) for task in tasks)) for model, short in models.items()
    )
    return Panel(name, about, scale, rows, _numbers(name, rows, tasks))


def _cell(run: int, found: Estimate | Measured, scale: Scale) -> Cell:
    if found.value is None:
        return Cell(run, "undefined", "", 0, found)
    bounds = f"[{scale.text(found.interval[0])}, {scale.text(found.interval[1])}]" if found.interval else ""
    return Cell(run, scale.text(found.value), bounds, scale.level(found.value), found)


def _numbers(name: str, rows: Sequence[tuple[str, str, Sequence[Sequence[Cell]]]], tasks: Sequence[str]) -> Markup:
    from markupsafe import Markup

    lines: list[list[object]] = [["model", "task", name, "low", "high", "documents"]]
    for _, model, cells in rows:
        for task, runs in zip(tasks, cells, strict=True):
            found = [cell.found for cell in runs]
            lines += [[model, task, f.value, *(f.interval or (None, None)), f.n] for f in found]
    # Safe: nothing in it can end the script element it stands in.
    return Markup(script_json({"name": name, "title": name, "csv": as_csv(lines)}))


def _model(analysis: Analysis) -> str:
    return clean(analysis.run.model, _MODEL) or "unnamed model"

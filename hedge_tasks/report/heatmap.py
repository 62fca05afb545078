"""Several runs at a glance: heat maps of the numbers that they have, and their paired comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.io.tables import as_csv
from hedge_tasks.measures.curves import hallucination_rate
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.numbers import PERCENT, Format, Number
from hedge_tasks.report.analysis import Analysis, compare_between
from hedge_tasks.report.comparisons import tables_of
from hedge_tasks.report.plots.figures import categories_chart, rates_chart
from hedge_tasks.report.svg import picture
from hedge_tasks.report.texts import clean, script_json
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.model_names import short_names

if TYPE_CHECKING:
    from markupsafe import Markup

LEVELS = 9
"""Shades of a cell above none."""

_MOST_COMPARED = 6
"""Runs of more models than this are not compared in pairs: fifteen pairs a score are too many to read."""

_MODEL = 200
_HALF = 0.5


@dataclass(frozen=True)
class Scale:
    """How a number becomes a shade.

    Attributes:
        low, high: values without a shade, and of the strongest.
        good: whether the strongest is the best.
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
        """Return the number as it is shown."""
        return PERCENT(value) if self.percent else Format(self.digits)(value)


@dataclass(frozen=True)
class HeatMapCell:
    """The number of one run.

    Attributes:
        run: its place on the page.
        text, interval: as they are shown; the interval "" where there is none.
        level: its shade.
        good: whether the strongest shade is the best.
        number: its value is None where it is undefined, and it is None where the run has no such number.
    """

    run: int
    text: str
    interval: str
    level: int
    good: bool
    number: Number | None

    @property
    def value(self) -> float | None:
        """The number; None where there is none."""
        return self.number.value if self.number else None


@dataclass(frozen=True)
class NumberOfRuns:
    """A number that runs have.

    Attributes:
        name, about: what it is.
        clustering: under which it was found; None for what has none.
        scale: of its shades.
        by_run: the number by the run's place; None where a run has no such number.
    """

    name: str
    about: str
    clustering: str | None
    scale: Scale
    by_run: Mapping[int, Number | None]


@dataclass(frozen=True)
class HeatMap:
    """A heat map: models by tasks of one number, or models by numbers of one task.

    Attributes:
        name, title, about: what it shows.
        scale: of the shades; None where columns have their own.
        columns: their names.
        rows: short name of a model, its whole name, and its runs' cells in every column.
        numbers: name, title and CSV, for saving.
    """

    name: str
    title: str
    about: str
    scale: Scale | None
    columns: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[tuple[HeatMapCell, ...], ...]], ...]
    numbers: Markup

    @property
    def defined(self) -> int:
        """How many cells have a number."""
        return sum(cell.value is not None for _, _, row in self.rows for cells in row for cell in cells)


_AUROC = Scale(_HALF, 1.0, good=True)
_RATE = Scale(0.0, 1.0, good=False, percent=True)


def side_by_side(analyses: Sequence[Analysis], names: Sequence[str]) -> dict[str, Any]:
    """Return what the page shows of several runs together.

    Args:
        names: of the runs, no two the same.
    """
    tasks = sorted({a.run.task for a in analyses})
    few = all(sum(a.run.task == task for a in analyses) <= _MOST_COMPARED for task in tasks)
    within_task = names_within_tasks(analyses, names)
    pairs = compare_between(analyses, dict(enumerate(within_task))) if few else []
    labelled = list(zip(within_task if len(tasks) == 1 else names, (a.run for a in analyses), strict=True))
    categories = categories_chart(labelled)
    charts = [*([] if categories.empty else [categories]), rates_chart(labelled)]
    unreliable = {i: reason for i, a in enumerate(analyses) if (reason := health_of(a.run).unreliable)}
    if len(tasks) == 1:
        panels = _panels_by_clustering(analyses, within_task)
    else:
        panels = _panels_by_number(analyses, tasks, within_task)
    return {
        "unreliable": {i: (names[i], reason) for i, reason in unreliable.items()},
        "panels": panels,
        "choice": "Clustering" if len(tasks) == 1 else "Number",
        "levels": LEVELS,
        "n_pairs": len(pairs),
        "comparisons": tables_of(pairs),
        "many": None if few else _MOST_COMPARED,
        "pictures": [picture(chart) for chart in charts],
    }


def names_within_tasks(analyses: Sequence[Analysis], names: Sequence[str]) -> list[str]:
    """Return the models' short names where a task has each only once, else the names of the runs without the task."""
    models = short_names([_model(a) for a in analyses])
    place = [(a.run.task, models[_model(a)]) for a in analyses]
    return [
        name.removeprefix(f"{at[0]} · ") if place.count(at) > 1 else at[1]
        for name, at in zip(names, place, strict=True)
    ]


def _panels_by_number(analyses: Sequence[Analysis], tasks: Sequence[str], names: Sequence[str]) -> list[HeatMap]:
    """Models by tasks, a panel for every number; what most runs have stands first."""
    panels = []
    for number in _numbers(analyses):
        name = number.name if number.clustering is None else f"{number.clustering}, {number.name}"
        columns = [(task, number, {i for i, a in enumerate(analyses) if a.run.task == task}) for task in tasks]
        panels.append(_panel(name, number.about, number.scale, columns, analyses, names))
    return sorted(panels, key=lambda panel: -panel.defined)


def _panels_by_clustering(analyses: Sequence[Analysis], names: Sequence[str]) -> list[HeatMap]:
    """Models by numbers, a panel for every clustering."""
    numbers, everywhere = list(_numbers(analyses)), set(range(len(analyses)))
    general = [number for number in numbers if number.clustering is None]
    panels = []
    for clustering in dict.fromkeys(number.clustering for number in numbers if number.clustering is not None) or [""]:
        columns = [(n.name, n, everywhere) for n in (*general, *(n for n in numbers if n.clustering == clustering))]
        panels.append(_panel(clustering, " ".join(n.about for n in general), None, columns, analyses, names))
    return panels


def _numbers(analyses: Sequence[Analysis]) -> Iterator[NumberOfRuns]:
    led = {metric.title: metric for a in analyses for metric, _ in a.suite if metric.leads}
    for title, metric in led.items():
        of_runs = {i: next((f for m, f in a.suite if m.title == title), None) for i, a in enumerate(analyses)}
        better = "Higher is better." if metric.higher_is_better else "Lower is better."
        scale = Scale(*metric.bounds, metric.higher_is_better)
        yield NumberOfRuns(title, f"{title}: {metric.about} {better}", None, scale, of_runs)
    rates = {i: hallucination_rate(a.run.answer_sets) for i, a in enumerate(analyses)}
    title, about = HALLUCINATION_RATE.title, HALLUCINATION_RATE.about
    yield NumberOfRuns(title, f"{title.capitalize()}: {about} Lower is better.", None, _RATE, rates)
    for clustering in dict.fromkeys(clustering for a in analyses for clustering in a.scores):
        for score in dict.fromkeys(score for a in analyses for score in a.shown):
            estimates = {i: a.estimates.get(clustering, {}).get(score) for i, a in enumerate(analyses)}
            explanation = f"ROC-AUC of {name_of(score)}, clustering {clustering}: how well it finds the hallucinations."
            yield NumberOfRuns(name_of(score), explanation, clustering, _AUROC, estimates)


def _panel(
    name: str,
    about: str,
    scale: Scale | None,
    columns: Sequence[tuple[str, NumberOfRuns, Set[int]]],
    analyses: Sequence[Analysis],
    names: Sequence[str],
) -> HeatMap:
    """Return columns: each with its name, its number, and the places of the runs that may stand in it.

    A row is a model; of a model with several runs of a task each run is a row, by its name.
    """
    models = short_names([_model(a) for a in analyses])
    rows = []
    for model, short in models.items():
        runs = [i for i, a in enumerate(analyses) if _model(a) == model]
        several = any(len(places & set(runs)) > 1 for _, _, places in columns)
        for row, of_row in [(names[i], [i]) for i in runs] if several else [(short, runs)]:
            cells = (tuple(_cells(number, [i for i in of_row if i in places])) for _, number, places in columns)
            rows.append((row, model, tuple(cells)))
    together = f"Models and their numbers{', clustering ' + name if name else ''}"
    title = together if scale is None else name[:1].upper() + name[1:]
    csv = _csv([number for _, number, _ in columns], analyses)
    return HeatMap(name, title, about, scale, tuple(c for c, _, _ in columns), tuple(rows), _csv_for_script(title, csv))


def _cells(number: NumberOfRuns, runs: Sequence[int]) -> Iterator[HeatMapCell]:
    scale = number.scale
    for run in runs:
        estimate = number.by_run[run]
        if estimate is None or estimate.value is None:
            yield HeatMapCell(run, "not there" if estimate is None else "undefined", "", 0, scale.good, estimate)
        else:
            bounds = f"[{', '.join(map(scale.text, estimate.interval))}]" if estimate.interval else ""
            value = estimate.value
            yield HeatMapCell(run, scale.text(value), bounds, scale.level(value), scale.good, estimate)


def _csv(numbers: Sequence[NumberOfRuns], analyses: Sequence[Analysis]) -> str:
    lines: list[Sequence[object]] = [("model", "task", "number", "value", "low", "high", "documents")]
    for number in {number.name: number for number in numbers}.values():
        for i, analysis in enumerate(analyses):
            if (f := number.by_run[i]) is not None:
                names = (_model(analysis), analysis.run.task, number.name)
                lines.append((*names, f.value, *(f.interval or (None, None)), f.n))
    return as_csv(lines)


def _csv_for_script(title: str, csv: str) -> Markup:
    from markupsafe import Markup

    # Safe: nothing in it can end the script element it stands in.
    return Markup(script_json({"name": "models", "title": title, "csv": csv}))


def _model(analysis: Analysis) -> str:
    return clean(analysis.run.model, _MODEL) or "unnamed model"

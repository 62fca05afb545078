"""The figures of a run, as charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, name_of
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.measures.curves import labelled, risk_coverage, roc_curve
from hedge_tasks.numbers import THREE_DIGITS, Number
from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.statistics import auroc

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.measures.sweep import Point
    from hedge_tasks.runs.run_files import Run

_UNIT = (0.0, 1.0)
_NEAR_CHANCE = 0.4
_CHANCE = ((0.5, "chance"),)
_CURVE_POINTS = 400
_TOO_FEW = "needs five answers labelled hallucinated and five labelled supported"


def roc_chart(scores: Sequence[Scores], detectors: Sequence[str] = SCORE_NAMES) -> Chart:
    """ROC curves, with the area under each in the legend."""
    series = []
    for name in detectors:
        # As few as have no ROC-AUC have no curve either.
        if (area := detection_auroc(scores, name).value) is not None:
            x, y = roc_curve(labelled(scores, name))
            title = f"{name_of(name)} ({THREE_DIGITS(area)})"
            series.append(Series(title, tuple(x.tolist()), tuple(y.tolist()), kind="curve"))
    labels = ("supported answers flagged", "hallucinations flagged")
    chart = Chart("roc", "ROC curves", *labels, tuple(series), _UNIT, _UNIT, diagonal=True)
    return _or_note(chart, _TOO_FEW)


def risk_coverage_chart(
    scores: Sequence[Scores], detectors: Sequence[str] = SCORE_NAMES, *, declined: int = 0
) -> Chart:
    """Share of hallucinations among the answers that are kept, when those with the highest scores are withheld.

    Args:
        declined: as many answers more were declined, and are never kept.
    """
    series, rates = [], []
    for name in detectors:
        data = labelled(scores, name)
        if len(data.values):
            curve = risk_coverage(data, declined)
            x, y = _thinned(curve.x, curve.y)
            series.append(Series(name_of(name), x, y, kind="curve"))
            rates.append(y[-1])
    guides = ((rates[0], "all answers"),) if rates else ()
    labels = ("share of answers kept", "hallucinations among them")
    top = max((max(s.y) for s in series), default=1.0)
    chart = Chart("risk-coverage", "Risk and coverage", *labels, tuple(series), _UNIT, (0.0, top or 1.0), guides=guides)
    return _or_note(chart, "no answer has a label")


def detectors_chart(estimates: Mapping[str, Mapping[str, Number]]) -> Chart:
    """ROC-AUC of every detector, the best on top; a colour each clustering (filter)."""
    best: dict[str, float] = {}
    for detector, number in (pair for by_detector in estimates.values() for pair in by_detector.items()):
        if number.value is not None:
            best[detector] = max(best.get(detector, 0.0), number.value)
    rows = sorted(best, key=lambda detector: -best[detector])
    series = [_forest_series(name, [numbers.get(row) for row in rows]) for name, numbers in estimates.items()]
    chart = _forest("detectors", "Detectors", series, tuple(map(name_of, rows)))
    return _or_note(chart, _TOO_FEW)


def auroc_start(values: Sequence[float]) -> float:
    """Return where an axis of ROC-AUCs begins: at 0.4, or at the tenth below the lowest value."""
    return max(0.0, min(_NEAR_CHANCE, math.floor(10 * min(values, default=0.0)) / 10))


def sweep_chart(points: Sequence[Point]) -> Chart:
    """ROC-AUC against the number of clean and noisy answers, with its 95 % interval as a band: HEDGE Figure 2."""
    series = []
    for score in dict.fromkeys(point.score for point in points):
        numbers = {float(p.n): p.estimate for p in points if p.score == score and p.estimate.value is not None}
        if numbers:
            values = tuple(number.value or 0.0 for number in numbers.values())
            series.append(Series(name_of(score), tuple(numbers), values, *_bounds(numbers.values())))
    labels = ("clean and noisy answers each (n)", "ROC-AUC")
    chart = Chart("n", "ROC-AUC against the number of answers", *labels, tuple(series), guides=_CHANCE)
    return _or_note(chart, _TOO_FEW)


def threshold_chart(run: Run, scorer: Scorer, steps: int = 41) -> Chart:
    """ROC-AUC of SE, RadFlag and VASE against the cosine threshold of embedding clustering: HEDGE Figure 3.

    Raises:
        ConfigError: the clustering has no threshold.
        DataError: a document cannot be scored at a threshold.
    """
    from hedge_tasks.detectors.thresholds.profile import profile_documents
    from hedge_tasks.errors import ConfigError, DataError

    backend: Any = scorer.backend
    if not hasattr(backend, "dendrograms"):
        raise ConfigError(f"{scorer.name}: only embedding clustering has a threshold")
    sets = [a for a in run.answer_sets if a.clean and a.label is not None and not a.held_out]
    thresholds = np.linspace(0.5, 1.0, steps)
    trees = backend.dendrograms([a.texts for a in sets], scorer.questions(sets))
    try:
        profiles = profile_documents(sets, trees, alpha=scorer.alpha, low=0.5, high=1.0)
    except ValueError as error:
        raise DataError(str(error)) from error
    series = []
    for name in SCORE_NAMES:
        scored = [(profile, profile.scores[name]) for profile in profiles if name in profile.names]
        labels = [int(bool(profile.label)) for profile, _ in scored]
        if set(labels) == {0, 1}:
            columns = [[values[np.searchsorted(p.thresholds, t)] for p, values in scored] for t in thresholds]
            areas = tuple(auroc(column, labels) for column in columns)
            series.append(Series(name_of(name), tuple(thresholds.tolist()), areas, kind="curve"))
    note = f"The run used {backend.threshold:g}. A threshold read off this curve is chosen on the reported documents."
    title, axes = f"ROC-AUC against the threshold, {scorer.name}", ("cosine threshold (τ)", "ROC-AUC")
    chart = Chart("threshold", title, *axes, tuple(series), guides=_CHANCE)
    return replace(chart, note=note if series else _TOO_FEW)


def categories_chart(runs: Sequence[tuple[str, Run]]) -> Chart:
    """Share of the judged answers in each category of the judge: Med-HallMark Figures 2c and 15."""
    counts = {
        name: Counter(str(v["category"]) for v in run.verdicts.values() if v.get("category")) for name, run in runs
    }
    categories = tuple(dict.fromkeys(category for counter in counts.values() for category in sorted(counter)))
    series = []
    for name, counter in counts.items():
        if total := sum(counter.values()):
            shares = tuple(counter[category] / total for category in categories)
            series.append(Series(name, tuple(map(float, range(len(categories)))), shares, kind="bars"))
    labels = ("", "share of the answers")
    chart = Chart("categories", "The judge's categories", *labels, tuple(series), categories=categories)
    return _or_note(chart, "the judge tells no categories")


def relevance_chart(run: Run) -> Chart:
    """Numbers of absent objects by relevance score: hallucinated ones (VOPE Figure 7) and imagined ones (Figure 8)."""
    objects = (entry for verdict in run.verdicts.values() for entry in verdict.get("objects") or [])
    counts = Counter((entry["kind"], entry["relevance"][0]) for entry in objects if entry.get("relevance"))
    scores = range(1, 4)
    rated = tuple(
        Series(kind.replace("_", " "), (0.0, 1.0, 2.0), tuple(counts[kind, score] for score in scores), kind="bars")
        for kind in sorted({kind for kind, _ in counts})
    )
    title, labels = "Relevance of objects that are not in the image", ("relevance", "number of objects")
    chart = Chart("relevance", title, *labels, rated, categories=tuple(f"score {score}" for score in scores))
    return _or_note(chart, "no object was rated (a judge with the prompt vope_relevance rates them)")


def _forest(name: str, title: str, series: Sequence[Series], categories: tuple[str, ...]) -> Chart:
    """Return ROC-AUCs along x, a category a row; the axis begins at 0.4, or lower where values or intervals do."""
    drawn = tuple(points for points in series if points.x)
    x_range = auroc_start([v for points in drawn for v in (*points.x, *points.low) if v is not None]), 1.0
    return Chart(name, title, "ROC-AUC", "", drawn, x_range, categories=categories, forest=True, guides=_CHANCE)


def _forest_series(name: str, numbers: Sequence[Number | None]) -> Series:
    """Return a point for each number that is defined, in the row of its place."""
    rows = [(float(i), n, n.value) for i, n in enumerate(numbers) if n is not None and n.value is not None]
    low, high = _bounds([n for _, n, _ in rows])
    return Series(name, tuple(v for *_, v in rows), tuple(i for i, *_ in rows), low, high, "points")


def _bounds(numbers: Iterable[Number]) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    pairs = [(number.low, number.high) for number in numbers]
    return tuple(low for low, _ in pairs), tuple(high for _, high in pairs)


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return at most some hundred of the points, the first and last among them: no screen shows more."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), _CURVE_POINTS)).astype(int))
    return tuple(x[chosen].tolist()), tuple(y[chosen].tolist())


def _or_note(chart: Chart, reason: str) -> Chart:
    return replace(chart, note=reason) if chart.empty else chart

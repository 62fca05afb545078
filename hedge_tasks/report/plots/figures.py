"""The figures of a run, as charts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, main_detectors, name_of, score_clustered
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.measures.curves import (
    calibrated,
    hallucination_rate,
    labelled,
    risk_coverage,
    roc_curve,
    within_strata,
)
from hedge_tasks.numbers import THREE_DIGITS, Number
from hedge_tasks.report.plots.charts import Chart, Series, Tone
from hedge_tasks.statistics import auroc
from hedge_tasks.statistics.base import FloatArray

if TYPE_CHECKING:
    from hedge_tasks.clustering.dendrogram import Dendrogram
    from hedge_tasks.data.answers import AnswerSet
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.measures.detector_table import Rank
    from hedge_tasks.measures.sweep import Point
    from hedge_tasks.runs.run_files import Run

_UNIT = (0.0, 1.0)
_NEAR_CHANCE = 0.4
_CHANCE = ((0.5, "chance"),)
_N_BINS = 20
_CURVE_POINTS = 400
_MOST_COLOURS = 6
_BOTH_KINDS = "clean and noisy answers each (n)"
_SAMPLES = "samples per question, besides the baseline answer"
_TOO_FEW = "needs answers labelled hallucinated and answers labelled supported"


def roc_chart(scores: Sequence[Scores], detectors: Sequence[str] = SCORE_NAMES) -> Chart:
    """ROC curves, with the area under each in the legend."""
    series = []
    for name in detectors:
        data = labelled(scores, name)
        if data.both_classes:
            x, y = roc_curve(data)
            area = float(np.trapezoid(y, x))
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


def distribution_chart(scores: Sequence[Scores], name: str) -> Chart:
    """How often each value of a score occurs among hallucinated and among supported answers, as shares of each."""
    data = labelled(scores, name)
    title = f"{name_of(name)} by label"
    chart = Chart(f"distribution-{name}", title, name_of(name), "share of the answers", y_range=None)
    if not len(data.values) or not np.isfinite(data.values).all():
        return replace(chart, note="no answer has a label" if not len(data.values) else "some scores are infinite")
    low, high = float(data.values.min()), float(data.values.max())
    edges = np.linspace(low, high if high > low else low + 1, _N_BINS + 1)
    centres = tuple(((edges[1:] + edges[:-1]) / 2).tolist())
    series = []
    outcomes: tuple[tuple[int, Tone], ...] = ((0, "supported"), (1, "hallucinated"))
    for label, text in outcomes:
        chosen = data.values[data.labels == label]
        if len(chosen):
            counts = np.histogram(chosen, edges)[0] / len(chosen)
            name = f"{text} (n = {len(chosen)})"
            series.append(Series(name, centres, tuple(counts.tolist()), kind="bars", tone=text))
    return replace(chart, series=tuple(series), x_range=(float(edges[0]), float(edges[-1])))


def calibration_chart(scores: Sequence[Scores], detectors: Sequence[str] = SCORE_NAMES) -> Chart:
    """Reliability diagram: hallucinated share against the probability that isotonic regression makes of a score."""
    series = []
    for name in detectors:
        calibration = calibrated(labelled(scores, name))
        if calibration.ece is not None:
            low, high = tuple(b.interval[0] for b in calibration.bins), tuple(b.interval[1] for b in calibration.bins)
            x, y = tuple(b.probability for b in calibration.bins), tuple(b.share for b in calibration.bins)
            series.append(Series(f"{name_of(name)} (ECE {THREE_DIGITS(calibration.ece)})", x, y, low, high, "points"))
    labels = ("predicted probability", "hallucinated share")
    chart = Chart("calibration", "Calibration", *labels, tuple(series), _UNIT, _UNIT, diagonal=True)
    note = "Scores made probabilities by isotonic regression; no answer is predicted by a fit that has seen it."
    return replace(chart, note=note if series else _TOO_FEW)


def strata_chart(scores: Sequence[Scores], detectors: Sequence[str] = SCORE_NAMES) -> Chart:
    """ROC-AUC pooled, within strata, and of each question type."""
    by_detector = {name: within for name in detectors if (within := within_strata(scores, name)) is not None}
    if not by_detector:
        note = "the questions have no types, or only one"
        return Chart("question-types", "By question type", "ROC-AUC", "", note=note)
    kinds = list(dict.fromkeys(str(key) for within in by_detector.values() for key in within.strata))
    categories = ("pooled", "within types", *kinds)
    series = []
    for name, within in by_detector.items():
        by_kind = {str(key): estimate for key, estimate in within.strata.items()}
        pooled = detection_auroc(scores, name)
        rows = [
            (pooled.value, pooled.interval),
            (within.value, within.interval),
            *((e.value, e.interval) for e in map(by_kind.get, kinds) if e is not None),
        ]
        series.append(_forest_series(name_of(name), [(i, v, b) for i, (v, b) in enumerate(rows) if v is not None]))
    x_range, labels = auroc_range(series), ("By question type", "ROC-AUC", "")
    chart = Chart("question-types", *labels, tuple(series), x_range, categories=categories, forest=True)
    return replace(chart, guides=_CHANCE)


def detectors_chart(estimates: Mapping[str, Mapping[str, Number]]) -> Chart:
    """ROC-AUC of every detector under each clustering (filter).

    Few detectors are colours, and clusterings are rows; many are rows, since twenty colours cannot be told apart.
    """
    cells = {(c, name_of(d)): e for c, of_clustering in estimates.items() for d, e in of_clustering.items()}
    cells = {key: e for key, e in cells.items() if e.value is not None}
    names = tuple(dict.fromkeys(name for _, name in cells))
    clusterings = tuple(estimates)
    if len(names) > _MOST_COLOURS:
        best = {name: max(e.value or 0.0 for (_, detector), e in cells.items() if detector == name) for name in names}
        rows, colours = tuple(sorted(names, key=lambda name: -best[name])), clusterings
        cells = {(name, clustering): e for (clustering, name), e in cells.items()}
    else:
        rows, colours = clusterings, names
    series = []
    for colour in colours:
        points = [(i, e.value or 0.0, e.interval) for i, row in enumerate(rows) if (e := cells.get((row, colour)))]
        if points:
            series.append(_forest_series(colour, points))
    x_range = auroc_range(series)
    chart = Chart("detectors", "Detectors", "ROC-AUC", "", tuple(series), x_range, categories=rows, forest=True)
    return _or_note(replace(chart, guides=_CHANCE), _TOO_FEW)


def auroc_range(series: Sequence[Series]) -> tuple[float, float]:
    """Return the ends of a horizontal axis of ROC-AUCs; it begins at 0.4, or lower where values or intervals do."""
    values = [v for points in series for v in (*points.x, *points.low) if v is not None]
    return auroc_start(values), 1.0


def auroc_start(values: Sequence[float]) -> float:
    """Return where an axis of ROC-AUCs begins: at 0.4, or at the tenth below the lowest value."""
    return max(0.0, min(_NEAR_CHANCE, math.floor(10 * min(values, default=0.0)) / 10))


def ranks_chart(ranks: Sequence[Rank]) -> Chart:
    """Return mean rank of every detector over several runs, with its interval; the best on top."""
    rows = [(i, rank.mean, rank.interval) for i, rank in enumerate(ranks)]
    series = (_forest_series("mean rank", rows),) if rows else ()
    categories = tuple(name_of(rank.detector) for rank in ranks)
    labels = ("mean rank, 1 is the best", "")
    chart = Chart("ranks", "Mean ranks", *labels, series, categories=categories, forest=True)
    return _or_note(chart, "mean ranks need several runs")


def sweep_chart(points: Sequence[Point], *, by: str = "n") -> Chart:
    """ROC-AUC against the number of clean and noisy answers (HEDGE Figure 2), or against what a detector pays for.

    Args:
        by: "n", clean and noisy answers each; or "draws", the answers that a detector looks at: its price.
    """
    series = []
    for score in dict.fromkeys(point.score for point in points):
        # Who has all that it can look at spends no more of a larger budget.
        estimates = {getattr(p, by): p.estimate for p in points if p.score == score and p.estimate.value is not None}
        if estimates:
            series.append(_with_interval(name_of(score), tuple(map(float, estimates)), list(estimates.values())))
    counted, x_label = ("answers", _BOTH_KINDS) if by == "n" else ("draws", _SAMPLES)
    title = f"ROC-AUC against the number of {counted}"
    return _or_note(Chart(by, title, x_label, "ROC-AUC", tuple(series), guides=_CHANCE), _TOO_FEW)


def price_chart(rows: Sequence[tuple[str, float, Number]]) -> Chart:
    """ROC-AUC against what a detector costs: those that no cheaper one reaches by name, the others as points.

    Args:
        rows: name of the detector, draws a question, ROC-AUC.
    """
    by_price = sorted(((d, -e.value, name, e) for name, d, e in rows if e.value is not None), key=lambda row: row[:3])
    buys, best = [], 0.0
    for draws, minus, name, estimate in by_price:
        if -minus > best:
            buys.append((draws, name, estimate))
            best = -minus
    named = {name for _, name, _ in buys}
    points = [Series(name_of(name), (float(d),), (e.value or 0.0,), *_bounds([e]), "points") for d, name, e in buys]
    others = [(float(d), -minus) for d, minus, name, _ in by_price if name not in named]
    if others:
        x, y = zip(*others, strict=True)
        points.append(Series("the others", x, y, kind="points", tone="others"))
    chart = Chart("price", "ROC-AUC and price", _SAMPLES, "ROC-AUC", tuple(points), guides=_CHANCE)
    note = "Labelled: the Pareto front (no detector of the same or a lower sampling cost is as good)."
    return replace(chart, note=_TOO_FEW if chart.empty else note)


def threshold_chart(run: Run, scorer: Scorer, detectors: Sequence[str] | None = None, steps: int = 41) -> Chart:
    """ROC-AUC against the cosine threshold of embedding clustering: HEDGE Figure 3.

    Args:
        detectors: by name; those that look at no clusters are left out. By default those of the scorer.

    Raises:
        ConfigError: the clustering has no threshold.
    """
    from hedge_tasks.clustering.embedding import EmbeddingClustering
    from hedge_tasks.errors import ConfigError

    backend = scorer.backend
    if not isinstance(backend, EmbeddingClustering):
        raise ConfigError(f"{scorer.name}: only embedding clustering has a threshold")
    candidates = main_detectors(scorer.detectors) if detectors is None else tuple(detectors)
    names = tuple(name for name in candidates if "clusters" in get(name).needs)
    trees = backend.dendrograms([a.texts for a in run.answer_sets], scorer.questions(run.answer_sets))
    thresholds = np.linspace(0.5, 1.0, steps)
    known_labels = np.array([np.nan if a.label is None or a.held_out else a.label for a in run.answer_sets])
    tables = _scores_at(thresholds, run.answer_sets, trees, scorer, names)
    values: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for k, threshold in enumerate(thresholds.tolist()):
        for name, table in tables.items():
            defined = ~np.isnan(table[:, k]) & ~np.isnan(known_labels)
            if len(np.unique(known_labels[defined])) == 2:
                values[name].append((threshold, auroc(table[defined, k], known_labels[defined])))
    series = [
        Series(name_of(name), tuple(t for t, _ in points), tuple(v for _, v in points), kind="curve")
        for name, points in values.items()
        if points
    ]
    note = f"The run used {backend.threshold:g}. A threshold read off this curve is chosen on the reported documents."
    title, axes = f"ROC-AUC against the threshold, {scorer.name}", ("cosine threshold (τ)", "ROC-AUC")
    chart = Chart("threshold", title, *axes, tuple(series), guides=_CHANCE)
    return replace(chart, note=note if series else _TOO_FEW)


def _scores_at(
    thresholds: FloatArray,
    answer_sets: Sequence[AnswerSet],
    trees: Sequence[Dendrogram],
    scorer: Scorer,
    names: Sequence[str],
) -> dict[str, FloatArray]:
    """By detector its score of every document at every threshold, shape `(n, steps)`; NaN where it has none."""
    from hedge_tasks.detectors.thresholds.profile import TARGETS, profile_documents
    from hedge_tasks.errors import DataError

    tables = {name: np.full((len(answer_sets), len(thresholds)), np.nan) for name in names}
    ends = {"low": float(thresholds[0]), "high": float(thresholds[-1])}
    # Three detectors at every threshold at once; of the others, each partition by itself.
    sampled = [i for i, answers in enumerate(answer_sets) if answers.clean] if set(names) & set(TARGETS) else []
    sampled_sets, sampled_trees = [answer_sets[i] for i in sampled], [trees[i] for i in sampled]
    try:
        profiles = profile_documents(sampled_sets, sampled_trees, alpha=scorer.alpha, **ends)
    except ValueError as error:
        raise DataError(str(error)) from error
    for i, profile in zip(sampled, profiles, strict=True):
        at = np.searchsorted(profile.thresholds, thresholds)
        for name in (name for name in names if name in profile.names):
            tables[name][i] = profile.scores[name][at]
    if one_by_one := [name for name in names if name not in TARGETS]:
        _fill_one_by_one({name: tables[name] for name in one_by_one}, thresholds, answer_sets, trees, scorer)
    return tables


def _fill_one_by_one(
    tables: Mapping[str, FloatArray],
    thresholds: FloatArray,
    answer_sets: Sequence[AnswerSet],
    trees: Sequence[Dendrogram],
    scorer: Scorer,
) -> None:
    from hedge_tasks.detectors.scorer import evidence_for

    options: dict[str, Any] = {"alpha": scorer.alpha, "detectors": tuple(tables)}
    all_evidence = evidence_for(answer_sets, scorer.backend, tuple(tables))
    for i, (answers, tree, evidence) in enumerate(zip(answer_sets, trees, all_evidence, strict=True)):
        partitions = tree.partitions(thresholds.tolist())
        by_partition = {
            ids: score_clustered(answers.with_clusters(ids), evidence=replace(evidence, cluster_ids=ids), **options)
            for ids in set(partitions)
        }
        for name, table in tables.items():
            table[i] = [np.nan if (value := by_partition[ids][name]) is None else value for ids in partitions]


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
    from hedge_tasks.suites.vope.judge import FALSE_DESCRIPTION, TRUE_IMAGINATION
    from hedge_tasks.suites.vope.relevance import SCORES

    objects = [entry for verdict in run.verdicts.values() for entry in verdict.get("objects") or []]
    counts = Counter((entry["kind"], entry["relevance"][0]) for entry in objects if entry.get("relevance"))
    kinds = {"hallucinated": FALSE_DESCRIPTION, "imagined": TRUE_IMAGINATION}
    series = [
        Series(name, (0.0, 1.0, 2.0), tuple(float(counts[kind, score]) for score in SCORES), kind="bars")
        for name, kind in kinds.items()
    ]
    rated = tuple(bars for bars in series if any(bars.y))
    title, labels = "Relevance of objects that are not in the image", ("relevance", "number of objects")
    chart = Chart("relevance", title, *labels, rated, categories=tuple(f"score {score}" for score in SCORES))
    return _or_note(chart, "no object was rated (a judge with the prompt vope_relevance rates them)")


def rates_chart(runs: Sequence[tuple[str, Run]]) -> Chart:
    """Share of hallucinated baseline answers of every run, with its interval."""
    rates = [(i, hallucination_rate(run.answer_sets)) for i, (_, run) in enumerate(runs)]
    rows = [(i, rate.value, rate.interval) for i, rate in rates if rate is not None and rate.value is not None]
    series = (_forest_series("hallucinated", rows),) if rows else ()
    categories = tuple(name for name, _ in runs)
    labels = ("hallucinated share", "")
    highest = max((v for points in series for v in (*points.x, *points.high) if v is not None), default=1.0)
    ends = (0.0, min(1.0, math.ceil(10 * highest) / 10 or 1.0))
    chart = Chart("rates", "Hallucination rate", *labels, series, ends, categories=categories, forest=True)
    return _or_note(chart, "no answer has a label")


def _forest_series(name: str, rows: Sequence[tuple[int, float, tuple[float, float] | None]]) -> Series:
    low, high = tuple(b[0] if b else None for *_, b in rows), tuple(b[1] if b else None for *_, b in rows)
    return Series(name, tuple(v for _, v, _ in rows), tuple(float(i) for i, *_ in rows), low, high, "points")


def _with_interval(name: str, x: tuple[float, ...], estimates: Sequence[Number]) -> Series:
    return Series(name, x, tuple(e.value or 0.0 for e in estimates), *_bounds(estimates))


def _bounds(estimates: Sequence[Number]) -> tuple[tuple[float | None, ...], tuple[float | None, ...]]:
    low = tuple(e.interval[0] if e.interval else None for e in estimates)
    return low, tuple(e.interval[1] if e.interval else None for e in estimates)


def _thinned(x: np.ndarray, y: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return at most some hundred of the points, the first and last among them: no screen shows more."""
    chosen = np.unique(np.linspace(0, len(x) - 1, min(len(x), _CURVE_POINTS)).astype(int))
    return tuple(x[chosen].tolist()), tuple(y[chosen].tolist())


def _or_note(chart: Chart, reason: str) -> Chart:
    return replace(chart, note=reason) if chart.empty else chart


def all_charts(
    scores: Sequence[Scores], detectors: Sequence[str] = SCORE_NAMES, *, declined: int = 0
) -> Iterator[Chart]:
    """Yield the charts that the scores under one clustering give without another clustering."""
    yield roc_chart(scores, detectors)
    yield risk_coverage_chart(scores, detectors, declined=declined)
    yield calibration_chart(scores, detectors)
    for name in detectors:
        yield distribution_chart(scores, name)
    yield strata_chart(scores, detectors)

"""The first screen of a run's section: its setup, its leading numbers, and its detectors as one figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks.detectors.pipeline import Price, name_of, prices_of
from hedge_tasks.judging.outcomes import readings_line
from hedge_tasks.lmms.catalogue import titles
from hedge_tasks.measures.headline import judge_in_words
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.numbers import PERCENT, THREE_DIGITS, Format, Number
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.report.plots.figures import auroc_start
from hedge_tasks.report.svg import N_COLOURS
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.health import decoding_line, health_of
from hedge_tasks.runs.run_files import Run

_MOST = 200
_MOST_JUDGES = 3
_WEIGHTS = {"logprob": "log-probability", "uniform": "all the same"}


@dataclass(frozen=True)
class Bar:
    """The ROC-AUC of a detector under one clustering, in per cent of the figure's axis.

    Attributes:
        clustering: its name.
        colour: number of its colour; None for a baseline.
        estimate: the ROC-AUC.
        at, low, high: where value and interval are; no interval where there is none.
        y: how far down in the row.
    """

    clustering: str
    colour: int | None
    estimate: Number
    at: float
    low: float | None
    high: float | None
    y: float


@dataclass(frozen=True)
class DetectorRow:
    """A detector with its price and its ROC-AUC under every clustering.

    Attributes:
        name: for people.
        draws: answers a question that it looks at besides the baseline answer.
        bars: one a clustering, in the order of the run.
        height: of the row, in pixels.
        note: what kind of baseline it is; empty for a detector.
    """

    name: str
    draws: Price
    bars: tuple[Bar, ...]
    height: float
    note: str = ""


LEAD_TITLE = "Which detector finds the hallucinations?"

_MOST_TICKS = 7
_CROWDED = (0.4, 0.6)
"""Too near to chance to be written as well where there are many ticks."""
_LINE = 22.0
"""Pixels between the clusterings of a detector."""


def setup_of(run: Run, weights: Sequence[str]) -> list[tuple[str, str]]:
    """Return the setup of a run: task, model, prompt, judge, ... as pairs of a term and its text.

    Args:
        weights: how the answers of the run are weighted, see `Scores.weighting`.
    """
    noisy = min((len(a.noisy) for a in run.answer_sets), default=0)
    n = min((len(a.clean) for a in run.answer_sets), default=0)
    title = titles().get(run.task)
    documents = run.settings.get("documents")
    prompt = documents.get("prompt") if isinstance(documents, Mapping) else None
    rows = [
        ("Task", f"{run.task}" + (f": {title}" if title else "")),
        ("Model", run.model or "unknown"),
        ("Questions", f"{len(run.answer_sets)}, each with 1 baseline + {n} clean + {noisy} noisy answers"),
        *([("Prompt", str(prompt))] if prompt else []),
        ("Judge", _judges(run)),
    ]
    health = health_of(run)
    if readings := readings_line(health.readings):
        rows.append(("Readings", readings))
    if decoding := decoding_line(health):
        rows.append(("Decoding", decoding))
    if weights:
        rows.append(("Answer weights", " and ".join(_WEIGHTS.get(name, name) for name in sorted(weights))))
    return [(term, clean(text, _MOST)) for term, text in rows]


def tiles(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield the numbers at the head: those that the suite leads with, then the hallucination rate."""
    for metric, number in analysis.suite:
        if metric.leads:
            yield _tile(metric, number)
    finding = analysis.finding
    rate, coverage = finding.rate, finding.coverage
    name, about = HALLUCINATION_RATE.title, HALLUCINATION_RATE.about
    if rate is None or rate.value is None:
        yield {"name": name, "value": "undefined", "note": "no answer has a label", "about": about}
        return
    if finding.bounds is not None:
        value, note = (
            " to ".join(map(PERCENT, finding.bounds)),
            f"whatever the {coverage.missing} undecided answers are",
        )
    else:
        value, note = PERCENT(rate.value), f"{_bounds(rate, PERCENT)}{coverage}"
    yield {"name": f"{name} ↓", "value": value, "note": note, "about": about}


def detector_rows(analysis: Analysis) -> list[DetectorRow]:
    """Return the detectors of a run, by their highest ROC-AUC under any clustering; free and blind ones last."""
    by_detector = {
        name: [
            (i, clustering, estimate)
            for i, (clustering, estimates) in enumerate(analysis.estimates.items())
            if (estimate := estimates.get(name)) is not None and estimate.value is not None
        ]
        for name in analysis.shown
    }
    by_detector = {name: numbers for name, numbers in by_detector.items() if numbers}
    baselines = _baselines(analysis) if by_detector else []
    start = axis_start([*(e for numbers in by_detector.values() for _, _, e in numbers), *(e for _, _, e in baselines)])
    ranked = []
    for name, numbers in by_detector.items():
        bars = tuple(_bar(place, i, clustering, e, start) for place, (i, clustering, e) in enumerate(numbers))
        best = max(e.value or 0.0 for _, _, e in numbers)
        ranked.append((best, DetectorRow(name_of(name), price_of(analysis, name), bars, _LINE * len(bars))))
    rows = [row for _, row in sorted(ranked, key=lambda pair: (-pair[0], pair[1].name))]
    free = Price(0.0, 0, 0)
    return rows + [
        DetectorRow(name, free, (_bar(0, None, note, estimate, start),), _LINE, note)
        for name, note, estimate in baselines
    ]


def _baselines(analysis: Analysis) -> list[tuple[str, str, Number]]:
    """Return what detectors have to beat: name, kind, and ROC-AUC."""
    free = analysis.finding.free
    if free is None or free.detector in analysis.shown:
        return []
    return [(free.name.removeprefix("the "), "free", free.number)]


def axis_start(numbers: Sequence[Number]) -> float:
    """Return where the axis of ROC-AUCs begins: at 0.4, or at the tenth below the lowest value or interval."""
    return auroc_start([bound for e in numbers for bound in (e.value, e.low) if bound is not None])


def axis_ticks(rows: Sequence[DetectorRow]) -> list[tuple[float, str]]:
    """Return places on the axis in per cent, with their texts; chance is always one of them."""
    start = axis_start([bar.estimate for row in rows for bar in row.bars])
    values = [value / 10 for value in range(10, -1, -1) if value / 10 >= start]
    if len(values) > _MOST_TICKS:
        values = [value for value in values if round(10 * value) % 2 == 0 and value not in _CROWDED] + [0.5]
    return [(_place(value, start), "chance" if value == 0.5 else f"{value:g}") for value in sorted(values)]


def _place(value: float, start: float) -> float:
    return round(100 * (value - start) / (1 - start), 2)


def lead_chart(rows: Sequence[DetectorRow]) -> Chart:
    """Return the detectors with their ROC-AUCs as one chart, for saving."""
    series = []
    for clustering in dict.fromkeys(bar.clustering for row in rows for bar in row.bars):
        points = [(i, bar.estimate) for i, row in enumerate(rows) for bar in row.bars if bar.clustering == clustering]
        bounds = [estimate.interval or (None, None) for _, estimate in points]
        x, y = tuple(e.value or 0.0 for _, e in points), tuple(float(i) for i, _ in points)
        low, high = tuple(low for low, _ in bounds), tuple(high for _, high in bounds)
        series.append(Series(clustering, x, y, low, high, "points"))
    names = tuple(f"{row.name} ({row.draws} draws)" for row in rows)
    x_range = (axis_start([bar.estimate for row in rows for bar in row.bars]), 1.0)
    chart = Chart("detectors", LEAD_TITLE, "ROC-AUC", "", tuple(series), x_range, categories=names, forest=True)
    return replace(chart, guides=((0.5, "chance"),))


def price_of(analysis: Analysis, detector: str) -> Price:
    """Return answers a question that a detector looks at besides the baseline answer."""
    prices = (prices_of(scores) for scores in analysis.scores.values())
    return next((by_detector[detector] for by_detector in prices if detector in by_detector), Price(0.0, 0, 0))


def _bar(place: int, colour: int | None, clustering: str, estimate: Number, start: float) -> Bar:
    low, high = (_place(bound, start) for bound in estimate.interval) if estimate.interval else (None, None)
    at, shade = _place(estimate.value or 0.0, start), None if colour is None else colour % N_COLOURS
    return Bar(clustering, shade, estimate, at, low, high, _LINE * (place + 0.5))


def _tile(metric: Measure, number: Number) -> dict[str, Any]:
    name = f"{metric.title} {'↑' if metric.higher_is_better else '↓'}"
    if number.value is None:
        return {"name": name, "value": "undefined", "note": clean(number.reason or "", _MOST), "about": metric.about}
    bounds = _bounds(number, THREE_DIGITS)
    note = (
        f"{bounds}{number.n} documents in {number.n_groups} groups"
        if 0 < number.n_groups < number.n
        else f"{bounds}{number.n} documents"
    )
    return {"name": name, "value": THREE_DIGITS(number.value), "note": note, "about": metric.about}


def _bounds(number: Number, fmt: Format) -> str:
    return " to ".join(map(fmt, number.interval)) + "; " if number.interval else ""


def _judges(run: Run) -> str:
    names = dict.fromkeys(str(verdict.get("judge") or "an unknown judge") for verdict in run.verdicts.values())
    named = [judge_in_words(name).removeprefix("the ") for name in [*names][:_MOST_JUDGES]]
    return " and ".join(named) + (" and others" if len(names) > _MOST_JUDGES else "") or "nobody"

"""The first screen of a run's section: what was asked of which model, how sound the run is, and what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.adjudication.outcomes import readings_line
from hedge_tasks.detectors.pipeline import Price, name_of, prices_of
from hedge_tasks.lmms.catalogue import titles
from hedge_tasks.measures.known import HALLUCINATION_RATE
from hedge_tasks.measures.measure import Measure
from hedge_tasks.numbers import PERCENT, THREE_DIGITS, Format, Number
from hedge_tasks.plots.charts import Chart, Series
from hedge_tasks.report.analysis import Analysis, hallucination_rate
from hedge_tasks.report.svg import N_COLOURS
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.health import decoding_line, health_of
from hedge_tasks.runs.run_files import Run

_MOST = 200
_MOST_JUDGES = 3


@dataclass(frozen=True)
class Sound:
    """How sound a run is, in a word and in a sentence.

    Attributes:
        state: "sound", "remarks" or "unreliable".
        text: for people.
    """

    state: str
    text: str


@dataclass(frozen=True)
class Bar:
    """The ROC-AUC of a detector under one clustering, in per cent of the axis from 0 to 1.

    Attributes:
        clustering: its name.
        colour: number of its colour.
        estimate: the ROC-AUC.
        at, low, high: where value and interval are; no interval where there is none.
        y: how far down in the row.
    """

    clustering: str
    colour: int
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
    """

    name: str
    draws: Price
    bars: tuple[Bar, ...]
    height: float


LEAD_TITLE = "Which detector finds the hallucinations?"

_LINE = 22.0
"""Pixels between the clusterings of a detector."""


def asked_of(run: Run, weights: Sequence[str]) -> list[tuple[str, str]]:
    """Return what was asked, and of whom, as terms and what they are here.

    Args:
        weights: how the answers of the run weigh, see `Scores.weighting`.
    """
    noisy = min((len(a.noisy) for a in run.answer_sets), default=0)
    n = min((len(a.clean) for a in run.answer_sets), default=0)
    title = titles().get(run.task)
    documents = run.settings.get("documents")
    prompt = documents.get("prompt") if isinstance(documents, Mapping) else None
    rows = [
        ("asked", f"{run.task}" + (f": {title}" if title else "")),
        ("of", run.model or "an unknown model"),
        ("questions", f"{len(run.answer_sets)}, each with 1 baseline + {n} clean + {noisy} noisy answers"),
        *([("prompt", str(prompt))] if prompt else []),
        ("judged by", _judges(run)),
    ]
    health = health_of(run)
    if readings := readings_line(health.readings):
        rows.append(("readings", readings))
    if decoding := decoding_line(health):
        rows.append(("decoding", decoding))
    if weights:
        rows.append(("answers weigh", " and ".join(sorted(weights))))
    return [(term, clean(text, _MOST)) for term, text in rows]


def soundness(run: Run) -> Sound:
    """How far the run's numbers can be relied on; see `hedge_tasks.runs.health`."""
    health = health_of(run)
    if health.unreliable:
        return Sound("unreliable", f"unreliable: {health.unreliable}")
    left = f", {health.failed} left out" if health.failed else ""
    if health.findings:
        return Sound("remarks", f"{len(health.findings)} remarks, see below{left}")
    return Sound("sound", f"nothing found that speaks against the numbers{left}")


def tiles(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """The numbers at the head: those that the suite leads with, then the hallucination rate."""
    for metric, found in analysis.suite:
        if metric.leads:
            yield _tile(metric, found)
    rate = hallucination_rate(analysis)
    name, about = HALLUCINATION_RATE.title, HALLUCINATION_RATE.about
    if rate is None or rate.value is None:
        yield {"name": name, "value": "undefined", "note": "no answer has a label", "about": about}
        return
    bounds = _bounds(rate, PERCENT)
    of = f"{sum(analysis.labels)} of {len(analysis.labels)} labelled answers"
    yield {"name": f"{name} ↓", "value": PERCENT(rate.value), "note": f"{bounds}{of}", "about": about}


def detector_rows(analysis: Analysis) -> list[DetectorRow]:
    """The detectors of the run, that with the highest ROC-AUC under any clustering first."""
    found = []
    for name in analysis.shown:
        known = [
            (i, clustering, estimate)
            for i, (clustering, of) in enumerate(analysis.estimates.items())
            if (estimate := of.get(name)) is not None and estimate.value is not None
        ]
        if known:
            bars = tuple(_bar(place, i, clustering, e) for place, (i, clustering, e) in enumerate(known))
            best = max(e.value or 0.0 for _, _, e in known)
            found.append((best, DetectorRow(name_of(name), price_of(analysis, name), bars, _LINE * len(bars))))
    return [row for _, row in sorted(found, key=lambda pair: (-pair[0], pair[1].name))]


def lead_chart(rows: Sequence[DetectorRow]) -> Chart:
    """The detectors with their ROC-AUCs as one chart, for whoever saves it."""
    series = []
    for clustering in dict.fromkeys(bar.clustering for row in rows for bar in row.bars):
        known = [(i, bar.estimate) for i, row in enumerate(rows) for bar in row.bars if bar.clustering == clustering]
        bounds = [estimate.interval or (None, None) for _, estimate in known]
        x, y = tuple(e.value or 0.0 for _, e in known), tuple(float(i) for i, _ in known)
        low, high = tuple(low for low, _ in bounds), tuple(high for _, high in bounds)
        series.append(Series(clustering, x, y, low, high, "points"))
    names = tuple(f"{row.name} ({row.draws} draws)" for row in rows)
    about = ("detectors", LEAD_TITLE, "ROC-AUC", "", tuple(series), (0.0, 1.0))
    return Chart(*about, categories=names, forest=True, guides=((0.5, "chance"),))


def price_of(analysis: Analysis, detector: str) -> Price:
    """Answers a question that a detector looks at besides the baseline answer."""
    prices = (prices_of(scores) for scores in analysis.scores.values())
    return next((of[detector] for of in prices if detector in of), Price(0.0, 0, 0))


def why_no_detector(analysis: Analysis) -> str:
    """Why there is no ROC-AUC at all, in words for readers who know the suite and not the method."""
    labels = analysis.labels
    if labels and not sum(labels):
        return (
            f"None of the {len(labels)} labelled answers is hallucinated. That is good news about the model, and "
            "leaves detectors nothing to find: they have no ROC-AUC here."
        )
    if labels and sum(labels) == len(labels):
        return f"All {len(labels)} labelled answers are hallucinated, so no detector has anything to tell apart."
    if not analysis.n:
        return (
            "One answer a question was drawn. Detectors compare several, so there is nothing here for them to look at."
        )
    reasons = {str(e.reason) for of in analysis.estimates.values() for e in of.values() if e.value is None}
    return f"No detector has a ROC-AUC here: {'; '.join(sorted(reasons)) or 'nothing was scored'}."


def _bar(place: int, colour: int, clustering: str, estimate: Number) -> Bar:
    low, high = (round(100 * bound, 2) for bound in estimate.interval) if estimate.interval else (None, None)
    at = round(100 * (estimate.value or 0.0), 2)
    return Bar(clustering, colour % N_COLOURS, estimate, at, low, high, _LINE * (place + 0.5))


def _tile(metric: Measure, found: Number) -> dict[str, Any]:
    name = f"{metric.title} {'↑' if metric.higher_is_better else '↓'}"
    if found.value is None:
        return {"name": name, "value": "undefined", "note": clean(found.reason or "", _MOST), "about": metric.about}
    bounds = _bounds(found, THREE_DIGITS)
    note = (
        f"{bounds}{found.n} documents in {found.n_groups} groups"
        if 0 < found.n_groups < found.n
        else f"{bounds}{found.n} documents"
    )
    return {"name": name, "value": THREE_DIGITS(found.value), "note": note, "about": metric.about}


def _bounds(number: Number, fmt: Format) -> str:
    return " to ".join(map(fmt, number.interval)) + "; " if number.interval else ""


def _judges(run: Run) -> str:
    names = dict.fromkeys(str(verdict.get("judge") or "an unknown judge") for verdict in run.verdicts.values())
    return " and ".join([*names][:_MOST_JUDGES]) + (" and others" if len(names) > _MOST_JUDGES else "") or "nobody"

"""The first screen of a run's section: its setup, its leading numbers, and its detectors as one figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.detectors.pipeline import Price, name_of, prices_of
from hedge_tasks.judging.outcomes import readings_line
from hedge_tasks.measures.audited import people_of
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.seed_spread import COVERED
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.numbers import PERCENT, THREE_DIGITS, Cell, Column, Format, Number, Table
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.plots.figures import auroc_start
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.health import decoding_line, health_of

_MOST = 400
_WEIGHTS = {"logprob": "log-probability", "uniform": "all the same"}


@dataclass(frozen=True)
class Bar:
    """The ROC-AUC of a detector under one clustering, in per cent of the figure's axis.

    Attributes:
        clustering: its name.
        colour: number of its colour; None for a baseline.
        estimate: the ROC-AUC.
        at, low, high: where value and interval are; no interval where there is none.
    """

    clustering: str
    colour: int | None
    estimate: Number
    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class DetectorRow:
    """A detector with its price and its ROC-AUC under every clustering.

    Attributes:
        name: for people.
        draws: answers a question that it looks at besides the baseline answer.
        bars: one a clustering, in the order of the run.
        note: what kind of baseline it is; empty for a detector.
    """

    name: str
    draws: Price
    bars: tuple[Bar, ...]
    note: str = ""


N_COLOURS = 6
_MOST_TICKS = 7
_FREE = Price(0.0, 0, 0)


def setup_of(analysis: Analysis) -> list[tuple[str, str]]:
    """Return the setup of a run: task, model, prompt, judge, ... as pairs of a term and its text."""
    run = analysis.run
    n = analysis.n
    noisy = min((len(a.noisy) for a in run.answer_sets), default=0)
    documents = run.settings.get("documents")
    health = health_of(run)
    weights = sorted({s.weighting for scores in analysis.scores.values() for s in scores})
    rows = [
        ("Task", run.task),
        ("Model", run.model or "unknown"),
        ("Questions", f"{len(run.answer_sets)}, each with 1 baseline + {n} clean + {noisy} noisy answers"),
        ("Prompt", str(documents.get("prompt") or "") if isinstance(documents, Mapping) else ""),
        ("Replies read", readings_line(health.readings)),
        ("Decoding", decoding_line(health)),
        ("Answer weights", " and ".join(_WEIGHTS.get(name, name) for name in weights)),
        ("Intervals", COVERED),
    ]
    return [(term, clean(text, _MOST)) for term, text in rows if text]


def tiles(analysis: Analysis) -> Iterator[dict[str, Any]]:
    """Yield the numbers at the head: those that the suite leads with, then the hallucination rate."""
    for metric, number in analysis.suite:
        if metric.leads:
            yield _tile(metric, number, labelled_by(analysis))
    finding = analysis.finding
    rate, coverage = finding.rate, finding.coverage
    name, about = HALLUCINATION_RATE.title, HALLUCINATION_RATE.about
    if rate is None or rate.value is None:
        yield {"name": name, "value": "undefined", "note": "no answer has a label", "about": about}
        return
    if finding.bounds is not None:
        value = " to ".join(map(PERCENT, finding.bounds))
        note = f"whatever the {coverage.missing} undecided answers are"
    else:
        value, note = PERCENT(rate.value), f"{_bounds(rate, PERCENT)}{labelled_by(analysis) or coverage}"
    yield {"name": f"{name} ↓", "value": value, "note": note, "about": about}


def detector_rows(analysis: Analysis) -> list[DetectorRow]:
    """Return the detectors of a run, by their highest ROC-AUC under any clustering; what is free stands last."""
    numbers = {name: _numbers_of(analysis, name) for name in analysis.shown}
    best = {name: max(n.value or 0.0 for *_, n in of_name) for name, of_name in numbers.items() if of_name}
    free = analysis.finding.free if best else None
    start = axis_start([n for name in best for *_, n in numbers[name]] + ([free.number] if free else []))
    rows = [
        DetectorRow(name_of(name), price_of(analysis, name), tuple(_bar(*n, start) for n in numbers[name]))
        for name in sorted(best, key=lambda name: (-best[name], name_of(name)))
    ]
    if free is not None and free.detector not in analysis.shown:
        bar = _bar(None, "free", free.number, start)
        rows.append(DetectorRow(free.name.removeprefix("the "), _FREE, (bar,), "free"))
    return rows


def _numbers_of(analysis: Analysis, detector: str) -> list[tuple[int, str, Number]]:
    """Return the ROC-AUCs of a detector: colour and name of the clustering, and the number."""
    of_clusterings = ((i % N_COLOURS, name, e.get(detector)) for i, (name, e) in enumerate(analysis.estimates.items()))
    return [(colour, name, number) for colour, name, number in of_clusterings if number is not None and number.defined]


def axis_start(numbers: Sequence[Number]) -> float:
    """Return where the axis of ROC-AUCs begins: at 0.4, or at the tenth below the lowest value or interval."""
    return auroc_start([bound for e in numbers for bound in (e.value, e.low) if bound is not None])


def axis_ticks(rows: Sequence[DetectorRow]) -> list[tuple[float, str]]:
    """Return places on the axis in per cent, with their texts; chance is always one of them."""
    start = axis_start([bar.estimate for row in rows for bar in row.bars])
    tenths = range(round(10 * start), 11)
    shown = tenths if len(tenths) <= _MOST_TICKS else [0, 2, 5, 8, 10]
    return [(_place(n / 10, start), "chance" if n == 5 else f"{n / 10:g}") for n in shown if n >= 10 * start]


def price_of(analysis: Analysis, detector: str) -> Price:
    """Return answers a question that a detector looks at besides the baseline answer."""
    prices = (prices_of(scores) for scores in analysis.scores.values())
    return next((by_detector[detector] for by_detector in prices if detector in by_detector), _FREE)


def metrics_table(analysis: Analysis) -> Table:
    """Return the ROC-AUC of every detector under each clustering."""
    columns = [
        Column("detector"),
        Column("samples"),
        *(Column(name, name, interval=True) for name in analysis.estimates),
    ]
    rows: list[dict[str, Cell]] = [
        {
            "detector": name_of(detector),
            "samples": str(price_of(analysis, detector)),
            **{name: numbers.get(detector) for name, numbers in analysis.estimates.items()},
        }
        for detector in [s for s in analysis.detectors if analysis.has_number(s)] or analysis.shown
    ]
    if (free := analysis.finding.free) and free.detector not in analysis.detectors:
        numbers = dict.fromkeys(analysis.estimates, free.number)
        rows.append({"detector": name_of(free.detector), "samples": "0", **numbers})
    return Table(columns, rows)


def _bar(colour: int | None, clustering: str, estimate: Number, start: float) -> Bar:
    low, high = (_place(bound, start) for bound in estimate.interval) if estimate.interval else (None, None)
    return Bar(clustering, colour, estimate, _place(estimate.value or 0.0, start), low, high)


def _place(value: float, start: float) -> float:
    return round(100 * (value - start) / (1 - start), 2)


def labelled_by(analysis: Analysis) -> str:
    """Return how many labels of experts a run's numbers rest on, and whose these are; "" without an audit."""
    audit = analysis.audit
    return "" if audit is None else f"{audit.n_labels} labels of experts ({people_of(audit)})"


def _tile(metric: Measure, number: Number, labelled: str) -> dict[str, Any]:
    name = f"{metric.title} {'↑' if metric.higher_is_better else '↓'}"
    if number.value is None:
        return {"name": name, "value": "undefined", "note": clean(number.reason or "", _MOST), "about": metric.about}
    grouped = f" in {number.n_groups} groups" if 0 < number.n_groups < number.n else ""
    note = f"{_bounds(number, THREE_DIGITS)}{labelled or f'{number.n} documents{grouped}'}"
    return {"name": name, "value": THREE_DIGITS(number.value), "note": note, "about": metric.about}


def _bounds(number: Number, fmt: Format) -> str:
    return " to ".join(map(fmt, number.interval)) + "; " if number.interval else ""

"""Columns of the leaderboard: the measures, and what an entry has of each."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hedge_tasks.detectors.pipeline import SCORE_NAMES, name_of
from hedge_tasks.detectors.registry import names
from hedge_tasks.leaderboard.audited_pairs import with_audits
from hedge_tasks.leaderboard.audits import audited_number
from hedge_tasks.leaderboard.comparison import Counted, Pairs, auroc_pairs, sum_pairs
from hedge_tasks.leaderboard.entry import Entry, documents_part
from hedge_tasks.leaderboard.ranking import Place, places
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.stated import number_in
from hedge_tasks.leaderboard.suite import metrics_of
from hedge_tasks.measures.measure import SumsMeasure
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.numbers import Number
from hedge_tasks.report.texts import clean
from hedge_tasks.statistics import ratio

Kind = Literal["auroc", "suite", "supported", "rate", "price"]

MOST_MEASURES = 60
"""A task shows no more: a stranger's file may name a thousand detectors."""

ABOUT: Mapping[Kind, str] = {
    "auroc": "How well a detector tells this model's hallucinated answers from the others: ROC-AUC, 0.5 is chance.",
    "supported": "Share of all answers that are supported: hallucinated, declined and unlabelled ones are not.",
    "rate": f"{HALLUCINATION_RATE.about} Nobody is ranked by it: it falls by declining.",
    "suite": "What the task's own suite measures.",
    "price": "Answers that are sampled of a question besides the one that is judged: what detectors cost here.",
}
"""Each kind of number in a sentence."""

_UNSAFE = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True)
class BoardNumber:
    """A number that entries have.

    Attributes:
        kind: ROC-AUC of a detector, a suite's own number, the share of supported or of hallucinated answers, or the
            answers a question costs.
        title: for people.
        higher_is_better: whether it is.
        name: of the detector or the suite's metric.
        clustering: that the detector works on.
        bounds: least and greatest value, for shades.
    """

    kind: Kind
    title: str
    higher_is_better: bool
    name: str = ""
    clustering: str = ""
    bounds: tuple[float, float] = (0.0, 1.0)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.clustering, self.name

    @property
    def slug(self) -> str:
        """Part of the file name of the measure's page."""
        return slug(f"{self.kind}-{self.clustering}-{self.name}", str(self.key))


@dataclass(frozen=True)
class EntryNumber:
    """Number of an entry for a measure.

    Attributes:
        entry: whose it is.
        estimate: the number.
        draws: price of the detector, in answers a question; None where none is asked for.
        checked: what the number rests on, each with whether it is verified.
        place: among the ranked entries; None for others, and for measures that nobody is ranked by.
        experts: the number against experts; None without an audit.
        seeds: the number of the same model's runs with the edition's other seeds.
    """

    entry: Entry
    estimate: Number
    draws: int | None
    checked: Sequence[tuple[str, PartStatus]]
    place: Place | None = None
    experts: Number | None = None
    seeds: tuple[float, ...] = ()

    @property
    def spread(self) -> tuple[float, float] | None:
        """Least and greatest value over the seeds, the first among them; None where only that was run."""
        if not self.seeds or self.estimate.value is None:
            return None
        values = (self.estimate.value, *self.seeds)
        return min(values), max(values)

    @property
    def audited(self) -> bool:
        """Whether there is a number against experts."""
        return self.experts is not None and self.experts.defined

    @property
    def shown(self) -> Number:
        """The number that is ranked: against experts where a known key has signed for them, else against the judge."""
        return self.experts if self.experts is not None and self.counts_experts else self.estimate

    @property
    def counts_experts(self) -> bool:
        """Whether the number against experts is the one that counts."""
        return self.audited and is_signed(self.entry)

    @property
    def value(self) -> float | None:
        return self.shown.value

    @property
    def verified(self) -> bool:
        return all(part.verified for _, part in self.checked)

    @property
    def replayed(self) -> bool:
        """Whether all of it was computed again, and the answers that it rests on were read again by the model."""
        return self.verified and self.entry.findings.answers.verified

    @property
    def reported(self) -> list[tuple[str, str]]:
        """Return the parts that are self-reported, each with the reason."""
        return [(what, part.reason) for what, part in self.checked if not part.verified]


SUPPORTED = BoardNumber("supported", "supported answers", True)
RATE = BoardNumber("rate", HALLUCINATION_RATE.title, HALLUCINATION_RATE.higher_is_better)
PRICE = BoardNumber("price", "price: answers a question", False)


def is_signed(entry: Entry) -> bool:
    """Whether somebody known here vouches for the experts of an entry's audit."""
    return entry.findings.audit is not None and entry.findings.audit.verified


def slug(text: str, identity: str) -> str:
    """A name for a file: what is readable of a text, and a digest that tells it from others."""
    readable = _UNSAFE.sub("-", text).strip("-").lower()[:60].strip("-") or "unnamed"
    return f"{readable}-{hashlib.sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def task_page(task: str, measure: BoardNumber | None = None) -> str:
    """Name of a task's page, for its first measure or another one."""
    return f"task-{slug(task, task)}{'-' + measure.slug if measure else ''}.html"


def entry_page_name(content: Mapping[str, Any]) -> str:
    """Name of an entry's page."""
    return f"entry-{slug(content['entry']['name'], '')[:-9]}-{content['digest'].removeprefix('sha256:')}.html"


def measures_of(entries: Sequence[Entry]) -> list[BoardNumber]:
    """The suite's numbers, shares of answers, and every detector under every clustering, as any entry has them."""
    measures = list(suite_measures(entries))
    measures += [SUPPORTED, RATE] if any(entry.rate is not None for entry in entries) else []
    return [*measures, *auroc_measures(entries)][:MOST_MEASURES]


def choices_of(pages: Mapping[BoardNumber, str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Pages of measures in groups, (label, ((title, page), ...)): of the model first, then detectors by clustering."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for measure, page in sorted(pages.items(), key=lambda item: item[0].kind == "auroc"):
        if measure.kind == "auroc":
            title = measure.title.rpartition(" · ")[0]
            groups.setdefault(f"ROC-AUC, clusters of {clean(measure.clustering, 60)}", []).append((title, page))
        else:
            groups.setdefault("Of the model", []).append((measure.title, page))
    return list(groups.items())


def suite_measures(entries: Sequence[Entry]) -> Iterator[BoardNumber]:
    """Yield the suites' own numbers; titles are ours for installed metrics, else the submission's."""
    for name, (title, higher, metric) in suite_titles([entry.content for entry in entries]).items():
        yield BoardNumber("suite", title, higher, name, bounds=metric.bounds if metric else (0.0, 1.0))


def suite_titles(contents: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, bool, SumsMeasure | None]]:
    """The suite's own numbers that any submission has: title, whether higher is better, the metric if installed."""
    titles: dict[str, tuple[str, bool, SumsMeasure | None]] = {}
    for content in contents:
        ours = {metric.name: metric for metric in metrics_of(content)}
        for name, number in content["suite"].items():
            if name in ours:
                titles[name] = ours[name].title, ours[name].higher_is_better, ours[name]
            else:
                titles.setdefault(name, (clean(number["title"], 100), number["higher_is_better"], None))
    return titles


def auroc_measures(entries: Sequence[Entry]) -> list[BoardNumber]:
    """Return a measure for each detector and clustering, those of most ranked entries first."""
    having = Counter(key for entry in entries for key in entry.columns.scores)
    ranked = Counter(key for entry in entries if entry.findings.ranked for key in entry.columns.scores)
    paper = {name: i for i, name in enumerate(SCORE_NAMES)}
    order = sorted(having, key=lambda key: (-ranked[key], -having[key], paper.get(key[1], len(paper))))
    return [
        BoardNumber("auroc", f"{detector_title(entries, *key)} · {clean(key[0], 60)}", True, key[1], key[0], (0.5, 1.0))
        for key in order
    ]


def detector_title(entries: Sequence[Entry], clustering: str, detector: str) -> str:
    """Return what a detector is called: by us where we know it, else by the first who submitted it."""
    if detector in names():
        return name_of(detector)
    records = (entry.detector_record(clustering, detector) for entry in entries)
    return clean(next(record["title"] for record in records if record is not None), 100)


def cell_of(entry: Entry, measure: BoardNumber) -> EntryNumber | None:
    """Return what an entry has of a measure, with the values of its other seeds; None where it does not have it."""
    cell = _cell_of(entry, measure)
    if cell is None or not entry.runs or measure.kind == "price":
        return cell
    others = [run_cell for run in entry.runs if (run_cell := _cell_of(run, measure)) is not None]
    values = [run_cell.estimate.value for run_cell in others if _speaks_for(run_cell, cell)]
    return replace(cell, seeds=tuple(value for value in values if value is not None))


def _speaks_for(run_cell: EntryNumber, cell: EntryNumber) -> bool:
    """Whether a seed's number counts in the spread of the entry that has the place, as anybody may hand in a run of its
    model: clusters and scores are computed again, and labels if that entry's are; or the same key has signed both."""
    mine, theirs = run_cell.entry.signed, cell.entry.signed
    if mine is not None and theirs is not None and mine.key == theirs.key:
        return True
    allowed = {what for what, _ in cell.reported} & {"documents", "labels"}
    return {what for what, _ in run_cell.reported} <= allowed


def _cell_of(entry: Entry, measure: BoardNumber) -> EntryNumber | None:
    findings, documents = entry.findings, ("documents", documents_part(entry.findings))
    labels = ("labels", findings.labels)
    if measure.kind == "suite":
        if measure.name not in entry.content["suite"]:
            return None
        checked = [documents, labels, ("value", findings.suite[measure.name])]
        return EntryNumber(entry, number_in(entry.content["suite"][measure.name]), None, checked)
    if measure.kind == "supported":
        return EntryNumber(entry, entry.supported, None, [documents, labels])
    if measure.kind == "rate":
        if entry.rate is None:
            return None
        experts = audited_number(entry.content, None, HALLUCINATION_RATE.name)
        return EntryNumber(entry, entry.rate, None, [documents, labels], experts=experts)
    if measure.kind == "price":
        summary = entry.content["summary"]
        draws = summary["n_clean"] + summary["n_noisy"]
        return EntryNumber(entry, Number(float(draws), n=summary["documents"], n_groups=0), None, [documents])
    detector = entry.detector_record(measure.clustering, measure.name)
    if detector is None:
        return None
    checked = [documents, labels, *findings.rests_on(measure.clustering, measure.name)]
    estimate = stated_auroc(entry.content, measure.clustering, measure.name)
    experts = audited_number(entry.content, measure.clustering, measure.name)
    return EntryNumber(entry, estimate, detector["draws"], checked, experts=experts)


def stated_auroc(content: Mapping[str, Any], clustering: str, detector: str) -> Number:
    """An aggregate as validated."""
    return number_in(content["clusterings"][clustering]["aggregates"][detector], "auroc")


def pairs_of(entries: Sequence[Entry], measure: BoardNumber) -> Pairs | None:
    """Compare every two entries by a measure; None where nobody is ranked by it (a price, the hallucination rate), or
    it is not installed here."""
    if measure.kind == "auroc":
        return auroc_pairs([entry.columns.labelled(measure.clustering, measure.name) for entry in entries])
    if measure.kind == "supported":
        return sum_pairs([entry.columns.of_labels() for entry in entries], ratio)
    if measure.kind == "suite":
        metric = suite_titles([entry.content for entry in entries])[measure.name][2]
        counted = [entry.columns.counted(measure.name) for entry in entries]
        shapes = {counts.parts.shape[1:] for counts in counted if len(counts.ids)}
        if metric is None or len(shapes) != 1:
            return None
        return sum_pairs(_shaped(counted, shapes.pop()), metric.statistic)
    return None


def _shaped(counted: Sequence[Counted], shape: tuple[int, ...]) -> list[Counted]:
    """Give empty records the shape that the others have."""
    return [counts if len(counts.ids) else replace(counts, parts=np.zeros((0, *shape))) for counts in counted]


@dataclass(frozen=True)
class Board:
    """The ranked entries of a task by a measure, the best first.

    Attributes:
        cells: of those that have it.
        pairs: their differences, in this order; None where they cannot be tested.
    """

    cells: Sequence[EntryNumber]
    pairs: Pairs | None


def board_of(entries: Sequence[Entry], measure: BoardNumber) -> Board:
    """The board of a task's entries by a measure: two that have an audit are compared by their experts' labels."""
    unordered = [cell for entry in entries if entry.findings.ranked and (cell := cell_of(entry, measure)) is not None]
    cells = sorted(unordered, key=lambda cell: by_value(cell, measure))
    pairs = pairs_of([cell.entry for cell in cells], measure) if cells else None
    if pairs is None:
        return Board(cells, None)
    columns = [c.entry.columns if is_signed(c.entry) else replace(c.entry.columns, experts=None) for c in cells]
    pairs = with_audits(pairs, columns, measure.key)
    values = [cell.value for cell in cells]
    placed = places(values, pairs, higher_is_better=measure.higher_is_better)
    return Board([replace(cell, place=place) for cell, place in zip(cells, placed, strict=True)], pairs)


def by_value(cell: EntryNumber, measure: BoardNumber) -> tuple[bool, float, str]:
    """Sorting key: the best first, undefined values last."""
    value = cell.value
    return value is None, (value or 0.0) * (-1 if measure.higher_is_better else 1), cell.entry.name

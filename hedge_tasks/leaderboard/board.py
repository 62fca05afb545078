"""The board: which entries are refused, and what the others are worth by its own questions, judge and detectors.

What is measured of an entry is kept in a file, by the entry's bytes, the task's edition and this package's version.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.files import write_whole
from hedge_tasks.leaderboard.entry import Entry, questions_digest, read_entry
from hedge_tasks.leaderboard.replay import Replay, read_replay
from hedge_tasks.leaderboard.repository import ENTRIES, REPLAYS, merged_in
from hedge_tasks.lmms.measured import TaskDocuments
from hedge_tasks.measures.headline import Lead, headline
from hedge_tasks.measures.measure import Measure, Rate
from hedge_tasks.measures.run_measures import (
    Document,
    compare_documents,
    document_of,
    documents_of,
    evaluation_of,
    measures_of,
    numbers_of_run,
    scored_documents,
)
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc
from hedge_tasks.numbers import Number
from hedge_tasks.runs.editions import differences
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import scorers_or_exact
from hedge_tasks.statistics import Comparison

Kind = Literal["suite", "supported", "rate", "auroc"]

SUPPORTED = Rate(
    name="supported_share",
    title="supported answers",
    about="Share of all answers that are supported: hallucinated, declined and unlabelled ones are not.",
    higher_is_better=True,
)

_NAMED = 3
"""Documents that an error names."""


@dataclass(frozen=True)
class ShownNumber:
    """A number of an entry.

    Attributes:
        kind: of the suite, a share of answers, or a detector's ROC-AUC.
        name: of the measure or detector.
        clustering: that the detector works on.
        title: for people.
        higher_is_better: whether it is.
        number: its value.
        records: what the measure keeps of each document, in the order of `Measured.ids`.
    """

    kind: Kind
    name: str
    clustering: str
    title: str
    higher_is_better: bool
    number: Number
    records: Sequence[Mapping[str, Any]] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.name, self.clustering


@dataclass(frozen=True)
class Measured:
    """Measurements of an entry by a board.

    Attributes:
        finding: the headline of the run that its answers make, a sentence each; see `measures.headline`.
        trust, level: how far it can be trusted, in a line and as a colour.
        numbers: the one that leads the task first.
        ids, groups: of the documents.
        evaluation: whose measures the suite's are.
        why_none: why nothing could be measured; empty where something was.
    """

    finding: Sequence[str] = ()
    trust: str = ""
    level: str = ""
    numbers: Sequence[ShownNumber] = ()
    ids: Sequence[str] = ()
    groups: Sequence[str | None] = ()
    evaluation: str | None = None
    why_none: str = ""

    @property
    def lead(self) -> ShownNumber | None:
        """The number that stands for the task."""
        return self.numbers[0] if self.numbers else None

    def number(self, key: tuple[str, str, str]) -> ShownNumber | None:
        return next((shown for shown in self.numbers if shown.key == key), None)

    def documents(self, shown: ShownNumber) -> list[Document]:
        """Return the documents as the measure of one of its numbers sees them."""
        return [document_of(*row) for row in zip(self.ids, self.groups, shown.records, strict=True)]


@dataclass(frozen=True)
class PlacedEntry:
    """An entry on a board.

    Attributes:
        file: name of its file.
        title, model, task: of the entry.
        name: of its page.
        settings: how its answers were drawn.
        measured: its numbers.
        replay: its answers before its model; None where nobody has replayed them.
        alike: title of another entry, and the share of questions that it answers in the very same words.
    """

    file: str
    title: str
    task: str
    name: str
    settings: Mapping[str, Any]
    measured: Measured
    replay: Replay | None = None
    alike: tuple[str, float] | None = None

    @property
    def replayed(self) -> bool:
        return self.replay is not None and self.replay.holds


@dataclass(frozen=True)
class Board:
    """The entries of a folder.

    Attributes:
        entries: in the order in which they came in.
        refused: files that are no entries here, with the reason.
    """

    entries: Sequence[PlacedEntry] = ()
    refused: Mapping[Path, str] = field(default_factory=dict)


@dataclass
class Rules:
    """Documents and editions of a board's tasks, loaded on first use."""

    documents: Callable[[str], TaskDocuments] = field(default_factory=lambda: cache(TaskDocuments))


def faults(entry: Entry, rules: Rules) -> list[str]:
    """Return why an entry has no place on a board; nothing where it has one.

    Raises:
        HedgeError: there is no such task, or its data cannot be had here.
    """
    edition = rules.documents(entry.task).edition
    otherwise = differences(edition.answers, entry.settings)
    if otherwise or entry.edition != edition.hash:
        why = "; ".join(otherwise) or f"its hash is {entry.edition}"
        return [f"not edition {edition.hash} of {entry.task}: {why}. Run the task as it is"]
    requests = rules.documents(entry.task).requests
    ids = [answers.id for answers in entry.documents]
    missing, foreign = sorted(requests.keys() - set(ids)), sorted(set(ids) - requests.keys())
    wrong = [
        f"{len(names)} documents {what} ({', '.join(name[:40] for name in names[:_NAMED])}). {way_out}"
        for what, names, way_out in (
            ("of the task are missing", missing, "Run the task again: kept answers are not asked for again"),
            ("are not the task's", foreign, "Run the task on the data that its YAML names"),
            ("stand there twice", sorted(id for id, n in Counter(ids).items() if n > 1), "Make the entry anew"),
        )
        if names
    ]
    if not wrong and entry.questions != questions_digest(requests.values()):
        wrong.append("other questions or references than the task has here: is the data another revision?")
    return wrong + ([] if wrong else list(_draw_faults(entry, rules)))


def _draw_faults(entry: Entry, rules: Rules) -> Iterator[str]:
    """Yield where another number of answers was drawn than the edition says."""
    for answers in entry.documents:
        plan = rules.documents(entry.task).requests[answers.id].plan
        if (len(answers.clean), len(answers.noisy)) != (plan.n, plan.noisy_count):
            yield (
                f"document {answers.id[:40]!r}: {len(answers.clean)} clean and {len(answers.noisy)} noisy answers, "
                f"where the edition has {plan.n} and {plan.noisy_count}"
            )
            return


def repeats(entry: Entry, others: Mapping[str, Entry]) -> str | None:
    """Return why an entry is one that is there already; None where it is not.

    Args:
        others: by file.
    """
    for file, other in others.items():
        if other.digest == entry.digest:
            return f"byte for byte the answers of {file}"
        if (other.task, other.title) == (entry.task, entry.title):
            return f"{file} is an entry of {entry.title} on {entry.task}: name another revision, or local/NAME"
    return None


def measure(entry: Entry, documents: TaskDocuments) -> Measured:
    """Return what the answers of an entry are worth, by the task's judge, clusterings and detectors."""
    try:
        return measured_run(documents.run_of(entry.title, entry.documents))
    except HedgeError as error:
        return Measured(why_none=str(error)[:500])


def measured_run(run: Run) -> Measured:
    """Return the finding and the numbers of a run."""
    scorers = scorers_or_exact(run)
    scores = {name: scorer.score(run.answer_sets) for name, scorer in scorers.items()}
    finding = headline(run, scores, scorers=scorers)
    numbers = [*_suite_numbers(run), *_shares(run.answer_sets), *_detectors(finding.estimates.values())]
    trust = finding.trust
    return Measured(
        finding.sentences,
        trust.short,
        trust.level,
        numbers,
        [a.id for a in run.answer_sets],
        [a.group for a in run.answer_sets],
        evaluation_of(run.settings),
    )


def _suite_numbers(run: Run) -> Iterator[ShownNumber]:
    """Yield the suite's own numbers, those that lead first."""
    for measured, number in sorted(numbers_of_run(run), key=lambda row: not (row[0].leads and row[1].defined)):
        records: Sequence[Mapping[str, Any]] = ()
        with suppress(DataError):
            records = [dict(document.record) for document in documents_of(run, measured)]
        title, higher = measured.title, measured.higher_is_better
        yield ShownNumber("suite", measured.name, "", title, higher, number, records)


def _shares(answer_sets: Sequence[AnswerSet]) -> Iterator[ShownNumber]:
    supported = [{"value": int(a.label == 0), "group": a.group} for a in answer_sets]
    labelled = [{"value": a.label, "group": a.group} for a in answer_sets]
    yield _share("supported", SUPPORTED, supported)
    yield _share("rate", HALLUCINATION_RATE, labelled)


def _share(kind: Kind, rate: Rate, records: Sequence[Mapping[str, Any]]) -> ShownNumber:
    number = rate.estimate(records)
    return ShownNumber(kind, rate.name, "", rate.title, rate.higher_is_better, number, records)


def _detectors(leads: Iterable[Lead]) -> Iterator[ShownNumber]:
    for lead in leads:
        records = [dict(d.record) for d in scored_documents(lead.scores, detector_auroc(lead.detector))]
        yield ShownNumber("auroc", lead.detector, lead.clustering, lead.name, True, lead.number, records)


def compared(a: Measured, b: Measured, key: tuple[str, str, str]) -> Comparison | None:
    """Return the difference of two entries in a number, paired by document; None where one of them has none."""
    sides = [(measured, shown) for measured in (a, b) if (shown := measured.number(key)) is not None and shown.records]
    declared = _measure_of(key, a.evaluation)
    if len(sides) < len((a, b)) or declared is None:
        return None
    return compare_documents(declared, *(measured.documents(shown) for measured, shown in sides))


def _measure_of(key: tuple[str, str, str], evaluation: str | None) -> Measure | None:
    kind, name, _ = key
    if kind == "auroc":
        return detector_auroc(name)
    shares = {SUPPORTED.name: SUPPORTED, HALLUCINATION_RATE.name: HALLUCINATION_RATE}
    suite = {m.name: m for m in measures_of({"documents": {"evaluation": evaluation}})}
    return (suite if kind == "suite" else shares).get(name)


def entries_folder(folder: Path) -> Path:
    """Return where a board's entries are: `entries` in its repository, or the folder itself.

    Raises:
        DataError: there is no such folder.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    return folder / ENTRIES if (folder / ENTRIES).is_dir() else folder


def read_board(
    folder: Path,
    cache_folder: Path,
    progress: Callable[[Sequence[Path]], Iterable[Path]] = iter,
    rules: Rules | None = None,
) -> Board:
    """Read, check and measure all entries of a folder.

    Args:
        folder: with `entries` and `replays`, or with the entries themselves.
        cache_folder: where what was measured is kept; made if missing.
        progress: goes through the files.

    Raises:
        DataError: there is no such folder, or nothing can be kept.
    """
    rules = rules or Rules()
    place = entries_folder(folder)
    merged = merged_in(place)
    files = sorted(place.glob("*.json"), key=lambda file: (merged.get(file.name, len(merged)), file.name))
    entries: dict[str, Entry] = {}
    placed: list[PlacedEntry] = []
    refused: dict[Path, str] = {}
    for file in progress(files):
        try:
            entry = read_entry(file)
            why = repeats(entry, entries)
            measured = None if why else _measured(file, entry, cache_folder, rules)
        except HedgeError as error:
            refused[file] = str(error)
            continue
        if measured is None or why is not None:
            refused[file] = why or "not measured"
            continue
        placed.append(_placed(file, entry, measured, entries, folder / REPLAYS))
        entries[file.name] = entry
    return Board(placed, refused)


def _placed(file: Path, entry: Entry, measured: Measured, others: Mapping[str, Entry], replays: Path) -> PlacedEntry:
    same = {other.title: _share_alike(entry, other) for other in others.values() if other.task == entry.task}
    alike = max(same.items(), key=lambda item: item[1], default=None)
    replay = read_replay(replays / f"{entry.name}.json", entry)
    return PlacedEntry(file.name, entry.title, entry.task, entry.name, entry.settings, measured, replay, alike)


def _share_alike(entry: Entry, other: Entry) -> float:
    """Share of questions that two entries answer in the very same words, draw by draw in any order."""
    texts = {answers.id: sorted(answers.texts) for answers in other.documents}
    return sum(texts.get(a.id) == sorted(a.texts) for a in entry.documents) / max(len(entry.documents), 1)


def _measured(file: Path, entry: Entry, folder: Path, rules: Rules) -> Measured:
    """Return what is kept of an entry, else what is measured of it now.

    Raises:
        DataError: it has no place on the board.
    """
    edition = rules.documents(entry.task).edition
    identity = [hashlib.sha256(file.read_bytes()).hexdigest(), edition.hash, edition.measures_hash, __version__]
    keep = folder / f"{hashlib.sha256(' '.join(identity).encode()).hexdigest()[:32]}.json"
    if keep.is_file():
        try:
            return _from_json(json.loads(keep.read_text("utf-8")))
        except (ValueError, TypeError, KeyError):
            logger.warning("{}: damaged, so {} is measured again", keep, file.name)
    if wrong := faults(entry, rules):
        raise DataError(f"{file.name}: {'; '.join(wrong)}")
    measured = measure(entry, rules.documents(entry.task))
    if not measured.why_none:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(keep, json.dumps(asdict(measured)))
    return measured


def _from_json(fields: Mapping[str, Any]) -> Measured:
    numbers = [
        ShownNumber(**{**row, "number": Number(**{**row["number"], "interval": _pair(row["number"]["interval"])})})
        for row in fields["numbers"]
    ]
    return Measured(**{**fields, "numbers": numbers})


def _pair(interval: Sequence[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])

"""The answer store: every finished draw on disk at once, found again by what defines it.

A keyed log (`hedge_tasks.io.keyed_log`) with four kinds of records:

- a *definition*, what a task's answers have in common: `{"definition": {"model", "task", "prompt", "sampling", ...}}`;
- a *document* that was asked for under a definition: `{"document": {"definition", "key", "id", "question", ...}}`;
- a *report* of how the model behaved: `{"report": {...}, "definition"}`;
- an *answer*: `{"key", "answer", "of", "id", "condition", "index"}`. Only `key`, a hash of everything that shapes the
  answer, `answer`, and `of`, the document's home, matter to the reader; the rest is for people with `grep`.

A log begins with the homes of the documents that it has answers of. What nobody writes to any more becomes *segments*
(`hedge_tasks.sampling.segments`). So whoever needs a slice of the documents opens the store `lazy` and loads those: of
logs and segments of other documents only the beginning or the end is read.

The keys of a document's answers follow from its definition, so definitions that share draws (another perturbation, a
larger n) share their answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import seal, unseal
from hedge_tasks.io.keyed_log import KeyedLog, Line, files_of, read_lines
from hedge_tasks.io.places import Place
from hedge_tasks.io.records import Items, Objects, OpenRecord, Record
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.segments import (
    SUFFIX,
    Footer,
    SegmentRow,
    home,
    home_of,
    homes_array,
    read_footer,
    read_rows,
)

KIND = "answers"
"""First part of the file names."""

HOMES = "homes"
"""Field of a log's first line: the homes of the documents that it may have something of."""

MOST_HOMES = 100_000
"""In that line; a log of more documents says nothing, and everybody reads it."""

LARGEST_LOG = 64 << 20
"""Bytes at which a process goes on with another log."""

_LONGEST_HEADER = 2 << 20
_LAST = "~"  # behind every name of a log

# More than anybody samples; a file that says otherwise is not believed, for reading it would take forever.
NumberOfAnswers = Annotated[int, Field(ge=0, le=100_000)]


@dataclass(frozen=True)
class FinishedDraw:
    """A finished draw on its way into the store.

    Attributes:
        document: id, for people.
        home: of the document (`segments.home`); empty where it is not known: then every reader reads it.
    """

    key: str
    answer: Answer
    document: str
    condition: str
    index: int
    home: str = ""

    def to_dict(self) -> dict[str, Any]:
        place = {"of": self.home, "id": self.document, "condition": self.condition, "index": self.index}
        return {"key": self.key, "answer": self.answer.to_dict(), **place}


class StoredDocument(Record):
    """A document as its answer set needs it, and how many answers were asked for.

    Attributes:
        definition: id of the definition.
        key: key of its content.
        id, question, reference, group, question_type: as in the answer set.
        n, n_noisy: clean and noisy answers asked for.
        options: the answers that the question offers, where the model's distribution over them is asked for.
    """

    definition: str
    key: str
    id: str
    question: str
    reference: str | None = None
    group: str | None = None
    question_type: str | None = None
    n: NumberOfAnswers = 1
    n_noisy: NumberOfAnswers = 0
    options: Items[str] = ()


class _Report(OpenRecord):
    definition: str
    report: Objects[Any]


class AnswerStore(KeyedLog[Answer]):
    """Finished draws by key, and the definitions and documents that they belong to.

    Args:
        folder: where the files are, here or on object storage; made if missing. None keeps the answers in memory only.
        watched: others are writing: `refresh` takes what they have added, and a line under way is no damage.
        lazy: nothing is read but the documents that `load` is asked for.

    Attributes:
        definitions: by id.
        documents: in the order in which they were first asked for, without duplicates.
        reports: how the model behaved that answered, by definition; the last one counts.
        conflicts: answers to a draw that had another one already. The first one counts, so that what a finished run was
            scored on never changes.
        n_written: draws that this object has written.

    Raises:
        DataError: a file cannot be read.

    Example:
        >>> store = AnswerStore(None)
        >>> store.put([FinishedDraw("key 1", Answer("yes"), "q1", "clean", 0)])
        >>> store.get("key 1").text
        'yes'
    """

    def __init__(self, folder: Place | None, *, watched: bool = False, lazy: bool = False) -> None:
        self.definitions: dict[str, Definition] = {}
        self.documents: dict[StoredDocument, None] = {}
        self.reports: dict[str, Mapping[str, Any]] = {}
        self.lazy = lazy
        self._loaded: set[str] = set()
        self._scope: set[str] | None = set()
        self.n_written = 0
        self._footers: dict[Place, Footer | None] = {}
        self._segments_read: set[Place] = set()
        # Where records come from (log and line), where they are not read in that order.
        self._document_places: dict[StoredDocument | str, tuple[str, int]] = {}
        self._report_places: dict[str, tuple[str, int]] = {}
        self._younger: dict[str, list[tuple[str, int]]] = {}
        self._oldest_left = (_LAST, 0)
        self._conflicting: set[tuple[str, int]] = set()
        super().__init__(folder, KIND, "answers", _answer, watched=watched)

    def put(self, draws: Iterable[FinishedDraw]) -> None:
        """Keep finished draws. When this returns, the death of the process loses none of them.

        On object storage it loses those of the last `hedge_tasks.io.keyed_log.UPLOAD_SECONDS` seconds.

        Raises:
            HedgeError: the disk is full or the folder cannot be written; what was stored before stays valid.
        """
        new = list(draws)
        if self._scope is not None and not {draw.home for draw in new} <= self._scope:
            self._begin_file(None)
        self.keep((draw.key, draw.answer, draw.to_dict()) for draw in new)
        self.n_written += len(new)
        if self.written >= LARGEST_LOG:
            self._begin_file(self._scope)

    def put_documents(self, definitions: Iterable[Definition], documents: Iterable[StoredDocument]) -> None:
        """Keep what the draws to come belong to; what the store knows is not written again.

        Raises:
            HedgeError: as `put`.
        """
        new_definitions = {d.id: d for d in definitions if d.id not in self.definitions}
        named = list(documents)
        new_documents = {d: None for d in named if d not in self.documents}
        homes = {home(d.key) for d in named}
        if self._scope is not None and not homes <= self._scope:
            self._begin_file(self._scope | homes if len(self._scope) + len(homes) <= MOST_HOMES else None)
        records = [
            *({"definition": d.model_dump()} for d in new_definitions.values()),
            *({"document": d.model_dump(exclude_none=True)} for d in new_documents),
        ]
        with self._lock:
            self._append(records)
        self.definitions |= new_definitions
        self.documents |= new_documents
        names: list[StoredDocument | str] = [*new_definitions, *new_documents]
        for name in names:
            self._document_places.setdefault(name, (_LAST, len(self._document_places)))

    def put_report(self, definition: str, report: Mapping[str, Any]) -> None:
        """Store how the model behaved under a definition (its id): decoding sent, findings of the probe."""
        if self.reports.get(definition) != report:
            with self._lock:
                self._append([{"report": report, "definition": definition}])
            self.reports[definition] = report
            self._report_places[definition] = (_LAST, 0)

    def segments(self) -> list[Place]:
        """The segments, oldest first."""
        return [] if self.folder is None else files_of(self.folder, self._kind, SUFFIX)

    def n_homes(self) -> int:
        """Number of documents in the segments, as their footers have it."""
        footers = [footer for file in self.segments() if (footer := self._footer(file)) is not None]
        return np.unique(np.concatenate([footer.homes for footer in footers])).size if footers else 0

    def load(self, documents: Iterable[str]) -> None:
        """Read what a lazy store has of documents, given their keys; what has been read is not read again.

        Raises:
            DataError: as `refresh`.
        """
        self.load_homes(home(key) for key in documents)

    def load_homes(self, homes: Iterable[str]) -> None:
        """Read what a lazy store has of documents, given their homes; as `load`."""
        new_homes = set(homes) - self._loaded
        if not self.lazy or self.folder is None or not new_homes:
            return
        with self._lock:
            dropped = len(self.dropped)
            self._read_again(lambda: self._read_some(new_homes))
            new = self.dropped[dropped:]
        self._warn_of(new)
        self._loaded |= new_homes

    def _read_new(self, unfinished: bool) -> int:
        if self.lazy:
            return 0
        logs = self.files()  # before the segments: a log that goes in between has become one of them
        n_rows = self._read_segments([file for file in self.segments() if file not in self._segments_read], logs, None)
        n_lines = self._read_lines(read_lines(logs, self._read_up_to, unfinished=unfinished))
        self._sort()
        return n_rows + n_lines

    def _read_some(self, homes: set[str]) -> int:
        logs = self.files()
        n_rows = self._read_segments(self.segments(), logs, homes)
        others = (file for file in logs if not file.name.startswith(tuple(self.stems)) and _may_hold(file, homes))
        lines = (line for line in read_lines(others) if line.record is None or home_of(line.record) in {"", *homes})
        n_lines = self._read_lines(lines)
        self._sort()
        return n_rows + n_lines

    def _read_segments(self, files: Iterable[Place], logs: Sequence[Place], homes: set[str] | None) -> int:
        """Read segments whole, or what they have of these homes. The records of the oldest logs come first."""
        segments = [(file, footer) for file in files if (footer := self._footer(file)) is not None]
        segments.sort(key=lambda segment: (segment[1].facts.first, segment[1].facts.first_line))
        numbers = None if homes is None else homes_array(homes)
        n_rows = 0
        for i, (file, footer) in enumerate(segments):
            left = [*(log.name for log in logs[:1]), *(later.facts.first for _, later in segments[i + 1 : i + 2])]
            self._oldest_left = (min(left, default=_LAST), 0)
            if numbers is None or footer.may_hold(numbers):
                try:
                    for row in read_rows(file, homes):
                        self._take_row(row)
                        n_rows += 1
                except DataError as error:
                    self.dropped.append(Line(file, 0, None, str(error)))
            if homes is None:
                self._segments_read.add(file)
        self._oldest_left = (_LAST, 0)
        return n_rows

    def _footer(self, file: Place) -> Footer | None:
        if file not in self._footers:
            try:
                self._footers[file] = read_footer(file)
            except DataError as error:
                self.dropped.append(Line(file, 0, None, str(error)))
                self._footers[file] = None
        return self._footers[file]

    def _take_row(self, row: SegmentRow) -> None:
        assert self.folder is not None
        line = Line(self.folder / row.source, row.line, None if isinstance(row.value, Answer) else row.value)
        if isinstance(row.value, Answer):
            self._take_answer(line, str(row.key), row.value)
        else:
            self._take_line(line)

    def _take(self, line: Line, record: Mapping[str, Any]) -> None:
        place = (line.file.name, line.number)
        if "report" in record:
            report = _Report.read(record)
            if place >= self._report_places.get(report.definition, ("", 0)):
                self.reports[report.definition] = report.report
                self._report_places[report.definition] = place
        elif "definition" in record:
            definition = Definition.read(record["definition"], "definition")
            self.definitions.setdefault(definition.id, definition)
            self._document_places[definition.id] = min(place, self._document_places.get(definition.id, place))
        elif "document" in record:
            document = StoredDocument.read(record["document"], "document")
            self.documents.setdefault(document)
            self._document_places[document] = min(place, self._document_places.get(document, place))
        elif HOMES not in record:
            key = record.get("key")
            if not isinstance(key, str):
                raise DataError(f"a record of {self._contents} without a key")
            self._take_answer(line, key, self._read(record))

    def _take_answer(self, line: Line, key: str, answer: Answer) -> None:
        """Keep the answer to a draw. Of two the one stands that was written first, wherever it is by now."""
        place = (line.file.name, line.number)
        standing, since = self._values.get(key), self._younger.get(key, [])
        if standing is None or standing == answer:
            self._values.setdefault(key, answer)
            # Only here may something older come yet, and then all of these places are those of another answer.
            if place > self._oldest_left and (standing is None or since):
                self._younger[key] = [*since, place]
        elif since and place < min(since):
            for name, number in since:
                self._note_conflict(Line(line.file.parent / name, number, None), key)
            self._values[key] = answer
            self._younger[key] = [place]
        else:
            self._note_conflict(line, key)

    def _note_conflict(self, line: Line, key: str) -> None:
        """Count an answer that does not stand, once: it may be in a log and in a segment of it."""
        if (line.file.name, line.number) not in self._conflicting:
            self._conflicting.add((line.file.name, line.number))
            self.conflicts.append(Line(line.file, line.number, line.record, f"another value of {key}"))

    def _sort(self) -> None:
        """Bring definitions and documents into the order in which they came: segments have another one."""
        if self._footers:
            came = self._document_places.__getitem__
            self.documents = dict.fromkeys(sorted(self.documents, key=came))
            self.definitions = {name: self.definitions[name] for name in sorted(self.definitions, key=came)}

    def _begin_file(self, scope: set[str] | None) -> None:
        """Go on with another file, of the documents with these homes; None: of any."""
        self.close()
        self._scope = scope

    def _header(self) -> bytes:
        return seal({HOMES: "".join(sorted(self._scope))}) if self._scope else b""


def _may_hold(file: Place, sought: set[str]) -> bool:
    """Whether a log may have something of these homes: not if its first line names others."""
    try:
        if isinstance(file, Path):
            with file.open("rb") as opened:
                line = opened.readline(_LONGEST_HEADER)
        else:
            line = file.begin(_LONGEST_HEADER).partition(b"\n")[0] + b"\n"
        homes = unseal(line).get(HOMES)
    except DataError:
        return True
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {file}: {error}") from error
    if not isinstance(homes, str):
        return True
    return any(homes[i : i + 16] in sought for i in range(0, len(homes), 16))


def _answer(record: Mapping[str, Any]) -> Answer:
    return Answer.read(record.get("answer"))

"""The answer store: every finished draw on disk at once, found again by what defines it.

A keyed log (`hedge_tasks.io.keyed_log`) with four kinds of records:

- a *definition*, what a task's answers have in common: `{"definition": {"model", "task", "prompt", "sampling", ...}}`;
- a *document* that was asked for under a definition: `{"document": {"definition", "key", "id", "question", ...}}`;
- a *report* of how the model behaved: `{"report": {...}, "definition"}`;
- an *answer*: `{"key", "answer", "of", "id", "condition", "index"}`. Only `key`, a hash of everything that shapes the
  answer, `answer`, and `of`, the document's home, matter to the reader; the rest is for people with `grep`.

A process that is done with a log of some size makes a *segment* of it (`hedge_tasks.sampling.segments`), so that
whoever needs a slice of the documents opens the store `lazy` and loads those: of segments of other documents only the
end is read. Logs and segments are read in the order of their names, the oldest first.

The keys of a document's answers follow from its definition, so definitions that share draws (another perturbation, a
larger n) share their answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from loguru import logger
from numpy.typing import NDArray
from pydantic import Field

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.keyed_log import KeyedLog, Line, files_of, read_lines
from hedge_tasks.io.places import Place
from hedge_tasks.io.records import Items, Objects, OpenRecord, Record
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.segments import SUFFIX, home, home_of, read_homes, read_segment, write_segment

KIND = "answers"
"""First part of the file names."""

LARGEST_LOG = 16 << 20
"""Bytes at which a process goes on with another log."""

SMALLEST_SEGMENT = 256 << 10
"""Bytes from which a log becomes a segment; smaller ones are read as quickly as they are."""

_HOMES = "homes"
"""Field of the first line of older logs."""

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
        lazy: nothing is read but the documents that `load` is asked for.

    Attributes:
        definitions: by id.
        documents: in the order in which they were first asked for, without duplicates.
        reports: how the model behaved that answered, by definition; the last one counts.
        conflicts: answers to a draw that had another one already. The first one counts, so that what a finished run was
            scored on never changes.

    Raises:
        DataError: a file cannot be read.

    Example:
        >>> store = AnswerStore(None)
        >>> store.put([FinishedDraw("key 1", Answer("yes"), "q1", "clean", 0)])
        >>> store.get("key 1").text
        'yes'
    """

    def __init__(self, folder: Place | None, *, lazy: bool = False) -> None:
        self.definitions: dict[str, Definition] = {}
        self.documents: dict[StoredDocument, None] = {}
        self.reports: dict[str, Mapping[str, Any]] = {}
        self.lazy = lazy
        self._loaded: set[str] = set()
        super().__init__(folder, KIND, "answers", _answer)

    def put(self, draws: Iterable[FinishedDraw]) -> None:
        """Keep finished draws. When this returns, the death of the process loses none of them.

        On object storage it loses those of the last `hedge_tasks.io.keyed_log.UPLOAD_SECONDS` seconds.

        Raises:
            HedgeError: the disk is full or the folder cannot be written; what was stored before stays valid.
        """
        self.keep((draw.key, draw.answer, draw.to_dict()) for draw in draws)
        if self.written >= LARGEST_LOG:
            self.close()

    def put_documents(self, definitions: Iterable[Definition], documents: Iterable[StoredDocument]) -> None:
        """Keep what the draws to come belong to; what the store knows is not written again.

        Raises:
            HedgeError: as `put`.
        """
        new_definitions = {d.id: d for d in definitions if d.id not in self.definitions}
        new_documents = {d: None for d in documents if d not in self.documents}
        records = [
            *({"definition": d.model_dump()} for d in new_definitions.values()),
            *({"document": d.model_dump(exclude_none=True)} for d in new_documents),
        ]
        with self._lock:
            self._append(records)
        self.definitions |= new_definitions
        self.documents |= new_documents

    def put_report(self, definition: str, report: Mapping[str, Any]) -> None:
        """Store how the model behaved under a definition (its id): decoding sent, findings of the probe."""
        if self.reports.get(definition) != report:
            with self._lock:
                self._append([{"report": report, "definition": definition}])
            self.reports[definition] = report

    def add(self, records: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
        """Keep the records of another store.

        Returns:
            Number of answers added, and of answers that differ from the ones that are here and were left out.

        Raises:
            DataError: a record is none of a store.
            HedgeError: as `put`.
        """
        added = conflicts = 0
        for record in records:
            if "key" in record:
                key, answer = str(record["key"]), _answer(record)
                if key not in self:
                    self.keep([(key, answer, record)])
                    added += 1
                conflicts += self[key] != answer
            elif _HOMES not in record:
                self._take(Line(Path(), 0, record), record)
                with self._lock:
                    self._append([record])
        return added, conflicts

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Every sound record as it was written, the oldest first; for a `lazy` store, which has read nothing."""
        for line in self._lines(None):
            if line.record is None:
                self._take_line(line)
            else:
                yield line.record
        self._warn_of(self.dropped)

    def close(self) -> None:
        """Make everything durable, and a segment of a log that is worth it; a failure of that costs nothing."""
        super().close()
        if self.folder is not None and self.written >= SMALLEST_SEGMENT:
            self.written = 0
            try:
                _make_segment(self.folder, self.stems[-1])
            except HedgeError as error:
                logger.warning("{}: the log stays as it is: {}", self.folder, error)

    def segments(self) -> list[Place]:
        """The segments, oldest first."""
        return [] if self.folder is None else files_of(self.folder, self._kind, SUFFIX)

    def homes(self) -> NDArray[np.uint64]:
        """Homes of the documents in the segments, as their footers have them."""
        return np.unique(np.concatenate([np.empty(0, np.uint64), *map(read_homes, self.segments())]))

    def load(self, documents: Iterable[str]) -> None:
        """Read what a lazy store has of documents, given their keys; what has been read is not read again.

        Raises:
            DataError: a file cannot be read.
        """
        self.load_homes(home(key) for key in documents)

    def load_homes(self, homes: Iterable[str]) -> None:
        """Read what a lazy store has of documents, given their homes; as `load`."""
        new_homes = set(homes) - self._loaded
        if not self.lazy or self.folder is None or not new_homes:
            return
        self._take_all(lambda: self._lines(new_homes))
        self._loaded |= new_homes

    def _all_lines(self) -> Iterator[Line]:
        return iter(()) if self.lazy else self._lines(None)

    def _lines(self, homes: Collection[str] | None) -> Iterator[Line]:
        """The lines of all files, or what they have of these homes and of no document, the oldest first."""
        logs = self.files()  # before the segments: a log that goes in between has become one of them
        segments = self.segments()
        stems = tuple(file.name.removesuffix(SUFFIX) for file in segments)
        own = tuple(self.stems)
        for file in sorted([*logs, *segments], key=lambda file: file.name):
            if file.name.endswith(SUFFIX):
                yield from self._segment_lines(file, homes)
            elif file.name.startswith(stems):
                continue  # whoever made the segment died before it removed the log
            elif homes is None:
                yield from read_lines([file])
            elif not file.name.startswith(own):
                for line in read_lines([file]):
                    if line.record is None or home_of(line.record) in {"", *homes}:
                        yield line

    def _segment_lines(self, file: Place, homes: Collection[str] | None) -> Iterator[Line]:
        try:
            if homes is None or np.isin(read_homes(file), [0, *(int(h, 16) for h in homes if h)]).any():
                for number, record in read_segment(file, homes):
                    yield Line(file, number, record)
        except DataError as error:
            yield Line(file, 0, None, str(error))

    def _take(self, line: Line, record: Mapping[str, Any]) -> None:
        if "report" in record:
            report = _Report.read(record)
            self.reports[report.definition] = report.report
        elif "definition" in record:
            definition = Definition.read(record["definition"], "definition")
            self.definitions.setdefault(definition.id, definition)
        elif "document" in record:
            self.documents.setdefault(StoredDocument.read(record["document"], "document"))
        elif _HOMES not in record:
            super()._take(line, record)


def _make_segment(folder: Place, stem: str) -> None:
    """Make a segment of a log that nobody writes to any more; one with damaged lines stays, for people to look at."""
    logs = [log for log in files_of(folder, KIND) if log.name.startswith(stem)]
    lines = list(read_lines(logs))
    if any(line.record is None for line in lines):
        return
    write_segment(folder / f"{stem}{SUFFIX}", (line.record for line in lines if line.record is not None))
    for log in logs:
        if isinstance(log, Path):
            log.unlink(missing_ok=True)
        else:
            log.remove()


def _answer(record: Mapping[str, Any]) -> Answer:
    return Answer.read(record.get("answer"))

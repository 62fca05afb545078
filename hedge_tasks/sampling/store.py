"""The answer store: every finished draw on disk at once, found again by what defines it.

A folder of record logs (`hedge_tasks.io.record_log`) with four kinds of records:

- a *definition*, what a task's answers have in common: `{"definition": {"model", "task", "prompt", "sampling", ...}}`;
- a *document* that was asked for under a definition: `{"document": {"definition", "key", "id", "question", ...}}`;
- a *report* of how the model behaved: `{"report": {...}, "definition"}`;
- an *answer*: `{"key", "answer", "id", "condition", "index"}`. Only `key`, a hash of everything that shapes the answer,
  and `answer` matter to the reader; the rest is for people with `grep`.

The keys of a document's answers follow from its definition, so definitions that share draws (another perturbation, a
larger n) share their answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from loguru import logger

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import DataError
from hedge_tasks.io.record_log import Line, ReadUpTo, RecordLog
from hedge_tasks.sampling.definition import Definition

KIND = "answers"
"""First part of the file names."""

# More than anybody samples; a file that says otherwise is not believed, for reading it would take forever.
_MOST_ANSWERS = 100_000


@dataclass(frozen=True)
class Record:
    """A finished draw on its way into the store."""

    key: str
    answer: Answer
    document: str
    condition: str
    index: int

    def to_dict(self) -> dict[str, Any]:
        place = {"id": self.document, "condition": self.condition, "index": self.index}
        return {"key": self.key, "answer": self.answer.to_dict(), **place}


@dataclass(frozen=True)
class StoredDocument:
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
    n: int = 1
    n_noisy: int = 0
    options: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        fields = {name: value for name, value in asdict(self).items() if value is not None and name != "options"}
        return {**fields, **({"options": list(self.options)} if self.options else {})}

    @classmethod
    def from_dict(cls, fields: object, where: str = "document") -> StoredDocument:
        """Check and build. Raises DataError that names `where`."""
        try:
            assert isinstance(fields, Mapping)
            document = cls(**{**fields, "options": tuple(fields.get("options") or ())})
        except (AssertionError, TypeError) as error:
            raise DataError(f"{where}: this is no document of an answer store") from error
        texts = (document.definition, document.key, document.id, document.question)
        optional = (document.reference, document.group, document.question_type)
        counts = (document.n, document.n_noisy)
        if not (
            all(isinstance(text, str) for text in texts)
            and all(text is None or isinstance(text, str) for text in optional)
            and all(isinstance(option, str) for option in document.options)
            and all(isinstance(count, int) and 0 <= count <= _MOST_ANSWERS for count in counts)
        ):
            raise DataError(f"{where}: this is no document of an answer store")
        return document


class AnswerStore:
    """Finished draws by key, and the definitions and documents that they belong to.

    Args:
        folder: where the files are; made if missing. None keeps the answers in memory only.
        watched: others are writing: `refresh` takes what they have added, and a line under way is no damage.

    Attributes:
        definitions: by id.
        documents: in the order in which they were first asked for, without duplicates.
        reports: how the model behaved that answered, by definition; the last one counts.
        dropped: damaged records.
        conflicts: answers to a draw that had another one already. The first one counts, so that what a finished run was
            scored on never changes.

    Raises:
        DataError: a file cannot be read.

    Example:
        >>> store = AnswerStore(None)
        >>> store.put([Record("key 1", Answer("yes"), "q1", "clean", 0)])
        >>> store.get("key 1")
        Answer(text='yes', mean_logprob=None, n_tokens=None)
    """

    def __init__(self, folder: Path | None, *, watched: bool = False) -> None:
        self.folder = folder
        self.definitions: dict[str, Definition] = {}
        self.documents: dict[StoredDocument, None] = {}
        self.reports: dict[str, Mapping[str, Any]] = {}
        self.dropped: list[Line] = []
        self.conflicts: list[Line] = []
        self._answers: dict[str, Answer] = {}
        self._log = None if folder is None else RecordLog(folder, KIND, "answers")
        self._read_up_to: dict[Path, ReadUpTo] = {}
        if watched:
            self.refresh()
            return
        for line in self._log.read() if self._log else ():
            self._take(line)

    def __enter__(self) -> AnswerStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._answers)

    def __getitem__(self, key: str) -> Answer:
        return self._answers[key]

    @property
    def n_dropped(self) -> int:
        return len(self.dropped)

    def get(self, key: str) -> Answer | None:
        return self._answers.get(key)

    def __iter__(self) -> Iterator[str]:
        """Keys of all answers."""
        return iter(self._answers)

    def files(self) -> list[Path]:
        return [] if self._log is None else self._log.files()

    def refresh(self) -> int:
        """Take what was written since; for a watched store. Returns the number of new lines.

        Raises:
            DataError: a file cannot be read.
        """
        n = 0
        for line in self._log.read_new(self._read_up_to) if self._log else ():
            self._take(line)
            n += 1
        return n

    def put(self, records: Iterable[Record]) -> None:
        """Keep finished draws. When this returns, the death of the process loses none of them.

        Raises:
            HedgeError: the disk is full or the folder cannot be written; what was stored before stays valid.
        """
        records = list(records)
        self._append(record.to_dict() for record in records)
        self._answers.update((record.key, record.answer) for record in records)

    def put_documents(self, definitions: Iterable[Definition], documents: Iterable[StoredDocument]) -> None:
        """Keep what the draws to come belong to; what the store knows is not written again.

        Raises:
            HedgeError: as `put`.
        """
        new = {d.id: d for d in definitions if d.id not in self.definitions}
        asked = {d: None for d in documents if d not in self.documents}
        self._append(
            [*({"definition": d.to_dict()} for d in new.values()), *({"document": d.to_dict()} for d in asked)]
        )
        self.definitions |= new
        self.documents |= asked

    def put_report(self, definition: str, report: Mapping[str, Any]) -> None:
        """Keep how the model behaved under a definition (its id): decoding in force, findings of the probe."""
        if self.reports.get(definition) != report:
            self._append([{"report": report, "definition": definition}])
            self.reports[definition] = report

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def _append(self, records: Iterable[Mapping[str, Any]]) -> None:
        if self._log is not None:
            self._log.append(records)

    def _take(self, line: Line) -> None:
        where = f"{line.file.name}:{line.number}"
        try:
            if line.record is None:
                raise DataError(str(line.problem))
            self._take_record(line, line.record)
        except DataError as error:
            self.dropped.append(Line(line.file, line.number, None, str(error)))
            logger.warning("Answer store {}: record dropped, {}", where, error)

    def _take_record(self, line: Line, record: Mapping[str, Any]) -> None:
        if "report" in record:
            report, definition_id = record["report"], record.get("definition")
            if not isinstance(report, Mapping) or not isinstance(definition_id, str):
                raise DataError("this is no report of an answer store")
            self.reports[definition_id] = report
        elif "definition" in record:
            definition = Definition.from_dict(record["definition"])
            self.definitions.setdefault(definition.id, definition)
        elif "document" in record:
            self.documents.setdefault(StoredDocument.from_dict(record["document"]))
        else:
            key, answer = record.get("key"), Answer.from_dict(record.get("answer"))
            if not isinstance(key, str):
                raise DataError("an answer without a key")
            if self._answers.setdefault(key, answer) != answer:
                self.conflicts.append(Line(line.file, line.number, record, f"another answer to draw {key}"))

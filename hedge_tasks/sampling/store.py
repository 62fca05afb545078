"""The answer store: every finished draw on disk at once, found again by what defines it.

A keyed log (`hedge_tasks.io.keyed_log`) with four kinds of records:

- a *definition*, what a task's answers have in common: `{"definition": {"model", "task", "prompt", "sampling", ...}}`;
- a *document* that was asked for under a definition: `{"document": {"definition", "key", "id", "question", ...}}`;
- a *report* of how the model behaved: `{"report": {...}, "definition"}`;
- an *answer*: `{"key", "answer", "id", "condition", "index"}`. Only `key`, a hash of everything that shapes the answer,
  and `answer` matter to the reader; the rest is for people with `grep`.

The keys of a document's answers follow from its definition, so definitions that share draws (another perturbation, a
larger n) share their answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from hedge_tasks.data.answers import Answer
from hedge_tasks.io.keyed_log import KeyedLog, Line
from hedge_tasks.io.records import Items, Objects, OpenRecord, Record
from hedge_tasks.sampling.definition import Definition

KIND = "answers"
"""First part of the file names."""

# More than anybody samples; a file that says otherwise is not believed, for reading it would take forever.
NumberOfAnswers = Annotated[int, Field(ge=0, le=100_000)]


@dataclass(frozen=True)
class FinishedDraw:
    """A finished draw on its way into the store."""

    key: str
    answer: Answer
    document: str
    condition: str
    index: int

    def to_dict(self) -> dict[str, Any]:
        place = {"id": self.document, "condition": self.condition, "index": self.index}
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
        folder: where the files are; made if missing. None keeps the answers in memory only.
        watched: others are writing: `refresh` takes what they have added, and a line under way is no damage.

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
        >>> store.get("key 1")
        Answer(text='yes', mean_logprob=None, n_tokens=None)
    """

    def __init__(self, folder: Path | None, *, watched: bool = False) -> None:
        self.definitions: dict[str, Definition] = {}
        self.documents: dict[StoredDocument, None] = {}
        self.reports: dict[str, Mapping[str, Any]] = {}
        super().__init__(folder, KIND, "answers", _answer, watched=watched)

    def put(self, draws: Iterable[FinishedDraw]) -> None:
        """Keep finished draws. When this returns, the death of the process loses none of them.

        Raises:
            HedgeError: the disk is full or the folder cannot be written; what was stored before stays valid.
        """
        self.keep((draw.key, draw.answer, draw.to_dict()) for draw in draws)

    def put_documents(self, definitions: Iterable[Definition], documents: Iterable[StoredDocument]) -> None:
        """Keep what the draws to come belong to; what the store knows is not written again.

        Raises:
            HedgeError: as `put`.
        """
        new = {d.id: d for d in definitions if d.id not in self.definitions}
        asked = {d: None for d in documents if d not in self.documents}
        records = [
            *({"definition": d.model_dump()} for d in new.values()),
            *({"document": d.model_dump(exclude_none=True)} for d in asked),
        ]
        with self._lock:
            self._append(records)
        self.definitions |= new
        self.documents |= asked

    def put_report(self, definition: str, report: Mapping[str, Any]) -> None:
        """Keep how the model behaved under a definition (its id): decoding sent, findings of the probe."""
        if self.reports.get(definition) != report:
            with self._lock:
                self._append([{"report": report, "definition": definition}])
            self.reports[definition] = report

    def _take(self, line: Line, record: Mapping[str, Any]) -> None:
        if "report" in record:
            found = _Report.read(record)
            self.reports[found.definition] = found.report
        elif "definition" in record:
            definition = Definition.read(record["definition"], "definition")
            self.definitions.setdefault(definition.id, definition)
        elif "document" in record:
            self.documents.setdefault(StoredDocument.read(record["document"], "document"))
        else:
            super()._take(line, record)


def _answer(record: Mapping[str, Any]) -> Answer:
    return Answer.read(record.get("answer"))

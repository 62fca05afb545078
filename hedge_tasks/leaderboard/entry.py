"""An entry of a leaderboard: a run file cut to what a board may have, the model's words.

Whatever else a run says of itself (labels, clusters, scores, judges, questions) is the board's own, or not there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import canonical
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.records import Items, Objects, Record
from hedge_tasks.judging.reply_judge import reads_replies
from hedge_tasks.runs.editions import edition_of
from hedge_tasks.runs.relabel import judge_of
from hedge_tasks.runs.run_files import Run

_LARGEST = 1 << 30
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}"

HubId = Annotated[str, Field(pattern=rf"^{_NAME}/{_NAME}$")]
"""Id of a model on the Hub, or local/NAME of one that is not there."""


def words_of(answers: AnswerSet) -> AnswerSet:
    """Return what a board may have of an answer set: texts, log-probabilities and numbers of tokens, by id."""
    return AnswerSet(
        answers.id,
        _words(answers.baseline),
        tuple(map(_words, answers.clean)),
        tuple(map(_words, answers.noisy)),
        follow_ups=tuple(map(words_of, answers.follow_ups)),
        forced={name: _words(answer) for name, answer in answers.forced.items()},
    )


def _words(answer: Answer) -> Answer:
    return Answer(answer.text, answer.mean_logprob, answer.n_tokens, answer.finish, end_logprob=answer.end_logprob)


Words = Annotated[
    AnswerSet,
    BeforeValidator(lambda value: value if isinstance(value, AnswerSet) else words_of(AnswerSet.read(value))),
    PlainSerializer(AnswerSet.to_dict),
]


class Entry(Record):
    """A model's answers to all questions of a task.

    Attributes:
        model: Hub id of the model, or local/NAME.
        revision: of its weights; None where it is not known.
        task: whose questions these are.
        edition: hash of how they were drawn; see `hedge_tasks.runs.editions`.
        settings: how they were drawn, in words, for whoever looks why the edition is another one.
        questions: digest of questions and references, by which a board sees that it has the same.
        documents: the answers to each question.
    """

    hedge_entry: Literal[1] = 1
    model: HubId
    revision: Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]{1,80}$")] | None = None
    task: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,200}$")]
    edition: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    settings: Objects[Any]
    questions: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    documents: Items[Words]

    @property
    def title(self) -> str:
        """Model and revision, for people."""
        return f"{self.model}@{self.revision}" if self.revision else self.model

    @property
    def digest(self) -> str:
        """SHA-256 of the task and all answers, in whatever order they stand."""
        rows = sorted((answers.to_dict() for answers in self.documents), key=lambda row: str(row["id"]))
        return hashlib.sha256(canonical([self.task, rows])).hexdigest()

    @property
    def name(self) -> str:
        """Readable, fit for a file and a branch, and another one for other answers or another model."""
        identity = hashlib.sha256(f"{self.title} {self.digest}".encode()).hexdigest()[:8]
        return f"{slug(f'{self.task}-{self.title}')}-{identity}"


def slug(text: str) -> str:
    """Return what of a text is fit for the name of a file.

    Example:
        >>> slug("hedge_demo-local/Tiny")
        'hedge-demo-local-tiny'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80] or "unnamed"


def questions_digest(answer_sets: Iterable[Any]) -> str:
    """Return the SHA-256 of ids, questions and references of answer sets, or of requests."""
    return hashlib.sha256(
        canonical(sorted([a.id, a.question or "", a.reference or ""] for a in answer_sets))
    ).hexdigest()


def hub_id(run_model: str) -> str:
    """Return the id of a run's model: its name where that is one, else local/NAME.

    Example:
        >>> hub_id("Qwen/Qwen2.5-VL-7B (hedge_hf, dtype=bfloat16)"), hub_id("hedge_tiny")
        ('Qwen/Qwen2.5-VL-7B', 'local/hedge_tiny')
    """
    name = run_model.partition(" (")[0].strip()
    if re.fullmatch(f"{_NAME}/{_NAME}", name):
        return name
    return f"local/{re.sub(r'[^A-Za-z0-9._-]+', '-', name).strip('-._')[:96] or 'model'}"


def entry_of(run: Run, model: str | None = None, revision: str | None = None) -> Entry:
    """Return a finished run as an entry.

    Args:
        run: of all documents of a task.
        model: Hub id of its model, or local/NAME; by default what the run says.
        revision: of its weights.

    Raises:
        DataError: model or revision are none.
    """
    edition = edition_of(run.task, run.settings)
    replies = reads_replies(judge_of(run))
    return Entry(
        model=hub_id(run.model) if model is None else model,
        revision=revision,
        task=run.task,
        edition=edition.hash,
        settings=dict(edition.answers),
        questions=questions_digest(run.answer_sets),
        documents=tuple(words_of(_as_written(a, run.verdicts.get(a.id) or {}, replies)) for a in run.answer_sets),
    )


def _as_written(answers: AnswerSet, verdict: Mapping[str, Any], replies: bool) -> AnswerSet:
    """Return the answers with the baseline as the model wrote it, where the run has what was read out of it."""
    reply = verdict.get("raw")
    if not replies or not isinstance(reply, str):
        return answers
    return replace(answers, baseline=replace(answers.baseline, text=reply))


def write_entry(path: Path, entry: Entry) -> None:
    """Write an entry, a document a line, as a whole or not at all.

    Raises:
        DataError: the file cannot be written.
    """
    fields = entry.model_dump(mode="json")
    rows = ",\n".join(json.dumps(row) for row in fields.pop("documents"))
    write_whole(path, f'{json.dumps(fields)[:-1]}, "documents": [\n{rows}\n]}}\n')


def read_entry(path: Path) -> Entry:
    """Read an entry.

    Raises:
        DataError: it is none; names the file and the place.
    """
    return Entry.read(read_json(path, largest=_LARGEST, constants=False), str(path))


def place_of(folder: Path, entry: Entry) -> Path:
    """Return where an entry is written: in the `entries` of a board's repository, else in the folder itself.

    Raises:
        ConfigError: there is a file in its place.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--out: {folder}: this is a file; give a folder")
    inner = folder / "entries"
    folder = inner if inner.is_dir() else folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write {folder}: {error.strerror}") from error
    return folder / f"{entry.name}.json"

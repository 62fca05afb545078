"""Answers of other tools as answer sets: joined over files, without thoughts, with notes on what was lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hedge_tasks.data.answer_files import clean_answer_sets, parse_answer_sets
from hedge_tasks.data.answer_rows import normal_rows
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.foreign import inspect_logs, polygraph, rows
from hedge_tasks.data.foreign.record import ForeignAnswers, ForeignFile
from hedge_tasks.data.tables import read_table
from hedge_tasks.data.thoughts import has_thought, without_thoughts
from hedge_tasks.errors import ConfigError, DataError


@dataclass(frozen=True)
class ImportedAnswers:
    """Answers of other tools.

    Attributes:
        form: the tool whose files they are from.
        model: as the files name it; empty where they do not.
        judge: who has labelled them; empty without labels.
        notes: what was done and what was lost, a line each.
    """

    form: str
    answer_sets: tuple[AnswerSet, ...]
    model: str
    judge: str
    notes: tuple[str, ...]


def read_answers(files: Sequence[Path], questions: Path | None = None) -> ImportedAnswers:
    """The answers in files of one other tool. Several files hold answers to the same questions and are joined by id.

    Within a file an id is one question's: equal copies of its line, such as a padded rank leaves, are one.

    Where nothing says which answer is the baseline, it is the first.

    Args:
        questions: the requests of a batch, whose replies alone do not say what was asked.

    Raises:
        ConfigError: the files are of several tools or models.
        DataError: a file cannot be read, is of no tool that is known, or has two different lines with one id.
    """
    read = [_read_file(file, questions) for file in files]
    forms, models = dict.fromkeys(file.form for file in read), dict.fromkeys(f.model for f in read if f.model)
    if len(forms) > 1 or len(models) > 1:
        raise ConfigError(f"the files are of several tools or models: {', '.join([*forms, *models])}")
    joined: dict[str, ForeignAnswers] = {}
    for path, file in zip(files, read, strict=True):
        for entry in _once(path, file.documents):
            joined[entry.id] = _join(joined.get(entry.id), entry)
    lost: Counter[str] = Counter()
    shaped = [(f"{files[0]}: {entry.id}", _answer_row(entry, lost)) for entry in joined.values()]
    answer_sets = clean_answer_sets(parse_answer_sets(normal_rows(shaped)), str(files[0]))
    if not answer_sets:
        raise DataError(f"{files[0]}: no answers in it")
    first = sum(entry.baseline is None for entry in joined.values())
    notes = [note for file in read for note in file.notes]
    if first:
        notes.append(f"baseline: of {first} documents the first answer, for nothing says which it is")
    notes += [f"lost: {what} of {n} answers" for what, n in lost.items()]
    total = sum(len(a.answers) for a in answer_sets)
    if without := sum(answer.mean_logprob is None for a in answer_sets for answer in a.answers):
        notes.append(f"{without} of {total} answers have no log-probability")
    if any(not a.clean for a in answer_sets):
        notes.append(
            "a single answer a document: detectors that draw have nothing to go by; give the other files as well"
        )
    judges = dict.fromkeys(file.judge for file in read if file.judge)
    form, model = next(iter(forms)), next(iter(models), "")
    return ImportedAnswers(form, tuple(answer_sets), model, ", ".join(judges), tuple(notes))


def _read_file(file: Path, questions: Path | None) -> ForeignFile:
    if not file.exists():
        raise DataError(f"cannot read {file}: there is no such file")
    if file.suffix.lower() == ".eval" or (file.suffix.lower() == ".json" and inspect_logs.is_log(file)):
        return inspect_logs.read(file)
    if file.suffix.lower() in (".man", ".pt", ".pth"):
        return polygraph.read(file)
    return rows.read(read_table(file), questions)


def _once(file: Path, entries: Sequence[ForeignAnswers]) -> Collection[ForeignAnswers]:
    """The documents of a file without copies."""
    once: dict[str, ForeignAnswers] = {}
    for entry in entries:
        if once.setdefault(entry.id, entry) != entry:
            raise DataError(
                f"{file}: two lines that differ have the id {entry.id!r}; put all draws of a question into one line, "
                "or each repetition into a file of its own"
            )
    return once.values()


def _join(earlier: ForeignAnswers | None, entry: ForeignAnswers) -> ForeignAnswers:
    if earlier is None:
        return entry
    if earlier.question and entry.question and earlier.question != entry.question:
        raise DataError(f"the id {entry.id!r} is of two questions")
    return replace(earlier, draws=(*earlier.draws, *entry.answers))


def _answer_row(entry: ForeignAnswers, lost: Counter[str]) -> Mapping[str, Any]:
    answers = [_answer(answer, lost) for answer in entry.answers]
    if not answers:
        raise DataError(f"{entry.id}: there is no answer")
    names = ("id", "question", "reference", "label", "group", "question_type")
    fields = {name: value for name in names if (value := getattr(entry, name)) not in (None, "")}
    return {**fields, "baseline": answers[0], "clean": answers[1:]}


def _answer(answer: Mapping[str, Any], lost: Counter[str]) -> dict[str, Any]:
    """An answer without its thought; log-probabilities of both together are of neither."""
    fields = {key: value for key, value in answer.items() if value is not None and key != "reasoning"}
    text = str(fields["text"])
    thinks = bool(answer.get("reasoning")) or has_thought(text)
    if thinks:
        lost["the thought"] += 1
        if fields.keys() & {"logprobs", "mean_logprob", "tokens"}:
            lost["log-probabilities of thought and answer together,"] += 1
        after_thought, is_open = without_thoughts(text)
        finish = {key: value for key, value in fields.items() if key == "finish"}
        return {**finish, "text": "" if is_open else after_thought.strip()}
    return fields

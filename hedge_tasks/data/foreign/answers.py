"""Answers of other tools as answer sets: joined over files, without thoughts, with what was lost said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hedge_tasks.data.answer_files import cleaned, parse_answer_sets
from hedge_tasks.data.answer_rows import normal_rows
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.foreign import inspect_logs, polygraph, rows
from hedge_tasks.data.foreign.record import ForeignAnswers, ForeignFile
from hedge_tasks.data.tables import read_table
from hedge_tasks.data.thoughts import has_thought, without_thoughts
from hedge_tasks.errors import ConfigError, DataError


@dataclass(frozen=True)
class ReadAnswers:
    """Answers of other tools.

    Attributes:
        form: whose files they are from.
        model: as the files name it; empty where they do not.
        judge: who has labelled them; empty without labels.
        notes: what was done and what was lost, a line each.
    """

    form: str
    answer_sets: tuple[AnswerSet, ...]
    model: str
    judge: str
    notes: tuple[str, ...]


def read_answers(files: Sequence[Path], questions: Path | None = None) -> ReadAnswers:
    """The answers in files of one other tool. Several files hold answers to the same questions and are joined by id.

    Where nothing says which answer is the baseline, it is the first.

    Args:
        questions: the requests of a batch, whose replies alone do not say what was asked.

    Raises:
        ConfigError: the files are of several tools or models.
        DataError: a file cannot be read, or is of no tool that is known.
    """
    read = [_read(file, questions) for file in files]
    forms, models = dict.fromkeys(file.form for file in read), dict.fromkeys(f.model for f in read if f.model)
    if len(forms) > 1 or len(models) > 1:
        raise ConfigError(f"the files are of several tools or models: {', '.join([*forms, *models])}")
    joined: dict[str, ForeignAnswers] = {}
    for file in read:
        for one in file.documents:
            joined[one.id] = _joined(joined.get(one.id), one)
    lost: Counter[str] = Counter()
    shaped = [(f"{files[0]}: {one.id}", _shaped(one, lost)) for one in joined.values()]
    answer_sets = cleaned(parse_answer_sets(normal_rows(shaped)), str(files[0]))
    if not answer_sets:
        raise DataError(f"{files[0]}: no answers in it")
    first = sum(one.baseline is None for one in joined.values())
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
    return ReadAnswers(next(iter(forms)), tuple(answer_sets), next(iter(models), ""), ", ".join(judges), tuple(notes))


def _read(file: Path, questions: Path | None) -> ForeignFile:
    if not file.exists():
        raise DataError(f"cannot read {file}: there is no such file")
    if file.suffix.lower() == ".eval" or (file.suffix.lower() == ".json" and inspect_logs.is_log(file)):
        return inspect_logs.read(file)
    if file.suffix.lower() in (".man", ".pt", ".pth"):
        return polygraph.read(file)
    return rows.read(read_table(file), questions)


def _joined(before: ForeignAnswers | None, one: ForeignAnswers) -> ForeignAnswers:
    if before is None:
        return one
    if before.question and one.question and before.question != one.question:
        raise DataError(f"the id {one.id!r} is of two questions")
    more = [] if one.baseline is None else [one.baseline]
    return replace(before, draws=(*before.draws, *more, *one.draws))


def _shaped(one: ForeignAnswers, lost: Counter[str]) -> Mapping[str, Any]:
    answers = [_answer(answer, lost) for answer in ([] if one.baseline is None else [one.baseline]) + list(one.draws)]
    if not answers:
        raise DataError(f"{one.id}: there is no answer")
    about = {"id": one.id, "question": one.question, "reference": one.reference, "label": one.label, "group": one.group}
    about["question_type"] = one.question_type
    told = {key: value for key, value in about.items() if value not in (None, "")}
    return {**told, "baseline": answers[0], "clean": answers[1:]}


def _answer(answer: Mapping[str, Any], lost: Counter[str]) -> dict[str, Any]:
    """An answer without its thought; log-probabilities of both together are of neither."""
    found = {key: value for key, value in answer.items() if value is not None and key != "reasoning"}
    text = str(found["text"])
    thinks = bool(answer.get("reasoning")) or has_thought(text)
    if thinks:
        lost["the thought"] += 1
        if found.keys() & {"logprobs", "mean_logprob", "tokens"}:
            lost["log-probabilities of thought and answer together,"] += 1
        said, is_open = without_thoughts(text)
        kept = {key: value for key, value in found.items() if key == "finish"}
        return {**kept, "text": "" if is_open else said.strip()}
    return found

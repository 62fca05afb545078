"""Dumps of single draws: one line an answer, whose id names the question and its variant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hedge_tasks.data.answer_files import clean_answer_sets
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import outside

_SAMPLE = re.compile(r"[-_.:/# ]?(?:sample|draw|run|seed)?[-_]?\d+$", re.IGNORECASE)
"""The number of a draw at the end of its id."""

_LARGEST = 1 << 30


@dataclass(frozen=True)
class ImportedDraws:
    """Answer sets out of single draws.

    Attributes:
        variants: variant of the questions -> number of draws; "" is the unchanged question.
        notes: what the files do not say, a line each.
    """

    answer_sets: tuple[AnswerSet, ...]
    variants: Mapping[str, int]
    notes: tuple[str, ...]


def read_draws(
    files: Sequence[Path],
    baseline: Path,
    truth: Path | None = None,
    *,
    clean: str | None = None,
    same: Mapping[str, str] | None = None,
    most: int | None = None,
    seed: int = 0,
) -> ImportedDraws:
    """Join draws with the baseline answers whose id theirs begins with.

    What follows in the id says what was done to the question. A draw with nothing but a number there (`q1_sample3`) is
    a clean one. All others are noisy, unless they match `clean`. Draws have no log-probabilities. A label says whether
    the baseline answer is another than the true one.

    Args:
        files: of draws, a line each: an id, white space, an answer.
        baseline: the same of answers that are judged.
        truth: the same of right answers; brackets around them do not matter.
        clean: regular expression; draws that have it behind the question's id are clean.
        same: words of the truth -> those of answers, such as "1" -> "A".
        most: clean and noisy draws of a question at most, chosen at random.
        seed: of this choice.

    Raises:
        ConfigError: the expression is none.
        DataError: a file cannot be read, a line has no answer, or a draw is of no question.
    """
    try:
        is_clean = re.compile(clean) if clean else None
    except re.error as error:
        raise ConfigError(f"--clean: {clean!r} is no regular expression: {error}") from None
    judged = dict(_lines(baseline))
    right = {id: (same or {}).get(answer, answer) for id, answer in _lines(truth)} if truth else {}
    draws: dict[str, tuple[list[str], list[str]]] = {id: ([], []) for id in judged}
    variants: Counter[str] = Counter()
    for file in files:
        for id, text in _lines(file):
            question = _question(id, judged)
            if question is None:
                raise DataError(f"{file}: {id!r} begins with the id of no baseline answer in {baseline}")
            variant = _SAMPLE.sub("", id[len(question) :]).strip("-_.:/# ")
            variants[variant] += 1
            noisy = bool(variant) and not (is_clean and is_clean.search(variant))
            draws[question][noisy].append(text)
    if right and not judged.keys() & right.keys():
        raise DataError(f"{truth}: no id is one of {baseline}: {min(right)!r} there, {min(judged)!r} here")
    rng = np.random.default_rng(seed)
    sets = [
        AnswerSet(
            id,
            Answer(text),
            clean=tuple(map(Answer, _at_most(draws[id][False], most, rng))),
            noisy=tuple(map(Answer, _at_most(draws[id][True], most, rng))),
            reference=right.get(id, ""),
            label=int(text != right[id]) if id in right else None,
        )
        for id, text in judged.items()
    ]
    return ImportedDraws(tuple(clean_answer_sets(sets, str(baseline))), variants, tuple(_notes(sets, bool(right))))


def _lines(file: Path) -> list[tuple[str, str]]:
    """(id, answer) of each line."""
    answers = []
    for i, line in enumerate(outside.read_text(file, largest=_LARGEST).splitlines(), 1):
        if not line.strip():
            continue
        id, _, text = line.strip().partition(" ") if " " in line.strip() else line.strip().partition("\t")
        if not text.strip():
            raise DataError(f"{file}:{i}: expected an id and an answer, got {outside.shown(line)}")
        answers.append((id, text.strip().strip("()[]").strip()))
    if not answers:
        raise DataError(f"{file}: there are no lines in it")
    return answers


def _question(id: str, questions: Mapping[str, str]) -> str | None:
    """The longest known id that this one begins with, not ending within a word or number."""
    for end in range(len(id), 0, -1):
        if id[:end] in questions and (end == len(id) or not id[end].isalnum()):
            return id[:end]
    return None


def _at_most(texts: Sequence[str], most: int | None, rng: np.random.Generator) -> list[str]:
    if most is None or len(texts) <= most:
        return list(texts)
    return [texts[i] for i in sorted(rng.permutation(len(texts))[:most])]


def _notes(sets: Sequence[AnswerSet], labelled: bool) -> list[str]:
    notes = ["no log-probabilities: detectors that need them are left out"]
    if not any(a.clean for a in sets):
        notes.append("no clean draws: only detectors of noisy ones alone have something to go by (--clean makes some)")
    if len(n := {(len(a.clean), len(a.noisy)) for a in sets}) > 1:
        notes.append(f"questions have other numbers of draws: {min(n)} to {max(n)} clean and noisy ones")
    if not labelled:
        notes.append("no labels: --truth gives the right answers")
    elif without := sum(a.label is None for a in sets):
        notes.append(f"{without} of {len(sets)} questions have no right answer in --truth, and no label")
    return notes

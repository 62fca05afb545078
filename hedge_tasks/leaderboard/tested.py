"""Which evidence of each document its repeated draws have tested, and whether a detector's number stands on that alone.

A log-probability is held against how often its text is drawn again. One of a text that nothing repeats, behind a
thought, or without that of its end token is its submitter's word, and so are the draws of a document none of which
repeats. Honest models have some of these, by chance or since they are scattered where they are wrong, which is what
detectors tell. So it is no fault: numbers that would be other ones if such documents had been made up are called
self-reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.registry import get
from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.statistics.base import BoolArray, FloatArray

Part = Literal["baseline", "clean", "noisy"]

NO_END = (
    "nobody can tell whether its log-probabilities are too high: without those of the end token, behind thoughts, or "
    "where no answer is drawn again"
)

_LEAST_TESTED = 0.5
"""Share of documents whose evidence has to be tested, for scores that rest on log-probabilities."""

_UNLIKELY = 0.01
"""Level of both tests: whether what is tested goes with the label, and whether the rest alone makes the number."""

_GAIN, _PERMUTATIONS, _FEWEST_OF_CLASS, _MOST_PAIRS = 0.03, 400, 5, 1_000_000
"""AUROC that untested documents may add: honest ones are scattered, and so are not any documents of their labels."""

_IN_WORDS: Mapping[Part, str] = {
    "baseline": "the baseline answer's log-probability",
    "clean": "the clean draws",
    "noisy": "the noisy answers",
}


@dataclass(frozen=True)
class RepeatedEvidence:
    """By part of the evidence, whether it is tested in each document, shape `(documents,)`."""

    baseline: BoolArray
    clean: BoolArray
    noisy: BoolArray


def repeated_evidence(answer_sets: Sequence[AnswerSet]) -> RepeatedEvidence:
    """Return what the draws of each document test.

    The baseline answer: its text is drawn clean. Clean draws: some text is drawn twice. Noisy answers: one of them is
    an answer to the clean picture, too, so that it is held against what it is likely.
    """
    parts = [(_is_drawn_again(a), _is_repeated(a.clean), _is_heard(a)) for a in answer_sets]
    return RepeatedEvidence(*np.array(parts, dtype=bool).reshape(-1, 3).T)


def _testable(answer: Answer) -> bool:
    known = answer.mean_logprob is not None and answer.n_tokens is not None and answer.end_logprob is not None
    return known and answer.thought is None and bool(answer.text)


def _path(answer: Answer) -> tuple[object, ...]:
    return answer.text, answer.n_tokens, answer.finish


def _is_drawn_again(answers: AnswerSet) -> bool:
    mine = answers.baseline
    return _testable(mine) and any(_testable(a) and _path(a) == _path(mine) for a in answers.clean)


def _is_repeated(draws: Sequence[Answer]) -> bool:
    return any(n > 1 for n in Counter(_path(a) for a in draws if _testable(a)).values())


def _is_heard(answers: AnswerSet) -> bool:
    clean = {_path(a) for a in (answers.baseline, *answers.clean)}
    return any(_testable(a) and _path(a) in clean for a in answers.noisy)


def bare(answer_sets: Sequence[AnswerSet], *, baseline: bool) -> list[AnswerSet]:
    """The documents without the log-probabilities of the baseline answers, or of all others."""

    def without(answers: Sequence[Answer]) -> tuple[Answer, ...]:
        return tuple(replace(answer, mean_logprob=None) for answer in answers)

    if baseline:
        return [replace(a, baseline=without([a.baseline])[0]) for a in answer_sets]
    return [replace(a, clean=without(a.clean), noisy=without(a.noisy)) for a in answer_sets]


def rests_on(detector: str, *, baseline: bool) -> list[Part]:
    """Return the parts of the evidence that a detector rests on.

    Args:
        baseline: whether its scores change with the baseline answers' log-probabilities.
    """
    price = get(detector).draws
    parts: list[Part] = ["baseline"] if baseline else []
    parts += ["clean"] if price(2, 0) else []
    return [*parts, "noisy"] if price(2, 2) != price(2, 0) else parts


def why_untested(
    scores: Sequence[Scores], detector: str, tested: RepeatedEvidence, parts: Sequence[Part], *, logprobs: bool
) -> str | None:
    """Why a detector's number does not stand on what was tested; None where it does.

    Args:
        scores: computed again.
        tested: of the same documents.
        parts: that the detector rests on.
        logprobs: whether its scores change with log-probabilities.
    """
    rows = [(i, s.reported_label, s[detector]) for i, s in enumerate(scores)]
    counted = [(i, label, value) for i, label, value in rows if label is not None and value is not None]
    if not counted or not parts:
        return None
    indices = np.array([i for i, _, _ in counted])
    wrong = np.array([label for _, label, _ in counted], dtype=bool)
    values = np.array([value for _, _, value in counted], dtype=float)
    flags = {part: getattr(tested, part)[indices] for part in parts}
    whole = np.logical_and.reduce(list(flags.values()))
    if logprobs and whole.mean() < _LEAST_TESTED:
        return NO_END
    for part, is_tested in flags.items():
        if _p_of_label(is_tested, wrong) < _UNLIKELY:
            right, others = (
                f"{is_tested[mask].sum()} of {mask.sum()} {name} ones"
                for mask, name in ((~wrong, "right"), (wrong, "wrong"))
            )
            return (
                f"what draws have tested goes with the label: {_IN_WORDS[part]} of {right} and of {others}. The rest "
                "is the submitter's word; a model that is scattered where it is wrong looks the same"
            )
    return _gained(values, wrong, whole)


def _p_of_label(is_tested: BoolArray, wrong: BoolArray) -> float:
    """Return Fisher's p-value of whether what is tested goes with the label."""
    if is_tested.all() or not is_tested.any():
        return 1.0
    from scipy.stats import fisher_exact

    table = [[int((is_tested & mask).sum()), int((~is_tested & mask).sum())] for mask in (wrong, ~wrong)]
    return float(fisher_exact(table)[1])


def _gained(values: FloatArray, wrong: BoolArray, whole: BoolArray) -> str | None:
    """Why the number is better by untested documents than by as many others of the same labels."""
    tested_by_label = [whole[wrong], whole[~wrong]]
    if whole.all() or min(int(flags.sum()) for flags in tested_by_label) < _FEWEST_OF_CLASS:
        return None
    first, second = values[wrong], values[~wrong]
    if len(first) * len(second) > _MOST_PAIRS:  # every so many-th of each class tells as well
        step = int(np.ceil(np.sqrt(len(first) * len(second) / _MOST_PAIRS)))
        first, second, tested_by_label = first[::step], second[::step], [flags[::step] for flags in tested_by_label]
    wins = (first[:, None] > second).astype(float) + 0.5 * (first[:, None] == second)
    dice = np.random.default_rng(0)
    rows, columns = (
        np.array([flags, *(dice.permutation(flags) for _ in range(_PERMUTATIONS))], dtype=float)
        for flags in tested_by_label
    )
    alone = ((rows @ wins) * columns).sum(axis=1) / (rows[0].sum() * columns[0].sum())
    p_value = float((alone[1:] <= alone[0]).sum() + 1) / (_PERMUTATIONS + 1)
    if wins.mean() - alone[0] <= _GAIN or p_value >= _UNLIKELY:
        return None
    return (
        f"its AUROC is {THREE_DIGITS(float(wins.mean()))}, of the documents whose evidence draws have tested "
        f"{THREE_DIGITS(float(alone[0]))}: the rest is the submitter's word"
    )

"""Can an entry's answers be what a model drew? Texts, numbers of tokens and log-probabilities held against each other.

Each check tells a way to invent some of them that leaves the rest as it was, and stays silent on what honest engines
do: equal texts of other tokens now and then, numbers of half precision, draws that repeat themselves.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hedge_tasks.clustering.exact import normalise
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.leaderboard.stated import present
from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.runs.answer_checks import answer_checks
from hedge_tasks.statistics.base import BoolArray, FloatArray
from hedge_tasks.statistics.draws import verdict_on
from hedge_tasks.statistics.roc import auroc

_FEWEST_TELLING = 10
"""Documents, or texts, below which nothing is told."""

_SELDOM = 1e-4
_ONE_TEXT = 0.1
"""Nats a token by which one text may differ on one picture: batches and kernels of half precision change hundredths."""
_MOST_OTHERWISE, _MOST_SPELLED, _MOST_COUNTED = 0.2, 0.5, 0.1
_FEWEST_OF_CLASS, _MOST_GAIN, _UNLIKELY, _PERMUTATIONS = 5, 0.01, 1e-3, 5000
"""Answers of the rarer class, gain in AUROC, p value and permutations of a test whether noise knows the label."""


def implausible(answer_sets: Sequence[AnswerSet], decoding: Mapping[str, Any], *, read: bool = False) -> Iterator[str]:
    """Yield why answers cannot be what a model drew, in words.

    Args:
        answer_sets: of the entry, with labels.
        decoding: how the draws were made, as a run has it under `sampled`.
        read: the texts are what was read in replies, so that one text may stand for many.
    """
    yield from _thoughts_apart(answer_sets)
    if read:
        return
    yield from (check.text for check in answer_checks(answer_sets, decoding) if check.unreliable)
    yield from _baseline_against_draws(answer_sets)
    yield from _baseline_by_label(answer_sets)
    yield from _texts_against_logprobs(answer_sets)
    yield from _token_counts(answer_sets)
    yield from _draws_by_label(answer_sets, decoding)


def _path(answer: Answer) -> Hashable:
    """Return what is known of an answer's tokens."""
    return answer.text, answer.n_tokens, answer.finish


def _baseline_against_draws(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """One text has one log-probability and one number of tokens on one picture: the baseline answer's are those of the
    same text drawn clean. A baseline answer spelled as no draw of its words is cannot be compared."""
    differs, spelled, wrong = [], [], []
    for answers in answer_sets:
        mine, words = answers.baseline, normalise(answers.baseline.text)
        if not _telling(mine) or not any(_telling(a) and normalise(a.text) == words for a in answers.clean):
            continue
        redrawn = _draws_of_its_text(answers)
        spelled.append(not redrawn)
        wrong.append(answers.label == 1)
        if redrawn:
            differs.append(not any(_is_alike(mine, a) for a in redrawn))
    if _is_most(differs, _MOST_OTHERWISE):
        yield (
            f"the baseline answer has another log-probability or number of tokens than the same text drawn again in "
            f"{sum(differs)} of {len(differs)} documents"
        )
    if (counts := _counts_by_label(spelled, wrong)) is not None:
        yield f"the baseline answer is spelled as no draw of its words is where it is {counts}"
    if _is_most(spelled, _MOST_SPELLED):
        yield f"the baseline answer is spelled as no draw of its words is in {sum(spelled)} of {len(spelled)} documents"


def _counts_by_label(flags: Sequence[bool], wrong: Sequence[bool]) -> str | None:
    """Return how often flags are set for wrong and for right answers, where they know the label (Fisher's test)."""
    from scipy.stats import fisher_exact

    sides = [[flag for flag, is_wrong in zip(flags, wrong, strict=True) if is_wrong is side] for side in (True, False)]
    table = [[sum(side), len(side) - sum(side)] for side in sides]
    if fisher_exact(table).pvalue >= _SELDOM:
        return None
    counts = [f"{sum(side)} of {len(side)} documents" for side in sides]
    return f"wrong in {counts[0]}, and where it is right in {counts[1]}"


def _draws_of_its_text(answers: AnswerSet) -> list[Answer]:
    """The clean draws of the baseline answer's text."""
    return [a for a in answers.clean if _telling(a) and a.text == answers.baseline.text]


def _baseline_by_label(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Where one text's log-probabilities differ, by an engine's noise, the label does not know in which direction."""
    labels, stated_nll, redrawn_nll = [], [], []
    for answers in answer_sets:
        redrawn = _draws_of_its_text(answers) if _telling(answers.baseline) and answers.label is not None else []
        if redrawn:
            mine = answers.baseline.mean_logprob or 0.0
            labels.append(answers.label or 0)
            stated_nll.append(-mine)
            redrawn_nll.append(-min((a.mean_logprob or 0.0 for a in redrawn), key=lambda value: abs(value - mine)))
    wrong = np.array(labels, dtype=bool)
    if min(wrong.sum(), (~wrong).sum()) < _FEWEST_OF_CLASS:
        return
    theirs, again = auroc(stated_nll, labels), auroc(redrawn_nll, labels)
    if abs(theirs - again) > _MOST_GAIN and _p_of_split(np.subtract(stated_nll, redrawn_nll), wrong) < _UNLIKELY:
        yield (
            f"the baseline answers' log-probabilities know the label: their AUROC is {THREE_DIGITS(theirs)}, "
            f"that of the same {len(labels)} texts drawn again {THREE_DIGITS(again)}"
        )


def _p_of_split(values: FloatArray, wrong: BoolArray) -> float:
    """Return the p-value of the difference in means between wrong and right answers, by permutation of the labels.

    Args:
        values: shape `(n,)`.
        wrong: which answers are wrong, shape `(n,)`.
    """
    dice = np.random.default_rng(0)
    sums = [values[dice.permutation(len(wrong))[: wrong.sum()]].sum() for _ in range(_PERMUTATIONS)]
    expected = values.mean() * wrong.sum()
    extreme = np.abs(np.array(sums) - expected) >= abs(values[wrong].sum() - expected)
    return float((1 + extreme.sum()) / (1 + _PERMUTATIONS))


def _thoughts_apart(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """A model that thinks before a baseline answer thinks before the draws, of the same prompt, as well."""
    apart = []
    for answers in answer_sets:
        if answers.clean:
            share = sum(a.thought is not None for a in answers.clean) / len(answers.clean)
            apart.append((answers.baseline.thought is not None) != (share > 0.5))
    if _is_most(apart, _MOST_OTHERWISE):
        alone = f"in {sum(apart)} of {len(apart)} documents"
        yield f"the baseline answer was thought over and the draws were not, or they alone, {alone}"


def _telling(answer: Answer) -> bool:
    """Whether a text's log-probability is known, and is the same each time: behind other thoughts it is another."""
    return answer.mean_logprob is not None and answer.thought is None and bool(answer.text)


def _is_alike(first: Answer, second: Answer) -> bool:
    near = abs((first.mean_logprob or 0.0) - (second.mean_logprob or 0.0)) <= _ONE_TEXT
    return near and (first.n_tokens == second.n_tokens or None in (first.n_tokens, second.n_tokens))


def _texts_against_logprobs(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Draws of one text have one log-probability, and of draws of the same words some are spelled alike."""
    several = present(_several_logprobs(a.clean) for a in answer_sets)
    if _is_most(several, _MOST_OTHERWISE):
        yield f"one text has several log-probabilities in {sum(several)} of {len(several)} documents that draw it again"
    apart = present(_spelled_apart(a.clean) for a in answer_sets)
    if _is_most(apart, _MOST_SPELLED):
        yield f"no two draws of the same words are spelled alike in {sum(apart)} of {len(apart)} documents"


def _is_most(flags: Sequence[bool], share: float) -> bool:
    return len(flags) >= _FEWEST_TELLING and sum(flags) > share * len(flags)


def _spelled_apart(draws: Sequence[Answer]) -> bool | None:
    """Whether draws of the same words are all spelled in other ways; None where there are no such draws."""
    by_words: dict[str, list[str]] = defaultdict(list)
    for a in draws:
        if _telling(a):
            by_words[normalise(a.text)].append(a.text)
    repeated = [texts for texts in by_words.values() if len(texts) > 1]
    return all(len({*texts}) == len(texts) for texts in repeated) if repeated else None


def _token_counts(answer_sets: Sequence[AnswerSet]) -> Iterator[str]:
    """Yield where answers of one text have several numbers of tokens, which seldom happens."""
    counts: dict[Hashable, Counter[int]] = defaultdict(Counter)
    documents: dict[Hashable, set[str]] = defaultdict(set)
    for answer_set in answer_sets:
        for a in answer_set.answers:
            if a.n_tokens is not None and a.thought is None and a.text:
                counts[a.text, a.finish][a.n_tokens] += 1
                documents[a.text, a.finish].add(answer_set.id)
    shared = [counts[text] for text, ids in documents.items() if len(ids) > 1]
    total, mostly = sum(map(Counter.total, shared)), sum(max(counter.values()) for counter in shared)
    if total >= _FEWEST_TELLING and total - mostly > _MOST_COUNTED * total:
        yield f"answers of one text have several numbers of tokens: {total - mostly} of {total} another than most"


def _several_logprobs(draws: Sequence[Answer]) -> bool | None:
    """Whether a text that was drawn again had another log-probability; None where none was."""
    by_text: dict[Hashable, list[float]] = defaultdict(list)
    for a in draws:
        if _telling(a):
            by_text[a.text, a.n_tokens, a.finish].append(a.mean_logprob or 0.0)
    spans = [max(logprobs) - min(logprobs) for logprobs in by_text.values() if len(logprobs) > 1]
    return max(spans) > _ONE_TEXT if spans else None


def _with_mean_logprobs(draws: Sequence[Answer]) -> list[Answer]:
    """The draws with one log-probability for one text where they differ by no more than an engine's noise: the test of
    draws would take them for other tokens, and see no repeats."""
    values: dict[Hashable, list[float]] = defaultdict(list)
    for a in draws:
        if a.mean_logprob is not None:
            values[_path(a)].append(a.mean_logprob)
    means = {key: sum(group) / len(group) for key, group in values.items() if max(group) - min(group) <= _ONE_TEXT}
    return [replace(a, mean_logprob=means.get(_path(a), a.mean_logprob)) for a in draws]


def _draws_by_label(answer_sets: Sequence[AnswerSet], decoding: Mapping[str, Any]) -> Iterator[str]:
    """Draws against their own log-probabilities, apart for right and wrong answers: they are drawn without regard to
    the baseline answer, on which the label rests. Chosen by the label, they repeat too little here and too much there,
    and as they should in the mean."""
    for label, which in ((0, "right"), (1, "wrong")):
        draws = [_with_mean_logprobs(a.clean) for a in answer_sets if a.label == label]
        verdict = verdict_on(draws, decoding, alpha=_SELDOM)
        if verdict.state == "contradicted" and verdict.repeats is not None and verdict.expected is not None:
            yield (
                f"the draws about {which} baseline answers contradict their log-probabilities: a draw comes again "
                f"{THREE_DIGITS(verdict.repeats)} times, expected {THREE_DIGITS(verdict.expected)}"
            )

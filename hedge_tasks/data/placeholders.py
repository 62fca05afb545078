"""Placeholders: numbers that servers write in the place of log-probabilities that they do not know.

No list of them: over all answers of a run they show by their values, because no model draws so. Three rules, each of
which a run of true log-probabilities breaks at most once in ten, and mostly never:

1. A drawn token is not next to impossible. At each of N tokens at most V words of a vocabulary are less likely than e,
   so one of them is drawn in the whole run with a probability of at most N V e, which is 0.1 at e = 1 / (10 N V). The
   factor V is needed: sampling at temperature 1 does reach the thousands of words that are unlikely one by one.
2. Answers of different words to many questions have not the very same least token (-1, say). Only below ln(1/2): of
   a model that is sure, rounding makes many numbers equal.
3. Exactly 0 behind the first token, as speculative decoding and grouped tokens leave it, is not said of two answers to
   one prompt that begin with the same word and part later: where they part, one of the two tokens has at most
   probability 1/2. A model that is sure of each word behind the first one may round to 0, and is believed.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from hedge_tasks.data.answers import Answer, AnswerSet

PLACEHOLDER = "placeholders stand where log-probabilities should"
"""Why an answer has no log-probability, as `Answer.no_logprob` has it."""

_VOCABULARY = 1 << 18
"""Words of the largest vocabulary of an open model."""

_EVEN = math.log(1 / 2)
_FEWEST_SHARING, _LEAST_SHARE = 10, 0.25
"""Questions, and share of them, that have the same least token."""

_FEWEST_PARTING = 3
"""Questions with two answers that cannot both be certain behind their first token."""


def known_by(run: Iterable[AnswerSet]) -> Callable[[AnswerSet], AnswerSet]:
    """Return what takes the log-probabilities in which there are placeholders away, as of a server that tells none.

    Args:
        run: all answers of a run, for the rules are about all of them; gone through once, and not held.
    """
    is_placeholder = _rule(part for a in run for part in (a, *a.follow_ups))

    def known(answer: Answer) -> Answer:
        if not is_placeholder(answer):
            return answer
        return Answer(
            answer.text, finish=answer.finish, thought=answer.thought, no_logprob=PLACEHOLDER, served=answer.served
        )

    def known_in(answers: AnswerSet) -> AnswerSet:
        return answers.with_answers(known).with_follow_ups([*map(known_in, answers.follow_ups)])

    return known_in


def extremes(logprobs: Sequence[float]) -> dict[str, Any]:
    """The least of the tokens' log-probabilities (nats), and how many behind the first are 0; see `Answer`."""
    return {"least_logprob": min(logprobs), "n_zero": sum(p == 0 for p in logprobs[1:])} if logprobs else {}


def _rule(answer_sets: Iterable[AnswerSet]) -> Callable[[Answer], bool]:
    """Whether there are placeholders in an answer, by all answers of a run."""
    # of each answer its least token, and hashes of its question and its text: 24 bytes in place of hundreds
    values, hashes = array("d"), array("q")
    n_tokens = n_parting = 0
    for answers in answer_sets:
        n_parting += _part_in_zeros(answers.clean)
        for answer in answers.answers:
            if (least := _least(answer)) is not None:
                n_tokens += answer.n_tokens or 1
                values.append(least)
                hashes.extend((hash(answers.id), hash(answer.text)))
    floor = -math.log(10 * _VOCABULARY * max(1, n_tokens))
    leasts, pairs = np.array(values), np.array(hashes, dtype=np.int64).reshape(-1, 2)
    fewest = max(_FEWEST_SHARING, _LEAST_SHARE * len(np.unique(pairs[:, 0])))
    often, times = np.unique(leasts, return_counts=True)
    shared = {
        least
        for least in often[(often < _EVEN) & (times >= fewest)].tolist()
        if len(np.unique(pairs[leasts == least, 0])) >= fewest
        and len(np.unique(pairs[leasts == least, 1])) >= _FEWEST_SHARING
    }
    zeros = n_parting >= _FEWEST_PARTING

    def is_placeholder(answer: Answer) -> bool:
        least = _least(answer)
        return least is not None and (least < floor or least in shared or (zeros and bool(answer.n_zero)))

    return is_placeholder


def _least(answer: Answer) -> float | None:
    """The least log-probability of a token, or the mean of all where no more is known: the least is at most that."""
    return answer.mean_logprob if answer.least_logprob is None else answer.least_logprob


def _part_in_zeros(draws: Sequence[Answer]) -> bool:
    """Whether two draws of one prompt begin with the same word, part, and are both certain behind their first token."""
    certain = sorted({a.text for a in draws if a.n_zero and a.n_zero + 1 == a.n_tokens})
    return any(
        first.split()[:1] == second.split()[:1] and not second.startswith(first)
        for first, second in combinations(certain, 2)  # the shorter one first, where one begins the other
    )

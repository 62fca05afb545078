"""Tests of what a server does with single settings, by requests whose answers must repeat.

A server that obeys gives one answer to all seeds at a temperature near 0 and with nothing but the likeliest token left;
without a seed it draws anew. These are the questions to whoever takes requests and may do something else with them.
One function, for whoever samples: `probe` before a run, and anybody else with a prompt and some draws of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hedge_tasks.data.answers import Answer, Condition, Draw, log_probability
from hedge_tasks.io.records import Count, OpenRecord, Share
from hedge_tasks.sampling.plan import draw_seed
from hedge_tasks.sampling.requests import DrawRequest

REPEATS = 4
"""Seeds that a setting is tried with."""

UNSEEDED = 4
"""Requests without a seed."""

COLD = 0.01
"""A temperature at which the likeliest token has all but e**-100 of what is a nat less likely."""

NARROWEST: Mapping[str, float] = {"top_k": 1, "top_p": 0.0001, "min_p": 0.99}
"""Values that leave nothing but the likeliest token."""

NEAR_ZERO, NO_SEED, TOGETHER = "temperature", "no seed", "with a long prompt"

MOST_REQUESTS = REPEATS * (1 + len(NARROWEST)) + UNSEEDED + 3
"""Of all that is tried here."""

_TIE = 0.05
"""Nats by which two answers may differ in probability and be equally likely for a computer."""

HEAD = 5
"""Words of an answer that have to repeat: further on, two tokens are about equally likely sooner or later."""

_LONG = 40  # times the question
_LONGEST_REASON = 200
_CONDITION: Condition = "clean"


class SettingTried(OpenRecord):
    """Answers to requests of one kind, on one prompt.

    Attributes:
        draws: that were answered.
        distinct: different answers among them.
        chance: that plain draws of this prompt are as equal, where all were; from the answer's own probability, or else
            from its share of plain draws.
        failed: why there is too little to tell.
    """

    draws: Count = 0
    distinct: Count = 0
    chance: Share | None = None
    failed: str | None = None

    @property
    def all_same(self) -> bool | None:
        """Whether all answers were the same; None where there were too few."""
        return None if self.failed is not None or self.draws < 2 else self.distinct == 1


Ask = Callable[[Mapping[str, DrawRequest]], Mapping[str, Answer | str]]
"""Makes draws by key, without storing them; a string in place of an answer says what went wrong."""


def behaviour_of(first: DrawRequest, plain: Sequence[Answer], ask: Ask) -> dict[str, SettingTried]:
    """Try what must repeat, and what must not, on one prompt; at most `MOST_REQUESTS` requests, all at once.

    Args:
        first: a draw on a prompt that has several answers.
        plain: draws of that prompt as the run makes them, one of them or more.
        ask: makes draws.

    Returns:
        By `NEAR_ZERO`, the names of `NARROWEST`, `NO_SEED` and `TOGETHER`.
    """
    hot = first.draw.temperature
    kinds = {NEAR_ZERO: [as_probe(first, f"cold {i}", COLD) for i in range(REPEATS)]}
    for name, value in NARROWEST.items():
        number = int(value) if name == "top_k" else value
        plan = first.request.plan.replaced(**{name: number})
        narrow = replace(first, request=replace(first.request, plan=plan))
        kinds[name] = [as_probe(narrow, f"{name} {i}", hot) for i in range(REPEATS)]
    kinds[NO_SEED] = [replace(as_probe(first, f"unseeded {i}", hot), seeded=False) for i in range(UNSEEDED)]
    draws = {
        f"{kind} {i}": replace(draw, patient=False) for kind, repeats in kinds.items() for i, draw in enumerate(repeats)
    }
    answers = dict(ask(draws))
    outcomes = {kind: [answers.get(f"{kind} {i}") for i in range(len(repeats))] for kind, repeats in kinds.items()}
    unseeded = _tried(outcomes.pop(NO_SEED), plain)
    obeyed = {kind: _tried_to_repeat(repeats, plain) for kind, repeats in outcomes.items()}
    return {**obeyed, NO_SEED: unseeded, TOGETHER: _tried(_together(first, ask), plain)}


def as_probe(draw: DrawRequest, index: int | str, temperature: float) -> DrawRequest:
    """A draw on the same prompt with a seed that no counted draw has."""
    seed = draw_seed(draw.request.plan.seed, draw.request.key, "probe", index)
    return replace(draw, draw=Draw(_CONDITION, index if isinstance(index, int) else 0, temperature, seed))


def _together(first: DrawRequest, ask: Ask) -> list[Answer | str | None]:
    """An answer to a request alone, and to the same one beside a request with a long prompt."""
    first = replace(first, patient=False)
    draw = as_probe(first, "together", COLD)
    question = " ".join([first.request.question] * _LONG)
    beside = as_probe(replace(first, request=replace(first.request, question=question)), "beside", COLD)
    alone = ask({"alone": draw})
    return [alone.get("alone"), ask({"beside": beside, "again": draw}).get("again")]


def _tried_to_repeat(outcomes: Sequence[Answer | str | None], plain: Sequence[Answer]) -> SettingTried:
    """Result of draws that must begin alike.

    Two beginnings are no proof of the contrary: at a tie, rounding decides. Three are, and two that are known to be
    no tie.
    """
    short = all(len(a.text.split()) <= HEAD for a in (*plain, *outcomes) if isinstance(a, Answer))
    if short:
        tried = _tried(outcomes, plain)
        can_exclude_tie = all(a.mean_logprob is not None for a in outcomes if isinstance(a, Answer))
    else:
        heads = [_head(a) for a in plain]
        if len({a.text for a in heads}) < 2:
            return SettingTried(failed="plain draws begin alike as well")
        tried, can_exclude_tie = _tried([_head(a) if isinstance(a, Answer) else a for a in outcomes], heads), False
    if tried.distinct == 2 and not can_exclude_tie:
        return tried.replaced(failed="two answers, which a tie would give as well")
    return tried


def _head(answer: Answer) -> Answer:
    return Answer(" ".join(answer.text.split()[:HEAD]))


def _tried(outcomes: Sequence[Answer | str | None], plain: Sequence[Answer]) -> SettingTried:
    answers = [answer for answer in outcomes if isinstance(answer, Answer)]
    if len(answers) < 2:
        failures = [outcome for outcome in outcomes if isinstance(outcome, str)]
        return SettingTried(draws=len(answers), failed=(failures[0] if failures else "no answer")[:_LONGEST_REASON])
    texts = {answer.text for answer in answers}
    if len(texts) > 1:
        return SettingTried(draws=len(answers), distinct=1 if _is_tie(answers) else len(texts))
    return SettingTried(draws=len(answers), distinct=1, chance=chance_of(answers[0], plain) ** (len(answers) - 1))


def chance_of(answer: Answer, plain: Sequence[Answer]) -> float:
    """How likely a plain draw is this answer, by its own probability or else by its share of plain draws."""
    logprobs = [logp for a in (answer, *plain) if a.text == answer.text and (logp := log_probability(a)) is not None]
    if logprobs:
        return math.exp(max(logprobs))
    counts = Counter(a.text for a in plain)
    return (counts[answer.text] + 1) / (counts.total() + 1)


def _is_tie(answers: Sequence[Answer]) -> bool:
    """Whether different answers are about equally likely, so that rounding decides."""
    by_text = {answer.text: log_probability(answer, with_end=False) for answer in answers}
    logprobs = [logp for logp in by_text.values() if logp is not None]
    return len(logprobs) == len(by_text) and max(logprobs) - min(logprobs) < _TIE

"""What an entry's answers say against each other: told of invented ones, silent on what honest engines do."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from hedge_tasks.data.answers import Answer, AnswerSet, Thought
from hedge_tasks.leaderboard.plausibility import implausible

PURE = {"asked": "pure", "temperature": 1.0}
WORDS = ("left lung", "right lung", "heart", "liver", "spleen")
DOCUMENTS = 60


def honest(seed: int = 0) -> list[AnswerSet]:
    """Draws that come as often as their log-probabilities say; the baseline answer is the likeliest of two."""
    dice = random.Random(seed)

    def document(i: int) -> AnswerSet:
        parts = [dice.uniform(0.05, 1.0) for _ in WORDS]
        shares = dict(zip(WORDS, (part / sum(parts) for part in parts), strict=True))

        def said(shares: Mapping[str, float] = shares) -> Answer:
            [word] = dice.choices(WORDS, list(shares.values()))
            return Answer(word, math.log(shares[word]) / 2, 2, "stop", end_logprob=0.0)

        def noisy() -> Answer:
            """Of another picture: the model's distribution is another one."""
            parts = [share * dice.uniform(0.3, 3.0) for share in shares.values()]
            return said(dict(zip(WORDS, (part / sum(parts) for part in parts), strict=True)))

        baseline = max(said(), said(), key=lambda a: a.mean_logprob or 0.0)
        label = int(baseline.text != max(shares, key=lambda word: shares[word]))
        return AnswerSet(
            f"q{i}", baseline, tuple(said() for _ in range(8)), tuple(noisy() for _ in range(8)), "?", "!", label
        )

    return [document(i) for i in range(DOCUMENTS)]


def told(sets: list[AnswerSet]) -> str:
    return "; ".join(implausible(sets, PURE))


def changed(change: Callable[[AnswerSet], AnswerSet]) -> str:
    return told(list(map(change, honest())))


def of_all(change: Callable[[Answer], Answer]) -> Callable[[AnswerSet], AnswerSet]:
    def each(one: AnswerSet) -> AnswerSet:
        clean, noisy = (tuple(map(change, of)) for of in (one.clean, one.noisy))
        return replace(one, baseline=change(one.baseline), clean=clean, noisy=noisy)

    return each


@pytest.mark.parametrize("seed", range(20))
def test_honest_answers_are_not_told(seed: int) -> None:
    assert told(honest(seed)) == ""


def test_half_precision_a_text_of_other_tokens_now_and_then_and_lower_case_are_honest() -> None:
    dice = random.Random(1)

    def of_an_engine(a: Answer) -> Answer:
        other = dice.random() < 0.04
        noise = dice.gauss(0, 0.01)
        text = a.text.capitalize() if dice.random() < 0.2 else a.text
        return replace(a, text=text, n_tokens=3 if other else 2, mean_logprob=(a.mean_logprob or 0) + noise - other)

    assert "tokens" not in changed(of_all(of_an_engine))
    assert "spelled" not in changed(of_all(of_an_engine))
    assert "several log-probabilities" not in changed(of_all(of_an_engine))


def test_behind_other_thoughts_a_text_has_another_log_probability() -> None:
    dice = random.Random(2)

    def thinking(a: Answer) -> Answer:
        return replace(a, mean_logprob=-dice.uniform(0, 3), n_tokens=dice.randint(2, 9), thought=Thought(90, -0.4))

    found = changed(of_all(thinking))
    assert "log-probability or number" not in found
    assert "several" not in found


def shifted(answer: Answer, nats: float) -> Answer:
    return replace(answer, mean_logprob=min((answer.mean_logprob or 0) + nats, 0.0))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda s: replace(s, baseline=replace(s.baseline, n_tokens=2 + 9 * s.label)), "number of tokens than"),
        (lambda s: replace(s, baseline=replace(s.baseline, text=s.baseline.text + ".")), "spelled as no draw"),
        (
            lambda s: replace(
                s, clean=tuple(replace(a, mean_logprob=(a.mean_logprob or 0) - k / 5) for k, a in enumerate(s.clean))
            ),
            "one text has several log-probabilities",
        ),
        (
            lambda s: replace(s, clean=tuple(replace(a, text=a.text + "." * k) for k, a in enumerate(s.clean))),
            "no two draws of the same words",
        ),
        (lambda s: of_all(lambda a: replace(a, n_tokens=2 + 9 * s.label))(s), "several numbers of tokens"),
        (
            lambda s: replace(s, clean=(s.baseline,) * 8) if s.label == 0 else s,
            "the draws about right baseline answers contradict",
        ),
        (
            lambda s: (
                replace(s, clean=tuple(shifted(s.baseline, -0.02 * (k // 2)) for k in range(8))) if s.label == 0 else s
            ),
            "the draws about right baseline answers contradict",
        ),
        (
            lambda s: replace(
                s,
                baseline=replace(s.baseline, text="there", mean_logprob=-3.0),
                clean=(replace(s.baseline, text="there", mean_logprob=-3.0), *s.clean[1:]),
            ),
            "times as often as they are likely",
        ),
        (lambda s: replace(s, baseline=shifted(s.baseline, -0.09 if s.label else 0.09)), "know the label"),
        (
            lambda s: replace(s, baseline=shifted(s.baseline, -2.0)) if s.label and int(s.id[1:]) % 3 == 0 else s,
            "know the label",
        ),
        (lambda s: replace(s, baseline=replace(s.baseline, thought=Thought(1))), "was thought over and the draws"),
        (lambda s: replace(s, clean=tuple(replace(a, thought=Thought(1)) for a in s.clean)), "or they alone"),
    ],
)
def test_invented_answers_are_told(change: Callable[[AnswerSet], AnswerSet], why: str) -> None:
    assert why in changed(change)

"""Draws from a model whose whole distribution is known: the options of a multiple-choice question.

Whoever has the logits of all options needs no model to sample answers at any temperature. The draws are exact, and so
are their log-probabilities. It works for answers that are one of the options: what a model says in its own words has
another distribution.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from hedge_tasks.data.answers import Answer, AnswerSet, Condition
from hedge_tasks.data.option_files import OptionQuestion
from hedge_tasks.io.records import AtLeastOne, Count, Settings
from hedge_tasks.sampling.plan import draw_seed

__all__ = ["OptionSampling", "draw_options", "option_logprobs"]


class OptionSampling(Settings):
    """How many answers, how hot; the numbers of `SamplingPlan`.

    Attributes:
        n: clean answers a question, at least 1.
        temperature: of the clean answers.
        baseline_temperature: of the baseline answer. 0 takes the likeliest option, the first one of several.
        seed: another one gives independent draws.

    Raises:
        ConfigError: a value makes no sense.
    """

    n: AtLeastOne = 10
    temperature: Annotated[float, Field(ge=0)] = 1.0
    baseline_temperature: Annotated[float, Field(ge=0)] = 0.1
    seed: Count = 0


def draw_options(question: OptionQuestion, sampling: OptionSampling, model: str = "") -> AnswerSet:
    """The answer set of a question, labelled: 1 where the baseline answer is another option than the right one.

    A draw depends on seed, model, the question's id and its own number alone, so that a larger n keeps the first draws.

    Args:
        model: its draws are independent of those of other models.

    Example:
        >>> sure = OptionQuestion("q1", "B", {"A": 0.0, "B": 50.0})
        >>> answers = draw_options(sure, OptionSampling(n=2))
        >>> [answer.text for answer in answers.answers], answers.label
        (['B', 'B', 'B'], 0)
    """
    labels = list(question.logits)
    logprobs = option_logprobs(question.logits)
    answers = [Answer(label, min(logprobs[label], 0.0), 1) for label in labels]
    document = f"{model}\0{question.id}"
    hot, cool = (_cumulative(question.logits, t) for t in (sampling.temperature, sampling.baseline_temperature))

    def draw(condition: Condition, index: int, shares: Sequence[float]) -> int:
        return _choose(shares, draw_seed(sampling.seed, document, condition, index))

    baseline = draw("baseline", 0, cool)
    return AnswerSet(
        id=question.id,
        baseline=answers[baseline],
        clean=tuple(answers[draw("clean", i, hot)] for i in range(sampling.n)),
        question=_question_text(question),
        reference=question.answer,
        label=int(labels[baseline] != question.answer),
        group=question.group,
        question_type=question.question_type,
    )


def option_logprobs(logits: Mapping[str, float]) -> dict[str, float]:
    """Log-probability of each option, in nats: the logits less the logarithm of the sum of their exponentials.

    Example:
        >>> {label: round(value, 4) for label, value in option_logprobs({"A": 1.0, "B": 1.0}).items()}
        {'A': -0.6931, 'B': -0.6931}
    """
    largest = max(logits.values())
    log_sum = math.log(math.fsum(math.exp(value - largest) for value in logits.values()))
    return {label: value - largest - log_sum for label, value in logits.items()}


def _cumulative(logits: Mapping[str, float], temperature: float) -> list[float]:
    """Running sums of what is proportional to the probabilities at a temperature."""
    largest = max(logits.values())
    if temperature == 0:
        first = next(label for label, value in logits.items() if value == largest)
        return list(itertools.accumulate(float(label == first) for label in logits))
    # A difference to the largest one may overflow to -inf at a tiny temperature, of which exp is the right 0.
    return list(itertools.accumulate(math.exp((value - largest) / temperature) for value in logits.values()))


def _choose(cumulative: Sequence[float], seed: int) -> int:
    """The option that a 63-bit seed, read as a number in [0, 1), falls on; never one of weight zero."""
    place = bisect.bisect_right(cumulative, seed / 2**63 * cumulative[-1])
    # The product may round up to the whole sum; the last option with a weight is where the sum is reached first.
    return place if place < len(cumulative) else bisect.bisect_left(cumulative, cumulative[-1])


def _question_text(question: OptionQuestion) -> str | None:
    lines = [f"{label}. {text}" for label, text in question.options.items()]
    question_lines = [] if question.question is None else [question.question]
    return "\n".join([*question_lines, *lines]) or None

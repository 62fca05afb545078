"""Terms for made pictures: what to make, what to check, and what checks come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.numbers import THREE_DIGITS

ALPHA, BETA = 0.85, 0.5
"""SHALE's thresholds (section 3.2): the mean of the checkers' scores, and their variance."""

QuestionKind = Literal["statement", "existence", "count", "relation", "text"]
Outcome = Literal["accepted", "review", "rejected"]


@dataclass(frozen=True)
class Order:
    """One picture to be made.

    Attributes:
        id: Unique in the set; it shapes no picture.
        prompt: What the picture shows, in words; a style is in the prompt.
        seed: Of this picture, from 0 to 2^63 - 1.
        details: JSON values that a generator that draws by code needs (aspect, values, ...).
    """

    id: str
    prompt: str
    seed: int
    details: Mapping[str, Any]


class ImageGenerator(Protocol):
    """Maker of pictures: code, a model in this process, or a server."""

    @property
    def name(self) -> str:
        """Its name with all settings that shape a picture; no address and no key."""

    def generate(self, orders: Sequence[Order]) -> Sequence[Image.Image | str]:
        """The pictures of the orders, in their order: 8-bit RGB; a text in place of one says why there is none.

        A picture depends on its own order alone, and not on the others or how many there are.

        Raises:
            HedgeError: None can be made; nothing of this call is kept.
        """


@dataclass(frozen=True)
class PictureQuestion:
    """A question about a picture to a checker.

    Attributes:
        statement: What has to hold, such as "a red house" or a sentence.
        kind: What sort of thing that is.
        expected: By kind `{"object"}` (existence), `{"object", "count"}`, `{"subject", "relation", "object"}`, or
            `{"text"}`; nothing for a statement. Any may have `instead`, a list of statements that are wrong, which
            checkers that compare have the right one win against.
    """

    statement: str
    kind: QuestionKind
    expected: Mapping[str, Any]


class Checker(Protocol):
    """Judge of how far pictures show what they have to."""

    @property
    def name(self) -> str:
        """Its name with all settings that shape a score; no address and no key."""

    def check(
        self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]
    ) -> Sequence[float | str | None]:
        """A score from 0 (not shown) to 1 (shown) for each picture and its question; None where it cannot say.

        A text in place of a score says why asking failed: nothing is kept, and the next time it is asked again.

        Args:
            pictures: 8-bit RGB, generated or noisy.
            questions: One for each picture.

        Raises:
            HedgeError: Nothing can be said about any of them; nothing of this call is kept.
        """


@dataclass(frozen=True)
class PictureVerdict:
    """Outcome of the checks of a picture.

    Attributes:
        scores: By checker; None where it could not say.
        mean, variance: Of the scores; None without any. The variance is that of the scores themselves (divided by
            their number).
        outcome: `accepted`, `rejected`, or `review`, which leaves it to people.
        reason: Why it is not accepted; empty where it is.
    """

    scores: Mapping[str, float | None]
    mean: float | None
    variance: float | None
    outcome: Outcome
    reason: str = ""


def verdict_of(
    scores: Mapping[str, float | None], *, alpha: float = ALPHA, beta: float = BETA, floor: float = 0.0
) -> PictureVerdict:
    """Return what scores come to: accepted with a mean of at least α and a variance of at most β (SHALE, section 3.2).

    The rest goes to people, as in the paper. Its β = 0.5 holds nothing back: the variance of numbers between 0 and 1 is
    at most 1/4 (1/2 where it is divided by their number less one). With a mean of 0.85 it is at most
    0.85 · 0.15 = 0.1275, so a β that is to matter is smaller than that.

    Args:
        scores: By checker, 0 to 1; None where it could not say.
        alpha: Least mean.
        beta: Largest variance.
        floor: A picture with a mean below it is rejected without people; 0 leaves all to them.

    Raises:
        ConfigError: A threshold or a score is not from 0 to 1.

    Example:
        >>> [verdict_of({"a": 0.9, "b": score}).outcome for score in (0.8, 0.7)], verdict_of({"a": None}).outcome
        (['accepted', 'review'], 'review')
    """
    for name, value in (("alpha", alpha), ("beta", beta), ("floor", floor)):
        options.share(name, value)
    known_scores = [score for score in scores.values() if score is not None]
    for name, score in scores.items():
        if score is not None and not 0 <= score <= 1:
            raise ConfigError(f"checker {name}: a score of {score}, which is not from 0 to 1")
    if not known_scores:
        return PictureVerdict(dict(scores), None, None, "review", "no checker can say")
    mean = math.fsum(known_scores) / len(known_scores)
    variance = math.fsum((score - mean) ** 2 for score in known_scores) / len(known_scores)
    outcome: Outcome = "accepted"
    reason = ""
    if mean < floor:
        outcome, reason = "rejected", f"mean {THREE_DIGITS(mean)} below {floor:g}"
    elif mean < alpha:
        outcome, reason = "review", f"mean {THREE_DIGITS(mean)} below {alpha:g}"
    elif variance > beta:
        outcome, reason = "review", f"variance {THREE_DIGITS(variance)} above {beta:g}"
    return PictureVerdict(dict(scores), mean, variance, outcome, reason)

"""Terms for made pictures: what to make, what to check, and what checks come to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar

from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.registry import Registry

ALPHA, BETA = 0.85, 0.5
"""SHALE's thresholds (section 3.2): the mean of the checkers' scores, and their variance."""

QuestionKind = Literal["statement", "existence", "count", "relation", "text"]
PictureOutcome = Literal["accepted", "review", "rejected"]


@dataclass(frozen=True)
class Order:
    """One picture to be made.

    Attributes:
        prompt: What the picture shows, in words; a style is in the prompt.
        seed: Of this picture, from 0 to 2^63 - 1.
        details: JSON values that a generator that draws by code needs (aspect, values, ...).
    """

    prompt: str
    seed: int
    details: Mapping[str, Any]


class ImageGenerator(Protocol):
    """Maker of pictures: code, or a model."""

    @property
    def name(self) -> str:
        """Its name with all settings that shape a picture; no address and no key."""

    def generate(self, orders: Sequence[Order]) -> Sequence[Image.Image]:
        """The pictures of the orders, in their order: 8-bit RGB.

        A picture depends on its own order alone, and not on the others or how many there are.

        Raises:
            HedgeError: None can be made; nothing of this call is kept.
        """


@dataclass(frozen=True)
class PictureQuestion:
    """A question about a picture to a checker.

    Attributes:
        statement: What has to hold, such as "a red house" or a sentence; of a text the words that have to be read.
        kind: What sort of thing that is.
        expected: More of it, as JSON values: what a drawing shows.
    """

    statement: str
    kind: QuestionKind
    expected: Mapping[str, Any] = field(default_factory=dict)


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

        Raises:
            HedgeError: Nothing can be said about any of them; nothing of this call is kept.
        """


T = TypeVar("T")
_ROOM = "hedge_tasks.making.pictures"
GENERATORS: Registry[ImageGenerator] = Registry(
    "generator",
    "hedge_tasks.image_generators",
    {"diffusers": f"{_ROOM}.diffusion:DiffusionGenerator", "drawn": "hedge_tasks.making.shale.drawn:DrawnGenerator"},
)
CHECKERS: Registry[Checker] = Registry(
    "checker",
    "hedge_tasks.checkers",
    {"vqascore": f"{_ROOM}.checking:VqaScore", "ocr": f"{_ROOM}.checking:WordReading"},
)


def built(registry: Registry[T], spec: str) -> T:
    """An image generator or a checker of a specification. What stands first without a key is the model.

    Raises:
        ConfigError: The name or an option is unknown (names the nearest), or a value makes no sense.

    Example:
        >>> built(GENERATORS, "drawn:size=64").name
        'drawn:size=64,edition=3'
    """
    name, _, arguments = spec.partition(":")
    if not name.strip():
        raise ConfigError(f"{registry.kind}: expected NAME:MODEL,key=value,..., got {spec[:40]!r}")
    first = arguments.partition(",")[0].strip()
    arguments = f"model={arguments}" if first and "=" not in first else arguments
    return registry.build(name.strip(), **options.pairs(f"{registry.kind} {name.strip()}", arguments))


@dataclass(frozen=True)
class PictureVerdict:
    """Outcome of the checks of a picture.

    Attributes:
        outcome: `accepted`, `rejected`, or `review`, which leaves it to people.
        reason: Why it is not accepted; empty where it is.
    """

    outcome: PictureOutcome
    reason: str = ""


def verdict_of(
    scores: Mapping[str, float | None], *, alpha: float = ALPHA, beta: float = BETA, label: int | None = None
) -> PictureVerdict:
    """Return what scores come to: accepted with a mean of at least α and a variance of at most β (SHALE, section 3.2).

    The rest goes to people, as in the paper. Its β = 0.5 holds nothing back: with a mean of 0.85 the variance of
    numbers between 0 and 1 is at most 0.85 · 0.15 = 0.1275, so a β that is to matter is smaller than that. The variance
    is divided by their number.

    Args:
        scores: By checker, 0 to 1; None where it could not say.
        alpha: Least mean.
        beta: Largest variance.
        label: Of people, about what is left to them: 1 rejects, 0 accepts.

    Raises:
        ConfigError: A threshold is not from 0 to 1.

    Example:
        >>> [verdict_of({"a": 0.9, "b": score}).outcome for score in (0.8, 0.7)], verdict_of({"a": None}).outcome
        (['accepted', 'review'], 'review')
    """
    options.share("alpha", alpha)
    options.share("beta", beta)
    known = [score for score in scores.values() if score is not None]
    mean = math.fsum(known) / max(1, len(known))
    variance = math.fsum((score - mean) ** 2 for score in known) / max(1, len(known))
    reason = ""
    if not known:
        reason = "no checker can say"
    elif mean < alpha:
        reason = f"mean {THREE_DIGITS(mean)} below {alpha:g}"
    elif variance > beta:
        reason = f"variance {THREE_DIGITS(variance)} above {beta:g}"
    outcome: PictureOutcome = "review" if reason else "accepted"
    if reason and label is not None:
        outcome, reason = ("rejected", "people say that it does not show it") if label else ("accepted", "")
    return PictureVerdict(outcome, reason)

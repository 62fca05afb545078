"""The interface of perturbations, and how one is chosen by name."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from PIL import Image

from hedge_tasks.errors import ConfigError, lookup
from hedge_tasks.registry import Registry


@dataclass(frozen=True, slots=True)
class Wording:
    """The text that a document is asked with.

    Attributes:
        question: the question itself.
        context: what is given to read with it, such as a knowledge passage; empty where there is none.
        distractor: a wrong answer that some perturbations mislead with; empty where the data set has none.
        answer: the right one, for perturbations that must not touch it; never shown to the model.
    """

    question: str
    context: str = ""
    distractor: str = ""
    answer: str = ""


class Noise(Protocol):
    """Treatment of the noisy draws: of their images, to their wording, or to both. Depends on the seed alone."""

    @property
    def name(self) -> str:
        """Goes into the provenance."""

    def check(self, wording: Wording) -> None:
        """Raise where a document with this wording cannot be perturbed so; called before anything is sampled.

        Raises:
            ConfigError: what is missing, and where to give it.
        """

    def perturb_images(self, images: Sequence[Image.Image], wording: Wording, *, seed: int) -> list[Image.Image]:
        """The images of a noisy draw, given the clean ones as 8-bit RGB."""

    def perturb_wording(self, wording: Wording, *, seed: int) -> Wording:
        """The wording of a noisy draw."""

    def scaled(self, strength: float) -> Noise:
        """The same perturbation with every range times `strength`.

        Raises:
            ConfigError: this perturbation knows no strength, and it is not 1.
        """

    def settings(self) -> dict[str, Any]:
        """Everything that defines the perturbation, ready for JSON; `build_noise(settings())` gives it again."""


class NoiseKind(Protocol):
    """A class of perturbations: what is registered under the name of a kind."""

    @classmethod
    def presets(cls) -> Sequence[str]:
        """Names under which a plan may ask for a perturbation of this kind without any settings."""

    @classmethod
    def from_config(cls, config: str | Mapping[str, Any]) -> Noise:
        """Build from the name of a preset, or from settings without `kind`.

        Raises:
            ConfigError: a key or value is unknown or makes no sense.
        """


KINDS: Registry[Noise] = Registry(
    "kind of perturbation",
    "hedge_tasks.perturbations",
    {
        "image": "hedge_tasks.perturb.image:Perturbation",
        "text": "hedge_tasks.perturb.text:TextPerturbation",
        "induction": "hedge_tasks.perturb.induction:Induction",
    },
)
"""Every kind of perturbation by name, our own and those of other packages; see `NoiseKind`."""


def build_noise(config: str | Mapping[str, Any] | Noise) -> Noise:
    """A perturbation from the name of a preset, or from a mapping of settings (`kind` says of what; default: image).

    A perturbation is returned as it is.

    Raises:
        ConfigError: a name, key or value is unknown or makes no sense; names the nearest valid one.
    """
    if isinstance(config, str):
        return lookup("perturbation preset", config, _presets()).from_config(config)
    if hasattr(config, "perturb_images"):
        return cast(Noise, config)
    if not isinstance(config, Mapping):
        raise ConfigError(f"perturbation must be the name of a preset or a mapping, got {type(config).__name__}")
    settings = dict(config)
    kind = settings.pop("kind", "image")
    return cast(Noise, KINDS.get(str(kind)).from_config(settings))


def _presets() -> dict[str, NoiseKind]:
    presets: dict[str, NoiseKind] = {}
    for _, kind in KINDS.each():
        presets = {**dict.fromkeys(kind.presets(), kind), **presets}  # a name that is taken stays what it was
    return presets


def bounded_number(key: str, value: object, limit: float) -> float:
    """Return a number in `[0, limit]`; the limit may be infinity.

    Raises:
        ConfigError: it is something else; names the setting `key` of the perturbation.
    """
    number = float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    if not math.isfinite(number):
        raise ConfigError(f"perturbation: {key} must be a number, got {value!r}")
    if not 0 <= number <= limit:
        bound = "not be negative" if math.isinf(limit) else f"lie between 0 and {limit:g}"
        raise ConfigError(f"perturbation: {key} must {bound}, got {value!r}")
    return number


def number_range(key: str, value: object, limit: float) -> tuple[float, float]:
    """Return `[smallest, largest]`, both numbers in `[0, limit]`.

    Raises:
        ConfigError: it is something else; names the setting `key` of the perturbation.
    """
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise ConfigError(f"perturbation: {key} must be [smallest, largest], got {value!r}")
    low, high = (bounded_number(key, bound, limit) for bound in value)
    if low > high:
        raise ConfigError(f"perturbation: {key} must be [smallest, largest], got {value!r}")
    return low, high

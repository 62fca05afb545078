"""What is sampled for a question: settings from the YAML and the command line, expanded into draws.

Protocol of HEDGE §4.2-4.4: one baseline at T = 0.1 and n answers at T = 1 on the clean image, n answers at T = 1 on n
differently perturbed images, n = 10.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hedge_tasks.data.answers import Condition, Draw
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io import options
from hedge_tasks.perturb import Noise, build_noise

_LIMITS = ("max_new_tokens", "top_p", "top_k", "until")
"""Generation settings that are handed to the model as they are."""

_IGNORED = ("do_sample", "num_beams", "max_gen_toks")
"""Keys that other tasks of the same command need on `--gen_kwargs`; every draw here decides on its own."""


@dataclass(frozen=True)
class SamplingPlan:
    """How many answers, how hot, on which images.

    Attributes:
        n: number of clean answers, and of noisy ones unless `n_noisy` says otherwise.
        n_noisy: number of noisy answers; None means n. 0 leaves VASE undefined.
        temperature: of the clean and noisy answers.
        baseline_temperature: of the baseline answer.
        perturbation: of the noisy draws: a preset's name, or a mapping as `build_noise` reads it.
        strength: scales every range of the perturbation; 1 leaves it as it is.
        seed: base seed; another one gives an independent sample.
        max_new_tokens, top_p, top_k, until: limits handed to the model. None leaves the model's default.
    """

    n: int = 10
    n_noisy: int | None = None
    temperature: float = 1.0
    baseline_temperature: float = 0.1
    perturbation: str | Mapping[str, Any] = "hedge"
    strength: float = 1.0
    seed: int = 0
    max_new_tokens: int = 512
    top_p: float | None = None
    top_k: int | None = None
    until: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        options.count("n", self.n, at_least=1)
        if self.n_noisy is not None:
            options.count("n_noisy", self.n_noisy, at_least=0)
        options.count("seed", self.seed, at_least=0)
        options.count("max_new_tokens", self.max_new_tokens, at_least=1)
        for name in ("temperature", "baseline_temperature", "strength"):
            _check_number(name, getattr(self, name), at_least=0.0)
        if self.top_p is not None and not 0 < _check_number("top_p", self.top_p, at_least=0.0) <= 1:
            raise ConfigError(f"top_p: expected a number in (0, 1], got {self.top_p}")
        if self.top_k is not None:
            options.count("top_k", self.top_k, at_least=1)
        _ = self.noise  # an unknown preset or a strength beyond the limits fails here, not at the first noisy draw

    @classmethod
    def from_generation_kwargs(cls, kwargs: Mapping[str, Any]) -> SamplingPlan:
        """Build from lmms-eval's `generation_kwargs`, the YAML's with those of `--gen_kwargs` on top.

        Raises:
            ConfigError: a key is unknown (names the nearest valid one) or a value makes no sense.
        """
        names = {f.name for f in fields(cls)}
        given = {key: value for key, value in kwargs.items() if key not in _IGNORED}
        for key in given:
            if key not in names:
                raise unknown("generation setting", key, names | set(_IGNORED))
        if isinstance(given.get("until"), str):
            given["until"] = (given["until"],)
        given["until"] = tuple(given.get("until") or ())
        return cls(**given)

    @property
    def noisy_count(self) -> int:
        return self.n if self.n_noisy is None else self.n_noisy

    @property
    def noise(self) -> Noise:
        """The perturbation of the noisy draws at its strength."""
        return build_noise(self.perturbation).scaled(self.strength)

    def limits(self) -> dict[str, Any]:
        """Settings of `generate` that are the same for every draw; the model's defaults are left out."""
        return {name: value for name in _LIMITS if (value := getattr(self, name)) not in (None, ())}

    def settings(self) -> dict[str, Any]:
        noise = self.noise.settings()
        return {**asdict(self), "n_noisy": self.noisy_count, "until": list(self.until), "perturbation": noise}

    def draws(self, document: str) -> list[Draw]:
        """All draws of one document, baseline first, then clean, then noisy.

        Args:
            document: key of the document's content; see `draw_seed`.
        """
        noise = self.noise.name
        baseline = self._draw(document, "baseline", 0, self.baseline_temperature)
        clean = [self._draw(document, "clean", i, self.temperature) for i in range(self.n)]
        noisy = [self._draw(document, "noisy", i, self.temperature, noise) for i in range(self.noisy_count)]
        return [baseline, *clean, *noisy]

    def _draw(
        self, document: str, condition: Condition, index: int, temperature: float, noise: str | None = None
    ) -> Draw:
        return Draw(condition, index, temperature, draw_seed(self.seed, document, condition, index), noise)


def draw_seed(base: int, document: str, condition: str, index: int) -> int:
    """Seed of one draw: a 63-bit hash of base seed, document content, condition and index.

    It knows nothing of the number of draws, of their order or of the batch, so raising n keeps the first draws, and
    the same draw sees the same perturbed image on every machine and for every model.
    """
    key = "\0".join((str(base), document, condition, str(index)))
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little") >> 1


def _check_number(name: str, value: object, *, at_least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < at_least:
        raise ConfigError(f"{name}: expected a finite number of at least {at_least:g}, got {value!r}")
    return float(value)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.perturb import Wording


@dataclass(frozen=True)
class Shouting:
    """Questions in capitals, with more or fewer exclamation marks."""

    marks: int = 3

    @property
    def name(self) -> str:
        return "shouting"

    @classmethod
    def presets(cls) -> Sequence[str]:
        return ("shout",)

    @classmethod
    def from_config(cls, config: str | Mapping[str, Any]) -> Shouting:
        options = {} if isinstance(config, str) else config
        for key in options:
            if key != "marks":
                raise unknown("setting of shouting", key, ["marks"])
        return cls(**options)

    def check(self, wording: Wording) -> None:
        """Every question can be shouted."""

    def perturb_images(self, images: Sequence[Any], wording: Wording, *, seed: int) -> list[Any]:
        return list(images)

    def perturb_wording(self, wording: Wording, *, seed: int) -> Wording:
        return replace(wording, question=wording.question.upper() + "!" * (1 + seed % self.marks))

    def scaled(self, strength: float) -> Shouting:
        if strength != 1:
            raise ConfigError("shouting knows no strength")
        return self

    def settings(self) -> dict[str, Any]:
        return {"kind": self.name, "marks": self.marks}

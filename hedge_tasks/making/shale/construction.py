"""SHALE's construction from its beginning to its end (paper section 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io import options
from hedge_tasks.making.pictures.store import PictureStore
from hedge_tasks.making.shale.drawn import DrawnChecker, DrawnGenerator
from hedge_tasks.making.shale.items import all_items
from hedge_tasks.making.shale.pictures import TINY_ENCODER, PictureMaking, ScenePictures, noises_of
from hedge_tasks.making.shale.scenes import scenes_of
from hedge_tasks.making.stages import Made
from hedge_tasks.suites.shale.items import ASPECTS, CLEAN, IMAGE_SCENARIOS, SCENARIOS

PICTURES = "pictures"
"""Folder of a making with everything that was generated and checked."""


@dataclass(frozen=True)
class MadeScenes:
    """Result of a making.

    Attributes:
        scenes: Every scene with its pictures and verdicts, in the order of the aspects.
        made: Its rows are the questions (`ShaleItem`), of which none is left out yet; a source row is a scene.
    """

    scenes: Sequence[ScenePictures]
    made: Made


@dataclass(frozen=True)
class ShaleMaking:
    """A making with its models and settings.

    Attributes:
        pictures: How pictures are made: `DrawnGenerator` draws what `pools.json` has; any other is handed prompts.
        per_aspect: Scenes of each aspect.
        aspects, scenarios: Which; clean is always among the scenarios.
        encoders: What ADV attacks, all at a time.

    Raises:
        ConfigError: Something makes no sense, or pictures of a model would not be checked by anybody.
    """

    pictures: PictureMaking
    per_aspect: int = 1
    aspects: Sequence[str] = ASPECTS
    scenarios: Sequence[str] = SCENARIOS
    encoders: Sequence[str] = (TINY_ENCODER,)

    def __post_init__(self) -> None:
        options.count("images of an aspect", self.per_aspect, at_least=1)
        for kind, names, valid in (("aspect", self.aspects, ASPECTS), ("scenario", self.scenarios, SCENARIOS)):
            for name in names:
                if name not in valid:
                    raise unknown(f"{kind} of SHALE", name, valid)
        if not self.draws and not self.pictures.checkers:
            raise ConfigError("generated pictures need a checker: nobody would see that one does not show its scene")

    @property
    def draws(self) -> bool:
        return isinstance(self.pictures.generator, DrawnGenerator)

    def run(self, folder: Path) -> MadeScenes:
        """Make the set.

        Args:
            folder: Where everything is kept; the same folder goes on from there.

        Raises:
            HedgeError: A model or the folder failed; what was made before is kept.
        """
        seed, pictures = self.pictures.seed, self.pictures
        aspects = [name for name in ASPECTS if name in self.aspects]
        scenes = [s for name in aspects for s in scenes_of(name, self.per_aspect, seed=seed, drawn=self.draws)]
        if self.draws:
            pictures = replace(pictures, checkers=[DrawnChecker(), *pictures.checkers])
        with PictureStore.opened(folder / PICTURES) as store:
            noises = noises_of(self.scenarios, self.encoders)
            results = pictures.pictures_of(scenes, noises, store)
        items, doubles = all_items(results, self.scenarios, noises, seed=seed)
        steps = Counter(f"{name} picture {verdict.outcome}" for r in results for name, verdict in r.verdicts.items())
        steps += Counter({"question left out: asked about the same pixels": doubles})
        refused = Counter(f"clean picture in {r.verdicts[CLEAN].outcome}" for r in results if not r.accepted)
        accepted = len(results) - refused.total()
        return MadeScenes(results, Made(items, steps, refused, total=len(results), accepted=accepted))

    def short(self, results: Sequence[ScenePictures]) -> dict[str, int]:
        """Aspects with fewer scenes than are wanted, and how many they have."""
        counts = Counter(result.scene.aspect for result in results)
        return {
            aspect: counts[aspect] for aspect in ASPECTS if aspect in self.aspects and counts[aspect] < self.per_aspect
        }

    def settings(self) -> dict[str, Any]:
        """Settings that shape the set, for its card."""
        return {
            "generator": self.pictures.generator.name,
            "checkers": [checker.name for checker in self.pictures.checkers],
            "alpha": self.pictures.alpha,
            "beta": self.pictures.beta,
            "labelled by people": len(self.pictures.labels),
            "per_aspect": self.per_aspect,
            "aspects": [aspect for aspect in ASPECTS if aspect in self.aspects],
            "scenarios": [s for s in SCENARIOS if s == CLEAN or s in self.scenarios],
            "encoders": list(self.encoders),
        }

    def picture_counts(self) -> Mapping[str, int]:
        """Most pictures that are made, by how."""
        n = len([a for a in ASPECTS if a in self.aspects]) * self.per_aspect
        noisy = [name for name in IMAGE_SCENARIOS if name in noises_of(self.scenarios, self.encoders)]
        styled = "sty" in noisy and not self.draws
        return {"generated": n * (1 + styled), "induced": n * (len(noisy) - styled)}

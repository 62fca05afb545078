"""Pictures of scenes, clean and noisy: generated, induced, and checked for whether they still show their scene.

A noisy picture is held to what its clean one is held to: the right answer must be recoverable from it (the paper
checks clean pictures only). A combined scenario (`sty_p`) has the picture of the one without the prefix.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from hedge_tasks.making.pictures.base import (
    ALPHA,
    BETA,
    Checker,
    ImageGenerator,
    Order,
    PictureQuestion,
    PictureVerdict,
    verdict_of,
)
from hedge_tasks.making.pictures.store import PictureStore, StoredPicture
from hedge_tasks.making.shale.drawn import question_of
from hedge_tasks.making.shale.scenes import Scene
from hedge_tasks.perturb import Noise, Wording, build_noise
from hedge_tasks.suites.shale.items import CLEAN, IMAGE_SCENARIOS, NOISY_SCENARIOS

TINY_ENCODER = "package://hedge_tasks.models.tiny/vlm"
"""The default target of ADV: the vision encoder that lies in the package, so that nothing is downloaded."""


@dataclass(frozen=True)
class ScenePictures:
    """The pictures of a scene.

    Attributes:
        pictures: By scenario: clean, and those image scenarios that were made.
        verdicts: The verdict on each of them.
    """

    scene: Scene
    pictures: dict[str, StoredPicture] = field(default_factory=dict)
    verdicts: dict[str, PictureVerdict] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        return self.verdicts[CLEAN].outcome == "accepted"

    def has(self, scenario: str) -> bool:
        """Whether a scenario can be asked about: its picture and the clean one are accepted."""
        verdict = self.verdicts.get(picture_scenario(scenario))
        return self.accepted and verdict is not None and verdict.outcome == "accepted"


def picture_scenario(scenario: str) -> str:
    """Return the scenario whose picture is shown in one: with a prefix that without it, else the clean one."""
    base = scenario.removesuffix("_p")
    return base if base in IMAGE_SCENARIOS else CLEAN


def picture_id(scene: Scene, scenario: str) -> str:
    """The id under which people label a picture."""
    return f"{scene.id}-{scenario}"


def noises_of(scenarios: Sequence[str], encoders: Sequence[str] = (TINY_ENCODER,)) -> dict[str, Noise]:
    """The inductions of some scenarios, by the name without prefix; the prefix itself is `pfx`."""
    scenarios = [name for name in NOISY_SCENARIOS if name in scenarios]
    names = {
        part for name in scenarios for part in (name.removesuffix("_p"), *(("pfx",) if name.endswith("_p") else ()))
    }
    own: dict[str, dict[str, Any]] = {"adv": {"encoder": encoders[0] if len(encoders) == 1 else list(encoders)}}
    return {
        name: build_noise({"kind": "induction", "name": f"shale_{name}", **own.get(name, {})}) for name in sorted(names)
    }


@dataclass(frozen=True)
class PictureMaking:
    """How pictures are made and checked.

    Attributes:
        generator: Makes pictures.
        checkers: Say whether these show what they should.
        alpha, beta: As `verdict_of`.
        labels: What people said of pictures in doubt, by `picture_id`: 1 rejects, 0 accepts.
        seed: Of the whole making.
    """

    generator: ImageGenerator
    checkers: Sequence[Checker]
    alpha: float = ALPHA
    beta: float = BETA
    labels: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0

    def pictures_of(
        self, scenes: Sequence[Scene], noises: Mapping[str, Noise], store: PictureStore
    ) -> list[ScenePictures]:
        """Generate and check pictures of scenes; noisy ones are made of those whose clean one is accepted.

        Args:
            noises: By scenario without prefix (`noises_of`); image scenarios that are none of them are left out. With
                a generator that takes prompts STY is made anew, with a style in the prompt (section 3.2).

        Raises:
            HedgeError: Something failed; what was made before is kept.
        """
        results = [ScenePictures(scene) for scene in scenes]
        orders = [self._order(scene) for scene in scenes]
        self._check(CLEAN, results, store.generate(self.generator, orders), store)
        for scenario in (name for name in IMAGE_SCENARIOS if name in noises):
            mine = [result for result in results if result.accepted]
            seeds = [seed_of(self.seed, result.scene, scenario) for result in mine]
            if scenario == "sty" and not any(scene.drawing for scene in scenes):
                styles = noises[scenario].settings()["styles"]
                styled = [self._styled(r.scene, styles, seed) for r, seed in zip(mine, seeds, strict=True)]
                pictures = store.generate(self.generator, styled)
            else:
                clean = {result.pictures[CLEAN].digest: result.pictures[CLEAN] for result in mine}
                induced = [_induced(result, seed) for result, seed in zip(mine, seeds, strict=True)]
                pictures = store.generate(_Inducing(noises[scenario], clean), induced)
            self._check(scenario, mine, pictures, store)
        return results

    def _check(
        self,
        scenario: str,
        results: Sequence[ScenePictures],
        pictures: Sequence[StoredPicture],
        store: PictureStore,
    ) -> None:
        """Check what was generated for some scenes, one checker after the other, and note the verdicts."""
        pairs: list[tuple[int, StoredPicture, PictureQuestion]] = []
        scores: list[dict[str, float | None]] = [{} for _ in results]
        for place, (result, picture) in enumerate(zip(results, pictures, strict=True)):
            result.pictures[scenario] = picture
            pairs += [(place, picture, question) for question in self._questions(result.scene)]
        for checker in self.checkers:
            answers = store.check(checker, [pair[1] for pair in pairs], [pair[2] for pair in pairs])
            for (place, _, question), score in zip(pairs, answers, strict=True):
                scores[place][f"{checker.name} [{question.kind}: {question.statement}]"] = score
        for result, of_result in zip(results, scores, strict=True):
            label = self.labels.get(picture_id(result.scene, scenario))
            result.verdicts[scenario] = verdict_of(of_result, alpha=self.alpha, beta=self.beta, label=label)

    def _order(self, scene: Scene) -> Order:
        return Order(scene.prompt, seed_of(self.seed, scene, CLEAN), scene.drawing)

    def _styled(self, scene: Scene, styles: Sequence[str], seed: int) -> Order:
        """The same picture in a style, from the same noise of the generator."""
        order = self._order(scene)
        style = random.Random(seed).choice(styles)
        return Order(f"{order.prompt}, in the style of a {style}", order.seed, order.details)

    def _questions(self, scene: Scene) -> list[PictureQuestion]:
        drawn = [question_of(scene, seed_of(self.seed, scene, CLEAN))] if scene.drawing else []
        return [*drawn, *scene.checks[len(drawn) :]]


def seed_of(seed: int, scene: Scene, scenario: str) -> int:
    """Seed of one scene in one scenario: the same on any machine, whatever else is made."""
    text = f"shale\0{seed}\0{scene.id}\0{scenario.removesuffix('_p')}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def _induced(result: ScenePictures, seed: int) -> Order:
    details = {"picture": result.pictures[CLEAN].digest, "distractor": result.scene.wrong[0]}
    return Order(result.scene.prompt, seed, details)


class _Inducing:
    """An induction as an image generator, so that its pictures are kept like others: attacks take their time.

    Args:
        clean: The pictures to begin with, by digest.
    """

    def __init__(self, noise: Noise, clean: Mapping[str, StoredPicture]) -> None:
        self.name = f"induced:{json.dumps(noise.settings(), sort_keys=True)}"
        self._noise, self._clean = noise, clean

    def generate(self, orders: Sequence[Order]) -> list[Image.Image]:
        induced: list[Image.Image] = []
        for order in orders:
            picture = self._clean[order.details["picture"]].open()
            wording = Wording("", distractor=order.details["distractor"])
            induced += self._noise.perturb_images([picture], wording, seed=order.seed)
        return induced

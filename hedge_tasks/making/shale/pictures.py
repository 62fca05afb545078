"""Pictures of scenes, clean and noisy: generated, induced, and checked for whether they still show their scene.

A noisy picture is held to what its clean one is held to: the right answer must be recoverable from it (the paper
checks clean pictures only). A combined scenario (`sty_p`) has the picture of the one without the prefix.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
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
)
from hedge_tasks.making.pictures.inspection import inspect, with_label
from hedge_tasks.making.pictures.store import BATCH, PictureStore, StoredPicture
from hedge_tasks.making.shale.drawn import question_of
from hedge_tasks.making.shale.records import Scene
from hedge_tasks.perturb import Noise, Wording, build_noise
from hedge_tasks.suites.shale.items import CLEAN, IMAGE_SCENARIOS, NOISY_SCENARIOS

TINY_ENCODER = "package://hedge_tasks.models.tiny/vlm"
"""The default target of ADV: the vision encoder that lies in the package, so that nothing is downloaded."""


@dataclass(frozen=True)
class PictureFilter:
    """Thresholds for pictures; see `hedge_tasks.making.pictures.base.verdict_of`.

    Attributes:
        labels: What people said of pictures in doubt, by `picture_id`: 1 rejects, 0 accepts.
    """

    alpha: float = ALPHA
    beta: float = BETA
    floor: float = 0.0
    labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ScenePictures:
    """The pictures of a scene.

    Attributes:
        pictures: By scenario: clean, and those image scenarios that were made.
        verdicts: The verdict on each of them, and why others could not be generated.
    """

    scene: Scene
    pictures: Mapping[str, StoredPicture]
    verdicts: Mapping[str, PictureVerdict]

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


def make_pictures(
    scenes: Sequence[Scene],
    generator: ImageGenerator,
    checkers: Sequence[Checker],
    noises: Mapping[str, Noise],
    store: PictureStore,
    *,
    picture_filter: PictureFilter,
    seed: int = 0,
    batch: int = BATCH,
) -> list[ScenePictures]:
    """Generate and check pictures of scenes; noisy pictures are made of those whose clean one is accepted.

    Args:
        noises: By scenario without prefix (`noises_of`); image scenarios that are none of them are left out. With a
            generator that takes prompts STY is made anew, with a style in the prompt (section 3.2).

    Raises:
        HedgeError: Something failed; what was made before is kept.
    """
    orders = [_order(scene, seed) for scene in scenes]
    pictures: list[dict[str, StoredPicture]] = [{} for _ in scenes]
    verdicts: list[dict[str, PictureVerdict]] = [{} for _ in scenes]

    def check_results(scenario: str, places: Sequence[int], outcomes: Sequence[StoredPicture | str]) -> None:
        """Check what was generated for some scenes."""
        existing = [(i, picture) for i, picture in zip(places, outcomes, strict=True) if not isinstance(picture, str)]
        picture_verdicts = inspect(
            store, checkers,
            [picture for _, picture in existing], [_questions(scenes[i], orders[i]) for i, _ in existing],
            alpha=picture_filter.alpha, beta=picture_filter.beta, floor=picture_filter.floor, batch=batch,
        )  # fmt: skip
        for i, reason in zip(places, outcomes, strict=True):
            if isinstance(reason, str):
                verdicts[i][scenario] = PictureVerdict({}, None, None, "rejected", f"not generated: {reason}")
        for (i, picture), verdict in zip(existing, picture_verdicts, strict=True):
            pictures[i][scenario] = picture
            verdicts[i][scenario] = with_label(verdict, picture_filter.labels.get(picture_id(scenes[i], scenario)))

    check_results(CLEAN, range(len(scenes)), store.generate(generator, orders, batch=batch))
    for scenario in (name for name in IMAGE_SCENARIOS if name in noises):
        mine = [i for i, scene_verdicts in enumerate(verdicts) if scene_verdicts[CLEAN].outcome == "accepted"]
        if not mine:
            break
        chosen = [scenes[i] for i in mine]
        noise = noises[scenario]
        if scenario == "sty" and not any(scene.drawing for scene in chosen):
            styled = [_styled(orders[i], noise, seed_of(seed, scenes[i], scenario)) for i in mine]
            results = store.generate(generator, styled, batch=batch)
        else:
            clean = [pictures[i][CLEAN] for i in mine]
            inducing = _Inducing(noise, {picture.digest: picture for picture in clean})
            induced = [
                _induced(scene, picture, seed_of(seed, scene, scenario), scenario)
                for scene, picture in zip(chosen, clean, strict=True)
            ]
            results = store.generate(inducing, induced, batch=batch)
        check_results(scenario, mine, results)
    return [ScenePictures(*parts) for parts in zip(scenes, pictures, verdicts, strict=True)]


def seed_of(seed: int, scene: Scene, scenario: str) -> int:
    """Seed of one scene in one scenario: the same on any machine, whatever else is made."""
    text = f"shale\0{seed}\0{scene.id}\0{scenario.removesuffix('_p')}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def _order(scene: Scene, seed: int) -> Order:
    return Order(picture_id(scene, CLEAN), scene.prompt, seed_of(seed, scene, CLEAN), scene.drawing)


def _styled(order: Order, noise: Noise, seed: int) -> Order:
    """The same picture in a style, from the same noise of the generator."""
    style = random.Random(seed).choice(noise.settings()["styles"])
    return Order(order.id, f"{order.prompt}, in the style of a {style}", order.seed, order.details)


def _induced(scene: Scene, clean: StoredPicture, seed: int, scenario: str) -> Order:
    details = {"picture": clean.digest, "distractor": scene.wrong[0]}
    return Order(picture_id(scene, scenario), scene.prompt, seed, details)


def _questions(scene: Scene, order: Order) -> list[PictureQuestion]:
    if scene.drawing:
        return [question_of(scene, order.seed), *scene.checks[1:]]
    return list(scene.checks)


class _Inducing:
    """An induction as an image generator, so that its pictures are kept like others: attacks take their time.

    Args:
        clean: The pictures to begin with, by digest.
    """

    def __init__(self, noise: Noise, clean: Mapping[str, StoredPicture]) -> None:
        self.name = f"induced:{json.dumps(noise.settings(), sort_keys=True)}"
        self._noise, self._clean = noise, clean

    def generate(self, orders: Sequence[Order]) -> list[Image.Image]:
        return list(self._perturbed(orders))

    def _perturbed(self, orders: Sequence[Order]) -> Iterator[Image.Image]:
        for order in orders:
            picture = self._clean[order.details["picture"]].open()
            wording = Wording("", distractor=order.details["distractor"])
            yield from self._noise.perturb_images([picture], wording, seed=order.seed)

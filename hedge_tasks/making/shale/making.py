"""SHALE's construction from its beginning to its end (paper section 3.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.io import options
from hedge_tasks.llm.account import Account, account_of
from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.llm.models import Model
from hedge_tasks.making.elements import Element
from hedge_tasks.making.gate.controls import TRUTHS
from hedge_tasks.making.knowledge import Fact
from hedge_tasks.making.output import LEDGER
from hedge_tasks.making.pictures.base import Checker, ImageGenerator
from hedge_tasks.making.pictures.store import BATCH, PictureStore
from hedge_tasks.making.production import Production, produce, share
from hedge_tasks.making.shale.blind import REQUESTS, BlindAnswers, BlindFilter
from hedge_tasks.making.shale.drawn import DrawnChecker, DrawnGenerator
from hedge_tasks.making.shale.items import all_items
from hedge_tasks.making.shale.pictures import TINY_ENCODER, PictureFilter, ScenePictures, make_pictures, noises_of
from hedge_tasks.making.shale.proposing import MOST_WRONG, RECORDS, Proposal, proposals, propose
from hedge_tasks.making.shale.records import Scene
from hedge_tasks.making.shale.scenes import drawn_scenes, prompted_scenes
from hedge_tasks.suites.shale.items import (
    ASPECTS,
    CLEAN,
    DISCRIMINATIVE,
    IMAGE_SCENARIOS,
    NOISY_SCENARIOS,
    SCENARIOS,
    SYN_RIGHT,
    TASKS,
    ShaleItem,
    controls_of,
)

T = TypeVar("T")

PICTURES = "pictures"
"""Folder of a making with everything that was generated and checked."""

DROP, MARK = "drop", "mark"


@dataclass(frozen=True)
class MadeSet:
    """Result of a making.

    Attributes:
        scenes: Every scene with its pictures and verdicts, in the order of the aspects.
        items: The questions.
        blind_answers: Which questions models answer without the picture.
        steps: How often what happened.
        short: Aspects with fewer scenes than wanted, and how many they have.
        unfinished: What requests failed for, with the reason; run again to finish.
        account: What the asking cost.
    """

    scenes: Sequence[ScenePictures]
    items: Sequence[ShaleItem]
    blind_answers: BlindAnswers
    steps: Mapping[str, int]
    short: Mapping[str, int]
    unfinished: Mapping[str, str]
    account: Account

    def report(self) -> dict[str, Any]:
        """As `Production.report`, where a record is a scene."""
        left = Counter(f"clean picture: {s.verdicts[CLEAN].outcome}" for s in self.scenes if not s.accepted)
        return {
            "records": len(self.scenes),
            "accepted": sum(scene.accepted for scene in self.scenes),
            "rejected": dict(sorted(left.items())),
            "unfinished": len(self.unfinished),
            "steps": dict(self.steps),
            "asked": self.account.to_dict(),
        }


@dataclass(frozen=True)
class ShaleMaking:
    """A making with its models and settings.

    Attributes:
        generator: Makes pictures. `DrawnGenerator` draws what `pools.json` has; any other is given prompts.
        checkers: Say whether pictures show what they should; a `DrawnChecker` always checks what is drawn.
        per_aspect: Scenes of each aspect.
        aspects, scenarios: Which; clean is always among the scenarios.
        seed: Of the whole making.
        elements: Words for image generators that take prompts; None: our own.
        facts: Besides our own, likewise.
        writer: Proposes the scenes, in place of the pools.
        verifiers: Say of its wrong answers whether its record contradicts them.
        blind: Models that are asked without the picture.
        blind_items: "drop" leaves out what one of them answers, "mark" says so in a column.
        encoders: What ADV attacks, all at a time.
        picture_filter: What pictures are held to.
        batch: Pictures that generator and checkers are given at a time.
        concurrency: Requests under way.

    Raises:
        ConfigError: Something makes no sense, or pictures of a model would not be checked by anybody.
    """

    generator: ImageGenerator
    checkers: Sequence[Checker] = ()
    per_aspect: int = 1
    aspects: Sequence[str] = ASPECTS
    scenarios: Sequence[str] = SCENARIOS
    seed: int = 0
    elements: Sequence[Element] | None = None
    facts: Sequence[Fact] = ()
    writer: Model | None = None
    verifiers: Sequence[Model] = ()
    blind: Sequence[Model] = ()
    blind_items: str = DROP
    encoders: Sequence[str] = (TINY_ENCODER,)
    picture_filter: PictureFilter = field(default_factory=PictureFilter)
    batch: int = BATCH
    concurrency: int = 16

    def __post_init__(self) -> None:
        options.count("images of an aspect", self.per_aspect, at_least=1)
        options.count("batch", self.batch, at_least=1)
        options.count("concurrency", self.concurrency, at_least=1)
        for kind, names, valid in (
            ("aspect of SHALE", self.aspects, ASPECTS),
            ("scenario of SHALE", self.scenarios, SCENARIOS),
            ("way with blind items", (self.blind_items,), (DROP, MARK)),
        ):
            for name in names:
                if name not in valid:
                    raise unknown(kind, name, valid)
        if not self.encoders:
            raise ConfigError("encoder: ADV needs at least one")
        if self.draws and (self.writer is not None or self.elements or self.facts):
            raise ConfigError(
                "proposals, elements and knowledge need an image generator that takes prompts; drawings have a pool"
            )
        if self.writer is not None and not self.verifiers:
            raise ConfigError("a writer needs a verifier: nobody would see that what it calls wrong is right as well")
        if not self.draws and not self.checkers:
            raise ConfigError(
                "generated pictures need a checker: nobody would see that one does not show what is asked about it"
            )

    @property
    def draws(self) -> bool:
        return isinstance(self.generator, DrawnGenerator)

    @property
    def all_checkers(self) -> Sequence[Checker]:
        return [DrawnChecker(), *self.checkers] if self.draws else self.checkers

    @property
    def wanted_aspects(self) -> list[str]:
        return [aspect for aspect in ASPECTS if aspect in self.aspects]

    def pool_scenes(self) -> dict[str, list[Scene]]:
        """Scenes that no model proposes, by aspect."""
        if self.writer is not None:
            return {}
        if self.draws:
            return {a: drawn_scenes(a, self.per_aspect, seed=self.seed) for a in self.wanted_aspects}
        return self._by_aspect(prompted_scenes)

    def proposals(self) -> list[Proposal]:
        """Return what the writer is asked for; nothing without one."""
        if self.writer is None:
            return []
        return [proposal for requests in self._by_aspect(proposals).values() for proposal in requests]

    def _by_aspect(self, make: Callable[..., list[T]]) -> dict[str, list[T]]:
        """Return what `make` makes of the words and facts, by aspect."""
        sources = {"seed": self.seed, "elements": self.elements, "facts": self.facts}
        return {aspect: make(aspect, self.per_aspect, **sources) for aspect in self.wanted_aspects}

    def run(self, folder: Path, *, worker: tuple[int, int] | None = None) -> MadeSet:
        """Make the set, or one worker's share of its pictures and replies.

        Args:
            folder: Where everything is kept; the same folder goes on from there.
            worker: K of N, from 1: this worker does every Nth part from the Kth on. What it returns is its share, and
                the set is made by a run without it.

        Raises:
            HedgeError: A model, a server or the folder failed; what was made before is kept.
        """
        with ReplyLog(folder / LEDGER) as log, PictureStore(folder / PICTURES) as store:
            proposed = self._proposed(log, worker)
            scenes, short = self._scenes(proposed, worker)
            noises = noises_of(self.scenarios, self.encoders)
            scene_pictures = make_pictures(
                scenes, self.generator, self.all_checkers, noises, store,
                picture_filter=self.picture_filter, seed=self.seed, batch=self.batch,
            )  # fmt: skip
            blind = self._blind(scene_pictures, log)
        answered = {row["scene"]: row["answered"] for row in blind.rows}
        scene_pictures = [pictures for pictures in scene_pictures if pictures.scene.id not in blind.unfinished]
        dropped = {scene: list(tasks) for scene, tasks in answered.items()} if self.blind_items == DROP else {}
        items, doubles = all_items(scene_pictures, self.scenarios, noises, seed=self.seed, left_out=dropped)
        steps = {**proposed.steps, **_outcomes(scene_pictures), **blind.steps}
        steps |= {"question left out: asked about the same pixels": doubles} if doubles else {}
        unfinished = {**proposed.unfinished, **blind.unfinished}
        account = account_of(proposed.account, blind.account, *self.checkers)
        return MadeSet(scene_pictures, items, answered, steps, short, unfinished, account)

    def _proposed(self, log: ReplyLog, worker: tuple[int, int] | None) -> Production:
        writer = self.writer
        requests = share(self.proposals(), worker) if writer is not None else []
        production = produce(
            requests,
            lambda proposal, asking: propose(proposal, asking, writer, self.verifiers),  # type: ignore[arg-type]
            log, seed=self.seed, concurrency=self.concurrency,
        )  # fmt: skip
        TRUTHS.check(production.steps)
        return production

    def _scenes(self, proposed: Production, worker: tuple[int, int] | None) -> tuple[list[Scene], dict[str, int]]:
        """Distinct scenes, at most as many of an aspect as are wanted, and the aspects that have too few."""
        if self.writer is None:
            pools = self.pool_scenes()
            short = {a: len(scenes) for a, scenes in pools.items() if len(scenes) < self.per_aspect}
            return share([scene for scenes in pools.values() for scene in scenes], worker), short
        by_aspect: dict[str, dict[str, Scene]] = {aspect: {} for aspect in self.wanted_aspects}
        for row in proposed.rows:
            for scene in row["scenes"]:
                mine = by_aspect[scene.aspect]
                if len(mine) < self.per_aspect:
                    mine.setdefault(scene.prompt.casefold(), scene)
        short = {a: len(scenes) for a, scenes in by_aspect.items() if len(scenes) < self.per_aspect}
        return [scene for scenes in by_aspect.values() for scene in scenes.values()], short

    def _blind(self, scene_pictures: Sequence[ScenePictures], log: ReplyLog) -> Production:
        scenes = [pictures.scene for pictures in scene_pictures if pictures.accepted] if self.blind else []
        return produce(
            scenes,
            BlindFilter(self.blind),
            log, seed=self.seed, concurrency=self.concurrency,
        )  # fmt: skip

    def estimate(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Fewest and most of everything that costs, where every scene is distinct and every reply can be read.

        Returns:
            "requests" by stage, "pictures" by how they are made, "scores" by checker, and "items" by scenario. Fewest
            items: none; most: every picture is accepted, nothing is answered blindly.
        """
        n = len(self.wanted_aspects) * self.per_aspect
        if self.writer is None:
            scenes = [scene for pool in self.pool_scenes().values() for scene in pool]
            n = len(scenes)
            questions = sum(len(scene.checks) for scene in scenes)
        else:
            questions = 4 * n  # at most: a relation, two things, and the whole
        noisy = [name for name in IMAGE_SCENARIOS if name in noises_of(self.scenarios, self.encoders)]
        generated = n * (1 + ("sty" in noisy and not self.draws))
        induced = n * len(noisy) - (generated - n)
        requests = {"propose": (len(self.proposals()), len(self.proposals()))} if self.writer else {}
        if self.writer:
            records = len(self.proposals()) * RECORDS
            requests["verify"] = (0, records * MOST_WRONG * len(self.verifiers))
            requests["control"] = (0, records * len(self.verifiers))
        if self.blind:
            requests["blind"] = (0, n * sum(REQUESTS.values()) * len(self.blind))
        return {
            "requests": requests,
            "pictures": {"generated": (n, generated), "induced": (0, induced)},
            "scores": {c.name: (questions, questions * (1 + len(noisy))) for c in self.all_checkers},
            "items": {s: (0, count) for s, count in _most_items(n, self.scenarios).items()},
        }

    def settings(self) -> dict[str, Any]:
        """Return what shapes the set, for its card."""
        sources = Counter(element.source.split(" ")[0] for element in self.elements or ())
        return {
            "generator": self.generator.name,
            "checkers": [checker.name for checker in self.all_checkers],
            "alpha": self.picture_filter.alpha,
            "beta": self.picture_filter.beta,
            "labelled by people": len(self.picture_filter.labels),
            "per_aspect": self.per_aspect,
            "aspects": self.wanted_aspects,
            "scenarios": [s for s in SCENARIOS if s == CLEAN or s in self.scenarios],
            "seed": self.seed,
            "elements": dict(sorted(sources.items())),
            "facts": len(self.facts),
            "writer": None if self.writer is None else dict(self.writer.identity),
            "verifiers": [dict(model.identity) for model in self.verifiers],
            "blind": [dict(model.identity) for model in self.blind],
            "blind_items": self.blind_items,
            "encoders": list(self.encoders),
        }


def _most_items(n: int, scenarios: Sequence[str]) -> dict[str, int]:
    """Items by scenario where every picture is accepted."""
    counts = {CLEAN: n * len(TASKS)}
    for name in (name for name in NOISY_SCENARIOS if name in scenarios):
        tasks = len(TASKS) if name in IMAGE_SCENARIOS else len(DISCRIMINATIVE)
        # A yes-or-no question is in SYN or in its control.
        counts |= {form: n * (1 if form == SYN_RIGHT else tasks) for form in (name, *controls_of(name))}
    return counts


def _outcomes(scenes: Sequence[ScenePictures]) -> dict[str, int]:
    counts = Counter(
        f"{scenario} picture {verdict.outcome}" for scene in scenes for scenario, verdict in scene.verdicts.items()
    )
    order = (CLEAN, *IMAGE_SCENARIOS)
    names = [f"{s} picture {outcome}" for s in order for outcome in ("accepted", "review", "rejected")]
    return {name: counts[name] for name in names if counts[name]}

"""The questions of accepted scenes: answers and letters balanced, no question twice about the same pixels."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hedge_tasks.making.gate.attack import AttackedItem
from hedge_tasks.making.shale.pictures import ScenePictures, picture_scenario, seed_of
from hedge_tasks.making.shale.scenes import Scene, templates
from hedge_tasks.perturb import Noise, Wording, build_noise
from hedge_tasks.suites.shale.items import (
    CLEAN,
    CONTROLS,
    DISCRIMINATIVE,
    IMAGE_SCENARIOS,
    PFX_NEUTRAL,
    SCENARIOS,
    SYN_RIGHT,
    TASKS,
    ShaleItem,
    controls_of,
    options_of,
)

LETTERS = "ABCD"


def with_options(question: str, options: Sequence[str]) -> str:
    """A question with its options."""
    texts = " ".join(f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=True))
    return f"{question} {texts}"


def image_name(number: int, scenario: str) -> str:
    """Name of the picture of a scene, by its number from 0."""
    ending = "" if scenario == CLEAN else f"-{scenario}"
    return f"Image/{number + 1}{ending}.png"


def pictures_by_name(scenes: Sequence[ScenePictures]) -> dict[str, tuple[ScenePictures, str]]:
    """All pictures of some scenes by the name of their image: the scene's pictures, and the scenario."""
    return {
        image_name(number, scenario): (scene_pictures, scenario)
        for number, scene_pictures in enumerate(scenes)
        for scenario in scene_pictures.pictures
    }


def clean_items(scenes: Sequence[ScenePictures], *, seed: int = 0) -> list[tuple[int, ShaleItem]]:
    """The clean questions of accepted scenes, with the place of their scene.

    Whether yes is right, and which letter, is a coin and a die of each scene: balanced in expectation. Were the counts
    exactly even, what is right here would tell what is wrong there.
    """
    items = []
    for place, scene_pictures in enumerate(scenes):
        scene = scene_pictures.scene
        if not scene_pictures.accepted:
            continue
        rng = random.Random(f"{seed}/{scene.id}/items")
        by_task = _clean(scene, place, positive=rng.random() < 0.5, right=rng.randrange(len(LETTERS)), rng=rng)
        items += [(place, by_task[task]) for task in TASKS]
    return items


def _clean(scene: Scene, place: int, *, positive: bool, right: int, rng: random.Random) -> dict[str, ShaleItem]:
    wrong = rng.sample(scene.wrong[: len(LETTERS) - 1], len(LETTERS) - 1)
    question = with_options(scene.ffq, [*wrong[:right], scene.answer, *wrong[right:]])
    texts = {
        "ynq": (scene.asking(scene.answer if positive else scene.wrong[0]), "Yes" if positive else "No"),
        "mcq": (question, f"({LETTERS[right]}) {scene.answer}"),
        "ffq": (scene.ffq, scene.answer),
        "ic": (templates()["caption"], scene.prompt),
    }
    return {
        task: ShaleItem(
            id=str(place * len(TASKS) + number),
            scenario=CLEAN,
            task=task,
            kind=scene.kind,
            aspect=scene.aspect,
            entity=scene.entity,
            image=image_name(place, CLEAN),
            question=texts[task][0],
            answer=texts[task][1],
            description=scene.prompt,
            facts=scene.facts,
            distractor=scene.wrong[0],
        )
        for number, task in enumerate(TASKS, start=1)
    }


def noisy_items(
    scene: Scene,
    place: int,
    clean: Sequence[ShaleItem],
    scenario: str,
    noises: Mapping[str, Noise],
    *,
    seed: int = 0,
) -> Iterator[ShaleItem]:
    """The questions of one scene in one noisy scenario.

    Open questions are asked of noisy pictures alone and not with prefixes, as in the paper (section 4.1). SYN has
    choices, and those yes-or-no questions that are answered by no: others have nothing wrong that could be replaced,
    and are its control. The controls of prefixes are the same questions behind one that is true or says nothing.
    """
    controlled = CONTROLS.get(scenario, scenario)
    base = controlled.removesuffix("_p")
    image = image_name(place, picture_scenario(controlled))
    for item in clean:
        question, distractor = item.question, item.distractor
        if item.task not in DISCRIMINATIVE and scenario not in IMAGE_SCENARIOS:
            continue
        if controlled == "syn" and (scenario == SYN_RIGHT) != (item.task == "ynq" and item.answer == "Yes"):
            continue
        if scenario == "syn":
            question, distractor = _with_synonyms(scene, item, noises["syn"], seed_of(seed, scene, scenario))
            if question == item.question:
                continue  # nothing of its type is nearer, so there is no harder form of it
        elif controlled != base or controlled == "pfx":
            statement = Wording(question, distractor=_prefix(scene, scenario, seed))
            prefixed = noises["pfx"].perturb_wording(statement, seed=seed_of(seed, scene, controlled))
            question = prefixed.question
        yield replace(item, scenario=scenario, image=image, question=question, distractor=distractor)


def _prefix(scene: Scene, scenario: str, seed: int) -> str:
    """The prefix: wrong, as in the paper; in the controls true, or about nothing that is asked."""
    if scenario == PFX_NEUTRAL:
        return random.Random(f"{seed}/{scene.id}/neutral").choice(templates()["neutral"])
    return scene.stating(scene.answer if scenario in CONTROLS else scene.wrong[0])


def _with_synonyms(scene: Scene, item: ShaleItem, noise: Noise, seed: int) -> tuple[str, str]:
    """Question and distractor of SYN: wrong elements give way to siblings that mean nearly what is right."""
    settings = {**noise.settings(), "candidates": [*scene.wrong, *scene.near]}
    if item.task == "mcq":
        near = build_noise(settings).perturb_wording(Wording(item.question, answer=item.answer), seed=seed)
        options = options_of(near.question)
        wrong = next(text for letter, text in options.items() if not item.answer.startswith(f"({letter})"))
        return near.question, wrong
    pair = Wording(f"(A) {scene.answer} (B) {item.distractor}", answer=f"(A) {scene.answer}")
    changed = build_noise(settings).perturb_wording(pair, seed=seed).question
    wrong = changed.partition("(B) ")[2]
    return scene.asking(wrong), wrong


def all_items(
    scenes: Sequence[ScenePictures],
    scenarios: Sequence[str],
    noises: Mapping[str, Noise],
    *,
    seed: int = 0,
) -> tuple[list[ShaleItem], int]:
    """All questions, the clean ones first, and how many were left out as another's double.

    No question is asked twice about the same pixels. A noisy question whose clean one is such a double goes with it.
    """
    seen: set[tuple[str, ...]] = set()
    doubles = 0

    def is_new(digest: str, item: ShaleItem) -> bool:
        nonlocal doubles
        key = _content(digest, item)
        new = key not in seen or item.scenario == SYN_RIGHT  # the clean question on purpose
        seen.add(key)
        doubles += not new
        return new

    items: list[ShaleItem] = []
    of_scene: dict[int, list[ShaleItem]] = {}
    for place, item in clean_items(scenes, seed=seed):
        if is_new(scenes[place].pictures[CLEAN].digest, item):
            items.append(item)
            of_scene.setdefault(place, []).append(item)
    noisy = [name for name in SCENARIOS if name in scenarios and name != CLEAN]
    for scenario in (form for name in noisy for form in (name, *controls_of(name))):
        controlled = CONTROLS.get(scenario, scenario)
        for place, scene_items in of_scene.items():
            if scenes[place].has(controlled):
                digest = scenes[place].pictures[picture_scenario(controlled)].digest
                made_of = noisy_items(scenes[place].scene, place, scene_items, scenario, noises, seed=seed)
                items += [item for item in made_of if is_new(digest, item)]
    return items, doubles


def _content(digest: str, item: ShaleItem) -> tuple[str, ...]:
    """Return what is asked about which pixels; the order of options makes no other question."""
    options = options_of(item.question)
    return (digest, item.task, item.question.partition("(A)")[0], *sorted(options.values()))


def attacked_items(items: Sequence[ShaleItem]) -> list[AttackedItem]:
    """Closed questions by type and scenario, controls with the scenario that they stand beside; open ones are read,
    not solved."""
    clean = {item.id: item.question for item in items if item.scenario == CLEAN}
    return [
        AttackedItem(
            item.answer if item.task == "ynq" else item.answer[1:2],
            item.question.partition("(A)")[0] if options else item.question,
            options=options,
            asserted=_asserted(item, clean.get(item.id, item.question), options),
            group=item.image,
            stratum=f"{item.task}, {CONTROLS.get(item.scenario, item.scenario)}",
        )
        for item in items
        if item.task in DISCRIMINATIVE
        for options in [options_of(item.question) if item.task == "mcq" else {}]
    ]


def _asserted(item: ShaleItem, clean: str, options: Mapping[str, str]) -> str | None:
    """The answer that a prefix says: of a choice the letter of what it names; None without a prefix that names one."""
    prefix = item.question.removesuffix(clean)
    if prefix in ("", item.question) or item.scenario == PFX_NEUTRAL:
        return None
    if options:
        named = [letter for letter, text in options.items() if _names(prefix, text)]
        return max(named, key=lambda letter: len(options[letter]), default=None)
    return "Yes" if _names(prefix, item.distractor) == _names(clean, item.distractor) else "No"


def _names(text: str, part: str) -> bool:
    return bool(part) and re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text, re.IGNORECASE) is not None

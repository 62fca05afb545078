"""Scenes, drawings and questions of made SHALE sets: pools, records, balance, and what each scenario changes."""

from __future__ import annotations

import hashlib
import io
import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from shale_set import small_set

from hedge_tasks.making.gate.attack import attack
from hedge_tasks.making.pictures.base import Order, PictureVerdict
from hedge_tasks.making.pictures.store import StoredPicture
from hedge_tasks.making.shale.drawing import draw
from hedge_tasks.making.shale.drawn import DrawnChecker, DrawnGenerator, question_of
from hedge_tasks.making.shale.items import all_items, attacked_items, clean_items
from hedge_tasks.making.shale.pictures import ScenePictures
from hedge_tasks.making.shale.scenes import Scene, pools, scenes_of, templates
from hedge_tasks.perturb import Wording, build_noise
from hedge_tasks.suites.shale.items import (
    ASPECTS,
    CLEAN,
    CONTROLS,
    IMAGE_SCENARIOS,
    KNOWLEDGE,
    SCENARIOS,
    SYN_RIGHT,
    TASKS,
    ShaleItem,
    options_of,
)

EVERY_ELEMENT = 8
"""Scenes an aspect, so that every element of every pool is drawn."""

ACCEPTED = PictureVerdict("accepted")


@pytest.fixture(scope="module")
def all_scenes() -> list[Scene]:
    return [scene for aspect in ASPECTS for scene in scenes_of(aspect, EVERY_ELEMENT, drawn=True)]


def shown(scene: Scene, digest: str = "") -> ScenePictures:
    """A scene with an accepted picture, which nobody looks at."""
    picture = StoredPicture(Path("nowhere"), digest or scene.id)
    return ScenePictures(scene, {CLEAN: picture}, {CLEAN: ACCEPTED})


def test_every_element_can_be_drawn_and_looks_like_no_other(all_scenes: list[Scene]) -> None:
    drawn: dict[str, dict[str, bytes]] = defaultdict(dict)
    for scene in all_scenes:
        pool = pools()["aspects"][scene.aspect]
        values = dict(scene.drawing["values"])
        values |= {key: pools()["slots"][key.removesuffix("_2")][0] for key in values if key in ("color", "things")}
        shown = values.get("subject", scene.answer)
        picture = draw(pool["figure"], values, size=40)
        assert picture.size == (40, 40)
        assert picture.mode == "RGB"
        if scene.aspect not in ("color", "spatial_relation", "size_relation"):
            drawn[scene.aspect][shown] = picture.tobytes()
    for aspect, contents in drawn.items():
        pool = pools()["aspects"][aspect]
        assert len(set(contents.values())) == len(contents) == len(pool.get("subjects") or pool["answers"]), aspect
    with pytest.raises(KeyError):
        draw("count", {"answer": "seven", "things": "stars", "color": "red"})


MADE = ("drawn:size=64,edition=3", "01c84d0c0b45", "612f243aa382", "972d182466e6")
"""Edition, and digests of drawings, scenes and questions."""


def test_what_is_made_changes_with_its_edition_alone(all_scenes: list[Scene]) -> None:
    """Who mends a figure, a scene or a question gives the set another edition, and writes the digests anew."""
    generator = DrawnGenerator(64)
    drawn = generator.generate([Order("", 0, scene.drawing) for scene in all_scenes])
    told = [repr(scenes_of(aspect, 12, seed=seed, drawn=of)) for aspect in ASPECTS for seed in (0, 1) for of in (0, 1)]
    contents = (b"".join(p.tobytes() for p in drawn), "".join(told).encode(), repr(small_set().items).encode())
    found = (generator.name, *(hashlib.sha256(content).hexdigest()[:12] for content in contents))
    assert found == MADE, found


def test_questions_have_one_right_answer(all_scenes: list[Scene]) -> None:
    for scene in all_scenes:
        ynq, mcq, ffq, ic = (item for _, item in clean_items([shown(scene)]))
        options = options_of(mcq.question)
        assert [text for text in options.values() if text == scene.answer] == [scene.answer]
        assert mcq.answer == f"({next(k for k, v in options.items() if v == scene.answer)}) {scene.answer}"
        assert len(set(options.values())) == 4
        assert (ynq.answer == "Yes") == (ynq.question == scene.asking(scene.answer))
        assert (ynq.answer == "No") == (ynq.question == scene.asking(scene.wrong[0]))
        assert ffq.answer == scene.answer
        assert mcq.question.startswith(ffq.question)
        assert ic.answer == ic.description == scene.prompt
        assert scene.answer not in (*scene.wrong, *scene.near)
        assert len({item.description for item in (ynq, mcq, ffq, ic)}) == 1
        if scene.aspect in KNOWLEDGE:
            subject = scene.drawing["values"]["subject"]
            assert pools()["aspects"][scene.aspect]["subjects"][subject] == scene.answer
            assert scene.answer in ffq.facts
            assert subject.lower() in ffq.facts.lower()
        else:
            assert not ffq.facts
        assert not re.search(r"[{}]", "".join(item.question + item.facts for item in (ynq, mcq, ffq, ic)))


def test_a_wrong_answer_is_right_of_other_pictures(all_scenes: list[Scene]) -> None:
    """What never is right would tell without the picture: "Is the object a castle?" was never answered by yes."""
    for aspect in pools()["aspects"]:
        pool = pools()["aspects"][aspect]
        right = set(pool.get("subjects", {}).values()) or set(pool["answers"])
        for scene in (scene for scene in all_scenes if scene.aspect == aspect):
            assert scene.wrong[0] in right
            assert len(set(scene.wrong) & right) == min(3, len(right - {scene.answer}))


def test_scenes_for_generators_that_take_prompts() -> None:
    for aspect in ASPECTS:
        found = scenes_of(aspect, 12)
        assert len(found) >= 12
        assert len({scene.prompt for scene in found}) == len(found)
        for scene in found:
            texts = (scene.prompt, scene.asking(scene.answer), scene.ffq, scene.stating(scene.wrong[0]), scene.facts)
            assert not re.search(r"[{}]", "".join(texts))
            assert len({scene.answer, *scene.wrong}) == 4
            assert scene.answer not in scene.near
            assert not scene.drawing
            assert scene.checks[0].kind == "statement"
            assert all(check.statement in scene.prompt or check.kind != "relation" for check in scene.checks)
            assert (scene.kind == "factuality") == (aspect in KNOWLEDGE) == bool(scene.facts)
            assert scene.answer in scene.prompt or aspect in KNOWLEDGE
    assert scenes_of("color", 12) == scenes_of("color", 12) != scenes_of("color", 12, seed=1)
    assert len(scenes_of("type", 400)) == 400
    assert len(scenes_of("sports", 400)) == len(templates()["relations"]["sport players"]["pairs"])


# --- drawings ---------------------------------------------------------------------------------------------------------


def test_a_drawing_is_told_from_others_through_noise_and_noise_is_no_drawing(all_scenes: list[Scene]) -> None:
    checker, generator = DrawnChecker(), DrawnGenerator(128)
    noises = [build_noise(f"shale_{name}") for name in ("sty", "crp", "txt")]
    for number, scene in enumerate(all_scenes[::5]):
        question = question_of(scene, number)
        [picture] = generator.generate([Order(scene.prompt, number, scene.drawing)])
        wording = Wording("", distractor=scene.wrong[0])
        noisy = [noise.perturb_images([picture], wording, seed=number)[0] for noise in noises]
        assert checker.check([picture, *noisy], [question] * 4) == [1.0] * 4, scene.prompt
        flat = Image.new("RGB", (64, 64), (200, 30, 30))
        random = Image.fromarray(np.random.default_rng(number).integers(0, 256, (128, 128, 3), dtype=np.uint8))
        assert checker.check([flat, random], [question] * 2) == [0.0, 0.0], scene.prompt


def test_the_drawing_of_another_answer_is_none() -> None:
    stars = {s.answer: s for s in scenes_of("color", 40, drawn=True) if s.prompt.startswith("a star in")}
    red, blue = stars["red"], stars["blue"]
    generator, checker = DrawnGenerator(64), DrawnChecker()
    [picture] = generator.generate([Order("", 0, red.drawing)])
    assert checker.check([picture] * 2, [question_of(red, 0), question_of(blue, 0)]) == [1.0, 0.0]
    assert checker.check([picture], [red.checks[0]]) == [None]  # a statement of which it knows no drawing


def by_scenario(scenario: str) -> dict[str, ShaleItem]:
    return {item.id: item for item in small_set().items if item.scenario == scenario}


def pixels(name: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(small_set().images[name])).convert("RGB"))


def test_every_scenario_has_its_items() -> None:
    for scenario in SCENARIOS:
        items = by_scenario(scenario)
        if scenario == "syn":
            asked = [item for item in items.values() if item.task == "ynq"]
            # The questions with a true answer are the controls, as they are: without them "No" would always be right.
            clean = {(item.question, item.image) for item in by_scenario(CLEAN).values() if item.answer == "Yes"}
            assert {(item.question, item.image) for item in by_scenario(SYN_RIGHT).values()} == clean
            assert {item.answer for item in asked} == {"No"}
            assert len(items) + len(clean) == 6 + 6
            continue
        # Open questions are asked of noisy pictures, and not with prefixes (section 4.1).
        asked = set(TASKS) if scenario in (CLEAN, *IMAGE_SCENARIOS) else {"ynq", "mcq"}
        assert list(items) == [id for id, item in by_scenario(CLEAN).items() if item.task in asked]
    assert len(small_set().images) == 6 * (1 + len(IMAGE_SCENARIOS))


def test_image_scenarios_change_the_image_alone() -> None:
    for scenario in IMAGE_SCENARIOS:
        for id_, item in by_scenario(scenario).items():
            clean = by_scenario("clean")[id_]
            assert (item.question, item.answer) == (clean.question, clean.answer)
            before, after = pixels(clean.image), pixels(item.image)
            assert before.shape == after.shape
            assert not np.array_equal(before, after)
            if scenario == "adv":
                assert np.abs(before.astype(int) - after).max() <= 8
            if item.task in ("ynq", "mcq"):
                assert by_scenario(f"{scenario}_p")[id_].image == item.image


def test_every_lie_has_twins_that_tell_the_truth_or_nothing() -> None:
    """Who believes every prefix, and who believes none, is right half of the time with the twins; without, always."""
    for scenario in ("pfx", *(f"{name}_p" for name in IMAGE_SCENARIOS)):
        lies, truths = by_scenario(scenario), by_scenario(f"{scenario}_true")
        assert lies.keys() == truths.keys()
        for id_, item in truths.items():
            clean, lie = by_scenario("clean")[id_], lies[id_]
            assert (item.answer, item.image) == (clean.answer, lie.image)
            prefix = item.question.removesuffix(clean.question)
            assert prefix != item.question
            assert prefix != lie.question.removesuffix(clean.question)
            if item.task == "mcq":
                assert item.answer[4:] in prefix
    for id_, item in by_scenario("pfx_neutral").items():
        clean = by_scenario("clean")[id_]
        assert item.question.removesuffix(clean.question).rstrip() in templates()["neutral"]
    for kept, believing, doubting in ((lambda name: name not in CONTROLS, 1.0, 1.0), (lambda name: True, 0.5, 0.5)):
        items = attacked_items([item for item in small_set().items if item.task == "ynq" and kept(item.scenario)])
        [solved] = attack([replace(item, stratum="") for item in items if item.asserted])
        scores = [solved.scores[f"what the prefix says{ending}"].value for ending in ("", " is wrong")]
        assert scores == [believing, doubting]


def test_synonyms_replace_what_is_wrong_and_nothing_else() -> None:
    for id_, item in by_scenario("syn").items():
        clean = by_scenario("clean")[id_]
        assert item.answer == clean.answer
        assert item.image == clean.image
        if item.task == "ynq" and item.answer == "Yes":
            assert item.question == clean.question  # the control
            continue
        assert item.question != clean.question
        pool = pools()["aspects"][item.aspect]
        elements = {*pool.get("answers", ()), *pool.get("subjects", {}).values(), *pool["others"]}
        if item.task == "mcq":
            before, after = options_of(clean.question), options_of(item.question)
            right = clean.answer[1]
            assert after[right] == before[right]
            assert len(set(after.values())) == 4
            assert set(after.values()) <= elements
        assert item.distractor in elements
        assert item.distractor in item.question


def test_no_question_is_asked_twice_about_the_same_pixels() -> None:
    """Two aspects may show one picture: what differs is asked, the caption once. A whole double is left out."""
    by_prompt = {scene.prompt: scene for scene in scenes_of("shape", 40, drawn=True)}
    one, other = next((by_prompt[s.prompt], s) for s in scenes_of("color", 40, drawn=True) if s.prompt in by_prompt)
    items, doubles = all_items([shown(one, "same"), shown(other, "same"), shown(one, "same")], [CLEAN], {})
    # One caption, and all of the third scene, but where its coin fell otherwise than the first one's.
    assert doubles in (1 + 3, 1 + 4)
    assert len(items) == 12 - doubles
    assert len({item.question for item in items}) == len(items)


def test_yes_and_the_letters_are_as_likely_as_each_other(all_scenes: list[Scene]) -> None:
    items = [item for seed in range(9) for _, item in clean_items([shown(s) for s in all_scenes], seed=seed)]
    yes = [item.answer == "Yes" for item in items if item.task == "ynq"]
    letters = [item.answer[1] for item in items if item.task == "mcq"]
    assert abs(sum(yes) / len(yes) - 0.5) < 0.08
    assert all(abs(letters.count(letter) / len(letters) - 0.25) < 0.08 for letter in "ABCD")
    # What is right of most does not tell what is wrong of the rest: no count is made even in the end.
    counts = Counter((item.aspect, item.answer) for item in items[:400] if item.task == "ynq")
    assert any(abs(counts[aspect, "Yes"] - counts[aspect, "No"]) > 1 for aspect in ASPECTS)

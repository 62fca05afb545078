"""Made pictures: verdicts by the paper's rule, the store, VQAScore and reading."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from at_border import at_border
from PIL import Image

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.making.pictures.base import CHECKERS, Order, PictureQuestion, built, verdict_of
from hedge_tasks.making.pictures.checking import likeness, p_yes
from hedge_tasks.making.pictures.store import PictureStore
from hedge_tasks.models.tiny import vlm_path


def test_a_verdict_is_the_mean_of_those_who_can_say_and_people_decide_what_is_in_doubt() -> None:
    def accepted(*scores: float | None, **more: Any) -> bool:
        return verdict_of(dict(zip("abc", scores, strict=False)), **more).outcome == "accepted"

    at_border(lambda score: accepted(score), 0.85, "011")
    at_border(lambda score: accepted(1.0, score, None), 0.7, "011")
    at_border(lambda score: accepted(1.0, score, beta=0.01), 0.8, "011")
    assert [verdict_of(of).outcome for of in ({"a": None}, {})] == ["review"] * 2
    assert [verdict_of({"a": 0.5}, label=label).outcome for label in (0, 1)] == ["accepted", "rejected"]
    assert verdict_of({"a": 0.9}, label=1).outcome == "accepted"  # people are asked about what is in doubt
    for name in ("alpha", "beta"):
        with pytest.raises(ConfigError, match=name):
            verdict_of({}, **{name: 1.5})


class Broken:
    name = "broken"

    def __init__(self, *results: Any) -> None:
        self.results = list(results)

    def generate(self, orders: Any) -> Any:
        return self.results

    def check(self, pictures: Any, questions: Any) -> Any:
        return self.results


def test_what_fails_is_asked_again_and_nonsense_is_an_error(tmp_path: Path) -> None:
    orders, question = [Order("a house", 1, {})], PictureQuestion("a house", "statement", {})
    red = Image.new("RGB", (8, 8), "red")
    with PictureStore.opened(tmp_path) as store:
        with pytest.raises(HedgeError, match="2 pictures for 1 orders"):
            store.generate(Broken(red, red), orders)
        [picture] = store.generate(Broken(red), orders)
        assert store.generate(Broken("never"), orders) == [picture]
        assert store.check(Broken("late"), [picture], [question]) == [None]
        with pytest.raises(HedgeError, match="a score of 2"):
            store.check(Broken(2), [picture], [question])
        assert store.check(Broken(0.123456), [picture], [question]) == [0.12346]
    with PictureStore.opened(tmp_path) as again:
        assert again.check(Broken("late"), [picture], [question]) == [0.12346]


def test_scores_by_hand() -> None:
    assert likeness("hell", ["HELL."]) == 1
    assert likeness("hell", ["Hello"]) == pytest.approx(8 / 9)
    assert likeness("keep clear", ["keep", "clear"]) == 1
    assert likeness("hell", []) == 0
    assert p_yes(math.log(0.6), math.log(0.2)) == pytest.approx(0.75)
    assert p_yes(-800.0, 0.0) == pytest.approx(0)
    assert p_yes(None, 0.0) is p_yes(-math.inf, -math.inf) is None


@pytest.mark.slow
def test_vqascore_is_the_models_own_probability() -> None:
    checker = built(CHECKERS, f"vqascore:adapter=hedge_hf,pretrained={vlm_path()},device=cpu")
    pictures = [Image.new("RGB", (64, 64), color) for color in ("red", "blue")]
    questions = [PictureQuestion("a red square", "statement", {})] * 2
    scores = checker.check(pictures, questions)
    assert all(isinstance(score, float) and 0 < score < 1 for score in scores)
    assert checker.check(pictures[:1], questions[:1])[0] == pytest.approx(scores[0], abs=1e-4)
    assert "device" not in checker.name


def test_rapidocr_reads_a_sign() -> None:
    pytest.importorskip("rapidocr_onnxruntime")
    from hedge_tasks.making.shale.drawing import draw

    sign = draw("sign", {"answer": "EXIT", "color": "blue"}, size=256)
    checker = built(CHECKERS, "ocr")
    asked = [PictureQuestion(word, "text", {"text": word}) for word in ("EXIT", "BANK")]
    right, wrong = checker.check([sign, sign], asked)
    assert right == 1
    assert isinstance(wrong, float)
    assert wrong < 0.85
    assert checker.check([sign], [PictureQuestion("a sign", "existence", {})]) == [None]

"""A user's own list of Albumentations transforms: refused at the door or seeded like everything else."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.errors import ConfigError
from hedge_tasks.perturb import Perturbation, perturb_image
from hedge_tasks.sampling import SamplingPlan

BLUR = {"class": "GaussianBlur", "blur_limit": [3, 7], "p": 1.0}
DROPOUT = {"class": "PixelDropout", "dropout_prob": 0.2, "p": 1.0}


def mine(*transforms: Any, **more: Any) -> Perturbation:
    return Perturbation.from_config({"name": "mine", "transforms": list(transforms), **more})


def scene(size: tuple[int, int] = (64, 48)) -> Image.Image:
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(60, 200, (*size[::-1], 3), dtype=np.uint8))


def test_the_transforms_and_nothing_else_are_applied() -> None:
    flipped = perturb_image(scene(), seed=0, preset=mine({"class": "HorizontalFlip", "p": 1.0}))
    assert flipped.tobytes() == scene().transpose(Image.Transpose.FLIP_LEFT_RIGHT).tobytes()
    untouched = perturb_image(scene(), seed=0, preset=mine({"class": "HorizontalFlip", "p": 0.0}))
    assert untouched.tobytes() == to_rgb8(scene()).tobytes()


def test_they_are_applied_in_their_order() -> None:
    invert, dark = {"class": "InvertImg", "p": 1.0}, {"class": "Solarize", "threshold_range": [0.5, 0.5], "p": 1.0}
    one, other = (perturb_image(scene(), seed=0, preset=mine(*list_)) for list_ in ((invert, dark), (dark, invert)))
    assert one.tobytes() != other.tobytes()


def test_every_draw_has_its_own_picture_in_any_order_and_thread() -> None:
    noise = mine(BLUR, DROPOUT)
    first = [perturb_image(scene(), seed=seed, preset=noise).tobytes() for seed in range(12)]
    assert len(set(first)) == 12
    with ThreadPoolExecutor(4) as pool:
        again = pool.map(lambda seed: perturb_image(scene(), seed=seed, preset=noise).tobytes(), reversed(range(12)))
    assert list(again)[::-1] == first


def test_every_step_has_its_own_stream() -> None:
    black = Image.new("RGB", (64, 64), (9, 9, 9))
    once = np.asarray(perturb_image(black, seed=3, preset=mine(DROPOUT))) == 0
    twice = np.asarray(perturb_image(black, seed=3, preset=mine(DROPOUT, DROPOUT))) == 0
    # With one stream for both, the second would drop the same pixels again.
    assert once.mean() == pytest.approx(0.2, abs=0.03)
    assert twice.mean() == pytest.approx(0.36, abs=0.04)
    assert twice[once].all()  # and a further step changes nothing about those before it


def test_settings_survive_json_and_define_the_pictures() -> None:
    noise = mine(BLUR, DROPOUT)
    assert Perturbation.from_config(json.loads(json.dumps(noise.settings()))) == noise
    assert noise.settings()["transforms"] == [BLUR, DROPOUT]
    assert mine(BLUR).settings() != mine({**BLUR, "blur_limit": [3, 9]}).settings()
    assert mine(BLUR).name == "mine"
    assert Perturbation.from_config({"transforms": [BLUR]}).name == "custom"


def test_a_plan_takes_the_mapping_of_a_yaml() -> None:
    plan = SamplingPlan(perturbation={"name": "mine", "transforms": [BLUR]})
    assert plan.noise == mine(BLUR)
    assert plan.draws("document")[-1].perturbation == "mine"
    assert json.dumps(plan.settings())
    with pytest.raises(ConfigError, match=r"strength 0\.5 means nothing for a list of transforms"):
        SamplingPlan(perturbation={"transforms": [BLUR]}, strength=0.5)


@pytest.mark.parametrize(
    ("transform", "words"),
    [
        ({**BLUR, "class": "GausianBlur"}, "did you mean 'GaussianBlur'"),
        ({**BLUR, "blurlimit": 3}, "argument of GaussianBlur.*'blurlimit', did you mean 'blur_limit'"),
        ({**BLUR, "strict": False}, "argument of GaussianBlur.*'strict'"),
        ({**BLUR, "blur_limit": "wide"}, r"transforms\[0\] \(GaussianBlur\): blur_limit"),
        ({**BLUR, "blur_limit": {"a": 1}}, r"transforms\[0\] \(GaussianBlur\): blur_limit"),
        ({**BLUR, "p": 2}, r"transforms\[0\] \(GaussianBlur\): p: "),
        ({**BLUR, "p": float("nan")}, r"\(GaussianBlur\): p: expected numbers"),
        ({**BLUR, "p": np.ones(2)}, r"\(GaussianBlur\): p: expected numbers"),
        ({"class": "MedianBlur", "blur_limt": 3}, "did you mean 'blur_limit'"),
        ({"class": "MedianBlur", "blur_limit": "wide"}, r"\(MedianBlur\): blur_limit"),
        ({"class": "RandomCrop", "height": 9}, r"\(RandomCrop\): width: Field required"),
        ({"class": "LongestMaxSize"}, r"\(LongestMaxSize\): .*max_size"),
        ({"class": "Normalize"}, r"\(Normalize\): does not return an 8-bit RGB image"),
        ({"class": "ToFloat"}, r"\(ToFloat\): does not return an 8-bit RGB image"),
        ({"class": "FDA"}, r"\(FDA\): needs more than the image \(fda_metadata\)"),
        ({"class": "BBoxSafeRandomCrop"}, r"\(BBoxSafeRandomCrop\): needs more than the image \(bboxes\)"),
        ({"class": "Lambda"}, "unknown Albumentations transform 'Lambda'"),
        ({"class": "Compose"}, "unknown Albumentations transform 'Compose'"),
        ({"blur_limit": 3}, r"transforms\[0\]: expected a mapping with 'class'"),
        ("GaussianBlur", r"transforms\[0\]: expected a mapping with 'class'"),
    ],
)
def test_what_is_wrong_is_named_at_the_door(transform: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mine(transform)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"preset": "hedge", "transforms": [BLUR]}, "preset and transforms exclude each other"),
        ({"rotate": [0, 5], "transforms": [BLUR]}, "rotate and transforms exclude each other"),
        ({"transforms": []}, "take the preset 'none'"),
        ({"transforms": BLUR}, "must be a list of mappings"),
        ({"transforms": "GaussianBlur"}, "must be a list of mappings"),
        ({"transforms": [BLUR], "strength": 2}, "strength 2 means nothing"),
        ({"transforms": [BLUR, {"class": "Blurr"}]}, "did you mean 'Blur'"),
        ({"transforms": [BLUR], "pipeline": 0}, "pipeline 0"),
    ],
)
def test_a_list_stands_alone(config: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Perturbation.from_config(config)


def test_the_second_transform_is_counted_as_such() -> None:
    with pytest.raises(ConfigError, match=r"transforms\[1\] \(Blur\): blur_limit"):
        mine(BLUR, {"class": "Blur", "blur_limit": "x"})


def test_a_picture_that_does_not_fit_is_named_at_its_draw() -> None:
    crop = mine({"class": "RandomCrop", "height": 100, "width": 100, "p": 1.0})
    assert perturb_image(scene((200, 150)), seed=0, preset=crop).size == (100, 100)
    with pytest.raises(ConfigError, match="RandomCrop failed on an image of 64 x 48"):
        perturb_image(scene(), seed=0, preset=crop)


def test_warnings_of_the_library_are_no_reason_to_go_on_with_defaults(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(ConfigError):
        mine({**BLUR, "sigma": 3})
    assert not [w for w in recwarn if "not valid for transform" in str(w.message)]


def test_lists_in_arguments_work_where_the_library_writes_tuples() -> None:
    affine = {"class": "Affine", "translate_percent": {"x": [-0.1, 0.1], "y": [0, 0]}, "rotate": [5, 5], "p": 1.0}
    pad = {"class": "RandomResizedCrop", "size": [20, 30], "scale": [0.5, 0.9], "p": 1.0}
    assert perturb_image(scene(), seed=1, preset=mine(affine, pad)).size == (30, 20)


def test_replacing_keeps_the_transforms() -> None:
    assert replace(mine(BLUR), name="other").transforms == mine(BLUR).transforms

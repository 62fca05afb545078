"""The perturbed image of a draw: what each step does, measured on pictures, and what it depends on."""

from __future__ import annotations

import ast
import hashlib
import io
import random
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from once import python
from PIL import Image

from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.perturb import PRESETS, Perturbation, perturb_image
from hedge_tasks.perturb.noise import gauss_noise, shot_noise

ROOT = Path(__file__).resolve().parents[1]
STILL: dict[str, Any] = {"preset": "none", "p_affine": 1.0, "p_color": 1.0}


def only(**ranges: Any) -> Perturbation:
    """A perturbation with every range at zero but these, and every step always applied."""
    return Perturbation.from_config({**STILL, **ranges})


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image).astype(np.float64)


def digest(image: Image.Image) -> str:
    return hashlib.sha256(f"{image.mode}{image.size}".encode() + image.tobytes()).hexdigest()


def grey(value: int = 128, size: tuple[int, int] = (256, 256)) -> Image.Image:
    return Image.new("RGB", size, (value, value, value))


def picture(size: tuple[int, int] = (64, 48), seed: int = 0) -> Image.Image:
    """Smooth colours with some structure, away from black and white so that little is clipped."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(60, 200, (5, 6, 3), dtype=np.uint8))
    return small.resize(size, Image.Resampling.BICUBIC)


def bar(size: int = 201) -> Image.Image:
    canvas = np.zeros((size, size, 3), np.uint8)
    canvas[size // 2 - 3 : size // 2 + 4, 40 : size - 40] = 255
    return Image.fromarray(canvas)


def tilt(image: Image.Image) -> float:
    """Angle in degrees of the bright bar."""
    y, x = np.nonzero(pixels(image)[..., 0] > 127)
    return float(np.degrees(np.arctan(np.polyfit(x, y, 1)[0])))


# --- what each step does ----------------------------------------------------------------------------------------------


def test_rotation_stays_within_the_range_and_goes_to_both_sides() -> None:
    turn = only(rotate=[2, 10], fit_output=False)
    angles = np.array([tilt(perturb_image(bar(), seed=seed, preset=turn)) for seed in range(120)])
    assert np.abs(angles).max() <= 10.2
    assert np.abs(angles).min() >= 1.8
    assert np.abs(angles).max() > 9
    assert 40 < (angles > 0).sum() < 80


def test_gaussian_noise_has_the_papers_standard_deviation_in_every_channel() -> None:
    noise = pixels(perturb_image(grey(), seed=0, preset=only(gauss_noise=0.07))) - 128
    # Albumentations truncates the noise towards zero on 8-bit images, which costs about 2 % of the spread.
    assert noise.std(axis=(0, 1)) == pytest.approx(np.full(3, 0.07 * 255), rel=0.04)
    assert noise.mean() == pytest.approx(0, abs=0.3)
    assert abs(np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1]) < 0.02


@pytest.mark.parametrize("amount", [1e-4, 0.014, 1 / 70, 0.07, 1.0])
@pytest.mark.parametrize("shape", [(64, 48, 3), (1, 1, 3), (2, 9000, 3)])
def test_fast_noise_is_the_librarys_to_the_last_bit(amount: float, shape: tuple[int, int, int]) -> None:
    import albumentations

    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    before = image.copy()
    for p, seed in ((1.0, 0), (1.0, 2**63), (0.5, 7), (0.5, 8)):
        shot = albumentations.ShotNoise(scale_range=(amount, amount), p=p)
        gauss = albumentations.GaussNoise(std_range=(amount, amount), p=p)
        shot.set_random_seed(seed)
        gauss.set_random_seed(seed)
        assert np.array_equal(shot_noise(image, scale=amount, p=p, seed=seed), shot(image=image)["image"])
        assert np.array_equal(gauss_noise(image, sigma=amount, p=p, seed=seed), gauss(image=image)["image"])
    assert np.array_equal(image, before)


def test_hedge_applies_affine_and_jitter_each_with_half_probability_and_independently() -> None:
    scene, quiet = picture(), replace(PRESETS["hedge"], gauss_noise=0.0, shot_noise=0.0)
    moved, coloured = [], []
    for seed in range(160):
        moved.append(perturb_image(scene, seed=seed, preset=replace(quiet, p_color=0.0)).tobytes() != scene.tobytes())
        coloured.append(
            perturb_image(scene, seed=seed, preset=replace(quiet, p_affine=0.0)).tobytes() != scene.tobytes()
        )
    assert 0.38 < np.mean(moved) < 0.62
    assert 0.38 < np.mean(coloured) < 0.62
    # One shared stream would make this exactly 1.
    assert 0.38 < np.mean(np.array(moved) == np.array(coloured)) < 0.62


# --- strength and presets ---------------------------------------------------------------------------------------------


def test_strength_scales_every_range() -> None:
    scene = grey()
    half = perturb_image(scene, seed=0, preset=replace(only(gauss_noise=0.07), strength=0.5))
    assert pixels(half).std() == pytest.approx(0.035 * 255, rel=0.06)
    turn = replace(only(rotate=[2, 10], fit_output=False), strength=2.0)
    angles = [abs(tilt(perturb_image(bar(), seed=seed, preset=turn))) for seed in range(40)]
    assert min(angles) >= 3.8
    assert 17 < max(angles) <= 20.2


@pytest.mark.parametrize("preset", ["none", replace(PRESETS["hedge"], strength=0.0), only()])
def test_no_perturbation_is_exactly_the_clean_image(preset: str | Perturbation) -> None:
    scene = picture()
    assert perturb_image(scene, seed=9, preset=preset).tobytes() == to_rgb8(scene).tobytes()


# --- determinism ------------------------------------------------------------------------------------------------------

CHILD = """
import sys; sys.path[:0] = ["tests"]
from test_perturb_image import digest, np, perturb_image, picture
np.random.seed(99)
print({seed: digest(perturb_image(picture(), seed=seed)) for seed in (3, 0, 2, 1, 2**70)})
"""


@pytest.mark.slow
def test_same_draw_same_image_in_another_process_and_another_order() -> None:
    run = subprocess.run([python(), "-c", CHILD], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    here = {seed: digest(perturb_image(picture(), seed=seed)) for seed in (0, 1, 2, 3, 2**70)}
    assert ast.literal_eval(run.stdout) == here
    assert len(set(here.values())) == len(here)


@pytest.mark.slow
def test_same_draw_same_image_in_threads_that_share_a_lazily_loaded_file() -> None:
    buffer = io.BytesIO()
    picture((200, 150)).save(buffer, "PNG")
    expected = {seed: digest(perturb_image(picture((200, 150)), seed=seed)) for seed in range(16)}
    buffer.seek(0)
    lazy = Image.open(buffer)
    start = threading.Barrier(8)

    def draw(worker: int) -> dict[int, str]:
        start.wait(timeout=30)
        return {seed: digest(perturb_image(lazy, seed=seed)) for seed in range(worker, 16, 8)}

    with ThreadPoolExecutor(8) as pool:
        found: dict[int, str] = {}
        for part in pool.map(draw, range(8)):
            found |= part
    assert found == expected


def test_global_random_states_are_neither_used_nor_changed() -> None:
    perturb_image(picture(), seed=0)
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
    first = digest(perturb_image(picture(), seed=4))
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index]
    random.seed(2)
    np.random.seed(2)
    assert digest(perturb_image(picture(), seed=4)) == first


# --- formats ----------------------------------------------------------------------------------------------------------


def every_mode() -> dict[str, Image.Image]:
    scene = picture((40, 30))
    deep = np.linspace(100, 4095, 1200).reshape(30, 40)
    see_through = scene.convert("RGBA")
    see_through.putalpha(Image.fromarray(np.tile(np.linspace(0, 255, 40).astype(np.uint8), (30, 1))))
    modes = {mode: scene.convert(mode) for mode in ("1", "L", "LA", "P", "RGB", "RGBX", "CMYK", "YCbCr", "HSV", "LAB")}
    palette = scene.quantize(16)
    palette.info["transparency"] = 0
    modes |= {
        "RGBA": see_through,
        "RGBa": see_through.convert("RGBa"),
        "P+transparency": palette,
        "PA": palette.convert("PA"),
    }
    modes |= {"I;16": Image.fromarray(deep.astype(np.uint16)), "I": Image.fromarray(deep.astype(np.int32))}
    modes |= {"F": Image.fromarray(deep.astype(np.float32)), "I;16B": Image.fromarray(deep.astype(">u2"))}
    return modes


@pytest.mark.parametrize("mode", sorted(every_mode()))
def test_every_mode_becomes_rgb_and_can_be_perturbed(mode: str) -> None:
    image = every_mode()[mode]
    clean = to_rgb8(image)
    assert (clean.mode, clean.size) == ("RGB", image.size)
    assert to_rgb8(clean).tobytes() == clean.tobytes()
    assert perturb_image(image, seed=0).mode == "RGB"
    assert perturb_image(image, seed=0).tobytes() == perturb_image(clean, seed=0).tobytes()


@pytest.mark.parametrize("mode", ["I;16", "I;16B", "I", "F"])
def test_deep_images_are_stretched_from_their_own_minimum_to_maximum(mode: str) -> None:
    clean = pixels(to_rgb8(every_mode()[mode]))[..., 0]
    assert (clean.min(), clean.max()) == (0, 255)
    assert np.all(np.diff(clean.ravel()) >= 0)
    assert clean.mean() == pytest.approx(127.5, abs=0.5)


def test_transparency_is_shown_on_white() -> None:
    clear = Image.new("RGBA", (2, 2), (10, 20, 30, 0))
    assert to_rgb8(clear).getpixel((0, 0)) == (255, 255, 255)
    assert to_rgb8(Image.new("RGBA", (2, 2), (10, 20, 30, 255))).getpixel((0, 0)) == (10, 20, 30)
    assert to_rgb8(Image.new("LA", (2, 2), (0, 128))).getpixel((0, 0)) == (127, 127, 127)
    keyed = Image.new("RGB", (2, 2), (1, 2, 3))
    keyed.info["transparency"] = (1, 2, 3)
    assert to_rgb8(keyed).getpixel((0, 0)) == (255, 255, 255)


def test_exif_orientation_is_applied_once() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    picture((40, 20)).save(buffer, "PNG", exif=exif)
    buffer.seek(0)
    turned = to_rgb8(Image.open(buffer))
    assert turned.size == (20, 40)
    assert turned.tobytes() == picture((40, 20)).transpose(Image.Transpose.ROTATE_270).tobytes()
    assert to_rgb8(turned).size == (20, 40)
    assert not turned.info
    assert not turned.getexif()


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (1, 9000), (9000, 1), (300, 16)])
def test_tiny_and_very_long_images_work_and_do_not_explode(size: tuple[int, int]) -> None:
    for seed in range(4):
        for preset in ("hedge", "hedge_paper"):
            result = perturb_image(grey(200, size), seed=seed, preset=preset)
            assert result.width * result.height <= 40 * size[0] * size[1]


def test_wrong_input_is_refused_with_a_reason() -> None:
    with pytest.raises(TypeError, match=r"PIL\.Image\.fromarray"):
        perturb_image(np.zeros((4, 4, 3), np.uint8), seed=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no pixels"):
        perturb_image(Image.new("RGB", (0, 5)), seed=0)
    for seed in (-1, 1.0, "1", None, True):
        with pytest.raises(ValueError, match="seed must be a non-negative integer"):
            perturb_image(picture(), seed=seed)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="did you mean 'hedge'"):
        perturb_image(picture(), seed=0, preset="hedg")
    assert digest(perturb_image(picture(), seed=np.int64(7))) == digest(perturb_image(picture(), seed=7))


def test_border_is_black_and_noise_covers_it() -> None:
    frame = perturb_image(grey(255, (100, 100)), seed=0, preset=only(rotate=[10, 10]))
    assert pixels(frame)[0, 0].max() == 0 or pixels(frame)[0, -1].max() == 0
    noisy = perturb_image(grey(0, (100, 100)), seed=0, preset=only(gauss_noise=0.07))
    assert pixels(noisy).std() > 5

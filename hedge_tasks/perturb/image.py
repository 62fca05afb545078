"""Seeded image perturbation: the noisy images of HEDGE (paper section 4.4), one per draw.

The usual way in::

    from hedge_tasks.data.pictures import to_rgb8
    from hedge_tasks.perturb import perturb_image

    clean = to_rgb8(image)                    # what the model sees for a clean answer
    noisy = perturb_image(image, seed=17)     # what it sees for a noisy one

Both go through `to_rgb8`. Otherwise the difference between clean and noisy answers would partly measure how a
file format was decoded (palette, alpha, 16 bit, EXIF rotation) instead of what the perturbation did.
"""

from __future__ import annotations

import math
import numbers
import os
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from PIL import Image

from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.errors import ConfigError, check_names, lookup
from hedge_tasks.io import options
from hedge_tasks.perturb.base import Wording, bounded_number, number_range
from hedge_tasks.perturb.noise import SMALLEST_SCALE, gauss_noise, shot_noise

__all__ = ["PRESETS", "Perturbation", "perturb_image"]

# Written into every settings() and thus into whatever is keyed by it: raise it when the same settings and seed would no
# longer give the same picture, so that stored answers of the old pipeline are not taken for answers of the new one.
PIPELINE = 1

# A strip turned by 10 degrees needs a frame that grows with its aspect ratio (a 1 x 20000 image would take 70 million
# pixels). Beyond this ratio, far outside any photograph or scan, the frame keeps its size.
_MAX_ASPECT_TO_FIT = 16

# Where a setting stops meaning anything (times strength): a relative change of 1 reaches black, a scale of 0.9 leaves a
# tenth of the width, hue wraps around at 0.5.
_LIMITS = {
    "translate": 1.0,
    "scale": 0.9,
    "brightness": 1.0,
    "contrast": 1.0,
    "saturation": 1.0,
    "hue": 0.5,
    "gauss_noise": 1.0,
    "shot_noise": 1.0,
    "p_affine": 1.0,
    "p_color": 1.0,
    "p_gauss_noise": 1.0,
    "p_shot_noise": 1.0,
}


@dataclass(frozen=True, kw_only=True)
class Perturbation:
    """Perturbation of an image, as ranges; the seed of a draw picks the values.

    The defaults are the preset `hedge`. The paper gives the ranges and is silent on the rest; there we do what the
    reference implementation (hedge-bench 0.1.2, `distort_image`) does. What that means, plainly:

    - **Probability.** Affine and colour jitter are each applied with probability 0.5 (the reference leaves
      Albumentations' default), the two noises always. A quarter of the noisy images therefore differ from the clean
      one by noise only.
    - **Rotation.** The angle is 2° to 10° to either side. The paper says ±10°; the reference leaves out angles below
      2°.
    - **Translation.** The reference enlarges the frame so that no content leaves it (`fit_output`), and that undoes
      the translation completely: the paper's ±10 % has no effect on the reference's pictures, and none on ours by
      default. Set `fit_output=False`, or take the preset `hedge_paper`, to have it.
    - **Scale.** Drawn separately for width and height, so the aspect ratio changes. With `fit_output` the frame
      scales along with the content, and the output is larger or smaller than the input (a square of 512 becomes about
      480 to 650 pixels wide).
    - **Noise.** Drawn for each channel, so a grey scan gets coloured noise. The shot noise is drawn in linear light
      (Albumentations applies a gamma of 2.2), so its spread is not proportional to the square root of the grey value.

    One difference to the reference is deliberate: it draws from global, unseeded state.

    Attributes:
        name: Goes into the provenance; changes nothing.
        rotate: Smallest and largest angle in degrees; the side is drawn too.
        translate, scale: Largest shift as a share of width and height, and largest relative change of width and of
            height.
        brightness, contrast, saturation: Largest relative change.
        hue: Largest shift, where 1 is the whole colour circle.
        gauss_noise: Standard deviation of the Gaussian noise, where 1 is the full range (0.07 is 17.85 grey levels).
        shot_noise: Scale of the Poisson noise, see `albumentations.ShotNoise`.
        p_affine, p_color, p_gauss_noise, p_shot_noise: Probability of each step.
        fit_output: Enlarge the frame so that nothing is cut off (undoes the translation, changes the size of the
            output).
        strength: Multiplies every range (not the probabilities): 0 leaves the image alone, 1 is the preset as written.
    """

    name: str = "hedge"
    rotate: tuple[float, float] = (2.0, 10.0)
    translate: float = 0.1
    scale: float = 0.1
    brightness: float = 0.2
    contrast: float = 0.2
    saturation: float = 0.05
    hue: float = 0.02
    gauss_noise: float = 0.07
    shot_noise: float = 0.014
    p_affine: float = 0.5
    p_color: float = 0.5
    p_gauss_noise: float = 1.0
    p_shot_noise: float = 1.0
    fit_output: bool = True
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigError(f"perturbation: name must be a non-empty string, got {self.name!r}")
        options.flag("perturbation: fit_output", self.fit_output)
        object.__setattr__(self, "rotate", number_range("rotate", self.rotate, 180.0))
        object.__setattr__(self, "strength", bounded_number("strength", self.strength, math.inf))
        for key, limit in _LIMITS.items():
            value = bounded_number(key, getattr(self, key), limit)
            object.__setattr__(self, key, value)
            if not key.startswith("p_") and value * self.strength > limit:
                raise ConfigError(
                    f"perturbation: {key} x strength must be at most {limit:g}, got {value:g} x {self.strength:g}"
                )
        if self.rotate[1] * self.strength > 180:
            raise ConfigError(
                "perturbation: rotate x strength must be at most 180 degrees, "
                f"got {self.rotate[1]:g} x {self.strength:g}"
            )

    @property
    def is_identity(self) -> bool:
        """True when no seed can change the image (beyond the conversion of `to_rgb8`)."""
        return not (self._has_affine or self._has_color or self._has_gauss_noise or self._has_shot_noise)

    @property
    def _has_affine(self) -> bool:
        return self.strength > 0 and self.p_affine > 0 and (self.rotate[1] > 0 or self.translate > 0 or self.scale > 0)

    @property
    def _has_color(self) -> bool:
        reach = max(self.brightness, self.contrast, self.saturation, self.hue)
        return self.strength > 0 and self.p_color > 0 and reach > 0

    @property
    def _has_gauss_noise(self) -> bool:
        return self.strength > 0 and self.p_gauss_noise > 0 and self.gauss_noise > 0

    @property
    def _has_shot_noise(self) -> bool:
        return self.p_shot_noise > 0 and self.shot_noise * self.strength >= SMALLEST_SCALE

    def settings(self) -> dict[str, Any]:
        """Everything that defines the pictures, ready for JSON; `from_config(settings())` gives the same object."""
        out: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        out["rotate"] = list(self.rotate)
        out["pipeline"] = PIPELINE
        return out

    @classmethod
    def presets(cls) -> Iterable[str]:
        """Names that `from_config` knows."""
        return PRESETS

    def scaled(self, strength: float) -> Perturbation:
        """The same perturbation with every range times `strength`."""
        return replace(self, strength=self.strength * strength)

    def check(self, wording: Wording) -> None:
        """Every document can be perturbed so."""

    def perturb_images(self, images: Sequence[Image.Image], wording: Wording, *, seed: int) -> list[Image.Image]:
        """Perturb each image; the n-th one has a seed of its own, and the only one of a draw has the draw's."""
        return [perturb_image(image, seed=seed + i, preset=self) for i, image in enumerate(images)]

    def perturb_wording(self, wording: Wording, *, seed: int) -> Wording:
        """Return the wording as it is."""
        return wording

    @classmethod
    def from_config(cls, config: str | Mapping[str, Any] | Perturbation) -> Perturbation:
        """Build from the name of a preset, or from a mapping of settings over a preset.

        >>> Perturbation.from_config({"preset": "hedge", "strength": 0.5}).strength
        0.5

        A mapping without `preset` starts from `hedge`. When it changes a range and brings no `name`, the result
        is named `custom`: only a preset at some strength may carry the preset's name.

        """
        if isinstance(config, Perturbation):
            return config
        if isinstance(config, str):
            return lookup("perturbation preset", config, PRESETS)
        if not isinstance(config, Mapping):
            raise TypeError(f"perturbation must be the name of a preset or a mapping, got {type(config).__name__}")
        values = dict(config)
        base = cls.from_config(values.pop("preset", "hedge"))
        pipeline = values.pop("pipeline", PIPELINE)
        if pipeline != PIPELINE:
            raise ConfigError(f"perturbation settings were made by pipeline {pipeline!r}; this version has {PIPELINE}")
        names = [field.name for field in fields(cls)]
        check_names("perturbation setting", values, [*names, "preset"])
        if "name" not in values and not set(values) <= {"strength"}:
            values["name"] = "custom"
        return replace(base, **values)


# What HEDGE §4.4 prints, every step always applied and the frame kept, so that the shift shows.
_PAPER: dict[str, Any] = {"p_affine": 1.0, "p_color": 1.0, "fit_output": False, "rotate": (0.0, 10.0)}

PRESETS: dict[str, Perturbation] = {
    # What the published HEDGE numbers were made with.
    "hedge": Perturbation(),
    # The letter of section 4.4.
    "hedge_paper": Perturbation(name="hedge_paper", **_PAPER),
    # Half and double the ranges of hedge_paper.
    "mild": Perturbation(
        name="mild",
        **{**_PAPER, "rotate": (0.0, 5.0)},
        translate=0.05,
        scale=0.05,
        brightness=0.1,
        contrast=0.1,
        saturation=0.025,
        hue=0.01,
        gauss_noise=0.035,
        shot_noise=0.007,
    ),
    "strong": Perturbation(
        name="strong",
        **{**_PAPER, "rotate": (0.0, 20.0)},
        translate=0.2,
        scale=0.2,
        brightness=0.4,
        contrast=0.4,
        saturation=0.1,
        hue=0.04,
        gauss_noise=0.14,
        shot_noise=0.028,
    ),
    # The numbers of VASE's published code, with our steps. The HEDGE paper only says that it matches VASE's levels and
    # prints none of them; these are from main_hall_det.py of github.com/Merrical/VASE (commit 1e821a5). Their pictures
    # are not reproduced: they first resize every image to a square of 512, then crop 90 to 100 % of its area (sides
    # grow by 0 to 11 %; here they change by 5 % to either side), rotate and shift in two separate resamplings, and draw
    # the Poisson noise on grey values, not in linear light.
    "vase": Perturbation(name="vase", **_PAPER, scale=0.05, saturation=0.0, hue=0.0, shot_noise=1 / 70),
    # Only the conversion to 8-bit RGB: a control that tells the effect of the perturbation from that of resampling.
    "none": Perturbation(
        name="none",
        rotate=(0.0, 0.0),
        translate=0.0,
        scale=0.0,
        brightness=0.0,
        contrast=0.0,
        saturation=0.0,
        hue=0.0,
        gauss_noise=0.0,
        shot_noise=0.0,
    ),
}


def perturb_image(image: Image.Image, *, seed: int, preset: str | Perturbation = "hedge") -> Image.Image:
    """Return the perturbed image of one draw, as 8-bit RGB.

    The result depends on the pixels, the settings and the seed, and on nothing else: not on the order of calls, the
    thread, the process, or the state of any global random generator, and it leaves those alone. Across machines it
    holds for equal versions of numpy, OpenCV and Albumentations (numpy does not promise the same Poisson draws for all
    time, nor OpenCV the last bit of an interpolation on every processor).

    Each step has a random stream of its own, derived from the seed. `albumentations.Compose(seed=...)` would give all
    steps the *same* stream: affine and colour jitter, each applied with probability 0.5, would then always be applied
    together or not at all (300 of 300 seeds with Albumentations 2.0.8).

    Args:
        image: Any PIL image; it is not changed. See `to_rgb8` for how it is read.
        seed: Non-negative integer, one per draw.
        preset: Name of a preset (see `PRESETS`) or a `Perturbation`.

    Raises:
        ConfigError: The preset is unknown.
    """
    settings = Perturbation.from_config(preset)
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0:
        raise ValueError(f"seed must be a non-negative integer, got {seed!r}")
    if settings.is_identity:
        return to_rgb8(image)
    rgb = to_rgb8(image)
    pixels = np.array(rgb)
    for step in _steps(settings, int(seed), rgb.size):
        pixels = step(pixels)
    return Image.fromarray(pixels)


@dataclass(frozen=True)
class _Streams:
    """Independent seeds, one for each random decision of a draw."""

    side: int
    affine: int
    color: int
    gauss_noise: int
    shot_noise: int


def _streams(seed: int, number: int) -> list[int]:
    """Independent seeds; the first ones do not depend on how many there are."""
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(number, np.uint64)]


_Step = Callable[[np.ndarray], np.ndarray]


def _steps(settings: Perturbation, seed: int, size: tuple[int, int]) -> list[_Step]:
    """The steps of one draw, in the reference's order, each with its own random stream."""
    streams = _Streams(*_streams(seed, len(fields(_Streams))))
    side = random.Random(streams.side).choice((-1, 1))
    fit_output = settings.fit_output and max(size) <= _MAX_ASPECT_TO_FIT * min(size)
    built = _transforms(threading.get_ident(), settings, side, fit_output)
    steps = [_seeded(transform, getattr(streams, name)) for name, transform in built.items()]
    if settings._has_gauss_noise:
        sigma, p = settings.gauss_noise * settings.strength, settings.p_gauss_noise
        steps.append(partial(gauss_noise, sigma=sigma, p=p, seed=streams.gauss_noise))
    if settings._has_shot_noise:
        grain, p = settings.shot_noise * settings.strength, settings.p_shot_noise
        steps.append(partial(shot_noise, scale=grain, p=p, seed=streams.shot_noise))
    return steps


@lru_cache(maxsize=64)
def _transforms(thread: int, settings: Perturbation, side: int, fit_output: bool) -> dict[str, Any]:
    """Albumentations' transforms by the name of their random stream, in the reference's order.

    Kept, because building them validates every argument anew; and for one thread each, because a transform holds its
    random state.
    """
    strength = settings.strength
    built: dict[str, Any] = {}
    if not (settings._has_affine or settings._has_color):
        return built  # the library takes seconds to load
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it asks the network for a newer version
    import albumentations as library

    if settings._has_affine:
        low, high = sorted(side * angle * strength for angle in settings.rotate)
        shift, zoom = settings.translate * strength, settings.scale * strength
        built["affine"] = library.Affine(
            rotate=(low, high),
            translate_percent={"x": (-shift, shift), "y": (-shift, shift)},
            scale={"x": (1 - zoom, 1 + zoom), "y": (1 - zoom, 1 + zoom)},
            fit_output=fit_output,
            border_mode=0,  # cv2.BORDER_CONSTANT, black
            fill=0,
            p=settings.p_affine,
        )
    if settings._has_color:
        built["color"] = library.ColorJitter(
            brightness=_range_around_one(settings.brightness * strength),
            contrast=_range_around_one(settings.contrast * strength),
            saturation=_range_around_one(settings.saturation * strength),
            hue=(-settings.hue * strength, settings.hue * strength),
            p=settings.p_color,
        )
    return built


def _seeded(transform: Any, stream: int) -> _Step:
    transform.set_random_seed(stream)
    return lambda pixels: transform(image=pixels)["image"]


def _range_around_one(reach: float) -> tuple[float, float]:
    return max(0.0, 1 - reach), 1 + reach

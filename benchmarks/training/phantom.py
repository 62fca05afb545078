"""Phantom scans: procedural drawings that look a little like medical images, with questions and known answers.

A `Scan` says what is in a picture and how hard it is to see; `render` draws it. Everything an evaluation needs follows
from the `Scan` alone: which questions make sense (`true_values`), how an answer may be worded (`ANSWERS`) and what a
text means (`meaning_of`).

Coordinates: the image spans [-1, 1] in both directions, x to the right, y downwards. Grey values are in [0, 1].
"left" and "right" are those of the image, not of a patient.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from PIL import Image

IMAGE_SIZE = 64
"""Width and height of a scan in pixels."""

MODALITIES = ("CT", "MRI", "X-ray")
QUADRANTS = ("upper left", "upper right", "lower left", "lower right")
SHAPES = ("round", "irregular", "ring-shaped")
SIZES = ("small", "large")
COUNTS = ("none", "one", "two", "three")
QUESTION_TYPES = ("presence", "location", "count", "shape", "size", "modality")

QUESTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "presence": ("Is there a lesion in the image?", "Does the scan show a lesion?"),
        "location": ("Where is the lesion?", "In which quadrant is the lesion?"),
        "count": ("How many lesions are there?", "How many lesions can be seen?"),
        "shape": ("What is the shape of the lesion?", "What shape is the lesion?"),
        "size": ("How large is the lesion?", "Is the lesion small or large?"),
        "modality": ("Which modality is this?", "What type of scan is this?"),
    }
)
"""Question type -> wordings."""


def _location_answers(value: str) -> tuple[str, ...]:
    vertical, horizontal = value.split()
    return (
        value,
        f"the lesion is in the {value} quadrant",
        f"{value} quadrant",
        f"it is in the {value}",
        f"{horizontal} {vertical}",
    )


def _count_answers(value: str) -> tuple[str, ...]:
    if value == "none":
        return ("none", "no lesions", "there are no lesions")
    if value == "one":
        return ("one", "one lesion", "there is one lesion")
    return (value, f"{value} lesions", f"there are {value} lesions")


def _shape_answers(value: str) -> tuple[str, ...]:
    article = "an" if value[0] in "aeiou" else "a"
    return (value, f"it is {value}", f"{article} {value} lesion", f"the lesion looks {value}")


def _size_answers(value: str) -> tuple[str, ...]:
    return (value, f"it is {value}", f"a {value} lesion", f"the lesion is {value}")


def _modality_answers(value: str) -> tuple[str, ...]:
    article = "a" if value == "CT" else "an"
    return (value, f"{value} scan", f"this is {article} {value}")


ANSWERS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "presence": {
            "yes": ("yes", "yes, there is a lesion", "a lesion is present", "a lesion is visible"),
            "no": ("no", "no, there is no lesion", "no lesion is visible", "the scan looks normal"),
        },
        "location": {value: _location_answers(value) for value in QUADRANTS},
        "count": {value: _count_answers(value) for value in COUNTS},
        "shape": {value: _shape_answers(value) for value in SHAPES},
        "size": {value: _size_answers(value) for value in SIZES},
        "modality": {value: _modality_answers(value) for value in MODALITIES},
    }
)
"""Question type -> value -> wordings, the most usual one first. No wording belongs to two values."""

_WORDING_WEIGHTS: Mapping[int, tuple[float, ...]] = MappingProxyType(
    {3: (0.5, 0.3, 0.2), 4: (0.4, 0.25, 0.2, 0.15), 5: (0.35, 0.2, 0.15, 0.15, 0.15)}
)


@dataclass(frozen=True)
class Meaning:
    """The meaning of an answer: a value of one question type, such as `Meaning("count", "two")`."""

    question_type: str
    value: str


_MEANINGS: Mapping[str, Meaning] = MappingProxyType(
    {
        wording: Meaning(question_type, value)
        for question_type, values in ANSWERS.items()
        for value, wordings in values.items()
        for wording in wordings
    }
)


def meaning_of(text: str) -> Meaning | None:
    """Meaning of an answer text, None when it is none of the known wordings. Case and a final period do not matter."""
    text = " ".join(text.split()).removesuffix(".")
    return _MEANINGS.get(text) or _MEANINGS_FOLDED.get(text.casefold())


_MEANINGS_FOLDED: Mapping[str, Meaning] = MappingProxyType({text.casefold(): m for text, m in _MEANINGS.items()})


def all_answers() -> Iterator[tuple[str, Meaning]]:
    """Every wording of every answer with its meaning."""
    yield from _MEANINGS.items()


def word_answer(rng: np.random.Generator, meaning: Meaning) -> str:
    """Return one of the wordings of `meaning`, at random; the usual ones are more likely."""
    wordings = ANSWERS[meaning.question_type][meaning.value]
    return wordings[rng.choice(len(wordings), p=_WORDING_WEIGHTS[len(wordings)])]


@dataclass(frozen=True)
class Scan:
    """Content of one picture.

    Attributes:
        modality: One of `MODALITIES`.
        other_modality: A second look that is mixed in.
        blend: Share of `other_modality`, 0 (pure) to 0.5 (cannot be told).
        quadrants: One lesion in each of these quadrants; empty for a normal scan.
        shape: Shape of all lesions.
        size: Size of all lesions.
        contrast: Grey-value difference between lesion and surroundings, before clipping.
        brighter: Whether lesions are brighter than their surroundings.
    """

    modality: str
    other_modality: str
    blend: float
    quadrants: tuple[str, ...]
    shape: str
    size: str
    contrast: float
    brighter: bool

    @property
    def n_lesions(self) -> int:
        return len(self.quadrants)


@dataclass(frozen=True)
class Difficulty:
    """Ranges (low, high) from which the two difficulty settings of a scan are drawn.

    Contrast is uniform on a log scale, blend uniform. A lesion of contrast 0.02 is hidden in the grain (about 0.03),
    one of contrast 0.1 is hard to miss.
    """

    contrast: tuple[float, float] = (0.02, 0.42)
    blend: tuple[float, float] = (0.0, 0.5)


DEFAULT_DIFFICULTY = Difficulty()
_COUNT_PROBABILITIES = (0.30, 0.40, 0.17, 0.13)


def scan_rng(seed: int, index: int) -> np.random.Generator:
    """Generator for picture `index` of the set `seed`: streams of different (seed, index) are independent."""
    return np.random.default_rng([seed, index])


def draw_scan(
    rng: np.random.Generator, difficulty: Difficulty = DEFAULT_DIFFICULTY, n_lesions: int | None = None
) -> Scan:
    """Return a random scan; `n_lesions` fixes the number of lesions (0 to 3)."""
    count = int(rng.choice(len(COUNTS), p=_COUNT_PROBABILITIES))
    modality, other_modality = rng.choice(MODALITIES, size=2, replace=False)
    quadrants = rng.permutation(QUADRANTS)[: count if n_lesions is None else n_lesions]
    return Scan(
        modality=str(modality),
        other_modality=str(other_modality),
        blend=float(rng.uniform(*difficulty.blend)),
        quadrants=tuple(map(str, quadrants)),
        shape=str(rng.choice(SHAPES)),
        size=str(rng.choice(SIZES)),
        contrast=float(np.exp(rng.uniform(*np.log(difficulty.contrast)))),
        brighter=bool(rng.integers(2)),
    )


def mirrored(scan: Scan) -> Scan:
    """Return the scan whose picture is the left-right mirror image."""
    swap = {"left": "right", "right": "left"}
    quadrants = tuple(f"{v} {swap[h]}" for v, h in map(str.split, scan.quadrants))
    return replace(scan, quadrants=quadrants)


def true_values(scan: Scan) -> dict[str, str]:
    """Question type -> correct value, for those questions that have one answer for this scan."""
    values = {
        "presence": "yes" if scan.n_lesions else "no",
        "count": COUNTS[scan.n_lesions],
        "modality": scan.modality,
    }
    if scan.n_lesions:
        values |= {"shape": scan.shape, "size": scan.size}
    if scan.n_lesions == 1:
        values["location"] = scan.quadrants[0]
    return values


# ---------------------------------------------------------------------------------------------------------- drawing

_AXIS = ((np.arange(IMAGE_SIZE) + 0.5) / IMAGE_SIZE * 2 - 1).astype(np.float32)
_X, _Y = np.meshgrid(_AXIS, _AXIS)

_EDGE_SHARPNESS = 50.0
_RADIUS = MappingProxyType({"small": (0.10, 0.18), "large": (0.17, 0.28)})  # overlapping: some cannot be told
_LESION_OFFSET = (0.16, 0.48)  # distance of a lesion's centre from the body's axes
_BLEND_JITTER = 0.35  # log-scale spread of the two looks' weights: near blend 0.5 the picture is ambiguous


@dataclass(frozen=True)
class Body:
    """Outline of the body: an ellipse, shifted and tilted a little.

    `x`, `y` are centred image coordinates; `u`, `v` are tilted and scaled so that the outline is at `radius` 1;
    `inside` is 1 inside, 0 outside, smooth between. All arrays are [IMAGE_SIZE, IMAGE_SIZE].
    """

    x: np.ndarray
    y: np.ndarray
    u: np.ndarray
    v: np.ndarray
    radius: np.ndarray
    inside: np.ndarray


def render(scan: Scan, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw a scan.

    Returns:
        Picture as uint8 grey values, and lesion mask as float32 in [0, 1]; both [IMAGE_SIZE, IMAGE_SIZE].
    """
    body = _draw_body(rng)
    picture = _draw_background(scan, body, rng)
    lesions = np.zeros_like(picture)
    for quadrant in scan.quadrants:
        lesions = np.maximum(lesions, _draw_lesion(scan, quadrant, body, rng))
    picture = picture + (scan.contrast if scan.brighter else -scan.contrast) * lesions
    return np.round(np.clip(picture, 0, 1) * 255).astype(np.uint8), lesions.astype(np.float32)


def to_pil(picture: np.ndarray) -> Image.Image:
    """uint8 picture [height, width] -> greyscale PIL image."""
    return Image.fromarray(picture)


def _draw_body(rng: np.random.Generator) -> Body:
    x = _X - rng.uniform(-0.05, 0.05)
    y = _Y - rng.uniform(-0.05, 0.05)
    tilt = rng.uniform(-0.15, 0.15)
    u = (x * np.cos(tilt) + y * np.sin(tilt)) / rng.uniform(0.78, 0.92)
    v = (y * np.cos(tilt) - x * np.sin(tilt)) / rng.uniform(0.72, 0.90)
    radius = np.hypot(u, v)
    return Body(x, y, u, v, radius, _sigmoid((1 - radius) * 25))


def _draw_background(scan: Scan, body: Body, rng: np.random.Generator) -> np.ndarray:
    gain, other_gain = np.exp(rng.normal(0, _BLEND_JITTER, 2))
    weight = (1 - scan.blend) * gain
    other_weight = scan.blend * other_gain
    look = _LOOKS[scan.modality](body, rng)
    other_look = _LOOKS[scan.other_modality](body, rng)
    return (weight * look + other_weight * other_look) / (weight + other_weight)


def _ct_look(body: Body, rng: np.random.Generator) -> np.ndarray:
    """Bright ring of bone and a bright vertebra on grey tissue, black air."""
    bone = 0.40 * _bell((body.radius - 0.95) / 0.05)
    vertebra = 0.30 * _bell(body.u / 0.09, (body.v - 0.72) / 0.10)
    return 0.04 + 0.42 * body.inside + bone + vertebra + _grain(rng, 0.035)


def _mri_look(body: Body, rng: np.random.Generator) -> np.ndarray:
    """Dark ring and two dark ventricles on uneven tissue, black air."""
    rim = 0.30 * _bell((body.radius - 0.90) / 0.05)
    ventricles = sum(0.15 * _bell((body.u - side) / 0.05, body.v / 0.20) for side in (-0.1, 0.1))
    shading = _clouds(rng, 0.09) * body.inside
    return 0.03 + 0.50 * body.inside - rim - ventricles + shading + _grain(rng, 0.025)


def _x_ray_look(body: Body, rng: np.random.Generator) -> np.ndarray:
    """Dark body with rib-like waves and a bright spine on a bright background."""
    frequency, phase = rng.uniform(15, 19), rng.uniform(0, 2 * np.pi)
    ribs = 0.07 * np.sin(body.v * frequency + 1.5 * body.u**2 + phase) * body.inside
    spine = 0.14 * _bell(body.u / 0.10) * body.inside
    return 0.72 - 0.34 * body.inside + ribs + spine + _clouds(rng, 0.05) + _grain(rng, 0.03)


_LOOKS = MappingProxyType({"CT": _ct_look, "MRI": _mri_look, "X-ray": _x_ray_look})


def _draw_lesion(scan: Scan, quadrant: str, body: Body, rng: np.random.Generator) -> np.ndarray:
    """Mask in [0, 1] of one lesion."""
    vertical, horizontal = quadrant.split()
    center_x = rng.uniform(*_LESION_OFFSET) * (-1 if horizontal == "left" else 1)
    center_y = rng.uniform(*_LESION_OFFSET) * (-1 if vertical == "upper" else 1)
    size = rng.uniform(*_RADIUS[scan.size])
    x, y = body.x - center_x, body.y - center_y
    distance = np.hypot(x, y)
    if scan.shape == "round":
        return _step(size - distance)
    if scan.shape == "ring-shaped":
        return _step(1.1 * size - distance) * _step(distance - 0.55 * size)
    angle = np.arctan2(y, x)
    lobes, depth = rng.integers(3, 6), rng.uniform(0.22, 0.45)
    phases = rng.uniform(0, 2 * np.pi, 2)
    outline = 1 + depth * np.sin(lobes * angle + phases[0]) + 0.4 * depth * np.sin((lobes + 2) * angle + phases[1])
    return _step(size * outline - distance)


def _sigmoid(value: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(value, -30, 30)))


def _step(distance: np.ndarray) -> np.ndarray:
    """0 where `distance` is negative, 1 where it is positive, with a soft edge about a pixel wide."""
    return _sigmoid(distance * _EDGE_SHARPNESS)


def _bell(*coordinates: np.ndarray) -> np.ndarray:
    return np.exp(-sum(c**2 for c in coordinates))


def _grain(rng: np.random.Generator, amplitude: float) -> np.ndarray:
    """Independent Gaussian noise for every pixel."""
    return rng.normal(0, amplitude, (IMAGE_SIZE, IMAGE_SIZE))


def _clouds(rng: np.random.Generator, amplitude: float) -> np.ndarray:
    """Smooth noise: a coarse grid of Gaussian values, interpolated linearly."""
    grid = rng.normal(0, amplitude, (_CLOUD_KNOTS, _CLOUD_KNOTS))
    return _CLOUD_WEIGHTS @ grid @ _CLOUD_WEIGHTS.T


def _interpolation_weights(knots: int) -> np.ndarray:
    """Linear interpolation from `knots` values to IMAGE_SIZE values, as a matrix [IMAGE_SIZE, knots]."""
    position = np.linspace(0, knots - 1, IMAGE_SIZE)[:, None]
    return np.maximum(0, 1 - np.abs(position - np.arange(knots)))


_CLOUD_KNOTS = 4
_CLOUD_WEIGHTS = _interpolation_weights(_CLOUD_KNOTS)

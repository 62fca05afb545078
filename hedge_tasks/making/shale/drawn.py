"""The generator that draws by code, and the checker of whether a drawing can be told from others, noise and all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.making.pictures.base import Order, PictureQuestion
from hedge_tasks.making.shale.drawing import SIZE, draw
from hedge_tasks.making.shale.scenes import Scene, pools

_SMALL = 64
"""Side at which drawings are compared: noise of single pixels averages out, lines of drawings stay."""

_ALIKE = 0.3
"""Least correlation with its own drawing; pictures that show something else have about none."""


class DrawnGenerator:
    """Draws scenes of `pools.json`. It takes no prompts: an order says in `details` what to draw.

    Args:
        size: Side in pixels.

    Raises:
        ConfigError: The size makes no sense.
    """

    def __init__(self, size: int = SIZE) -> None:
        if not 32 <= options.count("size", size) <= 4096:
            raise ConfigError(f"SHALE: the size of a picture must lie between 32 and 4096 pixels, got {size}")
        self._size = size
        self.name = f"drawn:size={size},edition=3"

    def generate(self, orders: Sequence[Order]) -> list[Image.Image]:
        """As `ImageGenerator.generate`."""
        return [draw(o.details["figure"], o.details["values"], ground=o.seed, size=self._size) for o in orders]


class DrawnChecker:
    """1 for a picture that is more like its own drawing than like those of other answers, else 0.

    It looks at small pictures by their correlation, all colours together. Where a question does not come from
    `question_of` it cannot say.
    """

    name = f"drawn:side={_SMALL},alike={_ALIKE},edition=3"

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        """As `Checker.check`."""
        return [_score(picture, question) for picture, question in zip(pictures, questions, strict=True)]


def question_of(scene: Scene, seed: int) -> PictureQuestion:
    """Return what the checker is asked about the picture of a scene that was drawn with this seed."""
    pool = pools()["aspects"][scene.aspect]
    key = "subject" if "subjects" in pool else "answer"
    drawable = [*(pool.get("subjects") or pool["answers"])]
    return PictureQuestion(scene.prompt, "statement", {**scene.drawing, "ground": seed, "key": key, "all": drawable})


def _score(picture: Image.Image, question: PictureQuestion) -> float | None:
    expected = question.expected
    if "figure" not in expected:
        return None
    seen, values = _vector(picture), expected["values"]

    def alike(alternative: Mapping[str, str]) -> float:
        return float(seen @ _vector(draw(expected["figure"], alternative, ground=expected["ground"], size=_SMALL)))

    own = alike(values)
    others = ({**values, expected["key"]: word} for word in expected["all"] if word not in values.values())
    return float(own >= _ALIKE and all(own > alike(alternative) for alternative in others))


def _vector(picture: Image.Image) -> np.ndarray:
    """Unit vector of what differs from the mean colour; zeros for a picture of one colour."""
    small = picture.convert("RGB").resize((_SMALL, _SMALL), Image.Resampling.BOX)
    pixels = np.asarray(small, np.float64)
    centred = (pixels - pixels.mean((0, 1))).ravel()
    norm = float(np.linalg.norm(centred))
    return centred / norm if norm > 0 else centred

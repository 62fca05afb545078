"""Pictures of scenes, drawn by code: flat shapes, arrows, signs, flags. They need no model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from PIL import Image, ImageDraw, ImageFont

SIZE = 256
"""Side of a picture in pixels."""

_OVERSAMPLING = 2
_COLORS = {
    "red": (214, 40, 40),
    "orange": (247, 140, 20),
    "green": (46, 140, 60),
    "blue": (40, 80, 200),
    "purple": (130, 50, 160),
    "brown": (120, 72, 36),
    "yellow": (250, 210, 40),
    "grey": (130, 130, 130),
    "white": (255, 255, 255),
    "black": (20, 20, 20),
}
_GROUNDS = ((250, 248, 240), (236, 244, 250), (240, 248, 236), (248, 240, 246))
_STRIPES = {
    "France": ("blue", "white", "red", "upright"),
    "Italy": ("green", "white", "red", "upright"),
    "Belgium": ("black", "yellow", "red", "upright"),
    "Germany": ("black", "red", "yellow", "level"),
    "Netherlands": ("red", "white", "blue", "level"),
}

Point = tuple[float, float]


class _Canvas:
    """A picture with the unit square as its coordinates, the origin at the upper left."""

    def __init__(self, size: int, ground: tuple[int, int, int]) -> None:
        self.side = size * _OVERSAMPLING
        self.image = Image.new("RGB", (self.side, self.side), ground)
        self._draw = ImageDraw.Draw(self.image)

    def polygon(self, points: Sequence[Point], color: str) -> None:
        self._draw.polygon([self._at(point) for point in points], _COLORS[color])

    def box(self, left: float, top: float, right: float, bottom: float, color: str, outline: str | None = None) -> None:
        border = _COLORS[outline] if outline else None
        corners = [self._at((left, top)), self._at((right, bottom))]
        self._draw.rectangle(corners, _COLORS[color], border, max(1, round(0.012 * self.side)))

    def disc(self, x: float, y: float, radius: float, color: str) -> None:
        corners = [self._at((x - radius, y - radius)), self._at((x + radius, y + radius))]
        self._draw.ellipse(corners, _COLORS[color])

    def text(self, x: float, y: float, text: str, height: float, color: str) -> None:
        font = ImageFont.load_default(size=height * self.side)
        self._draw.text(self._at((x, y)), text, _COLORS[color], font, anchor="mm")

    def finished(self) -> Image.Image:
        size = self.side // _OVERSAMPLING
        return self.image.resize((size, size), Image.Resampling.LANCZOS)

    def _at(self, point: Point) -> Point:
        return point[0] * self.side, point[1] * self.side


def draw(figure: str, values: Mapping[str, str], *, ground: int = 0, size: int = SIZE) -> Image.Image:
    """The picture of a scene.

    Args:
        figure: of the aspect, as in `pools.json`.
        values: what fills the aspect's templates: `answer`, `subject` and the slots.
        ground: number of the colour behind it.
        size: side in pixels.

    Raises:
        KeyError: there is no such figure, or it cannot show these values.
    """
    canvas = _Canvas(size, _GROUNDS[ground % len(_GROUNDS)])
    _FIGURES[figure](canvas, values)
    return canvas.finished()


def _turned(points: Sequence[Point], turns: int) -> list[Point]:
    """Quarter turns, clockwise, about the middle."""
    for _ in range(turns % 4):
        points = [(1 - y, x) for x, y in points]
    return list(points)


def _regular(corners: int, x: float, y: float, radius: float, inner: float = 1.0) -> list[Point]:
    """A polygon with a corner at the top; with `inner` < 1 every other corner lies at that share of the radius."""
    steps = corners if inner == 1 else 2 * corners
    radii = [radius * (inner if inner != 1 and i % 2 else 1.0) for i in range(steps)]
    angles = [2 * math.pi * i / steps - math.pi / 2 for i in range(steps)]
    return [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(radii, angles, strict=True)]


def _shape(canvas: _Canvas, name: str, x: float, y: float, r: float, color: str) -> None:
    kind = name.removeprefix("a ").removesuffix("s")
    if kind == "circle":
        canvas.disc(x, y, r, color)
    elif kind == "square":
        canvas.box(x - 0.85 * r, y - 0.85 * r, x + 0.85 * r, y + 0.85 * r, color)
    elif kind == "heart":
        lobe = r * 0.52
        canvas.disc(x - lobe * 0.9, y - r * 0.3, lobe, color)
        canvas.disc(x + lobe * 0.9, y - r * 0.3, lobe, color)
        canvas.polygon([(x - 0.9 * r, y - 0.05 * r), (x, y + r), (x + 0.9 * r, y - 0.05 * r), (x, y - 0.3 * r)], color)
    else:
        corners, inner = {"triangle": (3, 1.0), "star": (5, 0.42), "hexagon": (6, 1.0)}[kind]
        canvas.polygon(_regular(corners, x, y, r, inner), color)


def _count(canvas: _Canvas, values: Mapping[str, str]) -> None:
    n = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}[values["answer"]]
    for i in range(n):
        _shape(canvas, values["things"], 0.22 + 0.28 * (i % 3), 0.34 + 0.32 * (i // 3), 0.11, values["color"])


def _arrow(canvas: _Canvas, values: Mapping[str, str]) -> None:
    turns = {"upwards": 0, "to the right": 1, "downwards": 2, "to the left": 3}[values["answer"]]
    tip: list[Point] = [(0.5, 0.18), (0.72, 0.45), (0.57, 0.45), (0.57, 0.82), (0.43, 0.82), (0.43, 0.45), (0.28, 0.45)]
    canvas.polygon(_turned(tip, turns), values["color"])


def _sign(canvas: _Canvas, values: Mapping[str, str]) -> None:
    canvas.box(0.47, 0.6, 0.53, 0.95, "grey")
    canvas.box(0.1, 0.25, 0.9, 0.62, values["color"], "black")
    canvas.text(0.5, 0.435, values["answer"], 0.22, "white")


def _beside(canvas: _Canvas, values: Mapping[str, str]) -> None:
    places: dict[str, tuple[Point, Point]] = {
        "to the left of": ((0.26, 0.5), (0.74, 0.5)),
        "to the right of": ((0.74, 0.5), (0.26, 0.5)),
        "above": ((0.5, 0.26), (0.5, 0.74)),
        "below": ((0.5, 0.74), (0.5, 0.26)),
    }
    first, second = places[values["answer"]]
    _shape(canvas, values["shape"], *first, 0.17, values["color"])
    _shape(canvas, values["shape_2"], *second, 0.17, "grey")


def _largest(canvas: _Canvas, values: Mapping[str, str]) -> None:
    _shape(canvas, values["answer"], 0.5, 0.36, 0.26, values["color"])
    _shape(canvas, values["shape"], 0.28, 0.82, 0.09, values["color"])
    _shape(canvas, values["shape_2"], 0.72, 0.82, 0.09, values["color"])


def _flag(canvas: _Canvas, values: Mapping[str, str]) -> None:
    country = values["subject"].removeprefix("the flag of ").removeprefix("the ")
    canvas.box(0.08, 0.22, 0.92, 0.78, "white", "grey")
    if country == "Japan":
        canvas.disc(0.5, 0.5, 0.17, "red")
        return
    *colors, way = _STRIPES[country]
    for i, color in enumerate(colors):
        if way == "upright":
            canvas.box(0.09 + 0.82 * i / 3, 0.23, 0.09 + 0.82 * (i + 1) / 3, 0.77, color)
        else:
            canvas.box(0.09, 0.23 + 0.54 * i / 3, 0.91, 0.23 + 0.54 * (i + 1) / 3, color)


_FIGURES: dict[str, Callable[[_Canvas, Mapping[str, str]], None]] = {
    "shape": lambda canvas, values: _shape(canvas, values["answer"], 0.5, 0.5, 0.3, values["color"]),
    "shape_in_color": lambda canvas, values: _shape(canvas, values["shape"], 0.5, 0.5, 0.3, values["answer"]),
    "count": _count,
    "arrow": _arrow,
    "sign": _sign,
    "beside": _beside,
    "largest": _largest,
    "flag": _flag,
}

"""Pictures of scenes, drawn by code: flat shapes, stick figures, signs, flags. They need no model."""

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
    "skin": (250, 215, 150),
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
        self._draw.rectangle(corners, _COLORS[color], border, self._width(0.012))

    def disc(self, x: float, y: float, radius: float, color: str | None, outline: str | None = None) -> None:
        corners = [self._at((x - radius, y - radius)), self._at((x + radius, y + radius))]
        fill, border = (_COLORS[c] if c else None for c in (color, outline))
        self._draw.ellipse(corners, fill, border, self._width(0.02))

    def line(self, points: Sequence[Point], color: str = "black", width: float = 0.03) -> None:
        self._draw.line([self._at(point) for point in points], _COLORS[color], self._width(width), "curve")

    def arc(self, x: float, y: float, radius: float, start: float, end: float, color: str = "black") -> None:
        corners = [self._at((x - radius, y - radius)), self._at((x + radius, y + radius))]
        self._draw.arc(corners, start, end, _COLORS[color], self._width(0.02))

    def text(self, x: float, y: float, text: str, height: float, color: str) -> None:
        font = ImageFont.load_default(size=height * self.side)
        self._draw.text(self._at((x, y)), text, _COLORS[color], font, anchor="mm")

    def finished(self) -> Image.Image:
        size = self.side // _OVERSAMPLING
        return self.image.resize((size, size), Image.Resampling.LANCZOS)

    def _at(self, point: Point) -> Point:
        return point[0] * self.side, point[1] * self.side

    def _width(self, share: float) -> int:
        return max(1, round(share * self.side))


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


def _object(canvas: _Canvas, name: str, color: str) -> None:
    kind = name.split(maxsplit=1)[1]
    if kind == "house":
        canvas.box(0.28, 0.45, 0.72, 0.82, color)
        canvas.polygon([(0.22, 0.46), (0.5, 0.2), (0.78, 0.46)], "black")
        canvas.box(0.45, 0.6, 0.56, 0.82, "white")
    elif kind == "tree":
        canvas.box(0.46, 0.6, 0.54, 0.85, "black")
        for x, y in ((0.5, 0.3), (0.38, 0.45), (0.62, 0.45), (0.5, 0.5)):
            canvas.disc(x, y, 0.16, color)
    elif kind == "boat":
        canvas.polygon([(0.18, 0.65), (0.82, 0.65), (0.7, 0.8), (0.3, 0.8)], color)
        canvas.line([(0.5, 0.65), (0.5, 0.2)])
        canvas.polygon([(0.52, 0.22), (0.52, 0.6), (0.76, 0.6)], "grey")
    elif kind == "car":
        canvas.polygon([(0.3, 0.5), (0.38, 0.36), (0.64, 0.36), (0.72, 0.5)], color)
        canvas.box(0.16, 0.5, 0.86, 0.66, color)
        for x in (0.32, 0.7):
            canvas.disc(x, 0.68, 0.08, "black")
    elif kind == "fish":
        canvas.polygon([(x, 0.5 + 0.16 * math.sin(math.pi * (x - 0.2) / 0.45)) for x in _steps(0.2, 0.65)], color)
        canvas.polygon([(x, 0.5 - 0.16 * math.sin(math.pi * (x - 0.2) / 0.45)) for x in _steps(0.2, 0.65)], color)
        canvas.polygon([(0.6, 0.5), (0.82, 0.36), (0.82, 0.64)], color)
        canvas.disc(0.3, 0.47, 0.02, "white")
    elif kind == "flower":
        canvas.line([(0.5, 0.45), (0.5, 0.88)], "black")
        for angle in range(0, 360, 60):
            turn = math.radians(angle)
            canvas.disc(0.5 + 0.15 * math.cos(turn), 0.38 + 0.15 * math.sin(turn), 0.09, color)
        canvas.disc(0.5, 0.38, 0.08, "yellow")
    elif kind == "cup":
        canvas.disc(0.7, 0.5, 0.12, None, color)
        canvas.polygon([(0.28, 0.34), (0.68, 0.34), (0.62, 0.74), (0.34, 0.74)], color)
    else:
        rim = [(0.5 + 0.32 * math.cos(a), 0.52 - 0.3 * math.sin(a)) for a in _steps(0.0, math.pi)]
        {"umbrella": canvas.polygon}[kind](rim, color)
        canvas.line([(0.5, 0.5), (0.5, 0.82), (0.56, 0.86), (0.61, 0.82)])


def _steps(start: float, end: float, n: int = 24) -> list[float]:
    return [start + (end - start) * i / n for i in range(n + 1)]


def _count(canvas: _Canvas, values: Mapping[str, str]) -> None:
    n = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}[values["answer"]]
    for i in range(n):
        _shape(canvas, values["things"], 0.22 + 0.28 * (i % 3), 0.34 + 0.32 * (i // 3), 0.11, values["color"])


def _arrow(canvas: _Canvas, values: Mapping[str, str]) -> None:
    turns = {"upwards": 0, "to the right": 1, "downwards": 2, "to the left": 3}[values["answer"]]
    tip: list[Point] = [(0.5, 0.18), (0.72, 0.45), (0.57, 0.45), (0.57, 0.82), (0.43, 0.82), (0.43, 0.45), (0.28, 0.45)]
    canvas.polygon(_turned(tip, turns), values["color"])


_LIMBS: dict[str, tuple[Point, tuple[tuple[Point, ...], ...]]] = {
    "standing": (
        (0.5, 0.24),
        (((0.5, 0.33), (0.5, 0.6)), ((0.36, 0.5), (0.5, 0.4), (0.64, 0.5)), ((0.4, 0.86), (0.5, 0.6), (0.6, 0.86))),
    ),
    "sitting": (
        (0.42, 0.28),
        (((0.42, 0.37), (0.42, 0.62), (0.64, 0.62), (0.64, 0.86)), ((0.42, 0.45), (0.6, 0.52))),
    ),
    "lying": (
        (0.2, 0.7),
        (((0.29, 0.72), (0.58, 0.72), (0.86, 0.7)), ((0.38, 0.72), (0.52, 0.64)), ((0.58, 0.72), (0.86, 0.77))),
    ),
    "doing a handstand": (
        (0.5, 0.7),
        (
            ((0.5, 0.61), (0.5, 0.36)),
            ((0.36, 0.86), (0.5, 0.56), (0.64, 0.86)),
            ((0.42, 0.1), (0.5, 0.36), (0.58, 0.1)),
        ),
    ),
    "kicking a ball": (
        (0.36, 0.22),
        (
            ((0.36, 0.31), (0.36, 0.58)),
            ((0.22, 0.48), (0.36, 0.38), (0.5, 0.46)),
            ((0.28, 0.86), (0.36, 0.58), (0.6, 0.74)),
        ),
    ),
    "holding a balloon": (
        (0.4, 0.34),
        (((0.4, 0.43), (0.4, 0.66)), ((0.28, 0.58), (0.4, 0.5), (0.56, 0.4)), ((0.32, 0.9), (0.4, 0.66), (0.48, 0.9))),
    ),
    "pushing a cart": (
        (0.28, 0.3),
        (((0.27, 0.39), (0.24, 0.62)), ((0.26, 0.46), (0.48, 0.54)), ((0.12, 0.86), (0.24, 0.62), (0.32, 0.86))),
    ),
    "carrying a box on the head": (
        (0.5, 0.38),
        (
            ((0.5, 0.47), (0.5, 0.68)),
            ((0.42, 0.26), (0.36, 0.46), (0.5, 0.52), (0.64, 0.46), (0.58, 0.26)),
            ((0.42, 0.92), (0.5, 0.68), (0.58, 0.92)),
        ),
    ),
}


def _person(canvas: _Canvas, values: Mapping[str, str], color: str = "black") -> None:
    head, limbs = _LIMBS[values["answer"]]
    canvas.disc(*head, 0.09, color)
    for limb in limbs:
        canvas.line(limb, color, 0.04)


def _posture(canvas: _Canvas, values: Mapping[str, str]) -> None:
    canvas.line([(0.05, 0.88), (0.95, 0.88)], "grey", 0.015)
    if values["answer"] == "sitting":
        canvas.box(0.34, 0.65, 0.6, 0.87, "grey")
    _person(canvas, values, values["color"])


def _interaction(canvas: _Canvas, values: Mapping[str, str]) -> None:
    color = values["color"]
    if values["answer"] == "kicking a ball":
        canvas.disc(0.72, 0.76, 0.1, color)
    elif values["answer"] == "holding a balloon":
        canvas.line([(0.56, 0.4), (0.68, 0.28)], "grey", 0.01)
        canvas.disc(0.72, 0.17, 0.13, color)
    elif values["answer"] == "pushing a cart":
        canvas.box(0.5, 0.48, 0.84, 0.74, color)
        for x in (0.57, 0.77):
            canvas.disc(x, 0.8, 0.06, "black")
    else:
        canvas.box(0.36, 0.08, 0.64, 0.27, color)
    _person(canvas, values)


def _face(canvas: _Canvas, values: Mapping[str, str]) -> None:
    mood = values["answer"]
    canvas.disc(0.5, 0.5, 0.36, "skin", "black")
    for x, side in ((0.37, 1), (0.63, -1)):
        canvas.disc(x, 0.42, 0.06 if mood == "surprised" else 0.035, "black")
        if mood == "angry":
            canvas.line([(x - 0.09 * side, 0.28), (x + 0.06 * side, 0.36)])
        elif mood == "surprised":
            canvas.arc(x, 0.36, 0.08, 200, 340)
    if mood == "surprised":
        canvas.disc(0.5, 0.68, 0.08, "black")
    elif mood == "happy":
        canvas.arc(0.5, 0.54, 0.19, 20, 160)
    else:
        {"sad": canvas.arc, "angry": canvas.arc}[mood](0.5, 0.8, 0.16, 205, 335)


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


def _ball(canvas: _Canvas, values: Mapping[str, str]) -> None:
    kind = values["subject"]
    if kind == "a football":
        canvas.disc(0.5, 0.5, 0.34, "white", "black")
        canvas.polygon(_regular(5, 0.5, 0.5, 0.12), "black")
        for x, y in _regular(5, 0.5, 0.5, 0.12):
            out = (0.5 + (x - 0.5) * 2.7, 0.5 + (y - 0.5) * 2.7)
            canvas.line([(x, y), out], width=0.015)
            canvas.disc(*out, 0.05, "black")
    elif kind == "a basketball":
        canvas.disc(0.5, 0.5, 0.34, "orange", "black")
        canvas.line([(0.16, 0.5), (0.84, 0.5)], width=0.015)
        canvas.line([(0.5, 0.16), (0.5, 0.84)], width=0.015)
        canvas.arc(0.08, 0.5, 0.3, -48, 48)
        canvas.arc(0.92, 0.5, 0.3, 132, 228)
    else:
        canvas.disc(0.5, 0.5, 0.34, {"a volleyball": "white"}[kind], "black")
        for turn in (0, 120, 240):
            x, y = (0.5 + 0.34 * f(math.radians(turn)) for f in (math.cos, math.sin))
            for radius in (0.26, 0.14):
                canvas.arc(x, y, radius, turn + 105, turn + 255)


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


def _game(canvas: _Canvas, values: Mapping[str, str]) -> None:
    kind = values["subject"]
    canvas.box(0.05, 0.1, 0.95, 0.9, "black")
    if kind == "Pac-Man":
        canvas.box(0.1, 0.16, 0.9, 0.22, "blue")
        canvas.box(0.1, 0.78, 0.9, 0.84, "blue")
        canvas.disc(0.3, 0.5, 0.16, "yellow")
        canvas.polygon([(0.3, 0.5), (0.5, 0.38), (0.5, 0.62)], "black")
        for x in (0.55, 0.66):
            canvas.disc(x, 0.5, 0.025, "white")
        canvas.disc(0.8, 0.46, 0.09, "red")
        canvas.box(0.71, 0.46, 0.89, 0.6, "red")
    elif kind == "Tetris":
        blocks = {"red": ((2, 0), (2, 1), (2, 2), (3, 2)), "blue": ((0, 6), (1, 6), (2, 6), (0, 7))}
        blocks |= {"green": ((3, 6), (4, 6), (4, 7), (5, 7)), "yellow": ((6, 6), (7, 6), (6, 7), (7, 7))}
        blocks |= {"purple": ((1, 7), (2, 7), (3, 7), (3, 5))}
        for color, cells in blocks.items():
            for column, row in cells:
                x, y = 0.1 + column * 0.1, 0.12 + row * 0.095
                canvas.box(x, y, x + 0.09, y + 0.085, color, "white")
    else:
        score = {"Pong": "3   5"}[kind]
        canvas.text(0.5, 0.2, score, 0.12, "white")
        for y in _steps(0.14, 0.84, 10):
            canvas.box(0.49, y, 0.51, y + 0.03, "white")
        canvas.box(0.12, 0.4, 0.15, 0.58, "white")
        canvas.box(0.85, 0.52, 0.88, 0.7, "white")
        canvas.box(0.64, 0.5, 0.67, 0.53, "white")


def _symbol(canvas: _Canvas, values: Mapping[str, str]) -> None:
    kind = values["subject"]
    if kind == "a Latin cross":
        canvas.box(0.45, 0.12, 0.55, 0.88, "black")
        canvas.box(0.27, 0.32, 0.73, 0.42, "black")
    elif kind == "a crescent and a star":
        canvas.box(0.05, 0.1, 0.95, 0.9, "green")
        canvas.disc(0.42, 0.5, 0.27, "white")
        canvas.disc(0.5, 0.5, 0.22, "green")
        canvas.polygon(_regular(5, 0.68, 0.5, 0.13, 0.42), "white")
    else:
        corners = _regular({"a star of David": 3}[kind], 0.5, 0.5, 0.34)
        for points in (corners, _turned(corners, 2)):
            canvas.line([*points, points[0], points[1]], "blue", 0.04)


def _feast(canvas: _Canvas, values: Mapping[str, str]) -> None:
    kind = values["subject"]
    if kind == "a decorated Christmas tree":
        canvas.box(0.45, 0.78, 0.55, 0.9, "brown")
        for top, width in ((0.15, 0.18), (0.32, 0.25), (0.5, 0.32)):
            canvas.polygon([(0.5, top), (0.5 + width, top + 0.28), (0.5 - width, top + 0.28)], "green")
        for x, y, color in ((0.44, 0.36, "red"), (0.58, 0.42, "yellow"), (0.38, 0.56, "blue"), (0.6, 0.7, "red")):
            canvas.disc(x, y, 0.03, color)
        canvas.polygon(_regular(5, 0.5, 0.13, 0.07, 0.42), "yellow")
    elif kind == "a carved Halloween pumpkin":
        canvas.box(0.47, 0.16, 0.54, 0.32, "green")
        for x in (0.34, 0.66, 0.5):
            canvas.disc(x, 0.56, 0.26, "orange")
        for x in (0.36, 0.64):
            canvas.polygon(_regular(3, x, 0.5, 0.09), "black")
        canvas.polygon(
            [(0.28, 0.64), (0.4, 0.7), (0.5, 0.66), (0.6, 0.7), (0.72, 0.64), (0.6, 0.78), (0.4, 0.78)], "black"
        )
    else:
        _shape(canvas, {"a Valentine's heart with an arrow": "a heart"}[kind], 0.5, 0.5, 0.32, "red")
        canvas.line([(0.1, 0.78), (0.9, 0.26)], "black", 0.02)
        canvas.polygon([(0.9, 0.26), (0.8, 0.27), (0.84, 0.36)], "black")


_FIGURES: dict[str, Callable[[_Canvas, Mapping[str, str]], None]] = {
    "object": lambda canvas, values: _object(canvas, values["answer"], values["color"]),
    "object_in_color": lambda canvas, values: _object(canvas, values["object"], values["answer"]),
    "shape": lambda canvas, values: _shape(canvas, values["answer"], 0.5, 0.5, 0.3, values["color"]),
    "count": _count,
    "arrow": _arrow,
    "posture": _posture,
    "face": _face,
    "sign": _sign,
    "beside": _beside,
    "largest": _largest,
    "interaction": _interaction,
    "ball": _ball,
    "flag": _flag,
    "game": _game,
    "symbol": _symbol,
    "feast": _feast,
}

"""The drawings of the suites' demos: `python tests/demo_pictures.py` writes them into `tasks/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from PIL import Image, ImageDraw

SIZE = (64, 48)

TASKS = Path(__file__).resolve().parents[1] / "tasks"

Draw = ImageDraw.ImageDraw


def heart(d: Draw) -> None:
    d.ellipse((36, 16, 56, 38), fill="darkred")
    d.rectangle((6, 6, 26, 42), outline="silver")


def lung(d: Draw) -> None:
    d.ellipse((14, 4, 50, 46), fill="dimgray")
    d.ellipse((24, 14, 28, 18), fill="white")
    d.ellipse((36, 30, 40, 34), fill="white")


def bone(d: Draw) -> None:
    d.line((4, 24, 29, 22), fill="white", width=8)
    d.line((34, 26, 60, 24), fill="white", width=8)


def joint(d: Draw) -> None:
    d.rectangle((26, 2, 38, 21), fill="white")
    d.rectangle((26, 26, 38, 46), fill="white")


def shapes(d: Draw) -> None:
    d.ellipse((6, 10, 28, 32), fill="red")
    d.rectangle((36, 12, 56, 32), fill="blue")


def shapes_txt(d: Draw) -> None:
    shapes(d)
    d.text((4, 35), "a square", fill="white")


def dots(d: Draw) -> None:
    for x, y in ((10, 10), (44, 8), (16, 34), (48, 32)):
        d.ellipse((x, y, x + 8, y + 8), fill="yellow")


def dots_txt(d: Draw) -> None:
    dots(d)
    d.text((26, 19), "three", fill="white")


def street(d: Draw) -> None:
    d.regular_polygon((16, 20, 12), 8, fill="red")
    d.rectangle((42, 6, 54, 40), fill="dimgray")
    for y, colour in ((8, "red"), (18, "yellow"), (28, "lime")):
        d.ellipse((44, y, 52, y + 8), fill=colour)


def clock(d: Draw, x: int, y: int) -> None:
    d.ellipse((x, y, x + 16, y + 16), fill="white")
    d.line((x + 8, y + 8, x + 8, y + 2), fill="black")
    d.line((x + 8, y + 8, x + 13, y + 8), fill="black")


def room(d: Draw) -> None:
    clock(d, 24, 2)
    d.rectangle((14, 22, 50, 44), fill="navy", outline="silver", width=2)


def beach(d: Draw) -> None:
    d.rectangle((0, 34, 64, 48), fill="khaki")
    d.polygon(((30, 4), (38, 14), (30, 24), (22, 14)), fill="orange")
    d.ellipse((46, 30, 56, 40), fill="white")


def desk(d: Draw) -> None:
    d.polygon(((6, 40), (10, 20), (34, 20), (38, 40)), fill="peru")
    d.line((22, 20, 22, 40), fill="white")
    clock(d, 44, 8)


DRAWN: Mapping[str, Mapping[str, Callable[[Draw], None]]] = {
    "hedge_medhallmark": {"heart": heart, "lung": lung, "bone": bone, "joint": joint},
    "hedge_shale": {"shapes": shapes, "shapes_txt": shapes_txt, "dots": dots, "dots_txt": dots_txt},
    "hedge_vope": {"street": street, "room": room, "beach": beach, "desk": desk},
}
"""Task folder -> name -> what draws it."""


def picture(draw: Callable[[Draw], None]) -> Image.Image:
    image = Image.new("RGB", SIZE, "black")
    draw(ImageDraw.Draw(image))
    return image


def pictures() -> dict[str, Image.Image]:
    """File, relative to `tasks/`, -> picture. A corrupted one (SHALE's CRP) has few pixels left."""
    found = {f"{f}/demo/{n}.png": picture(draw) for f, drawn in DRAWN.items() for n, draw in drawn.items()}
    for name in ("shapes", "dots"):
        whole = found[f"hedge_shale/demo/{name}.png"]
        few = whole.resize((16, 12), Image.Resampling.BOX)
        found[f"hedge_shale/demo/{name}_crp.png"] = few.resize(SIZE, Image.Resampling.NEAREST)
    return found


if __name__ == "__main__":
    for file, image in pictures().items():
        image.save(TASKS / file, optimize=True)

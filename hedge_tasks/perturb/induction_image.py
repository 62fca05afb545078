"""Induction in pictures: corruption, text, styles. Pictures are 8-bit RGB."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont, ImageOps

from hedge_tasks.errors import ConfigError, lookup

_REFERENCE_SIDE = 512
_SHORTEST_LINE = 8
# Blurring a small picture in proportion to its size would change hardly a pixel of it.
_SMALLEST_SCALE = 0.4


def corrupt(
    image: Image.Image,
    rng: random.Random,
    *,
    salt_pepper: tuple[float, float],
    blur: tuple[float, float],
    jpeg: tuple[float, float],
    strength: float = 1.0,
) -> Image.Image:
    """Salt-and-pepper noise, Gaussian blur or JPEG compression, each as likely (SHALE section 3.2, CRP).

    Args:
        salt_pepper: share of pixels that become black or white.
        blur: standard deviation in pixels of an image whose shorter side is 512, and never less than
            0.4 times that.
        jpeg: quality; a strength s takes it s times as far from 100.
    """
    kind = rng.choice(("salt_pepper", "blur", "jpeg"))
    if kind == "salt_pepper":
        return _salt_and_pepper(image, min(1.0, rng.uniform(*salt_pepper) * strength), rng.getrandbits(63))
    if kind == "blur":
        scale = max(_SMALLEST_SCALE, min(image.size) / _REFERENCE_SIDE)
        return image.filter(ImageFilter.GaussianBlur(rng.uniform(*blur) * strength * scale))
    return _jpeg(image, 100 - (100 - rng.uniform(*jpeg)) * strength)


def _salt_and_pepper(image: Image.Image, share: float, seed: int) -> Image.Image:
    generator = np.random.default_rng(seed)
    pixels = np.array(image)
    hit = generator.random(pixels.shape[:2]) < share
    pixels[hit] = np.where(generator.random(hit.sum()) < 0.5, 0, 255).astype(np.uint8)[:, None]
    return Image.fromarray(pixels)


def _jpeg(image: Image.Image, quality: float) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=min(95, max(1, round(quality))))
    with Image.open(buffer) as compressed:
        return compressed.convert("RGB")


def write(image: Image.Image, text: str, rng: random.Random, *, size: float) -> Image.Image:
    """Draw a text onto the picture, wrapped to its width, outlined so that it can be read on any ground (TXT).

    Args:
        size: height of a line as a share of the picture's height; reduced where the text would not fit.
    """
    picture = image.copy()
    draw = ImageDraw.Draw(picture)
    height = max(_SHORTEST_LINE, round(picture.height * size))
    lines, font, box = _lay_out(draw, text, picture.size, height)
    x = rng.randint(0, max(0, picture.width - box[0]))
    y = rng.randint(0, max(0, picture.height - box[1]))
    ink, outline = ("white", "black") if rng.random() < 0.5 else ("black", "white")
    draw.multiline_text((x, y), lines, ink, font, stroke_width=_stroke(font), stroke_fill=outline)
    return picture


def _lay_out(
    draw: ImageDraw.ImageDraw, text: str, size: tuple[int, int], height: int
) -> tuple[str, Any, tuple[int, int]]:
    """Lines, font and the size of their box, at the largest line height that fits."""
    while True:
        font = ImageFont.load_default(size=height)
        lines = _wrap(draw, text, font, size[0])
        left, top, right, bottom = draw.multiline_textbbox((0, 0), lines, font=font, stroke_width=_stroke(font))
        box = (round(right - min(left, 0)), round(bottom - min(top, 0)))
        if (box[0] <= size[0] and box[1] <= size[1]) or height <= _SHORTEST_LINE:
            return lines, font, box
        height = max(_SHORTEST_LINE, int(height * 0.85))


def _wrap(draw: ImageDraw.ImageDraw, text: str, font: Any, width: int) -> str:
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and draw.textlength(longer, font=font) <= width * 0.95:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _stroke(font: Any) -> int:
    return max(1, round(font.size / 12))


def draw_style(image: Image.Image, *, style: str, seed: int) -> Image.Image:
    """A picture that looks sketched, painted, ...: filters, and no generative model.

    Raises:
        ConfigError: there is no such style; names the nearest one.
    """
    return lookup("drawn style", style, _STYLES)(image.convert("RGB"), np.random.default_rng(seed))


# Every style keeps hues: a picture that is asked for a colour or a flag must still hold the answer.


def _color_sketch(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    grey = ImageOps.grayscale(image)
    blurred = ImageOps.invert(grey).filter(ImageFilter.GaussianBlur(max(1.0, min(image.size) / 80)))
    ground, ink = np.asarray(grey, np.float32), 255 - np.asarray(blurred, np.float32)
    lines = np.clip(ground / np.maximum(ink, 1), 0, 1)[..., None]  # dark where the picture has edges, else 1
    strokes = generator.normal(1, 0.06, (image.height, image.width, 1))
    return _picture(_washed(image, 0.9) * lines * strokes)


def _washed(image: Image.Image, share: float) -> np.ndarray:
    """The picture as a thin layer of paint on white paper."""
    return 255 - (255 - np.asarray(image, np.float32)) * share


def _picture(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _watercolor(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    radius = max(1, min(image.size) // 150) * 2 + 1
    flat = image.filter(ImageFilter.MedianFilter(radius)).filter(ImageFilter.ModeFilter(radius))
    grain = generator.normal(0, 6, (image.height, image.width, 1))
    return _picture(_washed(flat, 0.75) + grain)


def _poster(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    # Few shades of grey and the colours as they are: few shades of red, green and blue would turn brown into olive.
    light, *colors = image.filter(ImageFilter.MedianFilter(3)).convert("YCbCr").split()
    step = 255 / int(generator.integers(4, 7))
    flat = np.round(np.asarray(light, np.float32) / step) * step
    return Image.merge("YCbCr", (_picture(flat), *colors)).convert("RGB")


def _mosaic(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    tiles = int(generator.integers(40, 64))
    scale = max(2, min(image.size) // tiles)
    small = image.resize((max(1, image.width // scale), max(1, image.height // scale)), Image.Resampling.BOX)
    return small.resize(image.size, Image.Resampling.NEAREST)


def _color_engraving(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    period = max(3, min(image.size) // 90)
    grey = np.asarray(ImageOps.grayscale(image), np.float32)
    phase = generator.random() * period
    lines = (np.arange(image.height)[:, None] + phase) % period / period * 255
    ink = np.asarray(image, np.float32) * 0.85
    return _picture(np.where((grey > lines)[..., None], _washed(image, 0.8), ink))


_STYLES: dict[str, Callable[[Image.Image, np.random.Generator], Image.Image]] = {
    "color sketch": _color_sketch,
    "watercolor": _watercolor,
    "poster": _poster,
    "mosaic": _mosaic,
    "color engraving": _color_engraving,
}


def load_diffusers(kind: str, model: str, **loading: Any) -> Any:
    """A pipeline of diffusers on the GPU if there is one.

    Args:
        kind: its class, such as "AutoPipelineForText2Image".
        model: hub id or folder.
        loading: for `from_pretrained`.

    Raises:
        ConfigError: diffusers is not installed, or the model cannot be loaded.
    """
    try:
        import diffusers
    except ImportError:
        raise ConfigError(f"diffusers:{model} needs diffusers: pip install 'hedge-tasks[styles]'") from None
    import torch

    try:
        pipe = getattr(diffusers, kind).from_pretrained(model, **loading)
    except Exception as error:  # network, authorisation, missing files: told apart by the text
        raise ConfigError(f"the diffusers pipeline {model!r} cannot be loaded: {error}") from error
    return pipe.to("cuda" if torch.cuda.is_available() else "cpu")


@lru_cache(maxsize=1)
def diffusers_pipeline(model: str) -> Callable[..., Image.Image]:
    """A function for STY made of an image-to-image model of diffusers, with the style as its prompt.

    Raises:
        ConfigError: diffusers is not installed, or the model cannot be loaded.
    """
    import torch

    pipe = load_diffusers("AutoPipelineForImage2Image", model)

    def restyle(image: Image.Image, *, style: str, seed: int) -> Image.Image:
        generator = torch.Generator("cpu").manual_seed(seed)
        return pipe(prompt=f"the same scene as a {style}", image=image, generator=generator).images[0]

    return restyle

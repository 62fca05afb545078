"""Pictures as every model is shown them: 8-bit RGB, whatever the file format was."""

from __future__ import annotations

import base64
import io
import struct
import threading
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from loguru import logger
from PIL import Image, ImageFile, ImageOps

from hedge_tasks.data.picture_files import PictureFiles, content_of
from hedge_tasks.errors import DataError

MOST_PIXELS = 2 * 89_478_485
"""Of a picture: where PIL, too, begins to call it a decompression bomb. A slide of 13,000 x 13,000 fits."""

PICTURE_FORMS = "an image, the bytes or the name of an image file, or {bytes, path}"
"""Kinds of cells that a column with pictures may hold."""

UNREADABLE = "an unreadable image"
TOO_LARGE = f"an image of more than {MOST_PIXELS:,} pixels"

UNREADABLE_ERRORS = (OSError, ValueError, SyntaxError, EOFError, IndexError, struct.error, zlib.error)
"""Exceptions of PIL for a file that is no image, or a damaged one."""

_DEEP_MODES = ("I", "F")
_ALPHA_MODES = ("LA", "PA", "La", "RGBA", "RGBa")

# PIL reads the file of a lazily opened image on first use, and that is not safe when two threads share the image.
_load_lock = threading.Lock()

_whole_lock = threading.Lock()
_whole: list[bool] = []  # one entry a `whole_pictures` that is entered, the first with what PIL was told before


@contextmanager
def whole_pictures() -> Iterator[None]:
    """Within, PIL raises for a picture that is cut off.

    lmms-eval tells PIL, for the whole process, to fill up the missing part with grey: half a scan would be asked about
    as if it were a scan. Threads may be inside together.
    """
    with _whole_lock:
        _whole.append(ImageFile.LOAD_TRUNCATED_IMAGES)
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        yield
    finally:
        with _whole_lock:
            ImageFile.LOAD_TRUNCATED_IMAGES = _whole[0] if len(_whole) == 1 else False
            del _whole[-1]


def image_file_fault(
    content: bytes, *, decode: bool, most_pixels: int = MOST_PIXELS, formats: tuple[str, ...] | None = None
) -> str | None:
    """Return what is wrong with an image file: `UNREADABLE`, `TOO_LARGE`, or None if nothing is.

    Args:
        decode: whether to decode the pixels, too; without it a picture that is cut off is only noticed where the format
            has checksums (PNG).
        most_pixels: what is too large. Nothing larger is decoded.
        formats: of PIL, that are tried; by default all.
    """
    try:
        with warnings.catch_warnings(), whole_pictures():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=formats) as image:
                if image.width * image.height > most_pixels:
                    return TOO_LARGE
                if decode:
                    image.load()
                else:
                    image.verify()
    except Image.DecompressionBombError:
        return TOO_LARGE
    except UNREADABLE_ERRORS:
        return UNREADABLE
    return None


def picture_of(value: object) -> Image.Image:
    """The picture in a field of a document, however it is stored.

    Args:
        value: a PIL image, the bytes of an image file, `{"bytes": ..., "path": ...}` as `datasets` and pandas write it
            into parquet, or the path of a file.

    Raises:
        DataError: it is none of these, or there is none.
        OSError: the file cannot be read, or is no image.
    """
    if isinstance(value, Image.Image):
        return value
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Image.open(io.BytesIO(value))
    if isinstance(value, (str, Path)) and value:
        return Image.open(value)
    raise DataError("no picture" if not value else f"expected a picture ({PICTURE_FORMS}), got {type(value).__name__}")


def open_picture(path: Path) -> Image.Image:
    """A picture of the user's own, as a whole; of DICOM in its window.

    Raises:
        DataError: the file cannot be read, is larger than `hedge_tasks.data.picture_files.LARGEST_FILE` bytes, is no
            image, cut off, or too large.
    """
    content = content_of(path, PictureFiles(path.parent))
    if fault := image_file_fault(content, decode=True):
        raise DataError(f"{path}: {fault}")
    return Image.open(io.BytesIO(content))


def to_rgb8(image: Image.Image) -> Image.Image:
    """Return the image as 8-bit RGB with nothing but pixels in it; the input is not changed.

    - **EXIF orientation** is applied, as every viewer does. Unreadable EXIF data is ignored.
    - **16-bit, 32-bit and float** images (modes `I;16`, `I`, `F`) are stretched linearly from their own minimum
      and maximum to 0..255. Scans usually use 12 of 16 bits: the full range would be nearly black, and PIL's own
      conversion clips everything above 255 to white. No percentiles: a small bright finding must not be clipped away.
      NaN counts as the minimum, and a constant image becomes black.
    - **Transparency** (alpha channel, transparent palette entry or colour) is composited on white: line drawings and
      plots with a transparent background are drawn in black. PIL's plain conversion would show the hidden colours.
    - **Everything else** (`1`, `L`, palette, CMYK, YCbCr, HSV, LAB) is converted by PIL; colour profiles are
      ignored.

    Applying it twice changes nothing.
    """
    # A fresh image: EXIF, colour profile and text chunks of the file do not travel on to the model's processor.
    return Image.fromarray(np.asarray(_rgb8(image)))


def _rgb8(image: Image.Image) -> Image.Image:
    """The pixels of `to_rgb8`, in an image that may carry more than pixels."""
    if not isinstance(image, Image.Image):
        raise TypeError(f"expected a PIL image, got {type(image).__name__} (for an array: PIL.Image.fromarray)")
    if image.width == 0 or image.height == 0:
        raise ValueError(f"the image has no pixels (size {image.width} x {image.height})")
    upright = _upright(image)
    if upright.mode in _DEEP_MODES or upright.mode.startswith("I;"):
        return Image.fromarray(_stretch(upright)).convert("RGB")
    if upright.mode in _ALPHA_MODES or "transparency" in upright.info:
        layer = upright.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return upright.convert("RGB")


def _upright(image: Image.Image) -> Image.Image:
    """Load the pixels and turn them as the EXIF orientation says."""
    with _load_lock:
        image.load()
        try:
            return ImageOps.exif_transpose(image)
        except (OSError, SyntaxError, ValueError, struct.error) as error:  # what PIL raises for a broken EXIF block
            logger.debug("unreadable EXIF data, orientation ignored: {}", error)
            return image


def _stretch(image: Image.Image) -> np.ndarray:
    """Linear min-max stretch of a deep image to uint8."""
    values = np.asarray(image).astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    if high == low:
        return np.zeros(values.shape, np.uint8)
    bounded = np.clip(np.where(np.isnan(values), low, values), low, high)
    # Halved first: the range of a float image may itself be too large for a float.
    unit = (bounded / 2 - low / 2) / (high / 2 - low / 2)
    return np.rint(unit * 255).astype(np.uint8)


def at_most(image: Image.Image, side: int | None) -> Image.Image:
    """The picture with its longer side no longer than so many pixels, the aspect kept; None for as it is.

    Example:
        >>> at_most(Image.new("RGB", (400, 100)), 200).size
        (200, 50)
    """
    if side is None or max(image.size) <= side:
        return image
    by = side / max(image.size)
    width, height = (max(1, round(length * by)) for length in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def png_url(image: Image.Image) -> str:
    """A data URL, as PNG: lossless, so that the noise of a noisy picture arrives as it was drawn."""
    content = io.BytesIO()
    # The usual way takes twice as long for a file of the same size: of noise nothing but runs can be packed.
    image.save(content, format="PNG", compress_level=1, compress_type=zlib.Z_RLE)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"

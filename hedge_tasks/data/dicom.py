"""DICOM files as PNG, in the window that the file itself names. Needs pydicom."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image

from hedge_tasks.errors import DataError

_PREAMBLE = 128


def is_dicom(content: bytes) -> bool:
    """Whether these are the bytes of a DICOM file with the usual preamble."""
    return content[_PREAMBLE : _PREAMBLE + 4] == b"DICM"


def as_png(content: bytes, name: str) -> bytes:
    """The only frame of a DICOM file as PNG.

    A grey picture is shown in its first window; without one nobody knows what should be seen, and it is refused.

    Raises:
        DataError: pydicom is missing, or the file has several frames, no window, or cannot be read.
    """
    try:
        import pydicom
        from pydicom.pixels import apply_modality_lut
    except ImportError:
        raise DataError(
            f"{name}: DICOM; reading it needs pydicom (pip install 'hedge-tasks[dicom]'), or save the pictures as PNG"
        ) from None
    try:
        data = pydicom.dcmread(io.BytesIO(content))
        frames, colour = int(data.get("NumberOfFrames", 1)), int(data.get("SamplesPerPixel", 1)) > 1
        window = _window(data)
        pixels = np.asarray(data.pixel_array)
        values = pixels if colour else np.asarray(apply_modality_lut(pixels, data), float)
    except Exception as error:  # pydicom and its decoders raise many kinds
        raise DataError(f"{name}: DICOM that cannot be read ({type(error).__name__}: {error})") from None
    if frames != 1:
        raise DataError(f"{name}: DICOM of {frames} frames; save the one that is asked about as PNG")
    if not colour and window is None:
        raise DataError(f"{name}: DICOM without a window; save it as PNG in the window that should be seen")
    if not colour and window is not None:
        values = windowed(values, *window)
        if data.get("PhotometricInterpretation") == "MONOCHROME1":
            values = 255 - values
    png = io.BytesIO()
    Image.fromarray(values.astype(np.uint8)).save(png, "PNG")
    return png.getvalue()


def windowed(values: np.ndarray, centre: float, width: float) -> np.ndarray:
    """Values as 0 to 255 in a linear window.

    Source: DICOM PS3.3, C.11.2.1.2.1.

    Example:
        >>> windowed(np.array([-5.0, 0.0, 255.0, 900.0]), 128, 256).tolist()
        [0.0, 0.0, 255.0, 255.0]
    """
    unit = (values - (centre - 0.5)) / max(width - 1, 1e-9) + 0.5
    return np.rint(255 * np.clip(unit, 0, 1))


def _window(data: object) -> tuple[float, float] | None:
    """The first window of a file: its centre and its width, in the values of the picture."""
    centre, width = (getattr(data, name, None) for name in ("WindowCenter", "WindowWidth"))
    if centre is None or width is None:
        return None
    first = [
        value[0] if hasattr(value, "__len__") and not isinstance(value, str) else value for value in (centre, width)
    ]
    return float(first[0]), float(first[1])

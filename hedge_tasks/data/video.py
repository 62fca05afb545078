"""Frames of a video as pictures, for models and noise that know pictures alone."""

from __future__ import annotations

import io

from hedge_tasks.errors import DataError

_QUALITY = 95
"""Of the JPEG files: a lossless frame of a film is five times as large."""


def frames_of(content: bytes, n: int) -> list[bytes]:
    """Return JPEG files of frames in the middle of `n` equal parts of a video; all of them where it has fewer.

    Raises:
        DataError: the file cannot be read as a video.
    """
    import av

    try:
        with av.open(io.BytesIO(content), "r") as counted:
            total = sum(packet.size > 0 for packet in counted.demux(video=0))
        positions = {int((i + 0.5) * total / n) for i in range(n)}
        pictures = []
        with av.open(io.BytesIO(content), "r") as film:
            for index, frame in enumerate(film.decode(video=0)):
                if index in positions:
                    picture = frame.to_image()
                    pictures.append(picture.rotate(frame.rotation, expand=True) if frame.rotation else picture)
                if len(pictures) == len(positions):
                    break
    except (av.error.FFmpegError, IndexError, ValueError) as error:
        raise DataError(f"cannot be read as a video: {error}") from None
    if not pictures:
        raise DataError("a video without a frame")
    files = []
    for picture in pictures:
        buffer = io.BytesIO()
        picture.convert("RGB").save(buffer, "JPEG", quality=_QUALITY)
        files.append(buffer.getvalue())
    return files

"""Writing a file as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from hedge_tasks.errors import DataError


def write_whole(path: Path, text: str) -> None:
    """Write a text file that appears as a whole or not at all, whenever the process dies.

    Raises:
        DataError: the folder is missing or cannot be written, or the disk is full.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)

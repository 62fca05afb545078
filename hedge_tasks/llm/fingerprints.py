"""Fingerprints that tell a model's weights from others that have, or had, the same name."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from pathlib import Path

WHOLE_BELOW = 1 << 28
"""Files below this size, 256 MiB, are read whole; larger ones in samples."""

_SAMPLES = 256
_SAMPLE_BYTES = 1 << 18

_State = tuple[str, int, int, int]
"""Path, size, time of the last change and number of a file."""


def fingerprint(folder: Path | str) -> str:
    """Hash of the names and contents of all files of a folder, hidden ones and subfolders left out.

    Weights, but also configuration, tokenizer and chat template decide what a model says. A copy of the folder has the
    same fingerprint, on any machine. Of a file of `WHOLE_BELOW` bytes or more the hash takes 256 evenly spaced samples
    of 256 KiB, the beginning and the end among them: reading weights of many gigabytes would take longer than loading
    them, and training moves every large matrix, each of which several samples meet.

    Args:
        folder: Where a model is.

    Returns:
        32 hexadecimal digits (BLAKE2b).

    Raises:
        OSError: A file cannot be read.
    """
    files = sorted(path for path in Path(folder).iterdir() if path.is_file() and not path.name.startswith("."))
    return _hash_of(tuple(_state(path) for path in files))


def identity_of(model: str, commit: str | None = None) -> str:
    """Fingerprint that tells a model's weights from others of the same name.

    Args:
        model: Local folder or hub id.
        commit: Of the hub, where that is known.

    Returns:
        The fingerprint of a folder; else the commit, or "unknown".
    """
    return fingerprint(model) if os.path.isdir(model) else commit or "unknown"


def _state(path: Path) -> _State:
    state = path.stat()
    return str(path), state.st_size, state.st_mtime_ns, state.st_ino


@lru_cache(maxsize=8)
def _hash_of(files: tuple[_State, ...]) -> str:
    """Files are read again only when sizes or times have changed."""
    digest = hashlib.blake2b(digest_size=16)
    for name, size, *_ in files:
        path = Path(name)
        digest.update(f"{path.name}\0{size}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as file:
            if size < WHOLE_BELOW:
                digest.update(file.read())
                continue
            for i in range(_SAMPLES):
                file.seek((size - _SAMPLE_BYTES) * i // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()

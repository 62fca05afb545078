"""Writing a file as a whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from loguru import logger

from hedge_tasks.errors import DataError

_PART = re.compile(r"\.[0-9a-f]{32}\.part")
"""End of the name of an unfinished file of ours; browsers and downloaders have .part files, too."""

_ABANDONED_S = 86_400
"""Age at which an unfinished file counts as left behind."""

_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF, errno.EACCES}
"""Answers of file systems (SMB, FUSE) that cannot make what was written durable; what was written is there."""


def write_whole(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a file that appears as a whole or not at all, whenever the process dies. A text is written as UTF-8.

    Args:
        content: all of it, or its pieces where it should not be in memory at once.

    What writers that died before they were done left behind in the folder a day ago is removed.

    Raises:
        DataError: the folder is missing or cannot be written, or the disk is full.
    """
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        _remove_abandoned(path.parent)
        with unfinished.open("wb") as file:
            whole = content.encode() if isinstance(content, str) else content
            file.writelines([whole] if isinstance(whole, bytes) else whole)
            file.flush()
            sync(file.fileno(), path.parent)
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def sync(descriptor: int, folder: Path) -> None:
    """Make what was written durable, where the file system can; where it cannot, warn once for each folder.

    Raises:
        OSError: it could not be written, as on a full disk.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
        _warn_of_no_sync(folder)


def sync_folder(folder: Path) -> None:
    """Make a folder's new entry durable, which syncing the file alone does not."""
    if os.name == "nt":
        return  # folders cannot be opened there
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
        _warn_of_no_sync(folder)
        return
    try:
        sync(descriptor, folder)
    finally:
        os.close(descriptor)


@cache
def _warn_of_no_sync(folder: Path) -> None:
    logger.warning(
        "{}: this file system does not say when files are on disk (SMB, FUSE): after a power failure the last ones may "
        "be missing",
        folder,
    )


def _remove_abandoned(folder: Path) -> None:
    for file in folder.glob("*.part"):
        with suppress(OSError):  # another process may be quicker
            if _PART.search(file.name) and time.time() - file.stat().st_mtime > _ABANDONED_S:
                file.unlink(missing_ok=True)

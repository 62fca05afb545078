"""Writing a file as a whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
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

    A link stays: what it leads to is written.

    Args:
        content: all of it, or its pieces where it should not be in memory at once.

    What writers that died before they were done left behind in the folder a day ago is removed.

    Raises:
        DataError: the folder is missing or cannot be written, the disk is full, or a folder, device, pipe or loop of
            links has the name.
    """
    target = Path(os.path.realpath(path))
    unfinished = Path(f"{target}.{uuid.uuid4().hex}.part")
    if os.path.lexists(target) and not target.is_file():
        raise DataError(f"cannot write {path}: there is something of that name that is no file")
    try:
        _remove_abandoned(target.parent)
        with unfinished.open("wb") as file:
            whole = content.encode() if isinstance(content, str) else content
            file.writelines([whole] if isinstance(whole, bytes) else whole)
            file.flush()
            sync(file.fileno(), target.parent)
        unfinished.replace(target)
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
    with _where_it_can(folder):
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a folder's new entry durable, which syncing the file alone does not."""
    if os.name == "nt":
        return  # folders cannot be opened there
    with _where_it_can(folder):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _where_it_can(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
        _warn_of_no_sync(folder)


@cache
def _warn_of_no_sync(folder: Path) -> None:
    logger.warning("{}: this file system (SMB, FUSE) cannot sync: a power failure may lose the last files", folder)


def _remove_abandoned(folder: Path) -> None:
    for file in folder.glob("*.part"):
        with suppress(OSError):  # another process may be quicker
            if _PART.search(file.name) and time.time() - file.stat().st_mtime > _ABANDONED_S:
                file.unlink(missing_ok=True)

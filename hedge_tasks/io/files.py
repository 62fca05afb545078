"""Writing a file as a whole or not at all."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hedge_tasks.errors import DataError

_PART = re.compile(r"\.(?P<host>[A-Za-z0-9-]+)\.(?P<process>\d+)\.part$")
_ABANDONED_S = 86_400
"""Age at which an unfinished file of another host counts as left behind."""


def write_whole(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a file that appears as a whole or not at all, whenever the process dies. A text is written as UTF-8.

    Args:
        content: all of it, or its pieces where it should not be in memory at once.

    What writers that died before they were done have left behind in the folder is removed.

    Raises:
        DataError: the folder is missing or cannot be written, or the disk is full.
    """
    unfinished = path.with_name(f"{path.name}.{_host()}.{os.getpid()}.part")
    try:
        _remove_abandoned(path.parent)
        with unfinished.open("wb") as file:
            whole = content.encode() if isinstance(content, str) else content
            file.writelines([whole] if isinstance(whole, bytes) else whole)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40] or "host"


def _remove_abandoned(folder: Path) -> None:
    for file in folder.glob("*.part"):
        found = _PART.search(file.name)
        if found is None:
            continue
        with suppress(OSError):  # another process may be quicker
            if found["host"] == _host():
                dead = not _is_running(int(found["process"]))
            else:
                dead = time.time() - file.stat().st_mtime > _ABANDONED_S
            if dead:
                file.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":
        return True  # there, asking with a signal would end it
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True

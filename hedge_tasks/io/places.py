"""Places that hold files: folders of this machine, and what fsspec reaches by a URL (`s3://`, `gs://`, `memory://`)."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hedge_tasks.errors import ConfigError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^\\]")
"""A URL, also after `pathlib` has made one slash of two."""


@dataclass(frozen=True)
class Remote:
    """A folder or a file that fsspec reaches. There a file is written as a whole, and nothing can be appended to it.

    Attributes:
        url: Its address, without a slash at the end.
    """

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    def listed(self, prefix: str, suffix: str) -> list[Remote]:
        """The files in a folder whose names begin and end so, sorted; none where there is no folder.

        Raises:
            OSError: It cannot be reached.
        """
        self._call("invalidate_cache")
        try:
            entries = self._call("ls", detail=False)
        except FileNotFoundError:
            return []
        names = sorted(str(entry).rstrip("/").rpartition("/")[2] for entry in entries)
        return [self / name for name in names if name.startswith(prefix) and name.endswith(suffix)]

    def size(self) -> int:
        """Bytes. Raises OSError."""
        return int(self._call("info")["size"])

    def read_bytes(self) -> bytes:
        """Raises OSError."""
        return bytes(self._call("cat_file"))

    def write(self, content: bytes) -> None:
        """Write the file, which appears as a whole or not at all. Raises OSError."""
        self._call("pipe_file", content)

    def remove(self) -> None:
        """Raises OSError."""
        self._call("rm_file")

    def _call(self, method: str, *content: bytes, **options: Any) -> Any:
        """Call a method of the file system for this path; whatever a protocol's package raises becomes an OSError."""
        from fsspec.core import url_to_fs

        try:
            system, path = url_to_fs(self.url)
            return getattr(system, method)(path, *content, **options)
        except OSError:
            raise
        except Exception as error:
            raise OSError(f"{type(error).__name__}: {error}") from error


Place = Path | Remote
"""A folder or a file, here or elsewhere."""


def size_of(file: Place) -> int:
    """Bytes of a file. Raises OSError."""
    return file.stat().st_size if isinstance(file, Path) else file.size()


def is_url(text: str) -> bool:
    """Whether a text is the address of something that is not in a folder of this machine."""
    return _URL.match(text) is not None


def place(text: str, setting: str) -> Place:
    """Return the place that a text names.

    Args:
        setting: What names it, for messages.

    Raises:
        ConfigError: The URL's protocol is unknown, or its package is not installed.
    """
    if not is_url(text):
        return Path(text)
    protocol = text.partition(":")[0]
    if protocol == "file":
        return Path(re.sub(r"^file:/+", "/", text))
    import fsspec

    try:
        fsspec.get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        raise ConfigError(f"{setting}={text}: {error}") from error
    return Remote(re.sub(":/+", "://", text, count=1).rstrip("/"))


@cache
def check_writable(folder: Remote, setting: str) -> None:
    """Write a small file and remove it: what cannot be reached is found out now and not after hours.

    Raises:
        ConfigError: It cannot be written.
    """
    trial = folder / f"writable-{uuid.uuid4().hex}"
    try:
        trial.write(b"hedge_tasks\n")
    except OSError as error:
        # Some servers, such as Ceph's, send a code and no words: what fsspec makes of it is empty.
        raise ConfigError(f"{setting}={folder}: cannot be written: {error.__cause__ or error}") from error
    with suppress(OSError):  # who may write need not be allowed to remove
        trial.remove()


def local(text: str, setting: str) -> Path:
    """A folder or a file of this machine.

    Raises:
        ConfigError: It is a URL, of which `pathlib` would silently make a folder named after the protocol.
    """
    if is_url(text):
        raise ConfigError(f"{setting}={text}: this has to be a folder or a file of this machine, not a URL")
    return Path(text)

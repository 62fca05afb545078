"""Pictures in the cells of a table, and the files behind their names."""

from __future__ import annotations

import base64
import binascii
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from hedge_tasks.data import dicom
from hedge_tasks.data.pictures import LARGEST_FILE, PICTURE_FILES, UNREADABLE_ERRORS, picture_of
from hedge_tasks.errors import DataError
from hedge_tasks.io.downloads import download
from hedge_tasks.io.outside import shown

_DATA_URI = re.compile(r"data:image/[\w.+-]+;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]{80,}={0,2}\s*")
_ENDINGS = (*PICTURE_FILES, ".dcm", ".dicom", ".jp2", ".jfif")
_MOST_FILES = 2_000_000
_NUMBER = re.compile(r"[0-9]{1,18}$")


def is_picture(value: object) -> bool:
    """Whether a cell is a picture by itself: a file's bytes, base64, an address of a picture, or the first of a list.

    Example:
        >>> is_picture("https://example.org/a.png"), is_picture("a.png")
        (True, False)
    """
    if isinstance(value, (list, tuple)):
        return bool(value) and is_picture(value[0])
    if isinstance(value, Mapping):
        return is_picture(value.get("bytes"))
    if isinstance(value, (bytes, bytearray)):
        return dicom.is_dicom(bytes(value)) or _opens(bytes(value))
    if not isinstance(value, str):
        return False
    return (value.startswith("https://") and value.lower().endswith(_ENDINGS)) or _base64(value) is not None


def names_picture(value: object) -> bool:
    """Whether a cell ends as the name of a picture's file does, or the first of a list."""
    value = value[0] if isinstance(value, (list, tuple)) and value else value
    return isinstance(value, str) and "\n" not in value and value.lower().endswith(_ENDINGS)


def _opens(content: bytes) -> bool:
    try:
        with picture_of(content):
            return True
    except UNREADABLE_ERRORS:
        return False


def _base64(text: str) -> bytes | None:
    """The bytes of a picture in a text; None where it is something else."""
    coded = _DATA_URI.sub("", text, count=1) if text.startswith("data:") else text
    if not _BASE64.fullmatch(coded):
        return None
    try:
        content = base64.b64decode(coded, validate=False)
    except (binascii.Error, ValueError):
        return None
    return content if _opens(content) else None


class PictureFiles:
    """The pictures below a folder, by the names that a table has for them.

    A name counts from the folder. One that lies deeper ("p00.jpg" for `images/p00.jpg`), or has lost its ending, is
    found where a single file fits; so is a number that one file alone ends in (42 for COCO_val2014_000000000042.jpg).

    Args:
        outside: whether names may lead out of the folder: absolute ones, `..` and links.
    """

    def __init__(self, folder: Path, *, outside: bool = False) -> None:
        self.folder = folder
        self._outside = outside
        self._root = folder.resolve()
        self._by_name: dict[str | int, list[PurePosixPath]] | None = None

    def any(self) -> bool:
        """Whether there is a picture in the folder."""
        return bool(self._index())

    def has(self, value: object) -> bool:
        """Whether files may fit a name, or the name in a record or at the head of a list; `path` says which."""
        if isinstance(value, (list, tuple)):
            return bool(value) and self.has(value[0])
        try:
            name = value.get("path") if isinstance(value, Mapping) else value
            return self.path(str(name)).is_file()
        except DataError:
            return True
        except OSError:
            return False

    def path(self, name: str) -> Path:
        """The file of that name.

        Raises:
            DataError: there is none, several fit, or it lies outside of the folder.
        """
        plain = name.strip().replace("\\", "/")
        if "\0" in plain or not plain:
            raise DataError(f"{shown(name)} is no name of a file")
        direct = self.folder / plain
        try:
            exists = direct.is_file()
        except OSError:
            exists = False
        if not exists and not PurePosixPath(plain).is_absolute() and ".." not in PurePosixPath(plain).parts:
            fitting = self._fitting(_plain(plain.removeprefix("./")))
            if len(fitting) > 1:
                raise DataError(f"the picture {shown(name)} may be one of several: {', '.join(map(str, fitting[:3]))}")
            direct = self.folder / fitting[0] if fitting else direct
        if not self._outside and not direct.resolve().is_relative_to(self._root):
            raise DataError(f"the picture {shown(name)} lies outside of {self.folder}, which only --outside allows")
        return direct

    def _fitting(self, name: str) -> list[PurePosixPath]:
        """The files whose path ends in a name, with their ending or without; by its number where none does."""
        index, parts = self._index(), name.split("/")
        matching = [
            file for file in index.get(parts[-1], []) if _plain(str(file)).split("/")[-len(parts) : -1] == parts[:-1]
        ]
        return matching or (index.get(int(name), []) if name.isdecimal() else [])

    def _index(self) -> Mapping[str | int, list[PurePosixPath]]:
        """Files by their names, their names without ending, and the numbers that these end in."""
        if self._by_name is None:
            self._by_name, n_files = defaultdict(list), 0
            for place, folders, names in os.walk(self.folder):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                n_files += len(names)
                for name in sorted(name for name in names if name.lower().endswith(_ENDINGS)):
                    inside = PurePosixPath(Path(place).relative_to(self.folder).as_posix()) / name
                    stem = _plain(name).rpartition(".")[0]
                    number = _NUMBER.search(stem)
                    keys: set[str | int] = {_plain(name), stem, int(number[0]) if number else stem}
                    for key in keys:
                        self._by_name[key].append(inside)
                if n_files > _MOST_FILES:
                    break
        return self._by_name


def _plain(name: str) -> str:
    """A name as files are found by: in lower case, composed (a Mac writes é as two characters)."""
    return unicodedata.normalize("NFC", name).lower()


def content_of(value: object, files: PictureFiles) -> bytes:
    """The bytes of a picture's file; of DICOM as PNG.

    Args:
        value: bytes, `{"bytes", "path"}`, an https:// address, base64, or the name of a file.

    Raises:
        DataError: there is none, or the file cannot be had.
    """
    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)  # a number that names a file
    if isinstance(value, (bytes, bytearray)):
        content = bytes(value)
    elif value is None or (isinstance(value, str) and not value.strip()):
        raise DataError("no picture")
    elif not isinstance(value, str):
        raise DataError(f"expected a picture, got {shown(value)}")
    else:
        content = _read_named(value, files)
    return dicom.as_png(content, shown(value)) if dicom.is_dicom(content) else content


def _read_named(value: str, files: PictureFiles) -> bytes:
    if (content := _base64(value)) is not None:
        return content
    try:
        if "://" in value:
            return download(value)
        path = files.path(value)
        if path.stat().st_size > LARGEST_FILE:
            raise DataError(f"the picture {shown(value)}: larger than {LARGEST_FILE >> 20} MiB")
        return path.read_bytes()
    except DataError:
        raise
    except Exception as error:  # file system or network: many kinds, and all mean the same to the user
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        where = "" if "://" in value else f" (from {files.folder})"
        raise DataError(f"the picture {value[:200]!r}{where} cannot be had: {reason}") from None

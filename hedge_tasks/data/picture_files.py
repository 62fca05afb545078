"""Pictures in the cells of a table, and the files behind their names."""

from __future__ import annotations

import base64
import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from hedge_tasks.errors import DataError, first_line
from hedge_tasks.io.outside import read_bytes, shown

LARGEST_FILE = 256 << 20
"""Bytes of a picture's file at most."""

PICTURE_FILES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif")
"""Endings of files that hold a picture."""

_BASE64 = re.compile(r"(?:data:image/[\w.+-]+;base64,)?((?:iVBOR|/9j/|R0lG|UklG|Qk)[A-Za-z0-9+/]{70,}={0,2}\s*)")
"""A PNG, JPEG, GIF, WebP or BMP file in base64, by its first bytes."""
_ENDINGS = (*PICTURE_FILES, ".dcm", ".dicom", ".jp2", ".jfif")
_NUMBER = re.compile(r"[0-9]{1,18}$")


def is_picture(value: object) -> bool:
    """Whether a cell is a picture or names its file: bytes, base64, such a name, `{bytes, path}`, or a list of these.

    Example:
        >>> is_picture("https://example.org/a.png"), is_picture("a.png"), is_picture("a png")
        (True, True, False)
    """
    if isinstance(value, (list, tuple)):
        return bool(value) and is_picture(value[0])
    if isinstance(value, Mapping):
        return is_picture(value.get("bytes") or value.get("path"))
    if isinstance(value, str):
        return "\n" not in value and (value.lower().endswith(_ENDINGS) or _BASE64.fullmatch(value) is not None)
    return isinstance(value, (bytes, bytearray))


class PictureFiles:
    """The pictures below a folder, by the names that a table has for them.

    A name counts from the folder. One that lies deeper ("p00.jpg" for `images/p00.jpg`), or has lost its ending, is
    found where a single file fits; so is a number that one file alone ends in (42 for COCO_val2014_000000000042.jpg).
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._by_name: dict[object, list[PurePosixPath]] | None = None

    def any(self) -> bool:
        """Whether there is a picture in the folder."""
        return bool(self._index())

    def path(self, name: str) -> Path | None:
        """The file of that name; None where there is none.

        Raises:
            DataError: several fit and differ, or it lies outside of the folder.
        """
        plain = name.strip().replace("\\", "/")
        direct = self.folder / plain
        if not os.path.isfile(direct):  # of a name that cannot be one, too: with a null byte, or too long
            files = [self.folder / file for file in self._fitting(PurePosixPath(_plain(plain)))]
            if len(files) > 1 and len({file.read_bytes() for file in files}) > 1:
                places = ", ".join(map(str, files[:3]))
                raise DataError(f"the picture {shown(name)} may be one of several that differ: {places}")
            if not files:
                return None
            direct = files[0]
        # Wherever a link or `..` leads: a folder from elsewhere must not show other files of this machine.
        if not Path(os.path.realpath(direct)).is_relative_to(os.path.realpath(self.folder)):
            raise DataError(f"the picture {shown(name)} lies outside of {self.folder}; copy it there, or say --images")
        return direct

    def _fitting(self, name: PurePosixPath) -> list[PurePosixPath]:
        """The files whose path ends in a name, with their ending or else without; by its number where none does."""
        keys = (name, name.with_suffix("") if name.name else name, *([int(str(name))] if str(name).isdecimal() else []))
        return next((self._index()[key] for key in keys if key in self._index()), [])

    def _index(self) -> Mapping[object, list[PurePosixPath]]:
        """Files by the ends of their paths, with ending and without, and by the numbers that these end in."""
        if self._by_name is None:
            by_name: dict[object, list[PurePosixPath]] = defaultdict(list)
            for place, folders, names in os.walk(self.folder):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in sorted(name for name in names if name.lower().endswith(_ENDINGS)):
                    inside = PurePosixPath(Path(place).relative_to(self.folder).as_posix()) / name
                    parts = PurePosixPath(_plain(str(inside))).parts
                    ends = [PurePosixPath(*parts[i:]) for i in range(len(parts))]
                    number = _NUMBER.search(ends[-1].stem)
                    for key in {*ends, *(end.with_suffix("") for end in ends), *([int(number[0])] if number else [])}:
                        by_name[key].append(inside)
            self._by_name = by_name  # whole: other threads read it meanwhile
        return self._by_name


def _plain(name: str) -> str:
    """A name as files are found by: in lower case, composed (a Mac writes é as two characters)."""
    return unicodedata.normalize("NFC", name).lower()


def content_of(value: object, files: PictureFiles) -> bytes:
    """The bytes of a picture's file; of DICOM as PNG.

    Args:
        value: bytes, `{"bytes", "path"}`, an https:// address, base64, or the name of a file, which may be a number; a
            `Path` is that file itself.

    Raises:
        DataError: there is none, or the file cannot be had.
    """
    from hedge_tasks.data import dicom

    if isinstance(value, Mapping):
        value = value.get("bytes") or value.get("path")
    if value is None or value == "" or isinstance(value, bool):
        raise DataError("no picture")
    if not isinstance(value, (str, int, bytes, bytearray, Path)):
        raise DataError(f"expected a picture, got {shown(value)}")
    content = bytes(value) if isinstance(value, (bytes, bytearray)) else _read_named(value, files)
    return dicom.as_png(content, shown(value)) if dicom.is_dicom(content) else content


def _read_named(value: str | int | Path, files: PictureFiles) -> bytes:
    from hedge_tasks.io.downloads import download

    if match := _BASE64.fullmatch(str(value)):
        return base64.b64decode(match[1])
    if isinstance(value, str) and "://" in value:
        try:
            return download(value)
        except Exception as error:  # network: many kinds, and all mean the same to the user
            raise DataError(f"the picture {value[:200]!r} cannot be had: {first_line(error)}") from None
    path = value if isinstance(value, Path) else files.path(str(value))
    if path is None:
        raise DataError(f"there is no picture {shown(value)} in {files.folder}")
    return read_bytes(path, LARGEST_FILE)

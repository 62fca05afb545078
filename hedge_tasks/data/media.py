"""Pictures, videos and sounds in the cells of a table, and the files behind their names."""

from __future__ import annotations

import base64
import binascii
import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from hedge_tasks.data import dicom
from hedge_tasks.data.pictures import LARGEST_FILE, PICTURE_FILES, UNREADABLE_ERRORS, picture_of
from hedge_tasks.errors import DataError
from hedge_tasks.io.downloads import download
from hedge_tasks.io.outside import shown

Medium = Literal["pictures", "video", "audio", "volumes"]

_ENDINGS: Mapping[Medium, tuple[str, ...]] = {
    "pictures": (*PICTURE_FILES, ".dcm", ".dicom", ".jp2", ".jfif", ".heic", ".ppm", ".pgm", ".svg", ".avif"),
    "video": (".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg", ".wmv"),
    "audio": (".wav", ".mp3", ".flac", ".ogg", ".m4a", ".aac", ".opus"),
    "volumes": (".nii", ".nii.gz", ".npy", ".npz", ".mha", ".mhd", ".nrrd", ".svs", ".h5", ".pt"),
}
_STILL = (b"avif", b"heic", b"heix", b"mif1")
"""Brands of ISO files that hold a picture."""

_LONGEST_NAME = 1024
_DATA_URI = re.compile(r"data:(image|video|audio)/[\w.+-]+;base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/\s]{80,}={0,2}\s*")
_MOST_FILES = 2_000_000
_NUMBER = re.compile(r"[0-9]{1,18}$")


def medium_of(value: object) -> Medium | None:
    """Medium of a cell, by its bytes or the end of its name; of a list by its first; None for other cells."""
    if isinstance(value, (list, tuple)):
        return next((medium for item in value if (medium := medium_of(item))), None)
    if isinstance(value, Mapping):
        if not {"bytes", "path"} & value.keys():
            return None
        return medium_of(value.get("bytes")) or medium_of(value.get("path"))
    if isinstance(value, (bytes, bytearray)):
        return _medium_of_bytes(bytes(value))
    return _medium_of_text(value) if isinstance(value, str) else None


def _medium_of_text(text: str) -> Medium | None:
    if match := _DATA_URI.match(text):
        return {"image": "pictures", "video": "video", "audio": "audio"}[match[1]]  # type: ignore[return-value]
    if len(text) > _LONGEST_NAME or "\n" in text.strip():
        return "pictures" if _base64(text) is not None else None
    plain = text.strip().lower().split("?")[0] if "://" in text else text.strip().lower()
    named = next((medium for medium, endings in _ENDINGS.items() if plain.endswith(endings)), None)
    return named or ("pictures" if _base64(text) is not None else None)


def _medium_of_bytes(content: bytes) -> Medium | None:
    if (content[4:8] == b"ftyp" and content[8:12] not in _STILL) or content[:4] == b"\x1aE\xdf\xa3":
        return "video"
    if (content[:4] in (b"RIFF", b"OggS", b"fLaC") and content[8:12] != b"WEBP") or content[:3] == b"ID3":
        return "video" if content[8:11] == b"AVI" else "audio"
    if dicom.is_dicom(content):
        return "pictures"
    try:
        with picture_of(content):
            return "pictures"
    except UNREADABLE_ERRORS:
        return None


def _base64(text: str) -> bytes | None:
    """The bytes of a picture in a text; None where it is something else."""
    coded = _DATA_URI.sub("", text, count=1) if text.startswith("data:") else text
    if not _BASE64.fullmatch(coded):
        return None
    try:
        content = base64.b64decode(coded, validate=False)
    except (binascii.Error, ValueError):
        return None
    return content if _medium_of_bytes(content) == "pictures" else None


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
        self._by_stem: dict[str, list[PurePosixPath]] | None = None
        self._by_number: dict[int, list[PurePosixPath]] = {}

    def any(self) -> bool:
        """Whether there is a picture, video or sound in the folder."""
        return bool(self._index())

    def has(self, name: str) -> bool:
        """Whether a file fits the name."""
        try:
            return self.path(name).is_file()
        except (DataError, OSError):
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
            fitting = self._fitting(PurePosixPath(plain))
            if len(fitting) > 1:
                raise DataError(f"the picture {shown(name)} may be one of several: {', '.join(map(str, fitting[:3]))}")
            direct = self.folder / fitting[0] if fitting else direct
        if not self._outside and not direct.resolve().is_relative_to(self._root):
            raise DataError(f"the picture {shown(name)} lies outside of {self.folder}, which only --outside allows")
        return direct

    def _fitting(self, name: PurePosixPath) -> list[PurePosixPath]:
        parts = tuple(_plain(part) for part in name.parts if part != ".")
        if not parts:
            return []
        with_ending = any(parts[-1].endswith(endings) for endings in _ENDINGS.values())
        stem = parts[-1].rpartition(".")[0] if with_ending else parts[-1]
        matching = []
        for file in self._index().get(stem, ()):
            own = tuple(_plain(part) for part in file.parts)
            last = own[-1] if with_ending else own[-1].rpartition(".")[0]
            if (*own[:-1], last)[-len(parts) :] == parts:
                matching.append(file)
        if not matching and len(parts) == 1 and stem.isdecimal():
            self._by_number = self._by_number or self._numbered()
            return self._by_number.get(int(stem), [])
        return matching

    def _numbered(self) -> dict[int, list[PurePosixPath]]:
        """Files by the number that their names end in."""
        numbered: dict[int, list[PurePosixPath]] = {}
        for stem, files in self._index().items():
            if match := _NUMBER.search(stem):
                numbered.setdefault(int(match[0]), []).extend(files)
        return numbered

    def _index(self) -> Mapping[str, list[PurePosixPath]]:
        if self._by_stem is None:
            self._by_stem, n_files = {}, 0
            for place, folders, names in os.walk(self.folder):
                folders[:] = sorted(name for name in folders if not name.startswith("."))
                for name in sorted(names):
                    n_files += 1
                    if any(name.lower().endswith(endings) for endings in _ENDINGS.values()):
                        inside = PurePosixPath(Path(place).relative_to(self.folder).as_posix()) / name
                        self._by_stem.setdefault(_plain(name).rpartition(".")[0], []).append(inside)
                if n_files > _MOST_FILES:
                    break
        return self._by_stem


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

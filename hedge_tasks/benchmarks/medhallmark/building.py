"""A local data set out of Med-HallMark's JSON files and a user's own copies of the images. Nothing is downloaded."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hedge_tasks.benchmarks.medhallmark.released import Item, oddities, read_part
from hedge_tasks.errors import DataError

DATASET = "ydk122024/Med-HallMark"
"""Name of the data set in task YAMLs: that of its repository on GitHub. It is not on the hub."""

SOURCES = {
    "conventional": "VQA-RAD",
    "confidence": "VQA-RAD",
    "counterfactual": "SLAKE",
    "irg": "MIMIC-CXR-JPG (credentialed access on PhysioNet) and OpenI",
}
"""Where the images come from, each under a licence of its own."""

_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif")


@dataclass(frozen=True)
class BuiltPart:
    """What came of one part.

    Attributes:
        file: what was written; None where no item had an image.
        items: in the JSON file.
        built: with an image.
        missing: names of images that were not found.
        unreadable: names of images that were found and are no images.
        oddities: see `released`.
    """

    part: str
    file: Path | None
    items: int
    built: int
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]
    oddities: tuple[str, ...]


def build(json_folder: Path, image_folder: Path, out: Path, parts: Sequence[str]) -> list[BuiltPart]:
    """Write `OUT/<id with / written __>/<part>/test.parquet`, one folder a part.

    Args:
        json_folder: with the released files; see `released.find_file`.
        image_folder: searched with all its folders; see `ImageFolder`.
        out: what HEDGE_DATA_DIR will name; made if missing.

    Raises:
        DataError: a JSON file or folder is missing or damaged, or an image's name fits different images.
    """
    items = {part: read_part(json_folder, part) for part in parts}
    images = ImageFolder(image_folder)
    return [_build_part(part, items[part], images, out) for part in parts]


class ImageFolder:
    """The images below a folder, found by the end of their names.

    "rad/synpic1.jpg" is found as `.../synpic1.jpg`; "slake/xmlab1/source.jpg", whose file name says nothing, as
    `.../xmlab1/source.jpg`. Capitals and the kind of image file (jpg, png, ...) do not matter.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder} is not a folder")
        self._files: dict[str, list[Path]] = {}
        for place, folders, names in os.walk(folder):
            folders.sort()
            for name in sorted(names):
                path = Path(place) / name
                if path.suffix.lower() in _SUFFIXES:
                    self._files.setdefault(_key(path.as_posix()), []).append(path)

    def read(self, name: str) -> bytes | None:
        """The bytes of an image; None if there is none of that name.

        Raises:
            DataError: several files fit and differ.
        """
        found = self._files.get(_key(name), [])
        contents = {path: path.read_bytes() for path in found}
        if len(set(contents.values())) > 1:
            places = ", ".join(map(str, found[:3]))
            raise DataError(f"the image {name!r} may be one of several that differ: {places}")
        return next(iter(contents.values()), None)


def _key(name: str) -> str:
    path = PurePosixPath(name.lower()).with_suffix("")
    return "/".join(path.parts[-2:] if path.name == "source" else path.parts[-1:])


def _build_part(part: str, items: Sequence[Item], images: ImageFolder, out: Path) -> BuiltPart:
    from datasets import Dataset, Features, Image, Value

    pictures = {name: images.read(name) for name in dict.fromkeys(item.image for item in items)}
    missing = tuple(name for name, content in pictures.items() if content is None)
    unreadable = tuple(name for name, content in pictures.items() if content is not None and not _is_image(content))
    usable = {name: content for name, content in pictures.items() if content is not None and name not in unreadable}
    rows = [_row(item, usable) for item in items if item.image in usable]
    file = out / DATASET.replace("/", "__") / part / "test.parquet" if rows else None
    if file is not None:
        texts = {name: Value("string") for name in rows[0] if name not in ("image", "suspect")}
        features = Features({**texts, "suspect": Value("bool"), "image": Image()})
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            partial = file.with_name(".test.parquet.partial")
            Dataset.from_list(rows, features=features).to_parquet(partial)
            partial.replace(file)
        except OSError as error:
            raise DataError(f"cannot write {file}: {error.strerror}") from error
    return BuiltPart(part, file, len(items), len(rows), missing, unreadable, tuple(oddities(part, items)))


def _row(item: Item, images: Mapping[str, bytes]) -> dict[str, object]:
    return {
        "id": item.id,
        "question": item.question,
        "prefix": item.prefix,
        "reference": item.reference,
        "image_name": item.image,
        "judged_answer": item.answer,
        "judged_category": item.category,
        "suspect": item.suspect,
        "image": {"bytes": images[item.image], "path": item.image},
    }


def _is_image(content: bytes) -> bool:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            image.verify()
    except (OSError, ValueError, SyntaxError):  # what PIL raises for a file that is no image
        return False
    return True

"""A local data set out of Med-HallMark's JSON files and a user's own copies of the images. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hedge_tasks.data.local_data import ImageFolder, ReadImage, image_faults, named, write_rows
from hedge_tasks.evaluations.medhallmark.released import Item, oddities, read_part

DATASET = "ydk122024/Med-HallMark"
"""Name of the data set in task YAMLs: that of its repository on GitHub. It is not on the hub."""

SOURCES = {
    "conventional": "VQA-RAD",
    "confidence": "VQA-RAD",
    "counterfactual": "SLAKE",
    "irg": "MIMIC-CXR-JPG (credentialed access on PhysioNet) and OpenI",
}
"""Where the images come from, each under a licence of its own."""

_TEXTS = ("id", "question", "prefix", "reference", "image_name", "judged_answer", "judged_category")


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


def _build_part(part: str, items: Sequence[Item], images: ImageFolder, out: Path) -> BuiltPart:
    from datasets import Image, Value

    faults = image_faults((item.image for item in items), images.read)
    usable = [item for item in items if faults[item.image] is None]
    file = out / DATASET.replace("/", "__") / part / "test.parquet" if usable else None
    if file is not None:
        columns = {**dict.fromkeys(_TEXTS, Value("string")), "suspect": Value("bool"), "image": Image()}
        write_rows(file, (_row(item, images.read) for item in usable), columns)
    missing, unreadable = named(faults, "missing"), named(faults, "unreadable")
    return BuiltPart(part, file, len(items), len(usable), missing, unreadable, tuple(oddities(part, items)))


def _row(item: Item, read_image: ReadImage) -> dict[str, object]:
    return {
        "id": item.id,
        "question": item.question,
        "prefix": item.prefix,
        "reference": item.reference,
        "image_name": item.image,
        "judged_answer": item.answer,
        "judged_category": item.category,
        "suspect": item.suspect,
        "image": {"bytes": read_image(item.image), "path": item.image},
    }

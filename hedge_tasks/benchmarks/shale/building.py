"""A local data set out of SHALE items and their images. Nothing is downloaded."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from hedge_tasks.benchmarks.shale.items import DATASET, DISCRIMINATIVE, SCENARIOS, TASKS, Item
from hedge_tasks.errors import DataError

FILES = {task: f"{'discriminative' if task in DISCRIMINATIVE else 'generative'}-{task}.parquet" for task in TASKS}
"""One file a type of question. A task's split is the beginning of a name, so "discriminative" is both closed types."""

_ROWS_AT_ONCE = 64

ReadImage = Callable[[str], bytes | None]


@dataclass(frozen=True)
class Built:
    """What was written.

    Attributes:
        files: by type of question.
        rows: number of rows of each.
        missing: names of images that are not there or lie outside the folder.
        unreadable: names of images that are none.
    """

    files: dict[str, Path]
    rows: dict[str, int]
    missing: tuple[str, ...]
    unreadable: tuple[str, ...]


def build(items: Sequence[Item], read_image: ReadImage, out: Path) -> Built:
    """Write `OUT/BeiiiY__SHALE/<FILES>`. All scenarios of an item follow each other, so that --limit keeps pairs.

    Args:
        read_image: name of an image -> its bytes, None if there is none.
        out: what HEDGE_DATA_DIR will name; made if missing.

    Raises:
        DataError: no item has an image, or the files cannot be written.
    """
    faults = _faults(items, read_image)
    usable = [item for item in items if faults[item.image] is None]
    if not usable:
        raise DataError(f"none of the {len(faults)} images can be read")
    clean_images = {item.id: item.image for item in usable if item.scenario == SCENARIOS[0]}
    folder = out / DATASET.replace("/", "__")
    files, rows = {}, {}
    for task in TASKS:
        mine = _in_order([item for item in usable if item.task == task])
        if mine:
            files[task], rows[task] = folder / FILES[task], len(mine)
            _write(folder / FILES[task], (_row(item, clean_images, read_image) for item in mine))
    return Built(files, rows, *_named(faults))


def image_faults(items: Iterable[Item], read_image: ReadImage) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the items' images that are missing, and of those that are none."""
    return _named(_faults(items, read_image))


def image_folder(folder: Path) -> ReadImage:
    """Reads images by their name relative to a folder; names that lead out of it are not there."""
    root = folder.resolve()

    def read(name: str) -> bytes | None:
        try:
            path = (root / name).resolve()
            if not (path.is_relative_to(root) and path.is_file()):
                return None
        except (OSError, ValueError):  # a name that cannot be one: with a null byte, or too long
            return None
        return path.read_bytes()

    return read


def _faults(items: Iterable[Item], read_image: ReadImage) -> dict[str, str | None]:
    return {name: _fault(read_image(name)) for name in dict.fromkeys(item.image for item in items)}


def _named(faults: Mapping[str, str | None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    missing, unreadable = (
        tuple(name for name, fault in faults.items() if fault == kind) for kind in ("missing", "unreadable")
    )
    return missing, unreadable


def _in_order(items: Iterable[Item]) -> list[Item]:
    place: dict[str, int] = {}
    listed = [(place.setdefault(item.id, len(place)), SCENARIOS.index(item.scenario), item) for item in items]
    return [item for _, _, item in sorted(listed, key=lambda entry: entry[:2])]


def _row(item: Item, clean_images: dict[str, str], read_image: ReadImage) -> dict[str, Any]:
    return {
        **asdict(item),
        "id": f"{item.id}-{item.scenario}",
        "pair": item.id,
        # Questions about one picture stay together when intervals are resampled, also when the picture is perturbed.
        "group": clean_images.get(item.id, item.image),
        "image_name": item.image,
        # The paper's judge reads both ("Image Information" and "Related Facts", Figure 4).
        "known": " ".join(filter(None, (item.description, item.facts))),
        "image": {"bytes": read_image(item.image), "path": item.image},
    }


def _write(file: Path, rows: Iterator[dict[str, Any]]) -> None:
    """In pieces: the released set is larger than memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features, Image, Value

    names = (*(field.name for field in fields(Item) if field.name != "image"), "pair", "group", "image_name", "known")
    texts = {name: Value("string") for name in names}
    schema = Features({**texts, "image": Image()}).arrow_schema
    partial = file.with_name(f".{file.name}.partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(partial, schema) as writer:
            while piece := list(islice(rows, _ROWS_AT_ONCE)):
                writer.write_table(pa.Table.from_pylist(piece, schema=schema))
        partial.replace(file)
    except OSError as error:
        raise DataError(f"cannot write {file}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _fault(content: bytes | None) -> str | None:
    from PIL import Image

    if content is None:
        return "missing"
    try:
        with Image.open(io.BytesIO(content)) as image:
            image.verify()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):  # what PIL raises for what is no image
        return "unreadable"
    return None

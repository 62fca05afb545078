"""A small VOPE data set: pictures that tell their number by their shade, so that a scripted model can see them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, Image, List, Value
from PIL import Image as Picture

COCO = "tsunghanwu__mscoco_chair"

TRUTHS = (["dog", "person"], ["car", "bus", "person"], ["cat", "couch"], ["wine glass", "dining table"])
SHADES = (20, 90, 160, 230)
SIZE = (48, 40)


def picture(shade: int, size: tuple[int, int] = SIZE) -> bytes:
    buffer = io.BytesIO()
    Picture.new("RGB", size, (shade, shade, shade)).save(buffer, "PNG")
    return buffer.getvalue()


def build(hub: Path, dataset: str = COCO, size: tuple[int, int] = SIZE) -> None:
    """Write `hub/<dataset>/test.parquet` with the columns of tsunghanwu/mscoco_chair."""
    rows: list[dict[str, Any]] = [
        {"question_id": str(100 + i), "image": {"bytes": picture(shade, size), "path": None}, "gt_object": truth}
        for i, (shade, truth) in enumerate(zip(SHADES, TRUTHS, strict=True))
    ]
    _write(hub / dataset, rows)


def _write(folder: Path, rows: list[dict[str, Any]]) -> None:
    features = Features({"question_id": Value("string"), "image": Image(), "gt_object": List(Value("string"))})
    folder.mkdir(parents=True)
    Dataset.from_list(rows, features=features).to_parquet(folder / "test.parquet")


def number_of(image: Picture.Image) -> int:
    """Which picture this is, also after it was perturbed."""
    shade = sorted(image.convert("L").get_flattened_data())[image.width * image.height // 2]
    return min(range(len(SHADES)), key=lambda i: abs(SHADES[i] - shade))

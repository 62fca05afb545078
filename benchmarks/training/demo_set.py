"""Build the demo data set: 120 questions about 48 phantom scans.

    python -m training.demo_set             write data/demo-test.parquet
    python -m training.demo_set --check     say whether the file equals a fresh build

The set is a pure function of the constants below. It looks at no model: how hard a scan is to read is spread evenly
over the set, whatever a model makes of it.
"""

import argparse
import io
import itertools
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Features, Value
from datasets import Image as ImageFeature
from loguru import logger
from PIL import Image

from hedge_tasks.lmms.catalogue import task_folder
from training import phantom

DEMO_SEED = 3
"""Set number of the demo scans, see `phantom.scan_rng`. Training uses set 1, the held-out set is 2."""

LESION_COUNTS = (0,) * 10 + (1,) * 22 + (2,) * 8 + (3,) * 8
"""Lesions in each of the scans: enough scans of every kind for 20 questions of every type."""

QUESTIONS_PER_TYPE = 20
DIFFICULTY = phantom.Difficulty(contrast=(0.025, 0.30), blend=(0.15, 0.48))
"""Fewer plain scans than in training, so that a model has something to be unsure about."""

CLOSED_TYPES = frozenset({"presence"})
"""Question types that are answered with yes or no."""

DATA_FILE = task_folder() / "hedge_demo" / "data" / "demo-test.parquet"

FEATURES = Features(
    {
        "question_id": Value("string"),
        "image_id": Value("string"),
        "image": ImageFeature(),
        "question": Value("string"),
        "answer": Value("string"),
        "answer_type": Value("string"),
        "question_type": Value("string"),
    }
)


def draw_scans(
    seed: int = DEMO_SEED, lesion_counts: Sequence[int] = LESION_COUNTS
) -> list[tuple[phantom.Scan, np.ndarray]]:
    """Return the scans of the set, each with its picture, uint8 [size, size].

    Contrast (on a log scale) and blend are evenly spaced over their ranges and paired at random; contrast within each
    number of lesions, so that easy and hard scans occur in every question type.
    """
    rng = np.random.default_rng(seed)
    counts = rng.permutation(lesion_counts)
    contrasts = np.empty(len(counts))
    (faint, strong), (least, most) = DIFFICULTY.contrast, DIFFICULTY.blend
    for count in sorted(set(lesion_counts)):
        members = np.flatnonzero(counts == count)
        contrasts[members] = rng.permutation(np.geomspace(faint, strong, len(members)))
    blends = rng.permutation(np.linspace(least, most, len(counts)))
    ranges = zip(counts, contrasts, blends, strict=True)
    return [_draw_scan(phantom.scan_rng(seed, index), *settings) for index, settings in enumerate(ranges)]


def _draw_scan(
    rng: np.random.Generator, n_lesions: int, contrast: float, blend: float
) -> tuple[phantom.Scan, np.ndarray]:
    difficulty = phantom.Difficulty((contrast, contrast), (blend, blend))
    scan = phantom.draw_scan(rng, difficulty, n_lesions=n_lesions)
    return scan, phantom.render(scan, rng)[0]


def choose_scans(values: Sequence[str | None], hardness: Sequence[float]) -> list[int]:
    """QUESTIONS_PER_TYPE scan numbers for one question type.

    Every correct value is asked for about equally often, and the scans of a value are spread evenly from easy to hard.

    Args:
        values: Correct value for each scan; None where the question makes no sense.
        hardness: How hard the question is for each scan, on any scale.
    """
    groups = [
        sorted((i for i, v in enumerate(values) if v == value), key=lambda i: hardness[i])
        for value in sorted({v for v in values if v is not None})
    ]
    turns = itertools.zip_longest(*([number] * len(group) for number, group in enumerate(groups)))
    quotas = Counter([number for turn in turns for number in turn if number is not None][:QUESTIONS_PER_TYPE])
    return [
        group[rank]
        for number, group in enumerate(groups)
        for rank in np.linspace(0, len(group) - 1, quotas[number]).round().astype(int)
    ]


def _hardness(scan: phantom.Scan, question_type: str) -> float:
    return scan.blend if question_type == "modality" else -scan.contrast


def build_rows() -> list[dict[str, Any]]:
    """Return all rows of the set. Question types take turns, so that any first part of the set has all of them."""
    scans = draw_scans()
    rng = np.random.default_rng([DEMO_SEED, len(scans)])
    chosen = {}
    for question_type in phantom.QUESTION_TYPES:
        values = [phantom.true_values(scan).get(question_type) for scan, _ in scans]
        hardness = [_hardness(scan, question_type) for scan, _ in scans]
        chosen[question_type] = rng.permutation(choose_scans(values, hardness)).tolist()
    turns = [(q, chosen[q][turn]) for turn in range(QUESTIONS_PER_TYPE) for q in phantom.QUESTION_TYPES]
    return [_row(number, kind, index, scans[index], rng) for number, (kind, index) in enumerate(turns)]


def _row(
    number: int,
    question_type: str,
    index: int,
    scan_and_picture: tuple[phantom.Scan, np.ndarray],
    rng: np.random.Generator,
) -> dict[str, Any]:
    scan, picture = scan_and_picture
    image_id = f"scan-{index:02d}"
    return {
        "question_id": f"demo-{number:03d}",
        "image_id": image_id,
        "image": {"bytes": png(picture), "path": f"{image_id}.png"},
        "question": str(rng.choice(phantom.QUESTIONS[question_type])),
        "answer": phantom.true_values(scan)[question_type],
        "answer_type": "closed" if question_type in CLOSED_TYPES else "open",
        "question_type": question_type,
    }


def png(picture: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    phantom.to_pil(picture).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def write(
    file: Path = DATA_FILE, rows: Sequence[Mapping[str, Any]] | None = None, features: Features = FEATURES
) -> None:
    """Write rows, by default those of this set, as Parquet with the metadata of Hugging Face `datasets`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(list(build_rows() if rows is None else rows), schema=features.arrow_schema)
    # Dictionary encoding stores the picture of several questions once.
    pq.write_table(table, file, compression="zstd", use_dictionary=True)
    file.chmod(0o644)


def differences(file: Path = DATA_FILE, rows: Sequence[Mapping[str, Any]] | None = None) -> list[str]:
    """Differences between `file` and rows, by default a fresh build; empty when they are equal.

    Pictures are compared as pixels, not as PNG bytes, which depend on the zlib version. One grey level of difference is
    allowed: the last bit of `exp` may differ between processors.
    """
    stored, fresh = pq.read_table(file).to_pylist(), build_rows() if rows is None else rows
    problems = [] if len(stored) == len(fresh) else [f"{len(stored)} rows instead of {len(fresh)}"]
    for old, new in zip(stored, fresh, strict=False):
        name = next(iter(new.values()))
        problems += [
            f"{name}: {key} is {old[key]!r} instead of {new[key]!r}"
            for key in new
            if key != "image" and old[key] != new[key]
        ]
        if np.abs(_pixels(old["image"]) - _pixels(new["image"])).max() > 1:
            problems.append(f"{name}: the picture differs")
    return problems


def _pixels(image: dict[str, Any]) -> np.ndarray:
    """Grey values of an image cell of the table, int [height, width]."""
    return np.asarray(Image.open(io.BytesIO(image["bytes"])), dtype=int)


def main(arguments: Sequence[str] | None = None) -> int:
    return write_or_check(__doc__, DATA_FILE, build_rows(), FEATURES, arguments)


def write_or_check(
    description: str,
    file: Path,
    rows: Sequence[Mapping[str, Any]],
    features: Features,
    arguments: Sequence[str] | None,
) -> int:
    """Run the command of a set: write it, or with --check say how the file differs from it. Return the exit status."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the file with a fresh build, write nothing")
    if not parser.parse_args(arguments).check:
        write(file, rows, features)
        logger.info("wrote {}: {} bytes", file.name, file.stat().st_size)
        return 0
    problems = differences(file, rows)
    for problem in problems:
        logger.error(problem)
    if not problems:
        logger.info("{} equals a fresh build", file.name)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""Perturbed images per second against the reference implementation, in one run on the same images.

    python benchmarks/perturbation.py                          # generated 512 x 512 pictures
    python benchmarks/perturbation.py --images FOLDER          # your own, resized to 512 x 512

Ours: `perturb_image` in two threads, pictures ready in memory, as the adapters get them. Reference:
`hedge_bench.utils.generate_and_cache_dataset` (hedge-bench 0.1.2) with two joblib processes, which writes PNG files;
whoever uses it then reads them back, once a draw, and the last row adds that. Both do what the preset `hedge` says.
They take turns, so that a busy machine is unfair to neither, and the ratio of each turn is taken on its own.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from hedge_tasks.perturb import perturb_image
from hedge_tasks.sampling.prefetch import ordered

SIDE = 512
WORKERS = 2
N = 10


def generated(number: int) -> list[Image.Image]:
    """Smooth pictures, half of them dark as radiographs are: the Poisson draws take longer on bright ones."""
    pictures = []
    for i in range(number):
        rng = np.random.default_rng(i)
        low, high = ((0, 120), (60, 250))[i % 2]
        small = Image.fromarray(rng.integers(low, high, (9, 9, 3), dtype=np.uint8))
        pictures.append(small.resize((SIDE, SIDE), Image.Resampling.BICUBIC))
    return pictures


def from_folder(folder: Path, number: int) -> list[Image.Image]:
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if not files:
        raise SystemExit(f"no .jpg or .png files in {folder}")
    return [Image.open(path).convert("RGB").resize((SIDE, SIDE)) for path in files[:number]]


def ours(pictures: list[Image.Image]) -> None:
    """Perturb every picture N times, holding no more than a few at once."""
    draws = [(picture, seed) for picture in pictures for seed in range(N)]
    for _ in ordered(draws, lambda draw: perturb_image(draw[0], seed=draw[1]), workers=WORKERS, ahead=16):
        pass


def reference(pictures: list[Image.Image]) -> list[dict[str, Any]]:
    """Make the reference's PNG files anew in the current folder."""
    from hedge_bench.utils import generate_and_cache_dataset

    questions = [{"idx": i, "image": picture, "question": "?", "answer": ""} for i, picture in enumerate(pictures)]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return generate_and_cache_dataset("benchmark", questions, N, n_jobs=WORKERS, force_regenerate=True)


def read_back(entries: list[dict[str, Any]]) -> None:
    for entry in entries:
        for path in entry["distorted_image_paths"]:
            with Image.open(path) as image:
                image.load()


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def measure(pictures: list[Image.Image], repetitions: int) -> dict[str, list[float]]:
    """Seconds of every repetition. A first round pays for imports and for starting the processes."""
    times: dict[str, list[float]] = {"ours": [], "reference": [], "reference, read back": []}
    ours(pictures[:2])
    reference(pictures[:2])
    for _ in range(repetitions):
        times["ours"].append(seconds(lambda: ours(pictures))[0])
        written, entries = seconds(lambda: reference(pictures))
        times["reference"].append(written)
        times["reference, read back"].append(written + seconds(lambda: read_back(entries))[0])  # noqa: B023
    return times


def report(times: dict[str, list[float]], number: int) -> str:
    lines = ["| method | images/s (median) | ours is faster by: median | smallest |", "|---|---|---|---|"]
    for name, spent in times.items():
        ratios = [theirs / own for theirs, own in zip(spent, times["ours"], strict=True)]
        gain = "" if name == "ours" else f"{statistics.median(ratios):.2f}×"
        least = "" if name == "ours" else f"{min(ratios):.2f}×"
        lines.append(f"| {name} | {number * N / statistics.median(spent):.1f} | {gain} | {least} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, help="folder of .jpg or .png files")
    parser.add_argument("--number", type=int, default=8, help=f"pictures, each perturbed {N} times")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
    number = options.number
    pictures = from_folder(options.images.resolve(), number) if options.images else generated(number)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the reference writes below the current folder
        times = measure(pictures, options.repetitions)
        os.chdir("/")
    print(report(times, len(pictures)))


if __name__ == "__main__":
    main()

"""Runs of MedHallu and Med-HallMark by scripted models, through lmms-eval and a local server; see scripted_tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import medhallmark_models
import medhallu_models
from datasets import Dataset
from evaluation import evaluate
from openai_server import serve

from hedge_tasks.data.local_data import ImageFolder
from hedge_tasks.data.splits import load_split
from hedge_tasks.runs.run_files import load_runs, save_run
from hedge_tasks.suites.medhallmark.building import DATASET, build_items
from hedge_tasks.suites.medhallmark.released import PARTS, read_part


def medhallu(hub: Path, out: Path) -> None:
    """Both answers of every labelled row, one draw each; the noisy model also with knowledge and "not sure"."""
    files = [str(f) for f in (hub / "UTAustin-AIHealth__MedHallu/pqa_labeled").glob("*.parquet")]
    known = {
        f"Question: {row['Question']}\nAnswer: {row[answer]}".strip(): (number, truth)
        for number, row in enumerate(Dataset.from_parquet(files))
        for truth, answer in enumerate(("Ground Truth", "Hallucinated Answer"))
    }
    variants = {m: medhallu_models.VARIANTS if m == "noisy" else ("",) for m in medhallu_models.MODELS}
    says = partial(medhallu_models.reply, known=lambda asked: known[asked.strip()])
    _run(hub, out, says, lambda folder, url: medhallu_models.write_tasks(folder, variants))


def medhallmark(json_files: Path, out: Path) -> None:
    """Every released item that has a reference, on blank pictures."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for picture in {root / "pictures" / item.image for part in PARTS for item in read_part(json_files, part)}:
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_bytes(medhallmark_models.picture(0))
        items = {part: read_part(json_files, part) for part in PARTS}
        build_items(items, ImageFolder(root / "pictures").read, root / "hub")
        os.environ["HEDGE_DATA_DIR"] = str(root / "hub")
        rows = {part: load_split(DATASET, part, "test").remove_columns("image") for part in PARTS}
        known = medhallmark_models.known(rows)
        _run(root / "hub", out, lambda body: medhallmark_models.reply(body, known), medhallmark_models.write_tasks)


def _run(hub: Path, out: Path, says: Callable[[dict[str, Any]], Any], write: Callable[[Path, str], list[str]]) -> None:
    """Run files under OUT, each under the name of the scripted model that its task asks."""
    os.environ |= {"HEDGE_DATA_DIR": str(hub), "OPENAI_API_KEY": "none"}
    os.environ.setdefault("HEDGE_BERTSCORE_MODEL", "none")
    with TemporaryDirectory() as folder, serve(says) as url:
        root = Path(folder)
        tasks = write(root / "own", url)
        model = ("--model", "hedge_openai", "--model_args", f"model=scripted,base_url={url}")
        evaluate(root / "out", *model, "--tasks", ",".join(tasks), "--include_path", str(root / "own"))
        for run in load_runs(root / "out"):
            save_run(replace(run, model=run.task.split("_")[1]), out)

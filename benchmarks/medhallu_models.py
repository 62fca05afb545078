"""Scripted models on MedHallu's labelled rows: what `hedge medhallu` says of them, whose every verdict is known.

    python benchmarks/medhallu_models.py DIR      # DIR/UTAustin-AIHealth__MedHallu/pqa_labeled/*.parquet

One draw a document, both answers of every row, as `hedge_medhallu_single` with `show: both`; the noisy model also with
knowledge and "not sure".
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from datasets import Dataset
from evaluation import evaluate
from medhallu_models import MODELS, VARIANTS, reply, write_tasks
from openai_server import serve

from hedge_tasks.cli import main


def benchmark(data: Path) -> int:
    rows = Dataset.from_parquet([str(f) for f in (data / "UTAustin-AIHealth__MedHallu/pqa_labeled").glob("*.parquet")])
    answers = ("Ground Truth", "Hallucinated Answer")
    known = {
        f"Question: {row['Question']}\nAnswer: {row[answer]}".strip(): (number, truth)
        for number, row in enumerate(rows)
        for truth, answer in enumerate(answers)
    }
    os.environ |= {"HEDGE_DATA_DIR": str(data), "OPENAI_API_KEY": "none"}
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(partial(reply, known=lambda asked: known[asked.strip()])) as url,
    ):
        root = Path(folder)
        tasks = write_tasks(root / "own", {m: VARIANTS if m == "noisy" else ("",) for m in MODELS})
        model = ("--model", "hedge_openai", "--model_args", f"model=scripted,base_url={url}")
        evaluate(root / "out", *model, "--tasks", ",".join(tasks), "--include_path", str(root / "own"))
        return main(["medhallu", str(root / "out")])


if __name__ == "__main__":
    sys.exit(benchmark(Path(sys.argv[1]).resolve()))

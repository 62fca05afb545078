"""From real sampled answers to AUROCs: 500 TriviaQA questions with 20 answers each, judged by rule, by `hedge score`.

    python benchmarks/triviaqa.py --answers triviaqa_llama13b_500x20.jsonl [--clustering exact embed]

Every line of the file has `id`, `question`, `reference` and `samples` (texts without log-probabilities). The first
sample stands in for the baseline answer, which the file lacks, and the others are the clean answers. Without noisy
answers there is no VASE. Prints a table for each clustering and the time that the command took, models and all.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication import Case, build_judge
from hedge_tasks.cli import main as hedge


def answer_lines(path: Path) -> list[dict[str, Any]]:
    """The file in the form that `hedge score` reads, labelled by the rule judge."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    cases = [Case(row["id"], row["question"], row["reference"], row["samples"][0]) for row in rows]
    verdicts = build_judge("rule").judge(cases)
    return [
        {
            "id": row["id"],
            "question": row["question"],
            "label": verdict.label,
            "baseline": {"text": row["samples"][0]},
            "clean": [{"text": text} for text in row["samples"][1:]],
        }
        for row, verdict in zip(rows, verdicts, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=Path, required=True)
    parser.add_argument("--clustering", nargs="+", default=["exact", "embed"])
    arguments = parser.parse_args()
    lines = answer_lines(arguments.answers)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answers.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        for clustering in arguments.clustering:
            start = time.perf_counter()
            hedge(["score", str(file), "--clustering", clustering])
            print(f"{clustering}: {time.perf_counter() - start:.1f} s\n")


if __name__ == "__main__":
    main()

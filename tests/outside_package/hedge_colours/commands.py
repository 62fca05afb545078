from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import command, show


def add_data(commands: Any) -> None:
    parser = command(commands, "colours", _build, "write the questions about colours")
    parser.add_argument("--out", type=Path, metavar="DATA", required=True)


def _build(arguments: argparse.Namespace) -> int:
    from datasets import Dataset

    things = {"grass": "green", "blood": "red", "the sky": "blue"}
    rows = [
        {"id": f"{'q' * (i + 1)}-{thing}", "question": f"What colour has {thing} ({i})?", "answer": colour}
        for thing, colour in things.items()
        for i in range(8)
    ]
    folder = arguments.out / "colours__colours"
    folder.mkdir(parents=True, exist_ok=True)
    Dataset.from_list(rows).to_parquet(folder / "test.parquet")
    show(arguments, {"rows": len(rows)}, f"Now set HEDGE_DATA_DIR={arguments.out}")
    return 0


def add_table(commands: Any) -> None:
    parser = command(commands, "colours", _table, "say which colours a run names")
    parser.add_argument("run", type=Path)


def _table(arguments: argparse.Namespace) -> int:
    from collections import Counter

    from hedge_tasks.runs.run_files import load_run

    counts = Counter(answers.baseline.text for answers in load_run(arguments.run, None).answer_sets)
    show(arguments, dict(counts), "\n".join(f"{colour} {count}" for colour, count in counts.items()))
    return 0

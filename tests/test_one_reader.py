"""The same rows are the same documents, whichever format holds them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedge_tasks.cli import main

WRITERS = {
    "data.csv": lambda frame, file: frame.to_csv(file, index=False),
    "data.tsv": lambda frame, file: frame.to_csv(file, index=False, sep="\t"),
    "data.json": lambda frame, file: frame.to_json(file, orient="records"),
    "data.jsonl": lambda frame, file: frame.to_json(file, orient="records", lines=True),
    "data.parquet": lambda frame, file: frame.to_parquet(file, index=False),
    "data.xlsx": lambda frame, file: frame.to_excel(file, index=False),
}

# Excel stores no control characters, CSV readers take lines apart at them, and a cell that begins with = is a formula.
_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12).map(
    lambda text: f"Is it {text} here?"
)
_ROWS = st.lists(st.tuples(_TEXTS, st.sampled_from(["left", "no", "Ödem", "a, b; c", '"x"', "3.50"])), min_size=2)


def documents(file: Path, out: Path, options: Sequence[str] = ()) -> list[dict[str, Any]]:
    assert main(["init", "own", str(file), "--out", str(out), "--json", *options]) == 0
    return pq.read_table(out / "data/test.parquet").to_pylist()


@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=_ROWS)
def test_formats_hold_the_same_documents(rows: list[tuple[str, str]], tmp_path_factory: Any) -> None:
    frame = pd.DataFrame([{"id": f"d{i}", "question": q, "answer": a} for i, (q, a) in enumerate(rows)])
    results = {}
    for name, write in WRITERS.items():
        folder = tmp_path_factory.mktemp("formats")
        write(frame, folder / name)
        results[name] = json.dumps(documents(folder / name, folder / "task"))
    assert len(set(results.values())) == 1
    assert [row["answer"] for row in json.loads(results["data.csv"])] == [a for _, a in rows]


@pytest.mark.parametrize("name", WRITERS)
def test_numbers_and_truth_values_are_read_alike(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"question": ["How many?", "How much?", "Any?"], "answer": ["3", "0.5", "none"]})
    WRITERS[name](frame, tmp_path / name)
    assert [row["answer"] for row in documents(tmp_path / name, tmp_path / "task", ["--drop"])] == ["3", "0.5", "none"]

"""Tables that somebody has: whatever the format, the same rows mean the same answers and labels."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedge_tasks.data import cells
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError
from hedge_tasks.judging.label_files import by_id, label_rows

Rows = Sequence[Mapping[str, Any]]


def separated(by: str) -> Callable[[Path, Rows], None]:
    def write(path: Path, rows: Rows) -> None:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), delimiter=by)
            writer.writeheader()
            writer.writerows(rows)

    return write


def as_json(path: Path, rows: Rows) -> None:
    path.write_text(json.dumps(list(rows)))


def as_json_lines(path: Path, rows: Rows) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def as_parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)


FORMATS = {
    "commas.csv": separated(","),
    "semicolons.csv": separated(";"),
    "tabs.tsv": separated("\t"),
    "t.json": as_json,
    "t.parquet": as_parquet,
}


@pytest.mark.parametrize("name", [*FORMATS, "t.jsonl"])
def test_labels_mean_the_same_in_every_format(name: str, tmp_path: Path) -> None:
    rows = [{"id": "a", "label": 1.0}, {"id": "b", "label": 0.0}, {"id": "c", "label": None}]
    {**FORMATS, "t.jsonl": as_json_lines}[name](tmp_path / name, rows)
    found = by_id(label_rows(tmp_path / name), "id", "label", None)
    assert {id: one.label for id, one in found.items()} == {"a": 1, "b": 0, "c": None}


def test_every_row_has_its_place(tmp_path: Path) -> None:
    for name, places in (("t.jsonl", ["t.jsonl:1", "t.jsonl:2"]), ("t.json", ["t.json: item 1", "t.json: item 2"])):
        {**FORMATS, "t.jsonl": as_json_lines}[name](tmp_path / name, [{"a": 1}, {"a": 2}])
        assert [where for where, _ in read_rows(tmp_path / name)] == [str(tmp_path / place) for place in places]
    as_parquet(tmp_path / "t.parquet", [{"a": 1}])
    assert read_rows(tmp_path / "t.parquet") == [(f"{tmp_path / 't.parquet'}: row 0", {"a": 1})]
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="not readable as parquet"):
        read_rows(tmp_path / "x.parquet")


LABELS: dict[Any, int | None] = {
    1: 1,
    "1.0": 1,
    " Hallucinated ": 1,
    "not_supported": 1,
    0: 0,
    "0": 0,
    "no hallucination": 0,
    "": None,
    "n/a": None,
    None: None,
}


@pytest.mark.parametrize(("cell", "label"), LABELS.items())
def test_labels_in_numbers_and_words(cell: Any, label: int | None) -> None:
    assert cells.label(cell, "here") == label


@pytest.mark.parametrize("cell", [math.nan, "NaN", " nan"])
def test_nan_is_no_label(cell: Any) -> None:
    with pytest.raises(DataError, match=r"^x\.csv:3: label is NaN; expected 1"):
        cells.label(cell, "x.csv:3: label")


@pytest.mark.parametrize("cell", [2, 0.5, "-1", -1, True, "yes", [], {}, "1 0"])
def test_what_is_no_label_is_refused(cell: Any) -> None:
    with pytest.raises(DataError, match=r"^here: label is .*; expected 1 \(hallucinated\), 0 \(supported\) or null"):
        cells.label(cell, "here: label")

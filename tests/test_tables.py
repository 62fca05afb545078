"""Tables that somebody has: whatever the format, the same rows are the same documents, answers and labels."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hedge_tasks.data import cells
from hedge_tasks.data.answer_files import read_answers
from hedge_tasks.data.own_data import texts_of
from hedge_tasks.data.roles import ColumnSettings, find_roles
from hedge_tasks.data.tables import read_rows, read_table
from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.judging.label_files import by_id, label_rows

WRITERS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "t.csv": lambda frame, file: frame.to_csv(file, index=False),
    "semicolons.csv": lambda frame, file: frame.to_csv(file, index=False, sep=";"),
    "t.tsv": lambda frame, file: frame.to_csv(file, index=False, sep="\t"),
    "t.json": lambda frame, file: frame.to_json(file, orient="records"),
    "frame.json": lambda frame, file: frame.to_json(file),
    "lines.json": lambda frame, file: frame.to_json(file, orient="records", lines=True),
    "wrapped.json": lambda frame, file: file.write_text(json.dumps({"info": {}, "data": frame.to_dict("records")})),
    "t.jsonl": lambda frame, file: frame.to_json(file, orient="records", lines=True),
    "t.parquet": lambda frame, file: frame.to_parquet(file, index=False),
    "t.xlsx": lambda frame, file: frame.to_excel(file, index=False),
}

# Excel stores no control characters, CSV readers take lines apart at them, and a cell that begins with = is a formula.
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=12).map(
    lambda text: f"Is it {text} here?"
)
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(["left", "no", "Ödem", "a, b; c", '"x"', "3.50", "none"])), min_size=2)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=ROWS)
def test_formats_hold_the_same_questions_answers_and_labels(rows: list[tuple[str, str]], tmp_path_factory: Any) -> None:
    """One reader for `hedge init`, `hedge score` and files of labels, and one name of a column in all of them."""
    folder = tmp_path_factory.mktemp("formats")
    columns = zip(
        *((f"d{i}", question, answer, answer, i % 2) for i, (question, answer) in enumerate(rows)), strict=True
    )
    frame = pd.DataFrame(
        dict(zip(("id", "question", "reference", "response", "label"), map(list, columns), strict=True))
    )
    frame["label"] = frame["label"].astype(float)
    for name, write in WRITERS.items():
        write(frame, folder / name)
        table = read_table(folder / name)
        roles = find_roles(table, ColumnSettings())
        asked = [texts_of(row, roles) for _, row in table.rows(roles.named())]
        assert asked == [{"id": f"d{i}", "question": q, "reference": a} for i, (q, a) in enumerate(rows)]
        read = read_answers([folder / name]).answer_sets
        assert [(a.id, a.question, a.reference, a.baseline.text, a.label) for a in read] == [
            (f"d{i}", q, a, a, i % 2) for i, (q, a) in enumerate(rows)
        ]
        labels = by_id(label_rows(folder / name), "id", "label", None)
        assert [label.label for label in labels.values()] == [i % 2 for i in range(len(rows))]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("t.jsonl", ["t.jsonl:1", "t.jsonl:2"]),
        ("t.json", ["t.json: item 1", "t.json: item 2"]),
        ("t.csv", ["t.csv:2", "t.csv:3"]),
        ("t.parquet", ["t.parquet: row 0", "t.parquet: row 1"]),
    ],
)
def test_every_row_has_its_place(tmp_path: Path, name: str, places: list[str]) -> None:
    WRITERS[name](pd.DataFrame({"a": [1, 2]}), tmp_path / name)
    assert [where for where, _ in read_rows(tmp_path / name)] == [str(tmp_path / place) for place in places]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("empty.csv", "", "no rows"),
        ("twice.csv", "a,label,b,label\n1,2,3,4\n", "a column twice: 'label'"),
        ("ragged.csv", "question,answer\na,b\nc\n", "ragged.csv:3: expected 2 columns"),
        ("object.json", '{"a": 1}', "expected a JSON list of objects"),
        ("not.parquet", "PAR1", "not readable as parquet"),
        ("not.xlsx", "PK", "save it as CSV"),
        ("table.doc", "PK", "expected a file that ends in .csv"),
        ("table.pkl", "PK", "a pickle runs code when it is read. If you trust it: python -c"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: str, told: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(DataError, match=told):
        read_table(tmp_path / name)


def test_a_sheet_names_no_column_twice_and_what_has_no_name_is_left_out(tmp_path: Path) -> None:
    cells = [["id", None, "label", 3], [1, "x", True, None], [None] * 4, [2, None, 0.5, "é"], [None, "y", None, None]]
    pd.DataFrame(cells).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    rows = [{"id": 1, "label": True, "3": None}, {"id": 2, "label": 0.5, "3": "é"}]
    assert [row for _, row in read_rows(tmp_path / "t.xlsx")] == rows
    pd.DataFrame([["a", "label", "label"], [1, 0, 1]]).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    with pytest.raises(DataError, match=r"t.xlsx: the header names a column twice: 'label'"):
        read_rows(tmp_path / "t.xlsx")


LABELS: dict[Any, int | None] = {
    **dict.fromkeys((1, "1.0", " Hallucinated ", "not_supported"), 1),
    **dict.fromkeys((0, "0", "no hallucination"), 0),
    **dict.fromkeys(("", "n/a", None)),
}


def test_labels_in_numbers_and_words() -> None:
    assert {cell: cells.label(cell, "here") for cell in LABELS} == LABELS
    assert [cells.label(cell, "here", right=True) for cell in (True, "true", 1, "0", False, None)] == [
        0,
        0,
        0,
        1,
        1,
        None,
    ]


@pytest.mark.parametrize("cell", [2, 0.5, "-1", -1, True, "yes", [], {}, "1 0", math.nan, " nan"])
def test_what_is_no_label_is_refused(cell: Any) -> None:
    with pytest.raises(DataError, match=r"^here: label is .*; expected 1 \(hallucinated\), 0 \(supported\)"):
        cells.label(cell, "here: label")
    if cell is not True:
        with pytest.raises(DataError, match="expected"):
            cells.label("supported" if cell == "yes" else cell, "here: correct", right=True)


def test_a_file_of_line_breaks_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "breaks.json"
    file.write_text("{}" + "\n" * 100_000 + "x")
    began = time.monotonic()
    with pytest.raises(DataError, match="not valid JSON"):
        read_rows(file)
    assert time.monotonic() - began < 10


def test_only_our_own_unfinished_files_are_cleared_away(tmp_path: Path) -> None:
    unfinished = [tmp_path / name for name in ("film.mp4.part", f"run.jsonl.{'0f' * 16}.part")]
    for file in unfinished:
        file.write_text("half")
        os.utime(file, (0, 0))
    write_whole(tmp_path / "report.html", "all")
    assert [file.exists() for file in unfinished] == [True, False]


def test_a_link_stays_and_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    link, device, pipe, loop = (tmp_path / name for name in ("link", "device", "pipe", "loop"))
    link.symlink_to("target")
    device.symlink_to("/dev/null")
    loop.symlink_to("loop")
    os.mkfifo(pipe)
    for text in ("new", "newer"):
        write_whole(link, text)
        assert (link.is_symlink(), (tmp_path / "target").read_text()) == (True, text)
    for path in (device, pipe, loop, tmp_path, Path("/"), Path(".")):
        with pytest.raises(DataError, match="no file"):
            write_whole(path, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["device", "link", "loop", "pipe", "target"]

"""`hedge store`: answers sampled in one place are found, checked and used in another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sampling_process import DOCUMENTS, SeededModel, requests

from hedge_tasks.cli import main
from hedge_tasks.sampling import Answer
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.segments import write_segment
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw


@pytest.fixture
def store(tmp_path: Path) -> Path:
    generate_samples(SeededModel(0), requests(tmp_path / "store", 3))
    return tmp_path / "store"


@pytest.fixture
def hedge(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    """`hedge store ... --json`: exit code and what it printed."""

    def run(*arguments: object) -> tuple[int, Any]:
        code = main(["store", *map(str, arguments), "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else captured.err

    return run


def test_info_counts_what_is_there(store: Path, hedge: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = hedge("info", store)
    assert (code, facts["answers"], facts["files"]) == (0, 7 * DOCUMENTS, 1)
    [definition] = facts["definitions"]
    assert (definition["documents"], definition["complete"], definition["n"]) == (DOCUMENTS, DOCUMENTS, 3)
    assert definition["sampling"]["temperature"] == 1
    assert main(["store", "info", str(store), "--csv"]) == 0
    names, row = capsys.readouterr().out.strip().splitlines()[-2:]  # a definition is a row
    assert dict(zip(names.split(","), row.split(","), strict=True))["documents"] == str(DOCUMENTS)


def test_a_damaged_import_is_refused(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    exported = tmp_path / "all.parquet"
    hedge("export", store, "--out", exported)
    exported.write_bytes(exported.read_bytes()[:-9])
    code, error = hedge("import", exported, "--into", tmp_path / "copy")
    assert (code, "no sound segment" in error) == (2, True)
    write_segment(exported, [{"key": "k", "answer": {"text": 7}}])
    code, error = hedge("import", exported, "--into", tmp_path / "copy")
    assert (code, "text: expected a text, got 7" in error) == (2, True)


def test_info_finds_a_changed_byte_and_a_conflict(store: Path, hedge: Callable[..., Any]) -> None:
    assert hedge("info", store)[0] == 0
    whole = AnswerStore(store)
    key = next(iter(whole))
    with AnswerStore(store.with_name("another")) as other:  # a second writer that knew nothing of the first
        other.folder = store
        other.put([FinishedDraw(key, Answer("something else"), "q", "clean", 0)])
    code, facts = hedge("info", store)
    assert (code, [p["kind"] for p in facts["problems"]]) == (1, ["conflict"])
    assert AnswerStore(store)[key] == whole[key]
    first = min(store.glob("*.jsonl"))
    content = bytearray(first.read_bytes())
    content[-9] ^= 1
    first.write_bytes(content)
    code, facts = hedge("info", store)
    assert (code, sorted(p["kind"] for p in facts["problems"])) == (1, ["conflict", "damaged"])

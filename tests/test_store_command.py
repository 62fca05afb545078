"""`hedge store`: answers sampled in one place are found, checked and used in another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sampling_process import DOCUMENTS, SeededModel, requests

from hedge_tasks.cli import main
from hedge_tasks.errors import DataError
from hedge_tasks.runs.from_store import run_from_store
from hedge_tasks.sampling import Answer, AnswerSet
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.segments import write_segment
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw


class CountingModel(SeededModel):
    """Remembers how many draws it was asked for."""

    asked = 0

    def generate_draws(self, draws: Any) -> Any:
        self.asked += len(draws)
        return super().generate_draws(draws)


def sample(store: Path | None, n: int) -> tuple[list[AnswerSet], int]:
    model = CountingModel(0)
    lines = generate_samples(model, requests(store, n))  # type: ignore[arg-type]
    return [AnswerSet.from_json(line) for line in lines], model.asked


@pytest.fixture
def store(tmp_path: Path) -> Path:
    sample(tmp_path / "store", 3)
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


def sets_of(store: Path) -> list[AnswerSet]:
    return [answers.with_label(None) for answers in run_from_store(store, None, "rule").answer_sets]


def test_a_smaller_rerun_does_not_shrink_the_store(store: Path) -> None:
    assert sample(store, 1)[1] == 0
    assert sets_of(store) == sample(store, 3)[0]


def test_documents_without_all_their_answers_are_left_out(store: Path) -> None:
    [file] = store.glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))  # the last answer of the last document never came
    assert len(sets_of(store)) == DOCUMENTS - 1


def test_an_import_spares_the_model_every_draw(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    sample(tmp_path / "more", 5)
    exported = tmp_path / "all.parquet"
    assert hedge("export", store, "--out", exported)[0] == 0
    code, facts = hedge("import", exported, tmp_path / "more", "--into", tmp_path / "copy")
    assert (code, facts["added"], facts["conflicts"]) == (0, 11 * DOCUMENTS, 0)
    answers, asked = sample(tmp_path / "copy", 5)
    assert (answers, asked) == (sample(None, 5)[0], 0)
    assert hedge("import", exported, "--into", tmp_path / "copy")[1]["added"] == 0


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


def test_a_store_without_definitions_gets_them_without_the_model(store: Path) -> None:
    """As after damage: no answer is lost, and the same run again makes them readable."""
    [file] = store.glob("*.jsonl")
    lines = [line for line in file.read_bytes().splitlines(keepends=True) if b'"answer"' in line]
    file.write_bytes(b"".join(lines))
    with pytest.raises(DataError, match="running the same lmms-eval command again"):
        sets_of(store)
    assert sample(store, 3)[1] == 0
    assert len(sets_of(store)) == DOCUMENTS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nowhere"], "no answer store"),
        (["export", "STORE", "--out", "nowhere/x.parquet"], "cannot write"),
        (["export", "STORE", "--out", "x.jsonl"], "expected a name that ends in .parquet"),
        (["import", "nowhere.parquet", "--into", "x"], "nowhere.parquet: no such file"),
        (["import", "nowhere", "--into", "x"], "no answer store"),
    ],
)
def test_wrong_arguments_give_one_line_and_exit_code_2(
    arguments: list[str],
    message: str,
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["store", *(str(store) if a == "STORE" else a for a in arguments)]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert (captured.err.count("\n"), captured.out) == (1, "")

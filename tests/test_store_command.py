"""`hedge store`: answers sampled in one place are found, checked and used in another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sampling_process import DOCUMENTS, SeededModel, requests

from hedge_tasks.cli import main
from hedge_tasks.sampling import Answer, AnswerSet
from hedge_tasks.sampling.hook import generate_samples
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


def read(path: Path) -> list[AnswerSet]:
    return [AnswerSet.from_json(line) for line in path.read_text("utf-8").splitlines()]


def test_info_counts_what_is_there(store: Path, hedge: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    code, facts = hedge("info", store)
    assert (code, facts["answers"], facts["files"], facts["without_definition"]) == (0, 7 * DOCUMENTS, 1, 0)
    [definition] = facts["definitions"]
    assert (definition["documents"], definition["complete"], definition["n"]) == (DOCUMENTS, DOCUMENTS, 3)
    assert definition["answers"] == {"baseline": DOCUMENTS, "clean": 3 * DOCUMENTS, "noisy": 3 * DOCUMENTS}


def test_export_gives_the_answer_sets_of_the_run(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    code, facts = hedge("export", store, "--out", tmp_path / "all.jsonl")
    assert (code, facts["documents"], facts["incomplete"]) == (0, DOCUMENTS, [])
    assert read(tmp_path / "all.jsonl") == sample(store, 3)[0]
    assert main(["score", str(tmp_path / "all.jsonl"), "--clustering", "exact"]) == 0


def test_export_of_fewer_answers_is_the_run_with_fewer(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    assert hedge("export", store, "--out", tmp_path / "two.jsonl", "--draws", 2)[0] == 0
    assert read(tmp_path / "two.jsonl") == sample(None, 2)[0]


def test_a_smaller_rerun_does_not_shrink_the_store(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    assert sample(store, 1)[1] == 0
    assert hedge("export", store, "--out", tmp_path / "all.jsonl")[1]["n"] == 3


def test_documents_without_all_their_answers_are_counted_not_exported(
    store: Path, hedge: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [file] = store.glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-1]))  # the last answer of the last document never came
    code, facts = hedge("export", store, "--out", tmp_path / "some.jsonl")
    assert (code, facts["documents"], len(facts["incomplete"])) == (0, DOCUMENTS - 1, 1)


def test_an_import_spares_the_model_every_draw(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    hedge("export", store, "--out", tmp_path / "all.jsonl")
    code, facts = hedge("import", tmp_path / "all.jsonl", "--into", tmp_path / "copy")
    assert (code, facts["added"], facts["conflicts"]) == (0, 7 * DOCUMENTS, 0)
    answers, asked = sample(tmp_path / "copy", 3)
    assert asked == 0
    assert answers == sample(store, 3)[0]
    assert hedge("import", tmp_path / "all.jsonl", "--into", tmp_path / "copy")[1]["added"] == 0


@pytest.mark.slow
def test_a_damaged_import_writes_nothing(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    hedge("export", store, "--out", tmp_path / "all.jsonl")
    line, *others = (tmp_path / "all.jsonl").read_text("utf-8").splitlines()
    for bad in (answer := json.loads(line), {**answer, "store": {"definition": {}, "document": "k"}}):
        bad = {key: value for key, value in bad.items() if bad is not answer or key != "store"}
        (tmp_path / "bad.jsonl").write_text("\n".join([*others, json.dumps(bad)]), "utf-8")
        code, error = hedge("import", tmp_path / "bad.jsonl", "--into", tmp_path / "copy")
        assert (code, f"bad.jsonl:{len(others) + 1}" in error) == (2, True)
    assert not (tmp_path / "copy").exists()


@pytest.mark.slow
def test_merged_stores_have_the_answers_of_both(store: Path, hedge: Callable[..., Any], tmp_path: Path) -> None:
    sample(tmp_path / "more", 5)
    code, facts = hedge("merge", store, tmp_path / "more", "--into", tmp_path / "both")
    assert (code, facts) == (0, {"into": str(tmp_path / "both"), "added": 11 * DOCUMENTS, "conflicts": 0})
    answers, asked = sample(tmp_path / "both", 5)
    assert (answers, asked) == (sample(None, 5)[0], 0)
    assert hedge("verify", tmp_path / "both")[1]["without_definition"] == 0


def test_verify_finds_a_changed_byte_and_a_conflict(store: Path, hedge: Callable[..., Any]) -> None:
    assert hedge("verify", store)[0] == 0
    whole = AnswerStore(store)
    key = next(iter(whole))
    with AnswerStore(store.with_name("another")) as other:  # a second writer that knew nothing of the first
        other.folder = store
        other.put([FinishedDraw(key, Answer("something else"), "q", "clean", 0)])
    code, facts = hedge("verify", store)
    assert (code, [p["kind"] for p in facts["problems"]]) == (1, ["conflict"])
    assert AnswerStore(store)[key] == whole[key]
    first = min(store.glob("*.jsonl"))
    content = bytearray(first.read_bytes())
    content[-9] ^= 1
    first.write_bytes(content)
    code, facts = hedge("verify", store)
    assert (code, sorted(p["kind"] for p in facts["problems"])) == (1, ["conflict", "damaged"])


def test_a_store_without_definitions_gets_them_without_the_model(
    store: Path, hedge: Callable[..., Any], tmp_path: Path
) -> None:
    """As after damage: no answer is lost, and the same run again makes them exportable."""
    [file] = store.glob("*.jsonl")
    lines = [line for line in file.read_bytes().splitlines(keepends=True) if b'"answer"' in line]
    file.write_bytes(b"".join(lines))
    assert hedge("info", store)[1]["without_definition"] == 7 * DOCUMENTS
    code, error = hedge("export", store, "--out", tmp_path / "x.jsonl")
    assert (code, "running the same lmms-eval command again" in error) == (2, True)
    assert sample(store, 3)[1] == 0
    assert hedge("export", store, "--out", tmp_path / "x.jsonl")[1]["documents"] == DOCUMENTS


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nowhere"], "no answer store"),
        (["export", "STORE", "--out", "nowhere/x.jsonl"], "cannot write"),
        (["export", "STORE", "--out", "x.jsonl", "--draws", "9"], "n must be from 1 to 3"),
        (["export", "STORE", "--out", "x.jsonl", "--definition", "zzz"], "definition"),
        (["import", "nowhere.jsonl", "--into", "x"], "cannot read nowhere.jsonl"),
        (["merge", "nowhere", "--into", "x"], "no answer store"),
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

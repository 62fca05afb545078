"""Run files that were cut, flipped, edited or made up; what they may make us load; and errors as one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, finished_run

from hedge_tasks.cli import main
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.report.pictures import thumbnails
from hedge_tasks.runs.run_files import Run, load_run, read_run, save_run
from hedge_tasks.runs.scorers import scorers_of
from hedge_tasks.runs.trust import Untrusted

RUN = finished_run(12)


def saved(folder: Path, run: Run = RUN) -> Path:
    return save_run(run, folder / "hedge_runs")


def hedge(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    """Exit code, and the JSON or else the error."""
    code = main([*map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else err


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


# --- integrity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [*lines[:3], lines[2], *lines[3:]],
        lambda lines: lines[1:],
        lambda lines: [*lines[:-1], lines[-1], lines[-1]],
    ],
    ids=["dropped", "swapped", "doubled", "no header", "two ends"],
)
def test_sound_lines_in_another_order_or_number_are_noticed(tmp_path: Path, change: Any) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole.rstrip())  # as some editors leave it
    assert read_run(path).answer_sets
    path.write_bytes(b"".join(change(whole.splitlines(keepends=True))))
    with pytest.raises(DataError, match="the run file is damaged"):
        read_run(path)


def test_a_damaged_run_is_not_replaced_by_its_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], flipped(lines[3], 200), *lines[4:]]))
    code, error = hedge(capsys, "rescore", tmp_path, "--clustering", "exact")
    assert (code, "damaged" in error, "no answer store" in error) == (2, True, False)


# --- what is left -----------------------------------------------------------------------------------------------------


def test_no_error_shows_a_secret_of_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-" + "0123456789" * 5
    monkeypatch.setenv("SOME_API_KEY", key)

    def fault(*_: object, **__: object) -> None:
        raise DataError("x" * (2000 - 30) + key)  # across the place where the line is cut

    monkeypatch.setattr("hedge_tasks.data.answer_files.read_answers", fault)
    for more in ([], ["--traceback"]):
        assert main(["score", str(tmp_path), "--clustering", "exact", *more]) == 2
        error = capsys.readouterr().err
        assert key[:12] not in error
        assert "[secret]" in error


# --- what a file may make us load -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"backend": "nli", "model": "stranger/model"},
        {"backend": "nli", "model": "microsoft/deberta-v2-xlarge-mnli", "revision": "refs/pr/1"},
        {"backend": "nli", "model": "/tmp/somewhere"},
        {"backend": "embed", "model": "stranger/model", "threshold": 0.9},
    ],
)
def test_a_strangers_model_is_not_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    run = replace(RUN, settings={"filters": {"strange": {"with_question": False, "alpha": 1.0, **settings}}})
    path = saved(tmp_path, run)
    with pytest.raises(Untrusted, match=r"filter 'strange' names the model .* --trust-run loads it"):
        scorers_of(load_run(path))
    monkeypatch.chdir(tmp_path)
    for command in ("rescore", "report"):
        assert main([command, str(path)]) == 2
        assert "unexpected" not in capsys.readouterr().err
    assert "strange" in scorers_of(load_run(path, trust=True))


@pytest.mark.parametrize("option", [{"device": "cuda:9"}, {"cache": False}, {"batch_size": 1}])
def test_a_file_does_not_say_how_to_compute(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"own: '\w+' is no setting that a run records"):
        Scorer.from_settings("own", {"with_question": False, "backend": "nli", **option})


def test_a_strangers_data_set_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def load(path: str, *_: object, **__: object) -> Any:
        asked.append(path)
        raise DataError("asked for")

    monkeypatch.setattr("hedge_tasks.data.splits.load_split", load)
    documents = {"images": ["image"], "question": "question"}
    run = replace(RUN, settings={"filters": EXACT, "documents": documents}, path=Path("x"))
    configs = {"dataset_path": "stranger/data", "test_split": "test"}
    assert "--trust-run" in thumbnails(run, configs).note
    assert asked == []
    assert "asked for" in thumbnails(replace(run, trusted=True), configs).note
    assert asked == ["stranger/data"]

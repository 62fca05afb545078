"""The `hedge` command as a stranger uses it."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.clustering import nli_model
from hedge_tasks.detectors.pipeline import USUAL
from hedge_tasks.runs.run_files import Run, save_run

TINY = "package://hedge_tasks.models.tiny/nli"


def line(i: int, clean: str, label: int | None = None, **fields: object) -> dict:
    row = {
        "id": f"q{i}",
        "question": "what?",
        "baseline": {"text": "a", "mean_logprob": -0.1},
        "clean": [{"text": x, "mean_logprob": -0.2} for x in clean],
        "noisy": [{"text": x, "mean_logprob": -0.3} for x in "ab"],
        **fields,
    }
    return row if label is None else {**row, "label": label}


def write(path: Path, *rows: dict | str) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    rows = [line(0, "aaa", 0), line(1, "aab", 0), line(2, "abc", 1), line(3, "bcd", 1)]
    more = [line(4 + 2 * i + j, *row) for i in range(3) for j, row in enumerate((("aab", 0), ("abc", 1)))]
    return write(tmp_path / "answers.jsonl", *rows, *more)


def test_score_prints_a_summary_and_writes_scores(
    answers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "scores.jsonl"
    assert main(["score", str(answers), "--clustering", "exact", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^se +1\.000 ", printed, re.MULTILINE)
    rows = [json.loads(row) for row in out.read_text().splitlines()]
    assert [set(row) for row in rows] == [{"id", *USUAL, "cluster_ids"}] * 10
    assert (rows[0]["se"], rows[3]["radflag"], rows[2]["n_clusters"]) == (0.0, 1.0, 3)


def test_a_run_without_documents_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["health", str(save_run(Run("hedge_demo", "m", ()), tmp_path))]) == 1
    assert "nothing could be checked" in capsys.readouterr().out


def test_given_clusters_are_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line(0, "aaa", 1, cluster_ids=[0, 1, 2, 3, 4, 5]), line(1, "aaa", 0, cluster_ids=[0] * 6)]
    out = tmp_path / "scores.jsonl"
    assert main(["score", str(write(tmp_path / "a.jsonl", *rows)), "--clustering", "exact", "--out", str(out)]) == 0
    assert re.search(r"^clustering +given$", capsys.readouterr().out, re.MULTILINE)
    assert json.loads(out.read_text().splitlines()[0])["radflag"] == 1.0


def test_a_large_file_is_read_twice_and_scored_in_blocks_with_the_same_numbers(
    answers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, printed = tmp_path / "scores.jsonl", set()
    given = [
        line(90, "aab", 1, cluster_ids=[0, 1, 2, 3, 4, 5]),
        line(91, "<think>b</think>ab", 0),
        line(91, "<think>b</think>ab", 0),
    ]
    lost = [line(i, ["a", f"b {i}"], i % 2, noisy=[{"text": f"c {i}", "mean_logprob": -7.5}]) for i in range(50, 70)]
    file = write(tmp_path / "a.jsonl", *answers.read_text().splitlines(), *given, *lost)
    for large, block in ((1 << 30, 100), (1 << 30, 3), (0, 1), (0, 7), (0, 100)):
        monkeypatch.setattr("hedge_tasks.data.tables.LARGE", large)
        monkeypatch.setattr("hedge_tasks.cli.score._AT_ONCE", block)
        assert main(["score", str(file), "--clustering", "exact", "--json", "--out", str(out)]) == 0
        printed.add(capsys.readouterr().out + out.read_text())
    [same] = printed
    assert "lost: 20 log-probabilities, such as of 'c 50'" in same
    assert '"clusters_given": 1' in same
    for damage, place in (
        ('{"id": "q99"', "a.jsonl:34: not valid JSON"),
        (json.dumps(line(2, "aaa")), "a.jsonl:34: another row has the id 'q2' and differs: .*a.jsonl:3. All"),
    ):
        write(file, *file.read_text().splitlines()[:33], damage)
        assert main(["score", str(file), "--clustering", "exact", "--json"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert re.search(place, said.err)


def test_without_labels_there_are_scores_and_no_table_of_what_is_undefined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write(tmp_path / "a.jsonl", *(line(i, "ab") for i in range(25))))
    assert main(["score", path, "--clustering", "exact"]) == 0
    printed = capsys.readouterr().out
    assert all(re.search(rf"^q{i} +0\.693 ", printed, re.MULTILINE) for i in range(25))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["{"], ":1: not valid JSON"),
        ([{"id": "q"}], "the model's replies, for `hedge score` or `hedge import answers`? Say --reply COLUMN"),
        ([{**line(0, "a"), "clean": "a text"}], ":1: clean: expected a list, got 'a text'"),
        ([line(0, "a"), line(0, "b")], ":2: another row has the id 'q0' and differs"),
        ([line(0, "a", cluster_ids=[0])], ":1: cluster_ids: 1 ids for 1 baseline + 1 clean + 2 noisy = 4"),
        ([""], "no rows in it"),
    ],
)
def test_bad_lines_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[dict | str], message: str
) -> None:
    path = write(tmp_path / "a.jsonl", *rows)
    assert main(["score", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"hedge: {path}" in printed.err
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1


def test_list_and_path(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = {task["task"]: task for task in json_of(capsys, ["list", "--json"])}
    assert {"hedge_demo", "hedge_vqarad"} <= set(tasks)
    assert all(task["about"] for task in tasks.values())
    assert "hedge_vqarad_one_sentence" not in tasks
    everything = json_of(capsys, ["list", "--json", "--all"])
    assert {"hedge_vqarad_one_sentence", "hedge_vope_official"} <= {task["task"] for task in everything}
    assert main(["list", "--folder"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "hedge_demo" / "hedge_demo.yaml").is_file()


def test_the_environment_names_the_model_and_an_option_goes_before_it(
    answers: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEDGE_MODELS", "nli=nowhere/named")
    for name, model in (("nli", "nowhere/named"), ("nli:model=nowhere/given", "nowhere/given")):
        assert main(["score", str(answers), "--clustering", name]) == 2
        assert f"cannot load the NLI model '{model}'" in capsys.readouterr().err


def test_long_work_is_said_once_and_not_on_the_standard_output(
    answers: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load = nli_model._load
    monkeypatch.setattr(nli_model, "_load", lambda *source: [time.sleep(0.3), load(*source)][1])
    nli_model.load_nli_model.cache_clear()
    words = ["score", str(answers), "--clustering", f"nli:model={TINY}", "--json"]
    for patience, n_lines in ((0.1, 1), (60, 0)):
        monkeypatch.setattr("hedge_tasks.cli.PATIENCE_S", patience)
        assert main(words) == 0
        printed = capsys.readouterr()
        assert json.loads(printed.out)["n"] == 10
        assert printed.err.count(f"hedge: loading the NLI model {TINY} ...\n") == n_lines


def test_no_result_is_written_over_the_file_of_a_run(
    tmp_path: Path, answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run.jsonl"
    run.write_text('{"hedge_run": 2}\n')
    assert main(["score", str(answers), "--clustering", "exact", "--out", str(run)]) == 2
    assert "is the file of a run" in capsys.readouterr().err
    assert run.read_text() == '{"hedge_run": 2}\n'

"""`hedge import draws`: single draws of closed answers become a run, and what they do not say is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hedge_tasks.cli import main
from hedge_tasks.data.foreign.draws import read_draws
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.runs.run_files import load_run
from hedge_tasks.runs.scorers import scorer_of


def file_of(folder: Path, name: str, lines: str) -> Path:
    path = folder / name
    path.write_text(lines)
    return path


@pytest.fixture
def dump(tmp_path: Path) -> dict[str, Path]:
    noisy = [
        f"val_1{more}_{kind}1_rephrased{k}_sample{i} {'BA'[i % 2 if more else 0]}"
        for more in ("", "0")
        for kind in ("blur", "rotate")
        for k in (1, 2)
        for i in range(3)
    ]
    clean = ["val_1_sample0 B", "val_1_sample1 A", "val_10_sample0 A", "val_10_sample1 A"]
    return {
        "baseline": file_of(tmp_path, "vanilla.txt", "val_1 B\nval_10 A\nval_2 A\n"),
        "truth": file_of(tmp_path, "answers.txt", "val_1 (1)\nval_10 (1)\n"),
        "noisy": file_of(tmp_path, "sampling.txt", "\n".join(noisy) + "\n"),
        "clean": file_of(tmp_path, "clean.txt", "\n".join(clean) + "\n"),
    }


def test_an_id_says_the_question_and_what_was_done_to_it(dump: dict[str, Path]) -> None:
    read = read_draws([dump["noisy"], dump["clean"]], dump["baseline"], dump["truth"], same={"1": "A"})
    one, ten, two = read.answer_sets
    assert [one.id, ten.id, two.id] == ["val_1", "val_10", "val_2"]
    assert [a.text for a in one.clean] == ["B", "A"]
    assert ([a.text for a in one.noisy], len(ten.noisy)) == (["B"] * 12, 12)
    assert ([one.label, ten.label, two.label], one.reference) == ([1, 0, None], "A")
    assert read.variants == {"": 4, **{f"{kind}1_rephrased{k}": 6 for kind in ("blur", "rotate") for k in (1, 2)}}
    assert "1 of 3 questions have no right answer in --truth, and no label" in read.notes


def test_what_counts_as_clean_is_said_by_the_user(dump: dict[str, Path]) -> None:
    read = read_draws([dump["noisy"]], dump["baseline"], clean="^blur")
    assert (len(read.answer_sets[0].clean), len(read.answer_sets[0].noisy)) == (6, 6)
    assert "no labels: --truth gives the right answers" in read.notes
    fewer = read_draws([dump["noisy"]], dump["baseline"], clean="^blur", most=4)
    assert [len(a.clean) for a in fewer.answer_sets] == [4, 4, 0]


def test_the_run_is_scored_by_detectors_of_noisy_draws(
    dump: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["import", "draws", str(dump["noisy"]), "--baseline", str(dump["baseline"]), "--truth", str(dump["truth"])]
    assert main([*given, "--same", "1=A,0=B", "--out", str(tmp_path / "runs"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["wrong"], facts["right"], facts["noisy"], facts["clean"]) == (1, 1, 24, 0)
    run = load_run(Path(facts["file"]))
    one, ten, _ = scorer_of(run, None).with_detectors(["radflag_noisy"]).score(run.answer_sets)
    assert (one["radflag_noisy"], ten["radflag_noisy"]) == (0.0, pytest.approx(2 / 3))
    assert run.settings["sampling"]["n_noisy"] == 12


@pytest.mark.parametrize(
    ("draws", "message"),
    [
        ("val_3_sample0 A\n", "'val_3_sample0' begins with the id of no baseline answer"),
        ("val_1_sample0\n", "draws.txt:1: expected an id and an answer"),
        ("\n", "there are no lines"),
    ],
)
def test_a_line_that_fits_nothing_is_refused(dump: dict[str, Path], tmp_path: Path, draws: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_draws([file_of(tmp_path, "draws.txt", draws)], dump["baseline"])


def test_a_truth_of_other_questions_and_an_expression_that_is_none(dump: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no id is one of"):
        read_draws([dump["clean"]], dump["baseline"], file_of(tmp_path, "t.txt", "q9 A\n"))
    with pytest.raises(ConfigError, match="--clean: '\\(' is no regular expression"):
        read_draws([dump["clean"]], dump["baseline"], clean="(")

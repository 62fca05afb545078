"""`hedge_tasks.load`: finished runs as tables, figures and comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_runs import finished_run

import hedge_tasks
from hedge_tasks.errors import ConfigError
from hedge_tasks.measures.headline import headline
from hedge_tasks.report.loaded import TABLES
from hedge_tasks.runs.run_files import save_run

RUN = finished_run(40)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_run(RUN, tmp_path / "hedge_runs")
    return tmp_path


def test_the_front_door_has_nothing_stray() -> None:
    assert dir(hedge_tasks) == sorted(hedge_tasks.__all__)
    assert all(getattr(hedge_tasks, name) is not None for name in dir(hedge_tasks))


def test_tables_are_tidy_and_hold_every_answer(folder: Path) -> None:
    runs = hedge_tasks.load(folder)
    answers, draws, scores = (runs.to_pandas(name) for name in ("answers", "draws", "scores"))
    assert list(answers["id"]) == [a.id for a in RUN.answer_sets]
    assert answers["label"].sum() == sum(a.label or 0 for a in RUN.answer_sets)
    assert list(draws["text"]) == [answer.text for a in RUN.answer_sets for answer in a.answers]
    [own] = runs
    of_first = scores[scores["id"] == RUN.answer_sets[0].id].set_index("detector")["score"]
    assert of_first["se"] == own.analysis.scores["exact"][0]["se"]
    assert [name for name in TABLES if runs.to_pandas(name).empty] == ["claims"]
    assert len(hedge_tasks.load(folder, task="hedge_x")) == 1
    with pytest.raises(ConfigError, match="hedge_y"):
        hedge_tasks.load(folder, task="hedge_y")
    with pytest.raises(ConfigError, match="unknown clustering of hedge_x 'exct', did you mean 'exact'"):
        runs[0].plot("roc", "exct")
    with pytest.raises(ConfigError, match="unknown table of a run 'answer', did you mean 'answers'"):
        runs.to_pandas("answer")


def test_a_notebook_shows_the_finding_of_the_terminal(folder: Path) -> None:
    [run] = hedge_tasks.load(folder)
    shown = run._repr_html_()
    assert headline(RUN).text in shown
    assert "<table>" in shown
    assert run.plot("roc")._repr_svg_().startswith("<?xml")
    run.plot().save(folder / "detectors.csv")
    assert (folder / "detectors.csv").read_text().count("\n") > 2
    with pytest.raises(ConfigError, match="roc"):
        run.plot("rok")


def test_two_runs_are_compared_on_the_same_answers(tmp_path: Path) -> None:
    for seed in (0, 1):
        save_run(finished_run(40, seed=seed, model=f"m{seed}"), tmp_path)
    runs = hedge_tasks.load(tmp_path)
    table = runs.compare()
    assert {str(row["what"]) for row in table.rows} >= {"hallucination rate", "exact, SE"}
    assert len(runs.to_pandas("answers")) == 80
    assert [series.name for series in runs.plot().chart.series] == ["hedge_x · m0", "hedge_x · m1"]
    with pytest.raises(ConfigError, match="runs\\[0\\]"):
        runs.plot("roc")
    assert "m1" in repr(runs[1:])


def test_several_folders_are_one_comparison_and_what_is_no_path_is_refused(tmp_path: Path) -> None:
    for i in range(2):
        save_run(finished_run(40, seed=i, model=f"model {i}"), tmp_path / str(i))
    both = hedge_tasks.load([tmp_path / "0", str(tmp_path / "1")])
    assert [run.run.model for run in both] == ["model 0", "model 1"]
    assert both.compare().rows
    for wrong in (3, None, [3]):
        with pytest.raises(ConfigError, match="expected a path or a list of paths"):
            hedge_tasks.load(wrong)  # type: ignore[arg-type]

"""A suite's own numbers out of run files: values of the table, comparisons, and what a file may say wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import suite_run
from sklearn.metrics import accuracy_score, f1_score

from hedge_tasks.evaluation import evaluation_measures
from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.measures.run_measures import documents_of, numbers_of_run
from hedge_tasks.runs.run_files import Run, save_run

METRICS = {measure.name: measure for measure in evaluation_measures("medhallu")}


def said_and_truth(run: Run) -> tuple[list[int], list[int]]:
    read = [a for a in run.answer_sets if a.label is not None]
    truth = [int(a.reference or 0) for a in read]
    return [t ^ int(a.label or 0) for a, t in zip(read, truth, strict=True)], truth


def test_what_a_run_does_not_record_is_undefined_with_the_reason() -> None:
    bare = replace(suite_run(8), columns={})
    for _, found in numbers_of_run(bare):
        assert found.value is None
        assert str(found.reason).startswith("the run does not keep truth, row")
    judged_again = replace(bare, settings={"documents": {"evaluation": "vope"}, "metrics": ["hal_d"]})
    [(_, found)] = numbers_of_run(judged_again)
    assert found.reason == "the run does not record what hal_d is made of (KeyError: 'objects')"


def test_the_number_of_the_table_is_the_number_of_the_run_file() -> None:
    run = suite_run(60, mute=0.1, metrics=tuple(METRICS))
    for measure, number in numbers_of_run(run):
        records, row = [document.record for document in documents_of(run, measure)], Aggregation(measure)
        assert row(records) == number.value
        # Where all records are alike the table has half of the interval, in units of 1.96, in place of 0.
        alike = number.stderr == 0 and number.interval is not None
        half = (number.interval[1] - number.interval[0]) / 2 / 1.959963984540054 if alike else number.stderr
        assert row.stderr(records) == (pytest.approx(half) if alike else half)


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_two_runs_are_compared_by_the_suites_numbers(tmp_path: Path, printed: Callable[..., Any]) -> None:
    one, other = suite_run(80, seed=1, wrong=0.1), suite_run(60, seed=2, wrong=0.4, mute=0.1)
    files = [save_run(run, tmp_path / name) for run, name in ((one, "a"), (other, "b"))]
    facts = printed("compare", *files)
    rows = {row["what"]: row for row in facts["comparisons"]}
    common = replace(one, answer_sets=one.answer_sets[:60])
    for name, score in (("F1", f1_score), ("accuracy", accuracy_score)):
        expected = [score(*reversed(said_and_truth(run))) for run in (common, other)]
        assert [rows[name]["value_a"], rows[name]["value_b"]] == pytest.approx(expected)
        assert rows[name]["difference"]["value"] == pytest.approx(expected[0] - expected[1])
        assert rows[name]["difference"]["n"] == 60
        assert rows[name]["p_max_t"] < 0.05

"""What a judge's errors do to an AUROC if they are independent of the score."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from finished_runs import finished_run

from hedge_tasks.cli import main
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import save_run
from hedge_tasks.statistics import auroc
from hedge_tasks.statistics.misclassified import if_independent


def test_the_formula_is_met_by_simulation() -> None:
    rng = np.random.default_rng(0)
    n = 400_000
    y = (rng.random(n) < 0.3).astype(int)
    x = rng.normal(size=n) + 1.2 * y
    judged = np.where(rng.random(n) < np.where(y == 1, 0.2, 0.1), 1 - y, y)
    found = if_independent(Number(auroc(x, judged)), float(judged.mean()), (800, 1000), (900, 1000))
    assert found.value == pytest.approx(auroc(x, y), abs=0.005)
    assert found.low < auroc(x, y) < found.high  # type: ignore[operator]


def test_a_right_judge_changes_nothing() -> None:
    found = if_independent(Number(0.8, interval=(0.7, 0.9)), 0.3, (50, 50), (50, 50))
    assert found.value == pytest.approx(0.8)
    assert found.low <= 0.7  # type: ignore[operator]
    assert found.high >= 0.9  # type: ignore[operator]


@pytest.mark.parametrize(
    ("area", "rate", "sensitivity", "specificity"),
    [
        (Number.undefined("none"), 0.3, (9, 10), (9, 10)),
        (Number(0.7), 0.3, (0, 0), (9, 10)),
        (Number(0.7), 0.3, (3, 10), (6, 10)),
        (Number(0.7), 0.0, (9, 10), (9, 10)),
    ],
)
def test_what_cannot_be_told_has_a_reason(
    area: Number, rate: float, sensitivity: tuple[int, int], specificity: tuple[int, int]
) -> None:
    found = if_independent(area, rate, sensitivity, specificity)
    assert found.value is None
    assert found.reason


@pytest.mark.slow
def test_a_check_goes_into_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished_run(80)
    path = str(save_run(run, tmp_path / "runs"))
    labels = tmp_path / "people.jsonl"
    answers = [("Yes", 0), ("Yes", 0), ("No", 1), ("Yes", 1), ("No", 1), ("Yes", 0)] * 20
    rows = [{"question": "Is it?", "reference": "Yes", "answer": a, "label": y} for a, y in answers]
    labels.write_text("\n".join(map(json.dumps, rows)))
    assert main(["judge", path, "--judge", "rule", "--check", str(labels)]) == 0
    assert "hedge detectors" in capsys.readouterr().out
    assert main(["detectors", path, "--detectors", "se", "--json"]) == 0
    [row] = json.loads(capsys.readouterr().out)["runs"][0]["detectors"]
    assert abs(row["independent"]["value"] - 0.5) > abs(row["estimate"]["value"] - 0.5)
    other = replace(run, verdicts={id: {**v, "judge": "llm 1"} for id, v in run.verdicts.items()})
    assert main(["judge", str(save_run(other, tmp_path / "b")), "--judge", "rule", "--check", str(labels)]) == 2
    assert "was labelled by llm 1" in capsys.readouterr().err

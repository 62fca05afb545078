"""The papers' tables: what was transcribed, and finished runs of any model beside it."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from finished_runs import finished_run, suite_run
from printed import json_of
from sklearn.metrics import f1_score, roc_auc_score

from hedge_tasks.cli import main
from hedge_tasks.clustering import build_backend
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.suites.medhallu.paper import PAPER as MEDHALLU
from hedge_tasks.suites.papers import Paper, PaperRow
from hedge_tasks.suites.shale.paper import PAPER as SHALE
from hedge_tasks.suites.vope.paper import PAPER as VOPE
from hedge_tasks.suites.vqarad.paper import FILTERS, SCORES
from hedge_tasks.suites.vqarad.paper import PAPER as HEDGE

# --- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paper", "model", "expected"),
    [
        (HEDGE, "hedge_hf|dtype=bfloat16|pretrained=Qwen/Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL"),
        (HEDGE, "hedge_hf|pretrained=Qwen/Qwen2.5-VL-3B-Instruct", None),
        (HEDGE, "hedge_hf|pretrained=chaoyinshe/llava-med-v1.5-mistral-7b-hf", "LLaVA-Med"),
        (MEDHALLU, "hedge_vllm|model=Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B"),
        (SHALE, "hedge_vllm|model=deepseek-ai/deepseek-vl2-tiny", None),
        (VOPE, "hedge_hf|pretrained=llava-hf/llava-1.5-7b-hf", "LLaVA1.5"),
    ],
)
def test_a_model_is_known_by_its_name_on_the_hub(paper: Paper, model: str, expected: str | None) -> None:
    row = PaperRow(model, "", {})
    assert replace(paper, rows=lambda runs: [row]).rows_of([]) == [(row, expected)]


def test_a_copy_of_ones_own_is_the_model_that_it_is_said_to_be_and_two_are_none() -> None:
    paper = replace(HEDGE, rows=lambda runs: [PaperRow("hedge_hf|pretrained=/disk/My-Copy", "", {})])
    names = {"Qwen2.5-VL": "my-copy", "LLaVA-Med": "my"}
    found = [paper.rows_of([], dict(some))[0][1] for some in (list(names.items())[:1], names)]
    assert found == ["Qwen2.5-VL", None]


# --- HEDGE ------------------------------------------------------------------------------------------------------------


def hedge_run(model: str, n: int = 10, task: str = "hedge_vqarad", created: str = "2026-01-01") -> Run:
    filters = {name: {"backend": "exact", "with_question": False, "alpha": 1.0} for name in FILTERS}
    settings = {"documents": {"judge": {"judge": "rule"}}, "filters": filters}
    return Run(task, model, finished_run(40, samples=n).answer_sets, {}, settings, created)


def test_hedges_numbers_are_aurocs_and_any_model_stands_beside_the_papers() -> None:
    """Of a model of its own every cell is filled, and all models of the paper stand below."""
    mine, theirs = hedge_run("my/model"), hedge_run("Qwen/Qwen2.5-VL-7B-Instruct", 3, created="2026-02-02")
    old = replace(theirs, answer_sets=theirs.answer_sets[:9], created="2025")
    rows = HEDGE.rows_of([mine, old, theirs])
    labels = [answers.label for answers in mine.answer_sets]
    scores = Scorer("nli", build_backend("exact")).score(mine.answer_sets)
    for row in [row for row, _ in rows if row.model == "my/model"][:3]:
        expected = roc_auc_score(labels, [s[SCORES[row.about["score"]]] for s in scores])
        assert [row.numbers[name].value for name in FILTERS] == pytest.approx([expected] * 4)
    two, three = (table.to_text().splitlines() for table in HEDGE.tables(rows))
    assert sum(line.startswith("model ") and "ours" in line for line in two) == 3
    assert sum(line.startswith("Qwen2.5-VL-7B-Instruct") for line in two) == 3
    assert sum(line.startswith("  paper") for line in two) == sum(line.startswith("  diff") for line in two) == 3
    assert sum(line.startswith("paper: LLaVA-Med") for line in two) == 3
    assert "paper: Qwen2.5-VL" not in "\n".join(two)
    assert len([line for line in three if "clusters" in line]) == 1
    assert {name for row, _ in rows for name in row.numbers if name[1:] == "3" or name == "n10"} == {"n3", "n10"}


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_prints_a_suites_numbers_and_writes_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = suite_run(40, model="Qwen/Qwen2.5-7B-Instruct")
    about = {"kind": "mechanism", "mesh": "C", "length": 9, "votes": [{"judge": "medhallu:official", "category": None}]}
    verdicts = {id: {**verdict, **about} for id, verdict in run.verdicts.items()}
    save_run(replace(run, verdicts=verdicts), tmp_path)
    out = tmp_path / "cells.csv"
    assert main(["paper", "medhallu", str(tmp_path), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    truth = [int(a.reference or 0) for a in run.answer_sets]
    value = f1_score(truth, [t ^ int(a.label or 0) for a, t in zip(run.answer_sets, truth, strict=True)])
    cells = {row["measure"]: row for row in csv.DictReader(out.open(encoding="utf-8"))}
    assert float(cells["f1"]["value"]) == pytest.approx(value)
    assert float(cells["f1"]["difference"]) == pytest.approx(value - 0.533)
    assert (cells["f1"]["paper"], cells["f1"]["paper_model"]) == ("0.533", "Qwen2.5-7B")
    assert f"{value:.3f} ±" in text
    assert "paper: GPT-4o" in text
    facts = json_of(capsys, ["paper", "medhallu", str(tmp_path), "--json"])
    assert [n["value"] for n in facts["numbers"] if n["measure"] == "f1"] == [pytest.approx(value)]
    for name in ("shale", "vope", "medhallmark", "hedge"):
        assert main(["paper", name, str(tmp_path)]) == 2
        assert f"no run of the paper {name!r}" in capsys.readouterr().err

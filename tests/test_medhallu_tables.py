"""`hedge paper medhallu` on scripted models whose every verdict is known: tables, differences, "not sure"."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation import Run as Evaluated
from evaluation import evaluate
from medhallu_models import LEVELS, MODELS, ROWS, VARIANTS, logprob, noisy_verdict, reply, rows, write_tasks
from openai_server import serve
from sklearn.metrics import f1_score, precision_score, recall_score, roc_auc_score

from hedge_tasks.cli import main
from hedge_tasks.measures.published import model_of_paper, read_published
from hedge_tasks.runs.run_files import load_runs
from hedge_tasks.suites.medhallu.abstention import risk_at
from hedge_tasks.suites.medhallu.tables import PATTERNS

pytestmark = [pytest.mark.slow, pytest.mark.framework]

DOCUMENTS = [(row, truth) for row in range(ROWS) for truth in (0, 1)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    root = tmp_path_factory.mktemp("models")
    data = root / "hub" / "UTAustin-AIHealth__MedHallu" / "pqa_labeled"
    data.mkdir(parents=True)
    rows().to_parquet(data / "train.parquet")
    tasks = write_tasks(root / "own", {model: VARIANTS if model == "noisy" else ("",) for model in MODELS})
    with pytest.MonkeyPatch.context() as patch, serve(reply) as url:
        patch.setenv("HEDGE_DATA_DIR", str(root / "hub"))
        patch.setenv("OPENAI_API_KEY", "none")
        patch.delenv("HEDGE_JUDGE", raising=False)
        return evaluate(
            root / "out",
            *("--model", "hedge_openai", "--model_args", f"model=Qwen/Qwen2.5-7B-Instruct,base_url={url}"),
            *("--tasks", ",".join(tasks), "--include_path", str(root / "own")),
        )


@pytest.fixture(scope="module")
def facts(run: Evaluated, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr("sys.stdout", out)
        assert main(["paper", "medhallu", str(run.output), "--json"]) == 0
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def cells(facts: dict[str, Any], task: str) -> dict[str, dict[str, Any]]:
    [of] = [one["cells"] for one in facts["runs"] if one["task"] == f"own_{task}"]
    return of


def said(variant: str) -> list[int]:
    return [noisy_verdict(row, truth, variant) for row, truth in DOCUMENTS]


def answered(variant: str) -> list[tuple[int, int]]:
    return [(truth, v) for (_, truth), v in zip(DOCUMENTS, said(variant), strict=True) if v != 2]


def f1_of(pairs: list[tuple[int, int]]) -> float:
    return float(f1_score(*zip(*pairs, strict=True), zero_division=0))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("perfect", {"f1": 1, "precision": 1, "recall": 1, "accuracy": 1, "f1_hard": 1, "response_rate": 1}),
        ("verbose", {"f1": 1, "accuracy": 1, "unreadable_rate": 0, "response_rate": 1}),
        ("thinking", {"f1": 1, "accuracy": 1, "unreadable_rate": 0, "response_rate": 1}),
        ("always1", {"f1": 2 / 3, "precision": 1 / 2, "recall": 1, "accuracy": 1 / 2, "f1_easy": 2 / 3}),
        ("always0", {"f1": 0, "precision": 0, "recall": 0, "accuracy": 1 / 2, "response_rate": 1}),
        ("refusing", {"f1": None, "accuracy": None, "unreadable_rate": 1, "response_rate": 0, "f1_unread_wrong": 0}),
        ("cut", {"f1": None, "accuracy": None, "unreadable_rate": 1, "response_rate": 0, "accuracy_unread_wrong": 0}),
    ],
)
def test_scripted_models_get_what_arithmetic_says(facts: dict[str, Any], model: str, expected: dict[str, Any]) -> None:
    found = cells(facts, model)
    assert {name: found[name]["value"] for name in expected} == pytest.approx(expected)
    assert found["f1_constant"]["value"] == pytest.approx(2 / 3)
    if model == "refusing":
        assert found["f1"]["reason"] == "no document has a verdict"


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_noisy_model_equals_scikit_learn_cell_by_cell(facts: dict[str, Any], variant: str) -> None:
    found, pairs = cells(facts, f"noisy{variant}"), answered(variant)
    truth, verdicts = zip(*pairs, strict=True)
    assert found["f1"]["value"] == pytest.approx(f1_of(pairs))
    assert found["precision"]["value"] == pytest.approx(precision_score(truth, verdicts))
    assert found["response_rate"]["value"] == pytest.approx(len(pairs) / len(DOCUMENTS))
    for at, level in enumerate(LEVELS):
        of_level = [(t, v) for (row, t), v in zip(DOCUMENTS, said(variant), strict=True) if row % 3 == at]
        known = [(t, v) for t, v in of_level if v != 2]
        share = sum(v == 2 for _, v in of_level) / len(of_level)
        assert found[f"not_sure_rate_{level}"]["value"] == pytest.approx(share)
        if known:
            assert found[f"recall_{level}"]["value"] == pytest.approx(recall_score(*zip(*known, strict=True)))
        else:
            assert found[f"recall_{level}"]["value"] is None
    low, high = found["f1"]["interval"]
    assert low < found["f1"]["value"] < high


@pytest.mark.parametrize("variant", VARIANTS)
def test_recall_by_category_is_of_its_hallucinated_answers_and_counts_them(
    facts: dict[str, Any], run: Evaluated, variant: str
) -> None:
    found = cells(facts, f"noisy{variant}")
    for at, kind in enumerate(("misinterpretation", "incomplete", "mechanism", "evidence")):
        of_kind = [(t, v) for (r, t), v in zip(DOCUMENTS, said(variant), strict=True) if r % 4 == at and v != 2]
        hallucinated = [v for t, v in of_kind if t == 1]
        assert (found[f"accuracy_{kind}"]["n"], found[f"recall_{kind}"]["n"]) == (len(of_kind), len(hallucinated))
        assert found[f"accuracy_{kind}"]["value"] == pytest.approx(np.mean([t == v for t, v in of_kind]))
        if hallucinated:
            assert found[f"recall_{kind}"]["value"] == pytest.approx(np.mean(hallucinated))


def test_differences_are_paired_and_also_over_what_both_answer(facts: dict[str, Any]) -> None:
    of = {(d["what"], d["given"], d["measure"]): d["comparison"] for d in facts["differences"] if "noisy" in d["asked"]}
    knowledge = of["knowledge", "", "f1"]
    assert knowledge["difference"] == pytest.approx(f1_of(answered("_knowledge")) - f1_of(answered("")))
    assert knowledge["n"] == len(DOCUMENTS)
    assert knowledge["p_value"] < 0.05
    # "not sure" changes no verdict of this model, so that the gain is all in what is left out.
    assert of["not sure", "", "f1, answered in both"]["difference"] == 0
    assert of["not sure", "", "f1"]["difference"] == pytest.approx(f1_of(answered("_notsure")) - f1_of(answered("")))
    assert of["not sure", "knowledge", "response_rate"]["difference"] == pytest.approx(
        len(answered("_knowledge_notsure")) / len(DOCUMENTS) - 1
    )
    made = [d for d in facts["differences"] if d["comparison"]["p_value"] is not None]
    assert all(d["p_adjusted"] >= d["comparison"]["p_value"] for d in made)
    assert not [d for d in facts["differences"] if "noisy" not in d["asked"]]  # the others have no partner


def test_the_standard_error_of_a_difference_is_that_of_resampled_rows(facts: dict[str, Any]) -> None:
    [found] = [
        d["comparison"]
        for d in facts["differences"]
        if (d["what"], d["given"], d["measure"]) == ("knowledge", "", "f1")
    ]
    by_row = [
        [(t, a, b) for (r, t), a, b in zip(DOCUMENTS, said("_knowledge"), said(""), strict=True) if r == row]
        for row in range(ROWS)
    ]
    draw, differences = np.random.default_rng(5), []
    for _ in range(1000):
        units = [unit for i in draw.integers(0, ROWS, ROWS) for unit in by_row[i]]
        differences.append(f1_of([(t, a) for t, a, _ in units]) - f1_of([(t, b) for t, _, b in units]))
    assert found["stderr"] == pytest.approx(np.std(differences), rel=0.15)


def test_not_sure_stands_beside_what_a_score_would_leave_out(facts: dict[str, Any]) -> None:
    [plain] = [one for one in facts["abstention"] if one["given"] == "" and "noisy" in one["asked"]]
    pairs, everything = answered("_notsure"), said("")
    assert plain["coverage"] == pytest.approx(len(pairs) / len(DOCUMENTS))
    assert plain["risk"]["value"] == pytest.approx(np.mean([t != v for t, v in pairs]))
    assert plain["answering_all"] == pytest.approx(
        np.mean([t != v for (_, t), v in zip(DOCUMENTS, everything, strict=True)])
    )
    assert list(plain["at_coverage"]) == ["baseline_nll"]  # nothing was sampled, so that no samples can disagree
    risk, difference = plain["at_coverage"]["baseline_nll"]
    # Ties in every order, as a coin would break them.
    sure = [(-logprob(row, t), float(t != v)) for (row, t), v in zip(DOCUMENTS, everything, strict=True)]
    draw = np.random.default_rng(1)
    kept = [
        np.mean([wrong for _, _, wrong in sorted((s, draw.random(), wrong) for s, wrong in sure)[: len(pairs)]])
        for _ in range(4000)
    ]
    assert risk["value"] == pytest.approx(np.mean(kept), abs=4 * np.std(kept) / 4000**0.5)
    assert difference["value"] == pytest.approx(risk["value"] - plain["risk"]["value"])


def test_the_risk_at_a_coverage_is_the_mean_over_all_orders_of_ties() -> None:
    levels, wrong = np.array([0, 1, 1, 1, 2]), np.array([0.0, 1, 1, 0, 1])
    for covered in (1, 2, 3, 4, 5):
        orders = [(0, *order, 4) for order in itertools.permutations((1, 2, 3))]
        expected = np.mean([wrong[list(order[:covered])].mean() for order in orders])
        assert risk_at(levels, wrong, np.ones(5), float(covered)) == pytest.approx(expected)
    assert np.isnan(risk_at(levels, wrong, np.ones(5), 0.0))


def test_one_draw_a_document_has_no_rows_of_samples_and_the_free_detectors(run: Evaluated) -> None:
    values = run.values("own_noisy")
    names = {name.partition(",")[0] for name in values}
    assert not [name for name in names if "se_auroc" in name or "radflag" in name or "share" in name]
    verdicts = said("")
    wrong = [int(t != v) for (_, t), v in zip(DOCUMENTS, verdicts, strict=True)]
    nll = [-logprob(row, t) for row, t in DOCUMENTS]
    assert values["verdict_wrong_baseline_nll_auroc,verdict"] == pytest.approx(roc_auc_score(wrong, nll))
    # This server tells no log-probabilities of given replies; guessing p(1) from what was drawn is no substitute.
    assert "does not tell how likely 0 and 1 are" in str(values["hallucinated_probability_auroc,verdict"])
    [finished] = load_runs(run.output, "own_noisy")
    assert all(not answers.clean and not answers.noisy for answers in finished.answer_sets)
    assert finished.settings["sampling"]["n"] == finished.settings["sampling"]["n_noisy"] == 0


def test_the_text_shows_the_papers_numbers_beside_the_models(
    run: Evaluated, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "cells.csv"
    assert main(["paper", "medhallu", str(run.output), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "perfect" in line and "plain" in line)
    assert "Qwen2.5-7B-Instruct" in lines[at]
    assert re.fullmatch(r"  paper +0\.533( +-){7}", lines[at + 1])
    assert re.fullmatch(r"  difference +\+0\.467( +-){7}", lines[at + 2])
    assert "100.0 % of the replies cannot be read; F1 0.000 where these count as wrong" in text
    assert "general models (mean), knowledge: F1 0.784" in text
    table = list(csv.DictReader(out.open(encoding="utf-8")))
    [row] = [r for r in table if r["task"] == "own_noisy_notsure" and r["measure"] == "f1"]
    assert float(row["value"]) == pytest.approx(f1_of(answered("_notsure")))
    assert (row["paper"], row["not_sure"]) == ("", "True")  # the paper gives none for this model and setting
    [row] = [r for r in table if r["task"] == "own_perfect" and r["measure"] == "f1"]
    assert (row["paper"], row["source"]) == ("0.533", "section 5.1")


def test_the_official_reading_is_taken_from_the_votes(run: Evaluated, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "medhallu", str(run.output), "--parsing", "official", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    # "can't" has no "not" in it, and "I'm sorry" no digit: an official 0.
    assert cells(found, "refusing")["response_rate"]["value"] == 1
    assert cells(found, "refusing")["f1"]["value"] == 0
    # "Is it 0 or 1?" holds a 1.
    assert cells(found, "cut")["f1"]["value"] == pytest.approx(2 / 3)


def test_published_numbers_stand_in_the_papers_text(shared_data: Path) -> None:
    file = shared_data.parent / "papers" / "medhallu.tex.txt"
    if not file.is_file():
        pytest.skip("the paper is not here")
    text = file.read_text("utf-8")
    for one in read_published("hedge_tasks.suites.medhallu"):
        as_share, as_percent = f"{one.value:.3f}", f"{100 * one.value:.1f}".removesuffix(".0") + "\\%"
        assert as_share in text or as_percent in text, one


def test_models_are_told_by_their_names_on_the_hub() -> None:
    def found(model: str, **names: str) -> str | None:
        return model_of_paper(model, PATTERNS, names)

    assert found("hedge_hf|pretrained=Qwen/Qwen2.5-14B-Instruct") == "Qwen2.5-14B"
    assert found("hedge_hf|pretrained=Qwen/Qwen2.5-VL-7B-Instruct") is None
    assert found("openai|model=gpt-4o-mini-2024-07-18") is None
    assert found("openai|model=gpt-4o-2024-08-06") == "GPT-4o"
    assert found("hedge_hf|pretrained=/models/mine", **{"GPT-4o": "/models/MINE"}) == "GPT-4o"
    assert {p.model for p in read_published("hedge_tasks.suites.medhallu")} - set(PATTERNS) == {
        "general models (mean)",
        "medical models (mean)",
    }


def test_what_is_no_run_of_medhallu_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"id": "q", "baseline": "a", "clean": ["a"]}) + "\n", "utf-8")
    assert main(["paper", "medhallu", str(file)]) == 2
    assert "no run of MedHallu" in capsys.readouterr().err
    assert main(["paper", "medhallu", str(file), "--name", "Qwen2.5-7=x"]) == 2
    assert "did you mean 'Qwen2.5-7B'" in capsys.readouterr().err

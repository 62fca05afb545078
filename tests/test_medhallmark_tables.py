"""`hedge paper medhallmark` on runs whose every verdict is known: numbers by hand, the paper's beside them."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rouge_score.rouge_scorer import RougeScorer
from scipy import stats

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.measures.published import model_of_paper, read_published
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.statistics import estimate_of_sums, ratio
from hedge_tasks.suites.medhallmark.measures import MEDIHALL, unjudged_sentences, wrong_sentences
from hedge_tasks.suites.medhallmark.tables import PATTERNS, numbers_of, prefix_effects

PACKAGE = "hedge_tasks.suites.medhallmark"
MODEL = "llava-hf/llava-1.5-7b-hf (hedge_hf)"


def verdict(category: str) -> dict[str, Any]:
    return {"judge": "llm 3", "reason": "so", "category": category, "label": int(category != "correct")}


def report(categories: Sequence[str | None]) -> dict[str, Any]:
    votes = [{"judge": "llm", "category": c, "label": None if c is None else int(c != "correct")} for c in categories]
    wrong = any(vote["label"] for vote in votes)
    return {"judge": "sentences of llm 3", "reason": "so", "category": None, "label": int(wrong), "votes": votes}


def run_of(part: str, rows: Sequence[tuple[str, str, str, dict[str, Any]]], model: str = MODEL) -> Run:
    """A run out of (id, image, answer, verdict); every reference is "the left lung"."""
    sets = tuple(
        AnswerSet(id, Answer(answer), (), reference="the left lung", group=image, label=v["label"])
        for id, image, answer, v in rows
    )
    settings = {"documents": {"evaluation": "medhallmark", "judge": {"judge": "llm"}}}
    verdicts = {id: v for id, _, _, v in rows}
    return Run(f"hedge_medhallmark_{part}_single", model, sets, verdicts, settings, "2026-01-01T00:00:00")


CONVENTIONAL = run_of(
    "conventional",
    [
        ("conventional-1", "a", "the left lung", verdict("correct")),
        ("conventional-2", "a", "the liver", verdict("catastrophic")),
        ("conventional-3", "b", "the right lung", verdict("attribute")),
    ],
)
PLAIN = ["correct", "correct", "critical", "minor"]
WEAKENED = ["critical", "correct", "catastrophic", "attribute"]
CONFIDENCE = run_of(
    "confidence",
    [
        row
        for i, (plain, weakened) in enumerate(zip(PLAIN, WEAKENED, strict=True))
        for row in (
            (f"confidence-{i}", f"image {i}", "left lung", verdict(plain)),
            (f"confidence-{i}-weakened", f"image {i}", "liver", verdict(weakened)),
        )
    ],
)
COUNTERFACTUAL = run_of("counterfactual", [("counterfactual-1", "c", "there is none", verdict("prompt_induced"))])
REPORTS = run_of(
    "irg",
    [
        ("irg-1", "x", "One. Two. Three. Four.", report(["correct", "correct", "critical", "correct"])),
        ("irg-2", "y", "One. Two.", report(["catastrophic", None])),
    ],
)
RUNS = (CONVENTIONAL, CONFIDENCE, COUNTERFACTUAL, REPORTS)


@pytest.fixture(autouse=True)
def no_bertscore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_BERTSCORE_MODEL", "nobody/has-this-model")


@pytest.mark.slow
def test_each_table_is_over_its_own_questions_with_numbers_by_hand() -> None:
    of = {n.setting: n for n in numbers_of(RUNS)}
    assert {name: n.answers for name, n in of.items()} == {
        "vqa": 3 + 4 + 1,  # of the confidence questions those with the prefix
        "counterfactual": 1,
        "irg": 2,
        "plain": 4,
        "weakened": 4,
    }
    scores = [MEDIHALL[c] for c in ("correct", "catastrophic", "attribute", *WEAKENED, "prompt_induced")]
    assert of["vqa"].numbers.numbers["medihall"].value == pytest.approx(sum(scores) / 8)
    assert of["vqa"].numbers.numbers["accuracy"].value == pytest.approx(2 / 8)
    assert of["vqa"].numbers.numbers["share_catastrophic"].value == pytest.approx(2 / 8)
    assert of["counterfactual"].numbers.numbers["medihall"].value == 0.6
    assert of["counterfactual"].numbers.numbers["medihall"].interval is None
    # Sentences first, then reports; what was not judged is left out.
    assert of["irg"].numbers.numbers["medihall"].value == pytest.approx(((1 + 1 + 0.2 + 1) / 4 + 0.0) / 2)
    assert of["irg"].numbers.numbers["wrong_sentences"].value == pytest.approx((1 / 4 + 1) / 2)
    assert of["irg"].numbers.numbers["unjudged_sentences"].value == pytest.approx((0 + 1 / 2) / 2)
    assert of["irg"].numbers.numbers["accuracy"].value == 0
    rouge = RougeScorer(["rouge1"]).score("the left lung", "the liver")["rouge1"]
    [second] = [d.record["value"] for d in of["vqa"].documents["rouge1_recall"] if d.id == "conventional-2"]
    assert second == pytest.approx(rouge.recall)
    assert "nobody/has-this-model is not here" in str(of["vqa"].numbers.numbers["bertscore_f1"].reason)


@pytest.mark.slow
def test_the_error_is_over_images_and_the_prefix_is_paired() -> None:
    found = numbers_of(RUNS)
    plain = next(n for n in found if n.setting == "plain")
    values = [MEDIHALL[c] for c in PLAIN]
    assert plain.numbers.numbers["medihall"].stderr == pytest.approx(stats.sem(values))
    groups = range(4)
    of_report = estimate_of_sums([(value, 1) for value in values], groups, ratio)
    assert plain.numbers.numbers["medihall"].interval == pytest.approx(of_report.interval)
    effect = next(e.comparison for e in prefix_effects(found) if e.measure.name == "medihall")
    expected = [MEDIHALL[b] - MEDIHALL[a] for a, b in zip(PLAIN, WEAKENED, strict=True)]
    assert effect.difference == pytest.approx(sum(expected) / 4)
    assert effect.stderr == pytest.approx(stats.sem(expected))


@pytest.mark.parametrize(
    ("category", "medihall", "accuracy"), [("correct", 1.0, 1.0), ("catastrophic", 0.0, 0.0), ("minor", 0.8, 0.0)]
)
def test_models_of_one_kind_get_its_score(category: str, medihall: float, accuracy: float) -> None:
    rows = [(f"conventional-{i}", str(i), "x", verdict(category)) for i in range(5)]
    [vqa] = numbers_of([run_of("conventional", rows)])
    assert (vqa.numbers.numbers["medihall"].value, vqa.numbers.numbers["accuracy"].value) == (medihall, accuracy)
    assert vqa.numbers.numbers["medihall"].stderr == 0


def test_without_categories_or_sentences_the_cells_say_why() -> None:
    rows = [
        ("conventional-1", "a", "x", {"judge": "rule 3", "label": 1}),
        ("irg-1", "b", "x. y.", {"judge": "r", "label": 0}),
    ]
    of = {n.setting: n for n in numbers_of([run_of("conventional", rows)])}
    assert "names no categories" in str(of["vqa"].numbers.numbers["medihall"].reason)
    assert of["vqa"].numbers.numbers["accuracy"].value == 0
    assert of["irg"].numbers.numbers["wrong_sentences"].reason == "no report has a judged sentence"
    assert wrong_sentences({"judge": "sentences of x", "votes": [{"label": None}]}, {}) is None
    assert unjudged_sentences({"judge": "sentences of x", "votes": []}, {}) is None


def test_two_runs_of_the_same_questions_are_refused() -> None:
    with pytest.raises(DataError, match="conventional-1 is in another run of this model"):
        numbers_of([CONVENTIONAL, run_of("mine", [("conventional-1", "a", "x", verdict("correct"))])])
    with pytest.raises(DataError, match="'q-1' is no id of Med-HallMark"):
        numbers_of([run_of("mine", [("q-1", "a", "x", verdict("correct"))])])


def test_the_command_prints_the_papers_rows_beside_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in RUNS:
        save_run(run, tmp_path / "runs")
    out, answers = tmp_path / "cells.csv", tmp_path / "answers.csv"
    assert main(["paper", "medhallmark", str(tmp_path / "runs"), "--out", str(out), "--answers", str(answers)]) == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("Tables 1 and 6: VQA"))
    assert lines[at + 2].split()[:3] == ["llava-1.5-7b-hf", "conventional+confidence+counterfactual", "8"]
    assert re.fullmatch(
        r"  paper +54\.89 % +28\.33 % +23\.52 % +9\.30 % +21\.16 % +4\.60 % +0\.530 +0\.280", lines[at + 3]
    )
    others = [line.split() for line in lines if line.startswith("paper: XrayGPT")]
    assert others[0][-2:] == ["0.360", "0.020"]
    assert "BERTScore is undefined: BERTScore's model nobody/has-this-model is not here" in text
    assert "wrong sentences" in text
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    [medihall] = [r for r in rows if (r["setting"], r["measure"]) == ("vqa", "medihall")]
    assert float(medihall["difference"]) == pytest.approx(float(medihall["value"]) - 0.53)
    assert medihall["source"] == "Table 1"
    [first] = [r for r in csv.DictReader(answers.open(encoding="utf-8")) if r["id"] == "conventional-1"]
    assert (float(first["accuracy"]), float(first["medihall"]), float(first["rouge1_f1"])) == (1.0, 1.0, 1.0)
    assert first["bertscore_f1"] == ""
    assert main(["paper", "medhallmark", str(tmp_path / "runs"), "--name", "LLaVA=x"]) == 2
    assert "unknown model of the paper" in capsys.readouterr().err


def test_published_numbers_are_those_of_the_papers_tables(shared_data: Path) -> None:
    file = shared_data.parent / "papers" / "medhallmark.txt"
    if not file.is_file():
        pytest.skip("the paper is not here")
    rows = [line.split("\t") for line in file.read_text("utf-8").splitlines() if "\t" in line]
    printed = {model: [cell for row in rows if row[0] == model for cell in row[1:]] for model in {r[0] for r in rows}}
    spellings = {"InstructBLIP-7b": "InstructBLIP", "InstructBLIP-13b": "InstructBLIP13b", "Mini-gpt4": "mini-gpt4"}
    published = read_published(PACKAGE)
    assert len(published) == 750
    for p in published:
        if p.table in ("Table 3", "Table 4", "Table 5"):
            continue  # their rows begin with something else than the model
        cells = {
            float(c)
            for m in (p.model, spellings.get(p.model))
            for c in printed.get(m or "", [])
            if c.replace(".", "").isdigit()
        }
        assert any(abs(c - p.value) < 1e-9 or abs(c - 100 * p.value) < 1e-6 for c in cells), p
    assert {p.model for p in published if p.setting in ("vqa", "irg", "counterfactual")} == set(PATTERNS)


def test_the_papers_models_are_told_by_their_names() -> None:
    names = {
        "llava-hf/llava-1.5-13b-hf (hedge_hf)": "LLaVA1.5-13b",
        "liuhaotian/llava-v1.5-7b (hedge_hf)": "LLaVA1.5-7b",
        "Salesforce/instructblip-vicuna-7b (x)": "InstructBLIP-7b",
        "Salesforce/blip2-opt-2.7b (x)": "BLIP2",
        "llava-hf/llava-1.6-7b-hf (x)": None,
    }
    assert {model: model_of_paper(model, PATTERNS, {}) for model in names} == names


def test_the_effect_of_the_prefix_is_compared_between_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {
        a.id: {"pair": a.id.removesuffix("-weakened"), "weakened": "weak" in a.id} for a in CONFIDENCE.answer_sets
    }
    one = replace(CONFIDENCE, columns=columns)
    firm = {id: verdict("correct") if "weak" in id else of for id, of in CONFIDENCE.verdicts.items()}
    other = replace(one, verdicts=firm, model="firm")
    files = [str(save_run(run, tmp_path / run.model[:4])) for run in (one, other)]
    assert main(["compare", *files, "--metric", "medihall_prefix_difference", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["comparisons"]
    without, with_prefix = ([MEDIHALL[c] for c in kinds] for kinds in (PLAIN, WEAKENED))
    assert found["a"] == pytest.approx(sum(with_prefix) / 4 - sum(without) / 4)
    assert found["b"] == pytest.approx(1 - sum(without) / 4)
    assert found["difference"]["n"] == 4
    assert found["difference"]["stderr"] == pytest.approx(stats.sem([value - 1 for value in with_prefix]))


# Shared words support a sentence or they do not; the second report has a right sentence that no draw supports.
SENTENCES = {
    "irg-1": (["The lungs are clear.", "The heart is huge."], ["correct", "critical"], ["The lungs are clear."] * 2),
    "irg-2": (["No effusion is seen.", "Ribs were broken."], ["correct", "critical"], ["A tube.", "Nothing."]),
}


def reports_with_draws(sentences: dict[str, Any] = SENTENCES) -> Run:
    sets = tuple(
        AnswerSet(id, Answer(" ".join(said)), tuple(map(Answer, draws)), group=id, reference="r", label=1)
        for id, (said, _, draws) in sentences.items()
    )
    settings = {"documents": {"evaluation": "medhallmark", "judge": {"judge": "llm", "unit": "sentence"}}}
    verdicts = {id: report(kinds) for id, (_, kinds, _) in sentences.items()}
    return Run("hedge_medhallmark_irg", MODEL, sets, verdicts, settings, "2026-01-01T00:00:00")


@pytest.mark.slow
def test_wrong_sentences_are_told_from_right_ones_by_the_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    thrice = {f"{id}{copy or ''}": of for copy in range(3) for id, of in SENTENCES.items()}
    path = save_run(reports_with_draws(thrice), tmp_path)
    assert main(["paper", "medhallmark", str(path), "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["sentences"]
    assert (found["reports"], found["sentences"], found["wrong"]) == (6, 12, 6)
    of = {row["detector"]: row for row in found["detectors"]}
    # Share of draws without the sentence: 0 and 1 in the first report, 1 and 1 in the second. Of four pairs of a wrong
    # and a right sentence two are told apart and two are even; within the reports one of two is, and one is even.
    assert of["claim_radflag"]["auroc"]["value"] == (2 + 2 / 2) / 4
    assert of["claim_radflag"]["within"]["value"] == (1 + 1 / 2) / 2
    assert of["claim_radflag"]["draws"] == 2
    assert main(["paper", "medhallmark", str(path)]) == 0
    text = capsys.readouterr().out
    [line] = [line for line in text.splitlines() if " RadFlag " in line]
    assert line.split().count("0.750") == 2
    assert main(["paper", "medhallmark", str(path), "--support", "nle"]) == 2
    assert "did you mean 'nli'" in capsys.readouterr().err


def test_without_draws_or_labels_there_is_no_table_of_sentences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unjudged = reports_with_draws({"irg-1": (["One.", "Two."], [None, None], ["One."])})
    for run in (REPORTS, unjudged):
        assert main(["paper", "medhallmark", str(save_run(run, tmp_path / str(len(run.answer_sets)))), "--json"]) == 0
    first, second = (json.loads(part) for part in capsys.readouterr().out.replace("}\n{", "}\0{").split("\0"))
    assert first["sentences"] == []
    assert "none of 2 claims has a label" in second["sentences"][0]["reason"]


def test_json_has_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(CONVENTIONAL, tmp_path)
    assert main(["paper", "medhallmark", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [one["setting"] for one in facts["runs"]] == ["vqa"]
    assert facts["runs"][0]["published"]["medihall"]["value"] == 0.53
    assert facts["wording"]["meteor"].startswith("nltk")

"""The paper's tables as they were printed, and runs that are laid out beside them."""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path

import pytest
from conftest import REPOSITORY

from hedge_tasks.cli import main, paper
from hedge_tasks.clustering import ExactClustering, build_backend
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError
from hedge_tasks.lmms.catalogue import list_tasks
from hedge_tasks.measures.hedge_paper import (
    CellResult,
    Key,
    PublishedNumber,
    at_equal_draws,
    place_runs,
    published,
    published_cells,
    score_cells,
)
from hedge_tasks.measures.hedge_paper.cells import TASKS, task_name
from hedge_tasks.measures.hedge_paper.layout import columns_of_table_2, rows_of_table_2, rows_of_table_3
from hedge_tasks.measures.hedge_paper.published import DATASETS, FILTERS, MODELS, PROMPTS, SCORES
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling import Answer, AnswerSet
from hedge_tasks.sampling.prompts import load_prompt

QWEN = "hedge_hf|dtype=bfloat16|pretrained=Qwen/Qwen2.5-VL-7B-Instruct"
EXACT = {name: Scorer(name, build_backend("exact")) for name in FILTERS.values()}


def lines_of(table: int) -> list[list[str]]:
    text = (resources.files("hedge_tasks.measures.hedge_paper") / f"table{table}.csv").read_text("utf-8")
    return list(csv.reader(text.splitlines()))


def values(table: int, **where: str) -> list[float]:
    return [v for cell, v in published(table).items() if all(getattr(cell, k) == x for k, x in where.items())]


def mean(numbers: Sequence[float]) -> float:
    assert numbers
    return sum(numbers) / len(numbers)


@pytest.fixture(scope="module")
def paper_text() -> str:
    file = REPOSITORY.parent / "shared" / "papers" / "hedge.txt"
    if not file.is_file():
        pytest.skip("the paper's text (../shared/papers/hedge.txt) is not here")
    return file.read_text("utf-8")


# --- the transcription ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "rows", "columns", "names"), [(2, 24, 12, 3), (3, 24, 14, 3)])
def test_every_row_and_column_is_there(table: int, rows: int, columns: int, names: int) -> None:
    header, *body = lines_of(table)
    assert len(header) == names + columns
    assert [len(line) for line in body] == [len(header)] * rows
    assert len(published(table)) == rows * columns == len(set(published_cells(table)))
    digits = {2: r"0\.\d{3}", 3: r"0\.\d{2}"}[table]
    assert all(re.fullmatch(digits, value) for line in body for value in line[names:])


@pytest.mark.parametrize("table", [2, 3])
def test_every_combination_occurs_once(table: int) -> None:
    cells = published_cells(table)
    assert {cell.prompt for cell in cells} == set(PROMPTS)
    assert {cell.score for cell in cells} == set(SCORES)
    if table == 2:
        assert {(cell.inputs, cell.clustering) for cell in cells} == set(FILTERS)
        assert {(cell.dataset, cell.model) for cell in cells} == {(d, m) for d in DATASETS for m in MODELS}
    else:
        assert {cell.n for cell in cells} == {*range(1, 11), 15, 20, 25, 30}
        assert {cell.key for cell in cells} == {Key("VQA-RAD", prompt, "Qwen2.5-VL") for prompt in PROMPTS}


@pytest.mark.parametrize("table", [2, 3])
def test_every_row_stands_in_the_paper(table: int, paper_text: str) -> None:
    for line in lines_of(table)[1:]:
        assert f"{line[2]} {' '.join(line[3:])}\n" in paper_text


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        # First and last of Table 2, and what §5.3 and §5.5 quote of it.
        (PublishedNumber(2, "VQA-RAD", "minimal-label", "LLaVA-Med", "SE", "A+Q", "NLI", 10), 0.734),
        (PublishedNumber(2, "KvasirVQA-x1", "one-sentence", "Qwen2.5-VL", "VASE", "AO", "Embed", 10), 0.819),
        (PublishedNumber(2, "VQA-RAD", "default", "Qwen2.5-VL", "VASE", "A+Q", "NLI", 10), 0.756),
        (PublishedNumber(2, "VQA-RAD", "default", "Qwen2.5-VL", "VASE", "A+Q", "Embed", 10), 0.707),
        (PublishedNumber(2, "KvasirVQA-x1", "minimal-label", "Qwen2.5-VL", "VASE", "AO", "NLI", 10), 0.783),
        (PublishedNumber(2, "KvasirVQA-x1", "minimal-label", "Qwen2.5-VL", "VASE", "AO", "Embed", 10), 0.800),
        (PublishedNumber(2, "KvasirVQA-x1", "one-sentence", "Qwen2.5-VL", "VASE", "A+Q", "NLI", 10), 0.851),
        (PublishedNumber(2, "KvasirVQA-x1", "one-sentence", "Qwen2.5-VL", "VASE", "A+Q", "Embed", 10), 0.825),
        (PublishedNumber(2, "KvasirVQA-x1", "one-sentence", "Qwen2.5-VL", "VASE", "AO", "NLI", 10), 0.841),
        (PublishedNumber(2, "KvasirVQA-x1", "minimal-label", "LLaVA-Med", "VASE", "A+Q", "NLI", 10), 0.732),
        (PublishedNumber(2, "KvasirVQA-x1", "minimal-label", "LLaVA-Med", "VASE", "A+Q", "Embed", 10), 0.705),
        (PublishedNumber(2, "KvasirVQA-x1", "default", "Qwen2.5-VL", "SE", "AO", "Embed", 10), 0.876),
        (PublishedNumber(2, "KvasirVQA-x1", "default", "Qwen2.5-VL", "RadFlag", "AO", "Embed", 10), 0.853),
        (PublishedNumber(2, "VQA-RAD", "default", "LLaVA-Med", "SE", "A+Q", "NLI", 10), 0.753),
        (PublishedNumber(2, "VQA-RAD", "default", "LLaVA-Med", "VASE", "A+Q", "NLI", 10), 0.725),
        # First and last of Table 3, and one in the middle.
        (PublishedNumber(3, "VQA-RAD", "minimal-label", "Qwen2.5-VL", "SE", "AO", "Embed", 1), 0.50),
        (PublishedNumber(3, "VQA-RAD", "default", "Qwen2.5-VL", "RadFlag", "AO", "Embed", 30), 0.72),
        (PublishedNumber(3, "VQA-RAD", "one-sentence", "Qwen2.5-VL", "VASE", "AO", "NLI", 30), 0.74),
    ],
)
def test_spot_values(cell: PublishedNumber, value: float) -> None:
    assert published(cell.table)[cell] == value


def test_the_best_cell_is_the_one_that_the_text_names() -> None:
    """§5.5: default, answer only, embeddings, VASE of Qwen2.5-VL on KvasirVQA-x1, 0.891."""
    cells = published(2)
    best = max(cells, key=cells.__getitem__)
    assert best == PublishedNumber(2, "KvasirVQA-x1", "default", "Qwen2.5-VL", "VASE", "AO", "Embed", 10)
    assert cells[best] == 0.891


def test_table_3_at_ten_answers_is_table_2_answer_only() -> None:
    for cell, value in published(3).items():
        if cell.n == 10:
            assert abs(published(2)[cell._replace(table=2)] - value) <= 0.005 + 1e-9


def test_claims_of_the_text_about_one_pair_of_answers() -> None:
    """§5.6.1: at n = 1 SE is 0.50 everywhere, RadFlag 0.55 to 0.68, VASE 0.59 to 0.75."""
    at_one = {score: values(3, n=1, score=score) for score in SCORES}  # type: ignore[arg-type]
    assert set(at_one["SE"]) == {0.50}
    assert (min(at_one["RadFlag"]), max(at_one["RadFlag"])) == (0.55, 0.68)
    assert (min(at_one["VASE"]), max(at_one["VASE"])) == (0.59, 0.75)


def test_claims_of_the_text_about_averages() -> None:
    """§5.1, §5.2, §5.5; the ranking of §5.1 holds on KvasirVQA-x1 and overall, and by a hair not on VQA-RAD."""
    by_model = {m: mean(values(2, model=m)) for m in MODELS}
    assert by_model["Qwen2.5-VL"] > by_model["LLaVA-Med"] > by_model["Med-Gemma"]
    on_rad = {m: mean(values(2, model=m, dataset="VQA-RAD")) for m in MODELS}
    assert 0 < on_rad["LLaVA-Med"] - on_rad["Qwen2.5-VL"] < 0.005
    by_score = {s: mean(values(2, score=s)) for s in SCORES}
    assert by_score["VASE"] > by_score["SE"] > by_score["RadFlag"]
    by_prompt = {p: mean(values(2, prompt=p)) for p in PROMPTS}
    assert set(sorted(by_prompt, key=by_prompt.__getitem__)[2:]) == {"default", "clinical-phrase"}
    one_sentence = {score: max(values(3, prompt="one-sentence", score=score)) for score in SCORES}
    assert one_sentence == {"SE": 0.72, "RadFlag": 0.70, "VASE": 0.74}


def test_prompts_are_those_of_listing_1(paper_text: str) -> None:
    """Word for word; the printed listing lost the opening quotes around yes and no."""
    text = paper_text.replace("yes\u2019, no\u2019,", "'yes', 'no',")
    for prompt in PROMPTS:
        loaded = load_prompt(f"medical_vqa/{prompt}")
        listed = text[text.index(f'"{prompt}": [') :]
        said = re.findall(r'"content": "(.*)"', listed)[:2]
        assert [loaded.system, loaded.user] == said


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="table 4: the numbers of tables 2 and 3"):
        published(4)


# --- runs in their places ---------------------------------------------------------------------------------------------


def answer_sets(n: int, count: int = 40, seed: int = 0) -> tuple[AnswerSet, ...]:
    rng = random.Random(seed)

    def answer(options: str) -> Answer:
        return Answer(rng.choice(options), -rng.random(), 2)

    sets = []
    for i in range(count):
        options = rng.choice(["aaab", "abcd"])
        label = int(rng.random() < (0.3 if options == "aaab" else 0.7))
        clean, noisy = (tuple(answer(options) for _ in range(n)) for _ in range(2))
        sets.append(AnswerSet(f"q{i}", answer(options), clean, noisy, "what?", "a", label))
    return tuple(sets)


def run(
    task: str = "hedge_vqarad", n: int = 10, model: str = QWEN, created: str = "2026-01-01", **fields: object
) -> Run:
    settings = {
        "documents": {"judge": {"judge": "rule"}},
        "filters": {name: {"backend": "exact", "with_question": False, "alpha": 1.0} for name in FILTERS.values()},
    }
    return replace(Run(task, model, answer_sets(n), {}, settings, created), **fields)  # type: ignore[arg-type]


def results_of(table: int, *runs: Run, **options: object) -> dict[PublishedNumber, CellResult]:
    placed = place_runs(runs)
    scored = score_cells(published_cells(table), placed.runs, **options)  # type: ignore[arg-type]
    results = {result.cell: result for result in scored}
    assert len(results) == len(published(table))
    return results


def test_the_tasks_of_the_tables_are_there() -> None:
    there = {task.task for task in list_tasks()}
    assert {task_name(dataset, prompt) for dataset in DATASETS for prompt in PROMPTS} <= there
    assert set(TASKS) == set(DATASETS)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (QWEN, "Qwen2.5-VL"),
        ("hedge_vllm|model=google/medgemma-4b-it", "Med-Gemma"),
        ("hedge_hf|pretrained=chaoyinshe/llava-med-v1.5-mistral-7b-hf", "LLaVA-Med"),
        ("hedge_hf|pretrained=Qwen/Qwen2.5-VL-3B-Instruct", None),
        ("hedge_hf|pretrained=google/medgemma-27b-it", None),
        ("hedge_hf|pretrained=llava-hf/llava-1.5-7b-hf", None),
        ("", None),
    ],
)
def test_a_model_is_known_by_its_name_on_the_hub(model: str, expected: str | None) -> None:
    placed = place_runs([run("hedge_kvasirvqa_x1_one_sentence", model=model)])
    assert list(placed.runs) == ([Key("KvasirVQA-x1", "one-sentence", expected)] if expected else [])
    assert len(placed.left_out) == (0 if expected else 1)


def test_another_name_may_be_given_to_a_model() -> None:
    names = {"Med-Gemma": "My+copy"}
    assert list(place_runs([run(model="hedge_hf|pretrained=/models/my+COPY")], names).runs) == [
        Key("VQA-RAD", "default", "Med-Gemma")
    ]
    both = place_runs([run(model=QWEN + "my+copy")], names)
    assert both.runs == {}
    assert "more than one model of the paper has that name" in both.left_out[0]
    with pytest.raises(ConfigError, match="did you mean 'Med-Gemma'"):
        place_runs([], {"MedGemma": "x"})


def test_the_newest_run_counts_and_foreign_tasks_are_left_out() -> None:
    old, new, foreign = run(created="2026-01-01"), run(created="2026-02-02", n=3), run("hedge_demo")
    placed = place_runs([new, foreign, old])
    assert placed.runs == {Key("VQA-RAD", "default", "Qwen2.5-VL"): new}
    assert sorted(reason.rpartition(": ")[2] for reason in placed.left_out) == [
        "no task of the paper's tables",
        "there is a newer run of it",
    ]


def test_cells_are_the_aurocs_of_the_scores() -> None:
    from sklearn.metrics import roc_auc_score

    finished = run("hedge_vqarad_minimal_label")
    scores = EXACT["nli"].score(finished.answer_sets)
    labels = [answer_set.label for answer_set in finished.answer_sets]
    results = results_of(2, finished, scorers=lambda _: EXACT)
    for score, name in SCORES.items():
        cell = PublishedNumber(2, "VQA-RAD", "minimal-label", "Qwen2.5-VL", score, "A+Q", "Embed", 10)
        assert results[cell].ours == pytest.approx(roc_auc_score(labels, [s[name] for s in scores]))
        assert results[cell].difference == pytest.approx(results[cell].ours - published(2)[cell])
        assert results[cell].reason == ""
    assert Counter(result.ours is None for result in results.values()) == {True: 288 - 12, False: 12}


def test_a_column_is_clustered_by_the_method_of_its_name() -> None:
    """The clusterings differ in what they see, so a mixed-up column gives another number."""
    by_length = {name: Scorer(name, FirstOnly(i), bool(i % 2)) for i, name in enumerate(FILTERS.values())}
    results = results_of(2, run(), scorers=lambda _: by_length)
    for (inputs, clustering), name in FILTERS.items():
        cell = PublishedNumber(2, "VQA-RAD", "default", "Qwen2.5-VL", "SE", inputs, clustering, 10)
        alone = results_of(2, run(), scorers=lambda _, name=name: {name: by_length[name]})
        assert alone[cell].ours == results[cell].ours
        assert sum(result.ours is not None for result in alone.values()) == 3
    distinct = {r.ours for cell, r in results.items() if cell.score == "SE" and r.ours is not None}
    assert len(distinct) == 4


class FirstOnly(ExactClustering):
    """Clusters one letter apart from all others."""

    def __init__(self, letter: int) -> None:
        super().__init__()
        self.letter = "abcd"[letter]

    def __eq__(self, other: object) -> bool:  # equal backends are shared
        return self is other

    __hash__ = object.__hash__

    def cluster(self, answers: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        return super().cluster([["x" if self.letter in a else "y" for a in texts] for texts in answers], None)


@pytest.mark.slow
def test_fewer_answers_are_those_of_a_run_with_fewer() -> None:
    finished = run(n=20)
    shorter = [
        replace(answer_set, clean=answer_set.clean[:5], noisy=answer_set.noisy[:5])
        for answer_set in finished.answer_sets
    ]
    many, few = results_of(3, finished), results_of(3, replace(finished, answer_sets=tuple(shorter)))
    for cell in published_cells(3):
        if cell.prompt == "default" and cell.n <= 5:
            assert many[cell].ours == few[cell].ours
            # Every entropy of a single answer is 0: nothing is told apart.
            assert (many[cell].ours is None) == (cell.n == 1 and cell.score == "SE")
            assert many[cell].n == cell.n
    assert results_of(2, finished)[BASE].ours == many[BASE._replace(table=3)].ours


BASE = PublishedNumber(2, "VQA-RAD", "default", "Qwen2.5-VL", "VASE", "AO", "NLI", 10)


def test_missing_cells_say_why() -> None:
    results = results_of(3, run(n=4))
    assert results[BASE._replace(table=3)].reason == "the run has 4 clean answers a question"
    assert results[BASE._replace(table=3, prompt="one-sentence")].reason == "no run of hedge_vqarad_one_sentence"
    assert results_of(2, run(), scorers=lambda _: {})[BASE].reason == "the run has no filter nli"
    assert results_of(2, run(settings={}))[BASE].reason == "the run has no filter nli"
    one_class = tuple(replace(answer_set, label=1) for answer_set in answer_sets(10))
    assert "every document is labelled hallucinated" in results_of(2, run(answer_sets=one_class))[BASE].reason


def test_table_2_takes_a_run_with_fewer_answers_and_says_so() -> None:
    result = results_of(2, run(n=4))[BASE]
    assert result.ours is not None
    assert result.n == 4


def test_equal_methods_of_several_runs_share_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[int] = set()
    original = ExactClustering.cluster

    def watched(self: ExactClustering, *arguments: object) -> object:
        used.add(id(self))
        return original(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ExactClustering, "cluster", watched)
    results_of(2, run(), run("hedge_vqarad_one_sentence"))
    assert len(used) == 1


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for task in ("hedge_vqarad", "hedge_kvasirvqa_x1_minimal_label"):
        save_run(run(task), tmp_path)
    save_run(run("hedge_demo"), tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_command_shows_ours_beside_theirs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "hedge", str(folder)]) == 0
    printed = capsys.readouterr().out
    result = results_of(2, run())[BASE]
    blocks = printed.split("\n\n")
    assert [block.split("\n")[0] for block in blocks if "Qwen2.5-VL\n" in block] == [
        "VQA-RAD, Qwen2.5-VL",
        "KvasirVQA-x1, Qwen2.5-VL",
    ]
    [block] = [block for block in blocks if block.startswith("VQA-RAD, Qwen2.5-VL")]
    [row] = [row for row in block.splitlines() if row.startswith("default VASE")]
    # The columns are nli_qa, embed_qa, nli, embed, three numbers each.
    assert row.split()[2:][6:9] == [f"{result.ours:.3f}", "0.733", f"{result.difference:+.3f}"]
    assert "left out: hedge_demo of " in printed
    assert "missing: " in printed
    assert "12 of Table 2, VQA-RAD, Med-Gemma, default: no run of hedge_vqarad\n" in printed
    assert "Table 3: " in printed
    assert "Table 3 at equal draws: " in printed


@pytest.mark.slow
def test_the_command_writes_every_cell(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cells.csv"
    assert main(["paper", "hedge", str(folder), "--out", str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(facts["cells"]) == 288 + 336
    assert [row["paper"] for row in rows] == [str(cell["paper"]) for cell in facts["cells"]]
    of_one_answer = 2  # SE with either clustering is undefined there
    assert sum(row["ours"] != "" for row in rows) == 12 + 12 + 2 * 3 * 10 - of_one_answer
    assert {r["task"] for r in facts["runs"]} == {"hedge_vqarad", "hedge_kvasirvqa_x1_minimal_label"}
    assert (facts["runs"][0]["judge"], facts["runs"][0]["labelled"], facts["runs"][0]["n"]) == ("rule", 40, 10)


def test_another_clustering_may_be_asked_for() -> None:
    given = argparse.Namespace(nli_model="some/nli", embedding_model=None, threshold="0.8", protocol=None)
    columns = paper._scorers(given)
    assert columns is not None
    scorers = columns(run())
    assert {name: scorer.with_question for name, scorer in scorers.items()} == {
        **dict.fromkeys(("nli", "embed"), False),
        **dict.fromkeys(("nli_qa", "embed_qa"), True),
    }
    assert scorers["nli"].settings()["model"] == scorers["nli_qa"].settings()["model"] == "some/nli"
    assert scorers["embed"].settings()["threshold"] == scorers["embed_qa"].settings()["threshold"] == 0.8
    given.threshold = None
    some = paper._scorers(given)
    assert some is not None
    assert [scorer.backend.name for scorer in some(run()).values()] == ["nli", "nli", "exact", "exact"], "the run's own"
    given.nli_model = None
    assert paper._scorers(given) is None


def test_one_table_may_be_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "hedge", str(folder), "--table", "2", "--json"]) == 0
    assert {cell["table"] for cell in json.loads(capsys.readouterr().out)["cells"]} == {2}


def test_without_a_run_of_the_paper_everything_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_run(run("hedge_demo"), tmp_path)
    assert main(["paper", "hedge", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "missing: 624 of 624 cells" in printed
    assert "Table 2: " not in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "Qwen2.5-VL"], "--name: expected MODEL=TEXT"),
        (["--name", "Qwen=x"], "unknown model of the paper 'Qwen', did you mean 'Qwen2.5-VL'"),
        (["no/such/folder"], "no/such/folder: no such file or folder"),
        (["--threshold", "7"], "threshold must be"),
    ],
)
def test_wrong_use_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["paper", "hedge", str(folder), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_table_3_at_equal_draws_compares_vase_at_half_the_answers() -> None:
    found = at_equal_draws([CellResult(cell, published(3)[cell]) for cell in published_cells(3)])
    with (resources.files("hedge_tasks.measures.hedge_paper") / "table3.csv").open(encoding="utf-8") as file:
        rows = {(r["clustering"], r["prompt"], r["score"]): r for r in csv.DictReader(file)}
    at_20 = {(e.clustering, e.prompt): e.published for e in found if (e.score, e.draws) == ("SE", 20)}
    assert at_20 == {
        place: pytest.approx(float(rows[(*place, "VASE")]["10"]) - float(rows[(*place, "SE")]["20"])) for place in at_20
    }
    assert len(at_20) == 8
    assert all(e.ours is None for e in found)
    assert {e.draws for e in found} == {2, 4, 6, 8, 10, 20, 30}


# --- as the paper lays them out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", DATASETS)
def test_table_2_is_laid_out_with_best_cells_and_means(dataset: str) -> None:
    columns, rows = columns_of_table_2(), rows_of_table_2(published(2), dataset)
    assert len(columns) == 2 * (3 + 1) * 2
    assert [row.prompt for row in rows] == [p for p in (*PROMPTS, "mean") for _ in SCORES]
    first = rows[0]
    singles = [i for i, (_, model, _) in enumerate(columns) if model != "mean"]
    assert [first.values[i] for i in singles] == pytest.approx(
        [v for c, v in published(2).items() if (c.dataset, c.prompt, c.score) == (dataset, "minimal-label", "SE")],
        abs=0,
    )
    for row in rows:
        assert row.top == {i for i in singles if row.values[i] == max(row.values[i] for i in singles)}
        for nli in range(0, len(columns), 2):
            pair = row.values[nli], row.values[nli + 1]
            assert {i for i in row.best if i in (nli, nli + 1)} == {nli + k for k in (0, 1) if pair[k] == max(pair)}
    of_vase = [row.values[0] for row in rows if row.score == "VASE"]
    assert of_vase[4] == pytest.approx(mean(of_vase[:4]))
    models = [i for i, (given, _, clustering) in enumerate(columns) if (given, clustering) == ("AO", "Embed")]
    assert first.values[models[3]] == pytest.approx(mean([first.values[i] for i in models[:3]]))


def test_table_3_marks_the_best_number_of_answers_and_a_mean_needs_all_it_is_over() -> None:
    sizes = sorted({cell.n for cell in published(3)})
    rows = rows_of_table_3(published(3), "NLI", sizes)
    [row] = [row for row in rows if (row.prompt, row.score) == ("one-sentence", "VASE")]
    assert {sizes[i] for i in row.best} == {6, 7, 8, 20, 25, 30}
    some = {cell: value for cell, value in published(3).items() if cell.prompt != "default"}
    for row in rows_of_table_3(some, "NLI", sizes):
        assert (row.values[3] is None) == (row.prompt in ("default", "mean"))
    assert all(not row.best for row in rows_of_table_3({}, "NLI", sizes))


@pytest.mark.slow
def test_figure_2_has_every_prompt_under_both_clusterings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for i, prompt in enumerate(PROMPTS[:2]):
        save_run(run(task=task_name("VQA-RAD", prompt), created=f"2026-0{i + 1}"), tmp_path)
    numbers, figure = tmp_path / "figure.csv", tmp_path / "figure.svg"
    for path in (numbers, figure):
        assert main(["paper", "hedge", str(tmp_path), "--table", "3", "--figure", str(path), "--json"]) == 0
    with numbers.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["panel"] for row in rows} == {"n-se", "n-radflag", "n-vase"}
    assert {row["series"] for row in rows} == {f"{p}, {c}" for p in PROMPTS[:2] for c in ("NLI", "embedding")}
    assert {float(row["x"]) for row in rows} == {float(n) for n in range(1, 11)}
    assert figure.read_text("utf-8").count("stroke-dasharray") >= 2
    assert main(["paper", "hedge", str(tmp_path), "--table", "2", "--figure", str(figure)]) == 2
    assert "no cell of Table 3" in capsys.readouterr().err

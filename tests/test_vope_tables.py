"""VOPE's tables as they were printed and out of runs, cover, and HEDGE by the story."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import REPOSITORY
from rows import rows_of
from sklearn.metrics import roc_auc_score

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.report.plots import relevance_chart
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.vope import measures, published
from hedge_tasks.suites.vope.objects import ObjectRecord, story_scores
from hedge_tasks.suites.vope.tables import numbers_of

METRICS = rows_of(measures.MEASURES)


def story(baseline: str, clean: list[str], noisy: list[str]) -> AnswerSet:
    return AnswerSet("s", Answer(baseline), tuple(map(Answer, clean)), tuple(map(Answer, noisy)))


def entry(kind: str | None, present: bool = True) -> ObjectRecord:
    scores = {"se": 0.1, "radflag": 0.2, "vase": 0.3}
    return ObjectRecord("dog", "dog", present, kind, False, "", 0.5, 0.5, scores)


def finished(model: str, replies: dict[str, str]) -> Run:
    """A run with one story of two objects, of which the dog is there."""
    rechecks = tuple(
        AnswerSet(f"s/{word}", Answer(reply), (Answer(reply),), reference="yes" if word == "dog" else "no")
        for word, reply in replies.items()
    )
    sets = (story("A dog and a car", ["A dog"], []).with_follow_ups(rechecks),)
    return Run("hedge_vope_writing", model, sets, {"s": {"objects": []}})


# --- story and objects ------------------------------------------------------------------------------------------------


def test_a_storys_scores_are_those_of_stories_with_the_same_categories() -> None:
    answers = story("A dog.", ["A puppy.", "A dog and a car", "Rain", "A hound runs"], ["A dog", "Rain"])
    scores = story_scores(answers)
    p = np.array([2, 1, 1]) / 4  # dog, dog and car, nothing
    q = np.array([1, 0, 1]) / 2
    z = np.exp(p + (p - q))
    z /= z.sum()
    assert scores["se"] == pytest.approx(float(-(p * np.log(p)).sum()))
    assert scores["radflag"] == pytest.approx(1 - 2 / 4)
    assert scores["vase"] == pytest.approx(float(-(z * np.log(z)).sum()))
    assert story_scores(story("A dog", ["A cat"], []))["vase"] is None


def test_story_aurocs_equal_scikit_learns() -> None:
    generator = random.Random(3)
    rows = [(generator.randrange(10) / 10, generator.randrange(2)) for _ in range(60)]
    for name in ("se", "radflag", "vase"):
        metric = METRICS[f"story_{name}_auroc"]
        scores = SimpleNamespace(group=None, id="x")
        made = [
            metric.record(scores, {"story": {name: s}, "label": label}, {})  # type: ignore[arg-type]
            for s, label in [*rows, (0.9, None)]
        ]
        assert metric(made) == pytest.approx(roc_auc_score([label for _, label in rows], [s for s, _ in rows]))


def test_cover_is_the_share_of_what_is_there_that_is_told() -> None:
    metric = METRICS["cover"]
    dog, car = entry("true_description"), replace(entry("true_description"), word="taxi", category="car")
    stories = [([dog, dog, car], "dog, person"), ([car], "car"), ([], "bus, car"), ([dog], "")]
    made = [
        metric.record(
            SimpleNamespace(group=str(i), id=str(i)),
            {"objects": [o.to_dict() for o in mine]},
            {"truth": truth},  # type: ignore[arg-type]
        )
        for i, (mine, truth) in enumerate(stories)
    ]
    assert metric(made) == 2 / 5
    assert metric(made[3:]) == "undefined: no image has a COCO object"
    low, high = (METRICS[f"cover_{end}"](made) for end in ("low", "high"))
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low < 2 / 5 < high


# --- the paper's tables -----------------------------------------------------------------------------------------------


def printed(table: str) -> dict[tuple[str, str, str], float]:
    """The printed numbers of a table by model, setting and measure."""
    return {(p.model, p.setting, p.measure): p.value for p in published.PUBLISHED if p.table == table}


def test_the_papers_numbers_are_those_that_it_prints() -> None:
    file = REPOSITORY.parent / "shared" / "papers" / "vope.txt"
    if not file.is_file():
        pytest.skip("the paper's text (../shared/papers/vope.txt) is not here")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in file.read_text("utf-8").splitlines()]
    assert len(published.MODELS) == 8
    for model in published.MODELS:
        [numbers] = [r[1:] for r in rows if len(r) == 10 and r[0].split(" [")[0] == model and r[1][:1].isdigit()]
        values = [value for (name, _, _), value in printed("Table 1").items() if name == model]
        assert [f"{100 * value:.1f}" for value in values] == numbers
    methods = dict.fromkeys(setting.partition(", ")[2] for _, setting, _ in printed("Table 3"))
    assert len(methods) > 3
    for method in methods:
        [cells] = [r[1:] for r in rows if len(r) == 10 and r[0].split(" [")[0].lower() == method]
        values = [v for (_, setting, _), v in printed("Table 3").items() if setting.endswith(f", {method}")]
        assert [f"{100 * value:.1f}" for value in values] == [cell.split()[0] for cell in cells]
    counts = [tuple(int(cell) for cell in row if cell.isdigit()) for row in rows]
    rated = printed("Tables 4 to 6")
    assert [row for row in counts if len(row) == 3] == [
        tuple(int(rated[model, task, f"relevance_{kind}_{score}"]) for score in (1, 2, 3))
        for task in published.TASKS
        for model in published.MODELS
        for kind in published.KINDS
    ]


def test_the_papers_tables_agree_with_each_other() -> None:
    """Numbers of rated objects and Table 1 give Hal-D once more if Tables 4 to 6 are these tasks in this order."""
    apart = []
    shares, rated = printed("Table 1"), printed("Tables 4 to 6")
    for model in published.MODELS:
        for task in published.TASKS:
            counts = {
                kind: sum(rated[model, task, f"relevance_{kind}_{score}"] for score in (1, 2, 3))
                for kind in published.KINDS
            }
            imagined = counts["imagined"] / (1 - shares[model, task, "hal_i"])
            described = imagined / shares[model, task, "exp"] - imagined
            apart.append(counts["hallucinated"] / described - shares[model, task, "hal_d"])
    assert np.abs(apart).max() < 0.002
    assert published.setting_of("hedge_vope_reasoning", "") == "reasoning"


def test_tables_read_presence_anew_and_keep_what_a_model_read() -> None:
    run = finished("hedge_hf|pretrained=llava-hf/llava-1.5-7b-hf", {"dog": "Yes", "car": "Who can say?"})
    [answers] = run.answer_sets
    answers = replace(answers, reference="car, dog")
    kept = [{"word": "car", "by_model": True, "kind": "true_imagination"}]
    run = replace(run, answer_sets=(answers,), verdicts={"s": {"objects": kept}})
    read, official = numbers_of(run).numbers, numbers_of(run, "official").numbers
    assert [read.value(name) for name in ("read_by_model", "unread", "exp")] == [1, 0, 0.5]
    assert [official.value(name) for name in ("read_by_model", "unread")] == [0, 0]
    # By the story's own truth the car is there, so denying it is a hallucination.
    assert (read.value("hal_i"), numbers_of(run, presence="exact").numbers.value("hal_i")) == (0.0, 1.0)
    assert read.value("cover") == 1.0
    theirs = {name: p.value for name, p in read.published.items()}
    assert {name: theirs[name] for name in ("hal_d", "hal_i", "exp")} == pytest.approx(
        {"hal_d": 0.219, "hal_i": 0.188, "exp": 0.148}
    )
    assert [theirs[f"relevance_hallucinated_{score}"] for score in (1, 2, 3)] == [345, 1135, 2147]
    method = {"name": "contrast", "prompt": "vope/writing", "other": "vope/captioning", "alpha": 0.5, "beta": 0.0}
    contrasted = replace(run, settings={"sampled": {"decoding": {"asked": "pure", "method": method}}})
    assert numbers_of(contrasted).numbers.published == {}
    assert numbers_of(run, beside="GPT-4o").numbers.published["exp"].value == 0.33


def test_the_relevance_of_a_run_is_drawn() -> None:
    objects = [
        *({"kind": "hallucinated_description", "relevance": [score, 1]} for score in (3, 3, 1)),
        *({"kind": "true_imagination", "relevance": [score]} for score in (2, None)),
        *({"kind": "true_imagination", "relevance": []}, {"kind": "true_description", "relevance": [3]}),
    ]
    chart = relevance_chart(Run("t", "m", (), {"s": {"objects": objects}}))
    assert {series.name: series.y for series in chart.series} == {"hallucinated": (1, 0, 2), "imagined": (0, 1, 0)}
    assert relevance_chart(Run("t", "m", (), {})).empty

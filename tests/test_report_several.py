"""Several runs on one page: heat maps, comparisons a column each, and the answers of all models to one question."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from functools import cache

import pytest
from finished_runs import HOSTILE, finished_run, hostile_run, suite_run

from hedge_tasks.measures.curves import hallucination_rate
from hedge_tasks.report.analysis import Analysis, Pair, analyse, compare_between, compare_within
from hedge_tasks.report.comparisons import tables_of
from hedge_tasks.report.heatmap import Scale, names_within_tasks, side_by_side
from hedge_tasks.report.run_names import names_of_runs, what_differs
from hedge_tasks.report.sidebyside import answers_side_by_side
from hedge_tasks.report.texts import script_json
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.model_names import short_names

FIRST, SECOND = "Qwen/Qwen2.5-VL-7B-Instruct (hedge_openai, temperature=0.2)", "/mnt/disk/models/llava-1.5 (hedge_hf)"


@cache
def three() -> tuple[Analysis, ...]:
    runs = [finished_run(40, seed=i, model=model) for i, model in enumerate((FIRST, SECOND))]
    return tuple(analyse([*runs, finished_run(40, seed=7, model=FIRST, task="hedge_y")], curves=False))


def test_short_names_say_which_model_it_is_and_no_two_are_alike() -> None:
    assert list(short_names([FIRST, SECOND]).values()) == ["Qwen2.5-VL-7B-Instruct", "llava-1.5"]
    assert list(short_names(["x/one (hf)", "y/one (hf)", "y/two (vllm)", "three"]).values()) == [
        "one (x)",
        "one (y)",
        "two",
        "three",
    ]
    address = "hedge_openai|base_url=http://10.0.0.7:8000/v1|model=Qwen/Q"
    assert list(short_names([address, "hedge_hf|pretrained=Qwen/Q"]).values()) == ["Q (hedge_openai)", "Q (hedge_hf)"]
    long = [f"{'a' * 80}-{i} (hf, {'b' * 50}{i})" for i in range(2)]
    named = list(short_names(long).values())
    assert len(set(named)) == 2
    assert max(map(len, named)) < 45
    assert len(set(short_names([*HOSTILE.values(), "", "/", "a (b", "a\n(b)"]).values())) == len(HOSTILE) + 4


def test_runs_are_called_by_short_names() -> None:
    assert names_of_runs([a.run for a in three()]) == [
        "hedge_x · Qwen2.5-VL-7B-Instruct",
        "hedge_x · llava-1.5",
        "hedge_y · Qwen2.5-VL-7B-Instruct",
    ]
    twice = [three()[0], three()[0]]
    assert names_within_tasks(twice, ["first", "second"]) == ["first", "second"]
    assert names_within_tasks(three(), ["1", "2", "3"])[1:] == ["llava-1.5", "Qwen2.5-VL-7B-Instruct"]


def test_runs_of_a_model_are_called_by_what_differs() -> None:
    seeds = [finished_run(4, sampling={"n": 6, "seed": seed, "temperature": 1.0}) for seed in (0, 1)]
    assert names_of_runs(seeds) == ["hedge_x · model · seed 0", "hedge_x · model · seed 1"]
    other = finished_run(4, sampling={"n": 10, "seed": 0, "temperature": 1.0})
    assert names_of_runs([*seeds, other])[2] == "hedge_x · model · seed 0, n 10"
    assert what_differs([finished_run(4), finished_run(6)]) == ["4 questions", "6 questions"]
    later = replace(finished_run(4), created="2026-01-03T03:04:05+00:00")
    assert what_differs([finished_run(4), later]) == ["2026-01-02 03:04", "2026-01-03 03:04"]
    same = names_of_runs([finished_run(4), finished_run(4)])
    assert len(set(same)) == 2


def test_a_heat_map_has_every_number_in_the_cell_of_its_model_and_task() -> None:
    found = side_by_side(three(), ["a", "b", "c"])
    panels = {panel.name: panel for panel in found["panels"]}
    assert list(panels) == ["hallucination rate", "exact, SE", "exact, RadFlag", "exact, VASE"]
    panel = panels["exact, SE"]
    assert panel.columns == ("hedge_x", "hedge_y")
    [(short, model, cells), (_, _, others)] = panel.rows
    assert (short, model) == ("Qwen2.5-VL-7B-Instruct", FIRST)
    assert [[cell.run for cell in of_task] for of_task in cells] == [[0], [2]]
    assert [[cell.run for cell in of_task] for of_task in others] == [[1], []]
    for place, cell in ((0, cells[0][0]), (2, cells[1][0])):
        value = three()[place].estimates["exact"]["se"].value
        assert value is not None
        assert cell.text == f"{value:.3f}"
        assert cell.level == round(9 * min(max((value - 0.5) / 0.5, 0), 1))
    rate = hallucination_rate(three()[1].run.answer_sets)
    assert rate is not None
    assert panels["hallucination rate"].rows[1][2][0][0].text == f"{100 * (rate.value or 0):.1f} %"


@pytest.mark.slow
def test_of_one_task_all_numbers_of_a_clustering_stand_in_one_map() -> None:
    analyses = analyse([suite_run(40, seed=i, wrong=i / 10, model=f"m{i}") for i in (1, 3)], curves=False)
    found = side_by_side(analyses, ["a", "b"])
    [panel] = found["panels"]
    assert panel.columns == ("F1", "accuracy", "hallucination rate", "SE", "RadFlag", "VASE")
    assert [cell.good for cells in panel.rows[0][2] for cell in cells] == [True, True, False, True, True, True]
    saved = list(csv.DictReader(io.StringIO(json.loads(panel.numbers)["csv"])))
    assert len(saved) == 2 * 6
    [f1] = [row for row in saved if row["number"] == "F1" and row["model"] == "m1"]
    assert float(f1["value"]) == analyses[0].suite[0][1].value


def test_a_run_without_the_number_is_led_to_all_the_same() -> None:
    unlabelled = replace(three()[1], run=replace(three()[1].run, answer_sets=()))
    panels = {
        panel.name: panel for panel in side_by_side([three()[0], unlabelled, three()[2]], ["a", "b", "c"])["panels"]
    }
    [[cell], []] = panels["hallucination rate"].rows[1][2]
    assert (cell.run, cell.text, cell.value) == (1, "not there", None)


def test_shades_end_where_the_scale_does() -> None:
    scale = Scale(0.5, 1.0, good=True)
    assert [scale.level(v) for v in (0.0, 0.5, 0.75, 1.0)] == [0, 0, 4, 9]
    assert Scale(0.0, 1.0, good=False, percent=True).text(0.25) == "25.0 %"


@pytest.mark.slow
def test_two_runs_of_one_model_and_task_are_a_row_each() -> None:
    again = analyse([finished_run(40, seed=5, model=FIRST)], curves=False)[0]
    panel = side_by_side([*three(), again], ["a", "b", "c", "d"])["panels"][0]
    shown = {name: [[cell.run for cell in of_task] for of_task in cells] for name, _, cells in panel.rows}
    assert shown == {"a": [[0], []], "d": [[3], []], "Qwen2.5-VL-7B-Instruct": [[], [2]], "llava-1.5": [[1], []]}


def test_an_unreliable_run_is_told_before_it_is_compared() -> None:
    runs = [suite_run(40, model="fine"), suite_run(40, model="silent", mute=0.4)]
    analyses = [Analysis(run, {}, {}, {}, {}) for run in runs]
    found = side_by_side(analyses, ["a", "b"])["unreliable"]
    assert list(found) == [1]
    assert found[1] == ("b", health_of(runs[1]).unreliable)


def test_comparisons_are_a_column_each_with_the_numbers_they_had_as_rows() -> None:
    analyses = three()[:2]
    pairs = compare_between(analyses, {0: "a", 1: "b"})
    [table] = tables_of(pairs)
    assert table.name == "hedge_x"
    assert table.columns == (("a", "b"),)
    assert [row[0] for row in table.rows] == ["hallucination rate", "exact, SE", "exact, RadFlag", "exact, VASE"]
    cells = [cell for _, _, _, row in table.rows for cell in row]
    assert [cell.pair for cell in cells if cell is not None] == pairs
    for cell in cells:
        assert cell is not None
        assert cell.told_apart == (cell.pair.p_adjusted is not None and cell.pair.p_adjusted < 0.05)


def test_what_is_not_compared_is_an_empty_cell() -> None:
    comparison = compare_within(three()[0])[0].comparison
    pairs = [Pair("t", "x", "a", "b", comparison, 0.01), Pair("t", "y", "a", "c", replace(comparison, n=7), 0.2)]
    [table] = tables_of(pairs)
    assert table.columns == (("a", "b"), ("a", "c"))
    assert [[cell and cell.told_apart for cell in row] for _, _, _, row in table.rows] == [[True, None], [None, False]]
    assert [sizes for _, sizes, _, _ in table.rows] == [(comparison.n, comparison.n), (7, 7)]


def test_a_comparison_of_aurocs_has_the_size_of_its_rarer_class_and_one_of_rates_has_none() -> None:
    analyses = three()[:2]
    [table] = tables_of(compare_between(analyses, {0: "a", 1: "b"}))
    columns = [[each.label for each in one.run.answer_sets] for one in analyses]
    fewest = min(min(column.count(value) for value in (0, 1)) for column in columns)
    assert table.of_classes
    assert [rarer for _, _, rarer, _ in table.rows] == [None, *[(fewest, fewest)] * 3]
    rates = compare_between(analyses, {0: "a", 1: "b"})[:1]
    assert not tables_of(rates)[0].of_classes
    within = tables_of(compare_within(three()[0]))
    assert [table.name for table in within] == ["Detectors, under each clustering"]


def test_answers_of_all_models_stand_beside_each_other_by_question() -> None:
    first, second, alone = three()
    fewer = replace(second, run=replace(second.run, answer_sets=second.run.answer_sets[5:]))
    [task] = answers_side_by_side([first, fewer, alone], ["a", "b", "c"])
    assert task["task"] == "hedge_x"
    assert [run["run"] for run in task["runs"]] == [0, 1]
    ids = [question["id"] for question in task["questions"]]
    assert ids == [a.id for a in first.run.answer_sets]
    one, other = task["runs"]
    assert one["said"] == [a.baseline.text for a in first.run.answer_sets]
    assert other["said"][:6] == [None] * 5 + [second.run.answer_sets[5].baseline.text]
    assert other["labels"][5:] == [a.label for a in second.run.answer_sets[5:]]
    assert one["texts"][one["reasons"][3]] == "equal: the same words"
    scores = {s.id: s["vase"] for s in first.scores["exact"]}
    assert one["scores"]["exact"]["vase"] == pytest.approx([scores[id] for id in ids], abs=1e-4)
    assert len(answers_side_by_side([first, second], ["a", "b"], most=10)[0]["questions"]) == 10
    assert answers_side_by_side([first, alone], ["a", "c"]) == []


def test_what_another_edition_asks_under_the_same_id_is_another_question() -> None:
    first, second, _ = three()
    old, *rest = second.run.answer_sets
    new = replace(old, question="Is there a mass?", reference="no")
    edition = replace(second, run=replace(second.run, answer_sets=(new, *rest)))
    [task] = answers_side_by_side([first, edition], ["a", "b"])
    questions, (one, other) = task["questions"], task["runs"]
    [i, j] = [k for k, question in enumerate(questions) if question["id"] == old.id]
    assert len(questions) == len(first.run.answer_sets) + 1
    assert (questions[i].get("question"), questions[i].get("wording")) == (old.question, None)
    assert (questions[j]["question"], questions[j]["reference"]) == ("Is there a mass?", "no")
    assert questions[j]["wording"] == "2"
    assert (one["said"][j], other["said"][i]) == (None, None)
    assert (one["said"][i], other["said"][j]) == (first.run.answer_sets[0].baseline.text, new.baseline.text)
    assert other["labels"][j] == new.label
    assert other["scores"]["exact"]["vase"][i] is None


@pytest.mark.slow
def test_hostile_and_endless_answers_are_cut_and_stay_data() -> None:
    analyses = analyse([hostile_run(), replace(hostile_run(), model="other")], curves=False)
    data = answers_side_by_side(analyses, ["a", "b"], budget=20_000)
    text = script_json(data)
    assert len(text) < 20_000 + 40 * 2500
    assert not set(text) & set("<>&\u2028\u2029")
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", "".join(data[0]["runs"][0]["said"]))

"""Several runs on one page: their names, everything that differs, their numbers, and comparisons of what is paired."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from finished_runs import HOSTILE, finished_run, suite_run

from hedge_tasks.report.analysis import Analysis, analyse, compare_between, compare_within, table_of
from hedge_tasks.report.run_names import differences, names_of_runs, what_differs
from hedge_tasks.report.several import side_by_side
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.model_names import short_names

FIRST, SECOND = "Qwen/Qwen2.5-VL-7B-Instruct (hedge_openai, temperature=0.2)", "/mnt/disk/models/llava-1.5 (hedge_hf)"


@cache
def three() -> tuple[Analysis, ...]:
    runs = [finished_run(40, seed=i, model=model) for i, model in enumerate((FIRST, SECOND))]
    return tuple(analyse([*runs, finished_run(40, seed=7, model=FIRST, task="hedge_y")]))


def test_short_names_say_which_model_it_is_and_no_two_are_alike() -> None:
    assert list(short_names([FIRST, SECOND]).values()) == ["Qwen2.5-VL-7B-Instruct", "llava-1.5"]
    long = [f"{'a' * 80}-{i} (hf, {'b' * 50}{i})" for i in range(2)]
    named = list(short_names(long).values())
    assert len(set(named)) == 2
    assert max(map(len, named)) < 45
    assert len(set(short_names([*HOSTILE.values(), "", "/", "a (b", "a\n(b)"]).values())) == len(HOSTILE) + 4


def test_runs_of_a_model_are_called_by_what_differs() -> None:
    seeds = [finished_run(4, sampling={"n": 6, "seed": seed, "temperature": 1.0}) for seed in (0, 1)]
    assert names_of_runs(seeds) == ["hedge_x · model · seed 0", "hedge_x · model · seed 1"]
    other = finished_run(4, sampling={"n": 10, "seed": 0, "temperature": 1.0})
    assert names_of_runs([*seeds, other])[2] == "hedge_x · model · seed 0, n 10"
    assert what_differs([finished_run(4), finished_run(6)]) == ["4 questions", "6 questions"]
    later = replace(finished_run(4), created="2026-01-03T03:04:05+00:00")
    assert what_differs([finished_run(4), later]) == ["2026-01-02 03:04", "2026-01-03 03:04"]
    assert len(set(names_of_runs([finished_run(4), finished_run(4)]))) == 2


def test_everything_that_differs_is_told_and_nothing_else() -> None:
    runs = [finished_run(4 + i, sampling={"n": 6, "seed": i, "top_k": 20 * i}) for i in range(2)]
    named, others = differences(runs, ["a", "b"])
    assert named is not None
    assert others is not None
    assert [list(row.values()) for row in named.rows] == [["questions", "4", "5"], ["seed", "0", "1"]]
    assert [list(row.values()) for row in others.rows] == [["sampling.top_k", "0", "20"]]
    assert differences(runs[:1] * 2, ["a", "b"]) == (None, None)


def test_runs_of_one_task_are_compared_with_corrected_p_values() -> None:
    pairs = compare_between(three(), {0: "a", 1: "b", 2: "c"})
    assert [(p.topic, p.number, p.a, p.b) for p in pairs] == [
        ("hedge_x", number, "a", "b") for number in ("hallucination rate", "exact, SE", "exact, RadFlag", "exact, VASE")
    ]
    first, second, _ = three()
    assert pairs[1].comparison.a == first.estimates["exact"]["se"].value
    assert pairs[1].comparison.b == second.estimates["exact"]["se"].value
    known = [(p.comparison.p_value, p.p_adjusted) for p in pairs if p.comparison.p_value is not None]
    assert all(raw <= (adjusted or 0) <= min(1, len(known) * raw) + 0.005 for raw, adjusted in known)
    head = side_by_side(three(), ["a", "b", "c"])
    assert head.pairs is not None
    assert [row["difference"] for row in head.pairs.rows] == [pair.comparison.number for pair in pairs]
    assert all(pair.p_adjusted is None for pair in compare_within(first))
    for table in (head.pairs, table_of(compare_within(first))):
        assert all(column.source in row for column in table.columns for row in table.rows)


def test_only_what_both_have_is_paired_and_the_page_says_so() -> None:
    first, second, _ = three()
    fewer = replace(second, run=replace(second.run, answer_sets=second.run.answer_sets[5:]))
    head = side_by_side([first, fewer], ["a", "b"])
    assert head.notes[0].startswith("Of these questions 35 are in every run of the task: a has 40, b has 35.")
    assert head.pairs is not None
    assert head.pairs.rows[0]["difference"].n == 35  # type: ignore[union-attr]
    assert not any("in every run" in note for note in side_by_side([first, second], ["a", "b"]).notes)


def test_an_unreliable_run_is_told_before_it_is_compared() -> None:
    runs = [suite_run(40, model="fine"), suite_run(40, model="silent", mute=0.4)]
    head = side_by_side(analyse(runs), ["a", "b"])
    assert head.notes[0] == f"The numbers of b are unreliable: {health_of(runs[1]).unreliable}."


@pytest.mark.parametrize(("n", "compared"), [(6, True), (7, False)])
def test_more_runs_than_one_can_read_are_not_compared(n: int, compared: bool, monkeypatch: Any) -> None:
    asked: list[int] = []

    def counted(analyses: list[Analysis], names: dict[int, str]) -> list[Any]:
        asked.append(len(analyses))
        return []

    monkeypatch.setattr("hedge_tasks.report.several.compare_between", counted)
    head = side_by_side([three()[0]] * n, [str(i) for i in range(n)])
    assert bool(asked) == compared
    assert any("not compared in pairs" in note for note in head.notes) != compared

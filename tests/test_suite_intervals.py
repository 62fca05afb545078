"""One number, one interval: what a suite's command and table say is what reports and comparisons say, to the digit."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from finished_runs import suite_run

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.measures.run_measures import documents_of, numbers_of_run, sums_of
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.medhallu.judge import NOT_SURE
from hedge_tasks.suites.medhallu.paper import PAPER as MEDHALLU
from hedge_tasks.suites.shale.items import CLEAN, NOISY_SCENARIOS
from hedge_tasks.suites.shale.paper import PAPER
from hedge_tasks.suites.vope import objects
from hedge_tasks.suites.vope.judge import VopeJudge
from hedge_tasks.suites.vope.paper import PAPER as VOPE


def suite_numbers(run: Run) -> dict[str, Number]:
    found = {metric.name: measured for metric, measured in numbers_of_run(run)}
    assert all(m.interval is not None for m in found.values()), found
    return found


# --- MedHallu: by row of the data set ---------------------------------------------------------------------------------


def medhallu_run(seed: int, *, wrong: float, not_sure: float = 0.0, knowledge: bool = False) -> Run:
    """Both answers of 40 rows; some replies cannot be read, or are "not sure"."""
    rows = [f"{name}{suffix}" for name in ("f1", "precision", "recall") for suffix in ("", "_easy", "_hard")]
    rows = [name for name in rows if name not in ("precision_easy", "precision_hard", "recall_easy", "recall_hard")]
    run = suite_run(80, seed=seed, wrong=wrong, mute=0.1, metrics=(*rows, "accuracy", "f1_unread_wrong"))
    choice, verdicts, sets = random.Random(seed), {}, []
    for answers in run.answer_sets:
        verdict = {**run.verdicts[answers.id], "kind": "k", "mesh": "", "length": len(answers.id), "votes": []}
        if choice.random() < not_sure:
            verdict["category"], answers = NOT_SURE, replace(answers, label=None)
        verdicts[answers.id] = verdict
        sets.append(answers)
    documents = {**run.settings["documents"], "context": "Knowledge" if knowledge else None}
    documents["judge"] = {**documents["judge"], "not_sure": not_sure > 0}
    return replace(run, answer_sets=tuple(sets), verdicts=verdicts, settings={**run.settings, "documents": documents})


def test_medhallus_tables_have_the_reports_intervals() -> None:
    run = medhallu_run(1, wrong=0.3, not_sure=0.2)
    [(of_run, _)] = MEDHALLU.rows_of([run])
    for name, theirs in suite_numbers(run).items():
        cell = of_run.numbers[name]
        assert (cell.value, cell.stderr, cell.interval) == (theirs.value, theirs.stderr, theirs.interval), name
        # lmms-eval's table has the same standard error.
        [metric] = [m for m in sums_of(run.settings) if m.name == name]
        assert Aggregation(metric).stderr([d.record for d in documents_of(run, metric)]) == theirs.stderr
    assert suite_numbers(run)["f1"].n_groups < 41


# --- SHALE: by scene --------------------------------------------------------------------------------------------------

SHALE = {
    "accuracy_average": (2, CLEAN),
    "resistance_rate": (2, "rr"),
    **{f"accuracy_{t}": (5, t) for t in ("ynq", "mcq")},
}


def shale_run() -> Run:
    """Closed questions of both types in all scenarios, two aspects a scene."""
    choice, sets, verdicts, columns = random.Random(5), [], {}, {}
    for scene in range(25):
        easy = choice.random()
        for task in ("ynq", "mcq"):
            for aspect in ("color", "shape"):
                for scenario in (CLEAN, *NOISY_SCENARIOS):
                    pair, right = f"{task}-{aspect}-{scene}", choice.random() < 0.4 + 0.5 * easy
                    label = None if choice.random() < 0.1 else 1 - int(right)
                    id, group = f"{pair}-{scenario}", f"s{scene}"
                    sets.append(AnswerSet(id, Answer("x"), (), label=label, group=group, question_type=scenario))
                    about = {"task": task, "scenario": scenario, "aspect": aspect, "pair": pair, "group": group}
                    columns[id], verdicts[id] = about, {"judge": "shale", "category": None}
    settings = {
        "documents": {"evaluation": "shale"},
        "metrics": ["accuracy_average", "accuracy_clean", "resistance_rate"],
    }
    return Run("shale", "m", tuple(sets), verdicts, settings, "2026", columns=columns)


def shale_numbers(run: Run) -> dict[int, Mapping[str, Number]]:
    return {int(row.setting[-1]): row.numbers for row, _ in PAPER.rows_of([run])}


@pytest.mark.slow
def test_shales_tables_have_the_reports_intervals() -> None:
    run = shale_run()
    tables = shale_numbers(run)
    theirs = suite_numbers(run)
    for name in ("accuracy_average", "resistance_rate"):
        table, column = SHALE[name]
        cell = tables[table][column]
        assert (cell.value, cell.interval, cell.n) == (theirs[name].value, theirs[name].interval, theirs[name].n)
        assert cell.n_groups == theirs[name].n_groups <= 25
    # A share of one type: a run of this type alone has it in its report.
    mcq = replace(
        run,
        answer_sets=tuple(a for a in run.answer_sets if a.id.startswith("mcq")),
        settings={**run.settings, "metrics": ["accuracy_clean"]},
    )
    alone = shale_numbers(mcq)
    assert alone[5]["mcq"].interval == suite_numbers(mcq)["accuracy_clean"].interval
    assert alone[5]["mcq"].interval == tables[5]["mcq"].interval


# --- VOPE: by image ---------------------------------------------------------------------------------------------------


def vope_run() -> Run:
    """Two stories an image; some rechecks cannot be read."""
    choice, judge, sets, verdicts = random.Random(7), VopeJudge("hedge"), [], {}
    words = {"dog": "yes", "car": "yes", "bus": "no", "cat": "no"}
    for i in range(60):
        id, mine = f"{i}", choice.sample(sorted(words), choice.randrange(5))
        rechecks = []
        for word in mine:
            replies = [choice.choice(("Yes", "Yes", "No", "No", "Who can say?")) for _ in range(2)]
            rechecks.append(AnswerSet(f"{id}/{word}", Answer(replies[0]), (Answer(replies[1]),), reference=words[word]))
        story = " and ".join(f"a {word}" for word in mine) or "Nothing."
        answers = AnswerSet(id, Answer(story), (Answer(story),), reference="dog, car", group=f"image {i // 2}")
        answers = answers.with_follow_ups(rechecks)
        sets.append(answers)
        records = objects.recheck_records(answers, judge)
        verdicts[id] = {**objects.story_facts(answers, records), "label": None}
    settings: dict[str, Any] = {"documents": {"evaluation": "vope"}}
    columns = {answers.id: {"truth": "dog, car"} for answers in sets}
    return Run("hedge_vope_writing", "m", tuple(sets), verdicts, settings, "2026", columns=columns)


@pytest.mark.slow
def test_vopes_tables_and_rows_have_the_reports_intervals() -> None:
    run = vope_run()
    [(row, _)] = VOPE.rows_of([run])
    shares, theirs = row.numbers, suite_numbers(run)
    assert set(theirs) == {"hal_d", "hal_i", "exp", "chair_i", "chair_s", "cover"}
    for metric in sums_of(run.settings):
        cell, measured = shares[metric.name], theirs[metric.name]
        assert (cell.value, cell.stderr, cell.interval) == (measured.value, measured.stderr, measured.interval)
    assert theirs["chair_s"].n_groups == 30

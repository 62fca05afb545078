"""One number, one interval: what a suite's command and table say is what reports and comparisons say, to the digit."""

from __future__ import annotations

import random
from dataclasses import replace

from finished_runs import suite_run

from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.measures.run_measures import documents_of, numbers_of_run, sums_of
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.medhallu.judge import NOT_SURE
from hedge_tasks.suites.medhallu.paper import PAPER as MEDHALLU


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

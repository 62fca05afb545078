"""A board's task without a data set: questions of a finished run, the rule judge, clusters of equal answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from finished_runs import EXACT, finished_run

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.judging import Case, build_judge, verdict_record
from hedge_tasks.leaderboard.board import Rules
from hedge_tasks.leaderboard.entry import Entry, entry_of
from hedge_tasks.runs.editions import edition_of
from hedge_tasks.runs.run_files import Run

SAMPLING = {"n": 3, "n_noisy": 3, "temperature": 1.0, "decoding": "pure", "seed": 0}
SETTINGS = {
    "filters": EXACT,
    "sampling": SAMPLING,
    "documents": {"judge": {"judge": "rule"}},
    "prompt": {"user": "{question}"},
}


def own_run(n: int = 40, *, seed: int = 0, model: str = "org/model", **settings: Any) -> Run:
    """A run of the board's task, each model with answers of its own."""
    run = finished_run(n, seed=seed, model=model, samples=6, **{**SETTINGS, **settings})
    about = {"reference": "a"}
    sets = [
        replace(a, question=f"What is shown in {a.id}?", clean=a.clean[:3], noisy=(*a.clean[3:], *a.noisy)[:3], **about)
        for a in run.answer_sets
    ]
    return replace(run, answer_sets=tuple(sets))


class QuestionsOfRun:
    """What `TaskDocuments` is, with the questions of a run."""

    def __init__(self, run: Run) -> None:
        plan = SimpleNamespace(n=len(run.answer_sets[0].clean), noisy_count=len(run.answer_sets[0].noisy))
        about = ("id", "question", "reference", "group", "question_type")
        self.requests = {
            a.id: SimpleNamespace(plan=plan, **{name: getattr(a, name) for name in about}) for a in run.answer_sets
        }
        self.run, self.edition = run, edition_of(run.task, run.settings)

    def run_of(self, model: str, words: Sequence[AnswerSet]) -> Run:
        by_id, about = {a.id: a for a in words}, ("question", "reference", "group", "question_type")
        own = [replace(by_id[a.id], **{name: getattr(a, name) for name in about}) for a in self.run.answer_sets]
        cases = [Case(a.id, a.question or "", a.reference or "", a.baseline.text) for a in own]
        verdicts = build_judge("rule").judge(cases)
        sets = tuple(a.with_label(v.label) for a, v in zip(own, verdicts, strict=True))
        records = {c.id: verdict_record(c, v) for c, v in zip(cases, verdicts, strict=True)}
        return Run(self.run.task, model, sets, records, {"filters": EXACT}, "2026-01-01T00:00:00.000000+00:00")


def rules_of(run: Run) -> Rules:
    """The rules of a board whose only task is that of a run."""
    questions: Any = QuestionsOfRun(run)
    return Rules(lambda task: questions)


def entry(seed: int = 0, **options: Any) -> Entry:
    return entry_of(own_run(seed=seed, model=f"org/model-{seed}", **options))

"""Tables 2, 3, 5, 6 and 7 of the SHALE paper out of finished runs: every task of one model counts together.

Shares are over items as in the paper: a scenario or a type of questions is the mean of its types, an aspect pools all
clean items of all four types. Intervals are between scenes: all questions about one, clean and perturbed, of all types,
stay together (`statistics.sums`), and equal those of a report where one run has all the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hedge_tasks.measures.measure import Measure
from hedge_tasks.numbers import Number
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.papers import Paper, PaperRow
from hedge_tasks.suites.shale.items import (
    CLEAN,
    DISCRIMINATIVE,
    GENERATIVE,
    IMAGE_SCENARIOS,
    KNOWLEDGE,
    NOISY_SCENARIOS,
    PERCEPTION,
    SCENARIOS,
    TASKS,
)
from hedge_tasks.suites.shale.judge import reply_is_right
from hedge_tasks.suites.shale.measures import CONTROLLED, Average, ResistanceRate, RightShare, is_right

BLIND = "blind"
"""The scenario of answers that were given without the image."""


class JudgedAnswer(NamedTuple):
    """One judged baseline answer.

    Attributes:
        document: task, scenario, aspect, pair and group of the item.
        right: 1 or 0; None where nobody could tell.
    """

    document: Mapping[str, str]
    right: int | None


def _share(name: str, **among: Sequence[str]) -> RightShare:
    title = name.upper() if name in TASKS else name.replace("_", " ")
    return RightShare(name=name, title=title, among={"scenario": (CLEAN,), **among})


def _mean(name: str, tasks: Sequence[str], scenario: str = CLEAN) -> Average:
    title = name.upper().replace("_", "-") if name == scenario else name.replace("_", " ")
    return Average(
        name=name, title=title, parts=tuple(_share(task, scenario=(scenario,), task=(task,)) for task in tasks)
    )


def _resistances(tasks: tuple[str, ...], scenarios: tuple[str, ...], ending: str = "") -> Iterator[ResistanceRate]:
    """Yield RR and, as columns of ours, the resistance to each scenario, whose mean it is."""
    for name, pooled in {"rr": scenarios, **{f"rr_{scenario}": (scenario,) for scenario in scenarios}}.items():
        title = name.upper().replace("_", "-") + ending.replace("_", " ")
        controlled = bool(ending)
        yield ResistanceRate(name=name + ending, title=title, scenarios=pooled, tasks=tasks, controlled=controlled)


COLUMNS: Mapping[int, Sequence[Measure]] = {
    2: [
        _mean(BLIND, DISCRIMINATIVE, BLIND),
        *(_mean(scenario, DISCRIMINATIVE, scenario) for scenario in SCENARIOS),
        *_resistances(DISCRIMINATIVE, NOISY_SCENARIOS),
        *_resistances(DISCRIMINATIVE, CONTROLLED, "_controlled"),
    ],
    3: [
        *(_mean(scenario, GENERATIVE, scenario) for scenario in (CLEAN, *IMAGE_SCENARIOS)),
        *_resistances(GENERATIVE, IMAGE_SCENARIOS),
    ],
    5: [
        *(_share(task, task=(task,)) for task in TASKS),
        _mean("discriminative", DISCRIMINATIVE),
        _mean("generative_mean", GENERATIVE),
        _mean("overall", ("ynq", "mcq", "ffq")),
        _mean("all_types", TASKS),
    ],
    6: [*(_share(name, aspect=(name,)) for name in PERCEPTION), _share("perception", aspect=PERCEPTION)],
    7: [_share(name, aspect=(name,)) for name in KNOWLEDGE],
}
"""Every column that we fill, by table; `all_types` is ours, for the paper's overall leaves captions out."""


def rows_of(runs: Sequence[Run]) -> Iterator[PaperRow]:
    """Yield a row a model and table; all runs of a model count together.

    Of runs with the same questions the newest counts.
    """
    by_model: dict[str, dict[tuple[bool, str], JudgedAnswer]] = {}
    for run in sorted(runs, key=lambda run: run.created):
        if any("scenario" in columns for columns in run.columns.values()):
            judged = {(answer.document["scenario"] == BLIND, id): answer for id, answer in judged_answers(run)}
            by_model.setdefault(run.model, {}).update(judged)
    for model, by_question in sorted(by_model.items()):
        answers = list(by_question.values())
        for table, columns in COLUMNS.items():
            numbers = {measure.name: _number(measure, answers) for measure in columns}
            yield PaperRow(model, f"Table {table}", numbers, notes=[_asked(answers)])


def _asked(answers: Sequence[JudgedAnswer]) -> str:
    """Say what there is: the paper's numbers are over all types of questions and all scenarios."""
    parts = [
        ", ".join(name for name in names if any(answer.document[column] == name for answer in answers))
        for column, names in (("task", TASKS), ("scenario", (*SCENARIOS, BLIND)))
    ]
    unjudged = sum(answer.right is None for answer in answers)
    return f"asked are {' in '.join(parts)}; {unjudged} of {len(answers)} answers have no verdict and are in no share"


def judged_answers(run: Run) -> Iterator[tuple[str, JudgedAnswer]]:
    """Yield (id, judged answer) of all documents of a run, and of those asked once more without the image."""
    shown = (run.settings.get("documents") or {}).get("images", True)
    for answers in run.answer_sets:
        verdict = run.verdicts.get(answers.id) or {}
        document = {**run.columns.get(answers.id, {}), "group": answers.group or answers.id}
        if "scenario" not in document:
            continue
        alone = {**document, "scenario": BLIND}
        right = is_right({"label": answers.label, "category": verdict.get("category")})
        yield answers.id, JudgedAnswer(document if shown else alone, right)
        for blind in answers.follow_ups:  # of a run for the multimodal gain
            yield blind.id, JudgedAnswer(alone, int(reply_is_right(blind, HEDGE)))


def _number(measure: Measure, answers: Iterable[JudgedAnswer]) -> Number:
    verdicts = [({"label": None if a.right is None else 1 - a.right, "category": None}, a.document) for a in answers]
    return measure.estimate([measure.record(None, *pair) for pair in verdicts])  # type: ignore[arg-type]  # no scores are read


PAPER = Paper(
    "shale",
    __package__,
    rows_of,
    [measure for columns in COLUMNS.values() for measure in columns],
    leads=("Table 6", "perception"),
)

"""Tables 2, 3, 5, 6 and 7 of the SHALE paper out of finished runs: every task of one model counts together.

Shares are over items as in the paper: a scenario or a type of questions is the mean of its types, an aspect pools all
clean items of all four types. Intervals are between scenes: all questions about one, clean and perturbed, of all types,
stay together (`statistics.sums`), and equal those of a report where one run has all the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.shale.items import (
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
from hedge_tasks.evaluations.shale.judge import reply_is_right
from hedge_tasks.evaluations.shale.metrics import Average, ResistanceRate, RightShare, is_right, reading_of
from hedge_tasks.evaluations.shale.published import AVERAGE, models, published
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.model_names import named_like
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.base import Interval

Measure = RightShare | Average | ResistanceRate

BLIND = "blind"

_FEW_SCENES = 10
"""Below so many a standard error between groups is itself hardly known."""


class Answered(NamedTuple):
    """One judged baseline answer.

    Attributes:
        document: task, scenario, aspect, pair and group of the item.
        right: 1 or 0; None where nobody could tell.
        blind: whether it was asked without its image.
    """

    document: Mapping[str, str]
    right: int | None
    blind: bool


@dataclass(frozen=True)
class Column:
    """A column of the paper's tables: what is measured, over closed, open, blind or all items."""

    measure: Measure
    tasks: tuple[str, ...] = TASKS
    blind: bool = False


@dataclass(frozen=True)
class Cell:
    """A number of ours and the paper's.

    Attributes:
        value: share in [0, 1]; None where it is undefined.
        interval: of 95 %, between scenes.
        n, scenes: judged items that it rests on, and their scenes. Resistance rests on perturbed items that are right
            when clean.
        published: the paper's, of the model that is beside.
        reason: why there is no value.
    """

    value: float | None
    interval: Interval | None
    n: int
    scenes: int
    published: float | None
    reason: str | None = None


@dataclass(frozen=True)
class ModelTables:
    """All tables of one model.

    Attributes:
        model: as the runs name it.
        beside: the paper's model, or `AVERAGE`.
        runs: titles of the runs that count.
        tables: by number, column -> cell, in the paper's order.
        notes: what the numbers lack.
    """

    model: str
    beside: str
    runs: tuple[str, ...]
    tables: Mapping[int, Mapping[str, Cell]]
    notes: tuple[str, ...]


def _mean_of(tasks: Sequence[str], scenario: str = CLEAN) -> Average:
    shares = [RightShare(task, f"type {task!r} in {scenario!r}", scenario=(scenario,), task=(task,)) for task in tasks]
    return Average("/".join((*tasks, scenario)), shares)


def _aspect(name: str) -> Column:
    return Column(RightShare(name, f"the aspect {name!r} (clean)", scenario=(CLEAN,), aspect=(name,)))


def _type(task: str) -> Column:
    return Column(RightShare(task, f"type {task!r} (clean)", scenario=(CLEAN,), task=(task,)), (task,))


def _resistance(tasks: tuple[str, ...], scenarios: tuple[str, ...]) -> Column:
    return Column(ResistanceRate("rr", scenarios), tasks)


COLUMNS: Mapping[int, Mapping[str, Column]] = {
    2: {
        BLIND: Column(_mean_of(DISCRIMINATIVE), DISCRIMINATIVE, blind=True),
        **{scenario: Column(_mean_of(DISCRIMINATIVE, scenario), DISCRIMINATIVE) for scenario in SCENARIOS},
        "rr": _resistance(DISCRIMINATIVE, NOISY_SCENARIOS),
        **{f"rr_{scenario}": _resistance(DISCRIMINATIVE, (scenario,)) for scenario in NOISY_SCENARIOS},
    },
    3: {
        **{s: Column(_mean_of(GENERATIVE, s), GENERATIVE) for s in (CLEAN, *IMAGE_SCENARIOS)},
        "rr": _resistance(GENERATIVE, IMAGE_SCENARIOS),
        **{f"rr_{scenario}": _resistance(GENERATIVE, (scenario,)) for scenario in IMAGE_SCENARIOS},
    },
    5: {
        **{task: _type(task) for task in DISCRIMINATIVE},
        "discriminative": Column(_mean_of(DISCRIMINATIVE), DISCRIMINATIVE),
        **{task: _type(task) for task in GENERATIVE},
        "generative": Column(_mean_of(GENERATIVE), GENERATIVE),
        "overall": Column(_mean_of(("ynq", "mcq", "ffq")), ("ynq", "mcq", "ffq")),
        "all_types": Column(_mean_of(TASKS)),
    },
    6: {aspect: _aspect(aspect) for aspect in PERCEPTION},
    7: {aspect: _aspect(aspect) for aspect in KNOWLEDGE},
}
"""Every column that we fill, in the paper's order, then ours: the resistance to each scenario, whose mean RR is, and
`all_types`, for the paper's overall leaves captions out."""


def is_shale(run: Run) -> bool:
    """Whether a run says of its documents what the tables need."""
    return any("scenario" in columns for columns in run.columns.values())


def tables_of(runs: Iterable[Run], beside: str | None = None, parsing: str = HEDGE) -> list[ModelTables]:
    """The tables of every model, sorted by its name.

    Args:
        beside: the paper's model whose numbers stand beside; None: the one that has the run's name, or the average.
        parsing: how replies to closed questions are read.

    Raises:
        DataError: no run is of SHALE, or a run lacks what this reading needs.
        ConfigError: the paper has no such model.
    """
    by_model: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.created, reverse=True):
        if is_shale(run):
            by_model.setdefault(run.model, []).append(run)
    if not by_model:
        raise DataError("no run of SHALE is here")
    return [
        _of_model(model, mine, beside or named_like(model, models()) or AVERAGE, parsing)
        for model, mine in sorted(by_model.items())
    ]


def _of_model(model: str, runs: Sequence[Run], beside: str, parsing: str) -> ModelTables:
    taken: dict[tuple[bool, str], Answered] = {}
    titles, notes = [], []
    for run in runs:  # the newest first
        mine = {(one.blind, id): one for id, one in answered(run, parsing)}
        if taken.keys() & mine.keys():
            notes.append(f"{run.title} is left out: a newer run has the same questions")
            continue
        taken |= mine
        titles.append(run.title)
    pool = list(taken.values())
    tables = {
        number: {name: _cell(column, pool, published(number, beside).get(name)) for name, column in columns.items()}
        for number, columns in COLUMNS.items()
    }
    rough = [name for of in tables.values() for name, cell in of.items() if cell.interval and cell.scenes < _FEW_SCENES]
    if rough:
        notes.append(f"intervals between fewer than {_FEW_SCENES} scenes are rough: {', '.join(rough)}")
    return ModelTables(model, beside, tuple(titles), tables, (*notes, *_lacks(pool)))


def answered(run: Run, parsing: str = HEDGE) -> Iterator[tuple[str, Answered]]:
    """(id, what came of it) of all documents of a run, and of what was asked once more without the image.

    Raises:
        DataError: a closed question has no vote of this parsing.
    """
    documents = run.settings.get("documents") or {}
    blind = not documents.get("images", True)
    for answers in run.answer_sets:
        verdict = run.verdicts.get(answers.id) or {}
        document = {**run.columns.get(answers.id, {}), "group": answers.group or answers.id}
        if "scenario" not in document:
            continue
        yield answers.id, Answered(document, _right(answers, verdict, document, parsing), blind)
        for alone in answers.follow_ups:  # of a run for the multimodal gain
            yield alone.id, Answered(document, int(reply_is_right(alone, parsing)), True)


def _right(answers: AnswerSet, verdict: Mapping[str, Any], document: Mapping[str, Any], parsing: str) -> int | None:
    if document["task"] not in DISCRIMINATIVE or parsing == HEDGE:
        return is_right({"label": answers.label, "category": verdict.get("category")})
    try:
        return is_right(reading_of(verdict, parsing))
    except (KeyError, StopIteration):
        raise DataError(f"{answers.id}: its verdict has no reading {parsing!r}") from None


def _cell(column: Column, pool: Sequence[Answered], beside: float | None) -> Cell:
    mine = [one for one in pool if one.blind == column.blind and one.document["task"] in column.tasks]
    records = [
        column.measure.record(None, _as_verdict(one), one.document)  # type: ignore[arg-type]  # no scores are read
        for one in mine
    ]
    value = column.measure(records)
    found = column.measure.measured(records)
    if isinstance(value, str):
        return Cell(None, None, found.n, found.n_groups, beside, value.removeprefix("undefined: "))
    return Cell(value, found.interval, found.n, found.n_groups, beside)


def _as_verdict(one: Answered) -> dict[str, Any]:
    return {"label": None if one.right is None else 1 - one.right, "category": None}


def _lacks(pool: Sequence[Answered]) -> Iterator[str]:
    seen = [one for one in pool if not one.blind]
    asked = {one.document["task"] for one in seen if one.document["scenario"] == CLEAN}
    if asked and len(asked) < len(TASKS):
        there = ", ".join(task for task in TASKS if task in asked)
        yield f"Tables 6 and 7 are over {there} alone; the paper's are over all four types"
    for table, tasks, scenarios in ((2, DISCRIMINATIVE, NOISY_SCENARIOS), (3, GENERATIVE, IMAGE_SCENARIOS)):
        noisy = {one.document["scenario"] for one in seen if one.document["task"] in tasks} & {*scenarios}
        if noisy and len(noisy) < len(scenarios):
            there = ", ".join(scenario for scenario in scenarios if scenario in noisy)
            yield f"the resistance rate of Table {table} is over {there} alone"
    if silent := sum(one.right is None for one in pool):
        yield f"{silent} of {len(pool)} answers have no verdict and are in no share"

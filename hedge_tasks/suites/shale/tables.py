"""Tables 2, 3, 5, 6 and 7 of the SHALE paper out of finished runs: every task of one model counts together.

Shares are over items as in the paper: a scenario or a type of questions is the mean of its types, an aspect pools all
clean items of all four types. Intervals are between scenes: all questions about one, clean and perturbed, of all types,
stay together (`statistics.sums`), and equal those of a report where one run has all the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.paper_tables import ModelNumbers, tall_table
from hedge_tasks.numbers import Number, Table
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.model_names import named_like
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.readings import vote_of
from hedge_tasks.suites.shale.items import (
    CLEAN,
    CONTROLS,
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
from hedge_tasks.suites.shale.published import AVERAGE, models, published

BLIND = "blind"

_FEW_SCENES = 10
"""Below so many a standard error between groups is itself hardly known."""


class JudgedAnswer(NamedTuple):
    """One judged baseline answer.

    Attributes:
        document: task, scenario, aspect, pair and group of the item.
        right: 1 or 0; None where nobody could tell.
        blind: whether it was asked without its image.
    """

    document: Mapping[str, str]
    right: int | None
    blind: bool


class Pool(NamedTuple):
    """A column of the paper's tables: what is measured, over closed, open, blind or all items."""

    measure: Measure
    tasks: tuple[str, ...] = TASKS
    blind: bool = False


@dataclass(frozen=True)
class ModelTables:
    """All tables of one model.

    Attributes:
        model: as the runs name it.
        beside: the paper's model, or `AVERAGE`.
        runs: titles of the runs that count.
        tables: by number; measures in the paper's order.
        notes: what the numbers lack.
    """

    model: str
    beside: str
    runs: tuple[str, ...]
    tables: Mapping[int, ModelNumbers]
    notes: tuple[str, ...]

    def to_text(self, numbers: Sequence[int]) -> str:
        """Return the tables that are wanted."""
        blocks = [f"{self.model or 'unknown model'}:", *(f"- {title}" for title in self.runs)]
        for n in numbers:
            blocks += ["", _table(n, self.tables[n], self.beside).to_text()]
        return "\n".join([*blocks, *(["", *(f"Note: {note}." for note in self.notes)] if self.notes else [])])


def _table(n: int, table: ModelNumbers, beside: str) -> Table:
    measures = [pool.measure for pool in COLUMNS[n]]
    asked_measures = [m for m in measures if table.numbers[m.name].n]
    title = f"Table {n}, {TITLES[n]}"
    if not asked_measures:
        return Table([], [], title=title, notes=["  nothing of it was asked"])
    left = [m.title for m in measures if m not in asked_measures and not m.name.startswith("rr_")]
    undefined = {m.title: number for m in asked_measures if not (number := table.numbers[m.name]).defined}
    notes = [f"  {name}: {number.reason}" for name, number in undefined.items()]
    notes += [f"  not asked: {', '.join(left)}"] if left else []
    row = ModelNumbers({}, table.numbers, table.published)
    headings = {"units": "items", "groups": "scenes", "paper": f"paper ({beside})", "notes": notes}
    return tall_table([row], asked_measures, title=title, **headings)  # type: ignore[arg-type]


def title_of(name: str) -> str:
    """Return a column as the paper writes it.

    Example:
        >>> title_of("rr_sty_p"), title_of("ffq"), title_of("scene_text")
        ('RR-STY-P', 'FFQ', 'scene text')
    """
    parts = name.removeprefix("rr_").removesuffix("_controlled")
    short = parts in ("rr", "controlled", *TASKS, *NOISY_SCENARIOS, *CONTROLS)
    return name.upper().replace("_", "-") if short else name.replace("_", " ")


def _share(task: str, scenario: str = CLEAN) -> RightShare:
    population = f"type {task!r} in {scenario!r}"
    return RightShare(
        name=task, title=title_of(task), population=population, among={"scenario": (scenario,), "task": (task,)}
    )


def _mean(name: str, tasks: tuple[str, ...], scenario: str = CLEAN, *, blind: bool = False) -> Pool:
    parts = tuple(_share(task, scenario) for task in tasks)
    return Pool(Average(name=name, title=title_of(name), parts=parts), tasks, blind)


def _aspect(name: str) -> Pool:
    among = {"scenario": (CLEAN,), "aspect": (name,)}
    return Pool(RightShare(name=name, title=title_of(name), population=f"the aspect {name!r} (clean)", among=among))


def _type(task: str) -> Pool:
    return Pool(_share(task), (task,))


def _resistances(tasks: tuple[str, ...], scenarios: tuple[str, ...]) -> list[Pool]:
    """Return RR and, as columns of ours, the resistance to each scenario, whose mean it is."""
    by_name = {"rr": scenarios, **{f"rr_{scenario}": (scenario,) for scenario in scenarios}}
    return [
        Pool(ResistanceRate(name=name, title=title_of(name), scenarios=pooled), tasks)
        for name, pooled in by_name.items()
    ]


def _controlled(tasks: tuple[str, ...]) -> Iterator[Pool]:
    """Yield columns of ours: the resistance that is one in the controls as well, and that to each control alone."""
    parts = {"rr_controlled": CONTROLLED, **{f"rr_{name}_controlled": (name,) for name in CONTROLLED}}
    for name, pooled in parts.items():
        yield Pool(ResistanceRate(name=name, title=title_of(name), scenarios=pooled, controlled=True), tasks)
    for name in CONTROLS:
        yield Pool(ResistanceRate(name=f"rr_{name}", title=title_of(f"rr_{name}"), scenarios=(name,)), tasks)


TITLES: Mapping[int, str] = {
    2: "closed questions by scenario: means of YNQ and MCQ; RR = mean resistance rate",
    3: "open questions by scenario: means of FFQ and IC; RR = mean resistance rate",
    5: "clean, by type of question; overall = mean of YNQ, MCQ and FFQ, as the paper's numbers are",
    6: "clean, by aspect of perception, over all types of questions",
    7: "clean, by domain of knowledge, over all types of questions",
}

COLUMNS: Mapping[int, Sequence[Pool]] = {
    2: [
        _mean(BLIND, DISCRIMINATIVE, blind=True),
        *(_mean(scenario, DISCRIMINATIVE, scenario) for scenario in SCENARIOS),
        *_resistances(DISCRIMINATIVE, NOISY_SCENARIOS),
        *_controlled(DISCRIMINATIVE),
    ],
    3: [
        *(_mean(scenario, GENERATIVE, scenario) for scenario in (CLEAN, *IMAGE_SCENARIOS)),
        *_resistances(GENERATIVE, IMAGE_SCENARIOS),
    ],
    5: [
        *map(_type, DISCRIMINATIVE),
        _mean("discriminative", DISCRIMINATIVE),
        *map(_type, GENERATIVE),
        _mean("generative", GENERATIVE),
        _mean("overall", ("ynq", "mcq", "ffq")),
        _mean("all_types", TASKS),
    ],
    6: [_aspect(aspect) for aspect in PERCEPTION],
    7: [_aspect(aspect) for aspect in KNOWLEDGE],
}
"""Every column that we fill, in the paper's order; `all_types` is ours, for the paper's overall leaves captions out."""


def is_shale(run: Run) -> bool:
    """Whether a run says of its documents what the tables need."""
    return any("scenario" in columns for columns in run.columns.values())


def tables_of(runs: Iterable[Run], beside: str | None = None, parsing: str = HEDGE) -> list[ModelTables]:
    """Return the tables of every model, sorted by its name.

    Args:
        beside: the paper's model whose numbers stand beside; None: the one that has the run's name, or the average.
        parsing: how replies to closed questions are read.

    Raises:
        DataError: a run lacks what this reading needs.
        ConfigError: the paper has no such model.
    """
    by_model: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.created, reverse=True):
        if is_shale(run):
            by_model.setdefault(run.model, []).append(run)
    return [
        _tables_of_model(model, model_runs, beside or named_like(model, models()) or AVERAGE, parsing)
        for model, model_runs in sorted(by_model.items())
    ]


def paper_tables(runs: Sequence[Run]) -> list[Table]:
    """The paper's tables of every model that answered SHALE's questions, without those that nothing was asked for."""
    by_model = tables_of(runs)
    tables = [
        (of_model.model, _table(n, numbers, of_model.beside))
        for of_model in by_model
        for n, numbers in of_model.tables.items()
    ]
    alone = len(by_model) == 1
    return [
        table if alone else replace(table, title=f"{model}: {table.title}") for model, table in tables if table.rows
    ]


def _tables_of_model(model: str, runs: Sequence[Run], beside: str, parsing: str) -> ModelTables:
    taken: dict[tuple[bool, str], JudgedAnswer] = {}
    titles, notes = [], []
    for run in runs:  # the newest first
        judged = {(answer.blind, id): answer for id, answer in judged_answers(run, parsing)}
        if taken.keys() & judged.keys():
            notes.append(f"{run.title} is left out: a newer run has the same questions")
            continue
        taken |= judged
        titles.append(run.title)
    tables = {
        n: ModelNumbers(
            {"model": model, "table": str(n)},
            {pool.measure.name: _number(pool, taken.values()) for pool in columns},
            published(n, beside),
        )
        for n, columns in COLUMNS.items()
    }
    rough = [
        name
        for table in tables.values()
        for name, number in table.numbers.items()
        if number.interval and number.n_groups < _FEW_SCENES
    ]
    if rough:
        notes.append(f"intervals between fewer than {_FEW_SCENES} scenes are rough: {', '.join(rough)}")
    return ModelTables(model, beside, tuple(titles), tables, (*notes, *_lacks(list(taken.values()))))


def judged_answers(run: Run, parsing: str = HEDGE) -> Iterator[tuple[str, JudgedAnswer]]:
    """Yield (id, judged answer) of all documents of a run, and of those asked once more without the image.

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
        yield answers.id, JudgedAnswer(document, _right(answers, verdict, document, parsing), blind)
        for alone in answers.follow_ups:  # of a run for the multimodal gain
            yield alone.id, JudgedAnswer(document, int(reply_is_right(alone, parsing)), True)


def _right(answers: AnswerSet, verdict: Mapping[str, Any], document: Mapping[str, Any], parsing: str) -> int | None:
    if document["task"] not in DISCRIMINATIVE or parsing == HEDGE:
        return is_right({"label": answers.label, "category": verdict.get("category")})
    try:
        return is_right(vote_of(verdict, parsing))
    except (KeyError, StopIteration):
        raise DataError(f"{answers.id}: its verdict has no reading {parsing!r}") from None


def _number(pool: Pool, answers: Iterable[JudgedAnswer]) -> Number:
    pooled = [answer for answer in answers if answer.blind == pool.blind and answer.document["task"] in pool.tasks]
    return pool.measure.estimate([pool.measure.record(None, _as_verdict(answer), answer.document) for answer in pooled])  # type: ignore[arg-type]  # no scores are read


def _as_verdict(answer: JudgedAnswer) -> dict[str, Any]:
    return {"label": None if answer.right is None else 1 - answer.right, "category": None}


def _lacks(pool: Sequence[JudgedAnswer]) -> Iterator[str]:
    seen = [answer for answer in pool if not answer.blind]
    tasks_asked = {answer.document["task"] for answer in seen if answer.document["scenario"] == CLEAN}
    if tasks_asked and len(tasks_asked) < len(TASKS):
        names = ", ".join(task for task in TASKS if task in tasks_asked)
        yield f"Tables 6 and 7 are over {names} alone; the paper's are over all four types"
    for table, tasks, scenarios in ((2, DISCRIMINATIVE, NOISY_SCENARIOS), (3, GENERATIVE, IMAGE_SCENARIOS)):
        noisy = {answer.document["scenario"] for answer in seen if answer.document["task"] in tasks} & {*scenarios}
        if noisy and len(noisy) < len(scenarios):
            names = ", ".join(scenario for scenario in scenarios if scenario in noisy)
            yield f"the resistance rate of Table {table} is over {names} alone"
    if n_unjudged := sum(answer.right is None for answer in pool):
        yield f"{n_unjudged} of {len(pool)} answers have no verdict and are in no share"

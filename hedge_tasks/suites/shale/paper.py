"""Tables 2, 3, 5, 6 and 7 of the SHALE paper out of finished runs: every task of one model counts together.

Shares are over items as in the paper: a scenario or a type of questions is the mean of its types, an aspect pools all
clean items of all four types. Intervals are between scenes: all questions about one, clean and perturbed, of all types,
stay together (`statistics.sums`), and equal those of a report where one run has all the items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hedge_tasks.measures.measure import Measure
from hedge_tasks.numbers import Number
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.papers import Paper, PaperRow
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

BLIND = "blind"


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
    return _pooled(name, (name,))


def _pooled(name: str, aspects: Sequence[str]) -> Pool:
    """Return the share over the clean items of several aspects."""
    among = {"scenario": (CLEAN,), "aspect": aspects}
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
        _mean("generative_mean", GENERATIVE),
        _mean("overall", ("ynq", "mcq", "ffq")),
        _mean("all_types", TASKS),
    ],
    6: [*map(_aspect, PERCEPTION), _pooled("perception", PERCEPTION)],
    7: [*map(_aspect, KNOWLEDGE)],
}
"""Every column that we fill, in the paper's order; `all_types` is ours, for the paper's overall leaves captions out."""


def rows_of(runs: Sequence[Run]) -> Iterator[PaperRow]:
    """Yield a row a model and table; all runs of a model count together.

    Of runs with the same questions the newest counts.
    """
    by_model: dict[str, dict[tuple[bool, str], JudgedAnswer]] = {}
    for run in sorted(runs, key=lambda run: run.created):
        if any("scenario" in columns for columns in run.columns.values()):
            judged = {(answer.blind, id): answer for id, answer in judged_answers(run)}
            by_model.setdefault(run.model, {}).update(judged)
    for model, by_question in sorted(by_model.items()):
        answers = list(by_question.values())
        for table, columns in COLUMNS.items():
            numbers = {pool.measure.name: _number(pool, answers) for pool in columns}
            yield PaperRow(model, f"Table {table}", numbers, notes=[_asked(answers)])


def _asked(answers: Sequence[JudgedAnswer]) -> str:
    """Say what there is: the paper's numbers are over all types of questions and all scenarios."""
    parts = [
        ", ".join(name for name in names if any(answer.document[column] == name for answer in answers))
        for column, names in (("task", TASKS), ("scenario", SCENARIOS))
    ]
    unjudged = sum(answer.right is None for answer in answers)
    return f"asked are {' in '.join(parts)}; {unjudged} of {len(answers)} answers have no verdict and are in no share"


def judged_answers(run: Run) -> Iterator[tuple[str, JudgedAnswer]]:
    """Yield (id, judged answer) of all documents of a run, and of those asked once more without the image."""
    blind = not (run.settings.get("documents") or {}).get("images", True)
    for answers in run.answer_sets:
        verdict = run.verdicts.get(answers.id) or {}
        document = {**run.columns.get(answers.id, {}), "group": answers.group or answers.id}
        if "scenario" not in document:
            continue
        right = is_right({"label": answers.label, "category": verdict.get("category")})
        yield answers.id, JudgedAnswer(document, right, blind)
        for alone in answers.follow_ups:  # of a run for the multimodal gain
            yield alone.id, JudgedAnswer(document, int(reply_is_right(alone, HEDGE)), True)


def _number(pool: Pool, answers: Iterable[JudgedAnswer]) -> Number:
    pooled = [answer for answer in answers if answer.blind == pool.blind and answer.document["task"] in pool.tasks]
    return pool.measure.estimate([pool.measure.record(None, _as_verdict(answer), answer.document) for answer in pooled])  # type: ignore[arg-type]  # no scores are read


def _as_verdict(answer: JudgedAnswer) -> dict[str, Any]:
    return {"label": None if answer.right is None else 1 - answer.right, "category": None}


PAPER = Paper(
    "shale",
    __package__,
    rows_of,
    [pool.measure for columns in COLUMNS.values() for pool in columns],
    leads=("Table 6", "perception"),
)

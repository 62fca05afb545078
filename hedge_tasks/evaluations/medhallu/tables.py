"""MedHallu's tables out of finished runs, with intervals, and paired differences of what was shown and offered.

Everything is computed anew from the verdicts in the run files, so no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.medhallu.documents import ABOUT, CATEGORIES, said_of
from hedge_tasks.evaluations.medhallu.mesh import MESH
from hedge_tasks.evaluations.medhallu.metrics import LEVELS, METRICS, Detection, RowRate
from hedge_tasks.io.tables import as_csv
from hedge_tasks.lmms.metrics import Record
from hedge_tasks.measures.published import Published
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison, compare_sums, holm

MAIN = ("f1", "precision", "recall", "accuracy", *(f"f1_{level}" for level in LEVELS), "response_rate")
"""The paper's main tables; precision and recall by difficulty are in the file that `--out` writes."""

KINDS = tuple(f"accuracy_{kind}" for kind in CATEGORIES)
GROUPS = tuple(f"accuracy_mesh_{name}" for name in MESH.values())

MEASURES = (
    *MAIN,
    *(f"{measure}_{level}" for measure in ("precision", "recall", "accuracy") for level in LEVELS),
    *KINDS,
    *GROUPS,
    *("f1_unread_wrong", "accuracy_unread_wrong", "f1_majority", "accuracy_majority", "f1_constant", "f1_length"),
    *("not_sure_rate", *(f"not_sure_rate_{level}" for level in LEVELS)),
    *("unreadable_rate", "parsers_differ"),
)

COMPARED = ("f1", "precision", "recall", "accuracy", "f1_hard", "response_rate")
"""What the differences are of."""

PATTERNS = {
    "Gemma-2-2B": r"gemma-2-2b-it",
    "Gemma-2-9B": r"gemma-2-9b-it",
    "Llama-3.2-3B": r"llama-3\.2-3b-instruct",
    "Llama-3.1-8B": r"llama-3\.1-8b-instruct",
    "Qwen2-7B": r"qwen2-7b-instruct",
    "Qwen2.5-3B": r"qwen2\.5-3b-instruct",
    "Qwen2.5-7B": r"qwen2\.5-7b-instruct",
    "Qwen2.5-14B": r"qwen2\.5-14b-instruct",
    "GPT-4o": r"gpt-4o(?!-mini|-audio)",
    "OpenBioLLM-8B": r"openbiollm-8b",
    "UltraMedical": r"llama-3(?:\.1)?-8b-ultramedical",
}
"""The paper's models, as far as its text gives numbers of them, and their names on the hub."""

MEANS = ("general models (mean)", "medical models (mean)")


class Variant(NamedTuple):
    """What a run differs in from another one of the same model.

    Attributes:
        asked: which documents and how: data set, answers shown, prompt file, reading of replies.
        knowledge: whether the abstract is shown.
        not_sure: whether "not sure" is offered.
    """

    asked: str
    knowledge: bool
    not_sure: bool

    @property
    def setting(self) -> str:
        """As the paper's numbers are filed."""
        parts = [name for name, there in (("knowledge", self.knowledge), ("not sure", self.not_sure)) if there]
        return " + ".join(parts) or "plain"


@dataclass(frozen=True)
class Cell:
    """A number with its standard error and 95 % interval between rows of the data set, or why there is none."""

    value: float | None
    stderr: float | None = None
    interval: tuple[float, float] | None = None
    reason: str | None = None


@dataclass(frozen=True)
class TaskNumbers:
    """The numbers of one task and model.

    Attributes:
        task, model: of the run.
        variant: what was shown, offered and read.
        documents: in the run.
        cells: by measure, see `MEASURES`.
        records: for comparisons: measure -> one record a document, in the order of `ids`.
        ids: id and question of each document.
        verdicts: what was read of each document.
    """

    task: str
    model: str
    variant: Variant
    documents: int
    cells: Mapping[str, Cell]
    records: Mapping[str, Sequence[Record]]
    ids: Sequence[tuple[str, str]]
    run: Run

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        cells = {name: vars(cell) for name, cell in self.cells.items()}
        about = {"task": self.task, "model": self.model, **self.variant._asdict(), "documents": self.documents}
        return {**about, "cells": cells}


def is_medhallu(run: Run) -> bool:
    """Whether a run is of MedHallu."""
    return _judge(run).get("judge") == "medhallu"


def numbers_of(run: Run, parsing: str | None = None) -> TaskNumbers:
    """The numbers of a finished run.

    Args:
        parsing: whose reading of the replies counts; None for the run's own, which may be a judge model's in part.

    Raises:
        DataError: it is no run of MedHallu, or of an edition that kept less.
    """
    if not is_medhallu(run):
        raise DataError(f"{run.title} is no run of MedHallu")
    verdicts = [_read(run, answers, parsing) for answers in run.answer_sets]
    documents = [_document(run, answers) for answers in run.answer_sets]
    records = {
        name: [METRICS[name].record(_NoScores, v, d) for v, d in zip(verdicts, documents, strict=True)]  # type: ignore[arg-type]
        for name in MEASURES
    }
    return TaskNumbers(
        task=run.task,
        model=run.model,
        variant=_variant(run, parsing),
        documents=len(documents),
        cells={name: _cell(name, records[name]) for name in MEASURES},
        records=records,
        ids=[(answers.id, answers.question or "") for answers in run.answer_sets],
        run=run,
    )


class _NoScores:
    """These measures look at verdicts alone."""

    label = group = None


def _judge(run: Run) -> Mapping[str, Any]:
    documents = run.settings.get("documents")
    judge = documents.get("judge") if isinstance(documents, Mapping) else None
    return judge if isinstance(judge, Mapping) else {}


def _variant(run: Run, parsing: str | None) -> Variant:
    documents = run.settings["documents"]
    options = documents.get("options") if isinstance(documents.get("options"), Mapping) else {}
    prompt = str(documents.get("prompt") or "").rpartition("/")[0].rpartition("/")[2] or "medhallu"
    data = "artificial" if "artificial" in run.task else "labeled"
    shown = str(options.get("show", "random")) + (f" {options['seed']}" if options.get("seed") else "")
    read = parsing or str(_judge(run).get("parsing", HEDGE))
    asked = ", ".join([data, shown, *([prompt] if prompt != "medhallu" else []), *([read] if read != HEDGE else [])])
    return Variant(asked, documents.get("context") is not None, bool(_judge(run).get("not_sure")))


def _read(run: Run, answers: AnswerSet, parsing: str | None) -> Mapping[str, Any]:
    verdict = run.verdicts.get(answers.id)
    if verdict is None or not all(column in verdict for column in ABOUT):
        raise DataError(f"{run.title}, {answers.id}: its verdict lacks {' or '.join(ABOUT)}; it is of an older edition")
    if parsing is None:
        return verdict
    votes = [vote for vote in verdict.get("votes") or () if str(vote.get("judge")).endswith(f":{parsing}")]
    if len(votes) != 1:
        raise DataError(f"{run.title}, {answers.id}: no reading {parsing!r} is kept with its verdict")
    return {**verdict, "category": votes[0].get("category")}


def _document(run: Run, answers: AnswerSet) -> dict[str, Any]:
    if answers.reference not in ("0", "1") or answers.group is None:
        raise DataError(f"{run.title}, {answers.id}: no truth or no row is recorded")
    about = {column: run.verdicts[answers.id][column] for column in ABOUT}
    asked = {"truth": answers.reference, "row": answers.group, "difficulty": answers.question_type}
    return {**asked, **about, **said_of(answers)}


def _of_sums(name: str) -> Detection | RowRate:
    metric = METRICS[name]
    assert isinstance(metric, Detection | RowRate)
    return metric


def _cell(name: str, records: Sequence[Record]) -> Cell:
    metric = _of_sums(name)
    value = metric(records)
    if isinstance(value, str):
        return Cell(None, reason=value.removeprefix("undefined: "))
    found = metric.measured(records)
    return Cell(value, found.stderr, found.interval, found.reason)


# --- differences ------------------------------------------------------------------------------------------------------

SAME = "answered in both"
"""Behind a measure: over the documents alone that have a verdict in both runs."""


@dataclass(frozen=True)
class Difference:
    """One measure of two runs of a model that differ in one thing.

    Attributes:
        model, asked: of both.
        what: "knowledge" or "not sure": what `a` has and `b` has not.
        given: what both have besides, "" for nothing.
        measure: see `COMPARED`; F1 and accuracy of "not sure" once more with `SAME` behind: what is left out may be
            all that differs.
        comparison: a, b and their difference, over the documents that both runs have.
        p_holm: p-value adjusted for all differences that are shown.
    """

    model: str
    asked: str
    what: str
    given: str
    measure: str
    comparison: Comparison
    p_holm: float | None = None


def differences(found: Sequence[TaskNumbers]) -> list[Difference]:
    """With and without knowledge, and with and without "not sure", paired by document, between rows."""
    made = [d for a, b, what, given in _pairs(found) for d in _compared(a, b, what, given)]
    adjusted = holm([d.comparison.p_value for d in made])
    return [
        Difference(d.model, d.asked, d.what, d.given, d.measure, d.comparison, p)
        for d, p in zip(made, adjusted, strict=True)
    ]


def _pairs(found: Sequence[TaskNumbers]) -> Iterator[tuple[TaskNumbers, TaskNumbers, str, str]]:
    by_place = {(n.model, n.variant): n for n in found}
    for (model, variant), numbers in by_place.items():
        for what, given, other in (
            ("knowledge", "not sure" if variant.not_sure else "", variant._replace(knowledge=False)),
            ("not sure", "knowledge" if variant.knowledge else "", variant._replace(not_sure=False)),
        ):
            if other != variant and (model, other) in by_place:
                yield numbers, by_place[model, other], what, given


def _compared(a: TaskNumbers, b: TaskNumbers, what: str, given: str) -> Iterator[Difference]:
    place_a, place_b = ({key: i for i, key in enumerate(n.ids)} for n in (a, b))
    both = [(i, place_b[key]) for key, i in place_a.items() if key in place_b]
    for name in COMPARED:
        records = [(a.records[name][i], b.records[name][j]) for i, j in both]
        about = (a.model, a.variant.asked, what, given)
        yield Difference(*about, name, _difference(name, records))
        if name in ("f1", "accuracy") and what == "not sure":
            known = [(x, y) for x, y in records if x["said"] is not None and y["said"] is not None]
            yield Difference(*about, f"{name}, {SAME}", _difference(name, known))


def _difference(name: str, records: Sequence[tuple[Record, Record]]) -> Comparison:
    metric = _of_sums(name)
    a, b = (metric.counts([pair[side] for pair in records]) for side in (0, 1))
    return compare_sums(a, b, [metric.group_of(mine) for mine, _ in records], metric.statistic)


# --- what is published ------------------------------------------------------------------------------------------------


def published_of(numbers: TaskNumbers, model: str | None, published: Sequence[Published]) -> dict[str, Published]:
    """The paper's numbers for a run, by measure: none where it is of another model or protocol."""
    setting = numbers.variant.setting
    return {p.measure: p for p in published if p.model == model and p.setting == setting}


def rows_of(found: Sequence[TaskNumbers], beside: Sequence[Mapping[str, Published]]) -> list[dict[str, object]]:
    """One row a number: what `--out` writes."""
    rows: list[dict[str, object]] = []
    for numbers, paper in zip(found, beside, strict=True):
        about: dict[str, object] = {"model": numbers.model, "task": numbers.task, **numbers.variant._asdict()}
        for name, cell in numbers.cells.items():
            low, high = cell.interval or (None, None)
            theirs = paper.get(name)
            difference = None if theirs is None or cell.value is None else cell.value - theirs.value
            printed = {"paper": theirs and theirs.value, "difference": difference, "source": theirs and theirs.table}
            ours = {"value": cell.value, "stderr": cell.stderr, "low": low, "high": high, "reason": cell.reason}
            rows.append({**about, "measure": name, "documents": numbers.documents, **ours, **printed})
    return rows


def csv_of(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of one form as CSV with a header."""
    return as_csv([list(rows[0]), *(list(row.values()) for row in rows)]) if rows else ""

"""Weights of models on the options of multiple-choice questions: one log-weight an option, from any harness.

Two shapes are read (docs/options.md has examples):

- A table, a question a row: `{"id", "answer", "logits", "question"?, "options"?, "question_type"?, "group"?, "image"?,
  "model"?}`. The weights are an object (label -> number) or a list, whose labels are A, B, C, ...;
  `options` holds the texts in the same form. Rows of several models may stand in one file.
- NPZ, an array of logits (questions, options) for each model, with a table of the questions beside it in the order of
  the rows, with `id`, `answer`, and if they are known `question`, `question_type`, `group`, `image` (or a column such
  as `patient_id`) and a column with the text of each option under its label.

Groups are found (`hedge_tasks.data.groups`): questions of one group, one picture or one patient, and rotations of one
question (CircularEval) vary together.

Logits need not be normalised. An option that cannot be chosen has minus infinity. Pickles are not read: they run code.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any

from pydantic import BeforeValidator

from hedge_tasks.data import cells
from hedge_tasks.data.groups import find_groups, rotated_items
from hedge_tasks.data.roles import obvious
from hedge_tasks.data.tables import read_rows, table_of
from hedge_tasks.errors import DataError, check_names, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row
from hedge_tasks.io.records import checked

__all__ = ["LABELS", "OptionQuestion", "read_options"]

LABELS = ascii_uppercase
"""Labels of options that are given as a list, in order."""

MOST_OPTIONS = 1000
"""Of one question."""


def _by_label(value: object) -> object:
    """A list as an object with the labels A, B, C, ..."""
    if isinstance(value, list) and len(value) > len(LABELS):
        raise DataError(f"expected an object, or a list of at most {len(LABELS)}, got {len(value)}")
    return dict(zip(LABELS, value, strict=False)) if isinstance(value, list) else value


def _weight(value: object) -> float:
    return -math.inf if value in ("-inf", -math.inf) else outside.number(value, "weight")


Cell = Annotated[str, BeforeValidator(cells.required)]
Weight = Annotated[float, BeforeValidator(_weight)]


@dataclass(frozen=True)
class OptionQuestion:
    """A multiple-choice question and what a model thinks of its options.

    Attributes:
        id: of the question.
        answer: label of the right option.
        logits: label -> log-weight in nats, up to a constant that all options share; `-inf` is never chosen.
        question: what was asked, without its options.
        options: label -> text, of the options that have one.
        question_type, group: as in an answer set.
        image: name or digest of the picture; questions with the same one are of one group.

    Raises:
        ValueError: there are fewer than two options, none can be chosen, or the answer or a text is of none of them.
    """

    id: Cell
    answer: Cell
    logits: Annotated[Mapping[str, Weight], BeforeValidator(_by_label)]
    question: Cell | None = None
    options: Annotated[Mapping[str, Cell], BeforeValidator(_by_label)] = field(default_factory=dict)
    question_type: Cell | None = None
    group: Cell | None = None
    image: Cell | None = None

    def __post_init__(self) -> None:
        if not 2 <= len(self.logits) <= MOST_OPTIONS:
            raise ValueError(f"expected 2 to {MOST_OPTIONS} options, got {len(self.logits)}")
        if max(self.logits.values()) == -math.inf:
            raise ValueError("no option can be chosen: all logits are -inf")
        if self.answer not in self.logits:
            raise unknown("answer", self.answer, self.logits)
        check_names("option", self.options, self.logits)


def read_options(file: Path, questions: Path | None = None) -> dict[str, list[OptionQuestion]]:
    """Read a file of option weights.

    Args:
        file: NPZ where the name ends in `.npz`, else a table (`hedge_tasks.data.tables.KINDS`).
        questions: of an NPZ file: any table.

    Returns:
        By model the questions in the order of the file, with the groups that are found; "" is the model of rows that
        name none.

    Raises:
        HedgeError: names the file, the line or row, and what is wrong there.
    """
    if (file.suffix.lower() == ".npz") != (questions is not None):
        raise DataError(f"{file}: an .npz file, and nothing else, has its questions in another one: --questions FILE")
    rows = _array_rows(file, read_rows(questions)) if questions else read_rows(file)
    if not rows:
        raise DataError(f"{file}: no questions in it")
    models: dict[str, dict[str, OptionQuestion]] = defaultdict(dict)
    for where, row in rows:
        of_model, question = models[str(row.get("model") or "")], _question(row, where)
        if question.id in of_model:
            raise DataError(f"{where}: another row of the model has the id {outside.shown(question.id)}")
        of_model[question.id] = question
    return {model: _with_groups(list(of_model.values())) for model, of_model in models.items()}


def _with_groups(questions: Sequence[OptionQuestion]) -> list[OptionQuestion]:
    texts, images, declared = ([getattr(q, name) for q in questions] for name in ("question", "image", "group"))
    rotated = [rotated_items(names, texts) for names in (images, [q.id for q in questions])]
    groups = find_groups(declared if any(declared) else None, images, *rotated).groups
    return [replace(question, group=name) for question, name in zip(questions, groups, strict=True)]


def _question(row: Mapping[str, Any], where: str) -> OptionQuestion:
    check_names(f"key ({where})", row, {*OptionQuestion.__dataclass_fields__, "model"})
    return checked(OptionQuestion, {key: value for key, value in row.items() if value not in (None, "")}, where)


def _array_rows(file: Path, table: Sequence[Row]) -> list[Row]:
    """The rows of a table of questions with the weights of each model, in the shape of a table of weights."""
    # The first column of groups that there is: names of patients come before those of their studies.
    group = next(iter(obvious(table_of(str(file), table, file.parent), "group")), "")
    rows: list[Row] = []
    for model, array in _load_arrays(file, len(table)).items():
        for i, ((_, row), logits) in enumerate(zip(table, array, strict=True)):
            fields = {name: row[name] for name in OptionQuestion.__dataclass_fields__ if name in row}
            options = {label: row[label] for label in LABELS[: len(logits)] if row.get(label) not in (None, "")}
            fields |= {"options": options, "group": row.get(group), "model": outside.clean(model), "logits": logits}
            rows.append((f"{file}: array {outside.shown(model)}, row {i}", fields))
    return rows


def _load_arrays(file: Path, n_questions: int) -> dict[str, list[list[float]]]:
    """The arrays of an NPZ file, a row a question.

    Raises:
        DataError: it is none, too large, or holds anything else.
    """
    import numpy as np

    try:
        outside.check_archive(file)
        with np.load(file, allow_pickle=False) as loaded:
            arrays = {name: np.asarray(loaded[name], float) for name in loaded.files}
    except DataError:
        raise
    # What damaged archives and headers end in is the business of two libraries, and nowhere written down.
    except Exception as error:
        raise DataError(f"{file}: no NPZ file of numbers ({type(error).__name__}: {str(error)[:200]})") from error
    for name, array in arrays.items():
        if array.ndim != 2 or len(array) != n_questions:
            shape = f"({n_questions} questions, options)"
            raise DataError(f"{file}: array {outside.shown(name)}: expected numbers {shape}, got {array.shape}")
    return {name: array.tolist() for name, array in arrays.items()}

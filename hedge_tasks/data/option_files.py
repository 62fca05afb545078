"""Weights of models on the options of multiple-choice questions: one log-weight an option, from any harness.

Two shapes are read (docs/options.md has examples):

- A table, a question a row: `{"id", "answer", "logits" | "logprobs" | "probabilities", "question"?, "options"?,
  "question_type"?, "group"?, "image"?, "model"?}`. The weights are an object (label -> number) or a list, whose labels
  are A, B, C, ...; `options` holds the texts in the same form. Rows of several models may stand in one file.
- NPZ, an array of logits (questions, options) for each model, with a table of the questions beside it in the order of
  the rows, with `id`, `answer`, and if they are known `question`, `question_type`, `group`, `image` (or a column such
  as `patient_id`) and a column with the text of each option under its label.

Groups are found (`hedge_tasks.data.groups`): questions of one group, one picture or one patient, and rotations of one
question (CircularEval) vary together.

Logits need not be normalised. An option that cannot be chosen has minus infinity. Pickles are not read: they run code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.cells import plain_name
from hedge_tasks.data.groups import find_groups, rotated_items
from hedge_tasks.data.roles import NAMES, NONE
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.json_lines import Row

__all__ = ["LABELS", "OptionQuestion", "read_options"]

LABELS = ascii_uppercase
"""Labels of options that are given as a list, in order."""

MOST_OPTIONS = 1000
"""Of one question."""

_WEIGHTS = ("logits", "logprobs", "probabilities")
_MOST_TOGETHER = 1.01
_TEXTS = ("question", "question_type", "group", "image", "model")
_KEYS = ("id", "answer", "options", *_WEIGHTS, *_TEXTS)


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
        ValueError: there are fewer than two options, none can be chosen, or the answer is none of them.
    """

    id: str
    answer: str
    logits: Mapping[str, float]
    question: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    question_type: str | None = None
    group: str | None = None
    image: str | None = None

    def __post_init__(self) -> None:
        if not 2 <= len(self.logits) <= MOST_OPTIONS:
            raise ValueError(f"expected 2 to {MOST_OPTIONS} options, got {len(self.logits)}")
        if not all(label.strip() for label in self.logits):
            raise ValueError("an option has an empty label")
        if max(self.logits.values()) == -math.inf:
            raise ValueError("no option can be chosen: all logits are -inf")
        if self.answer not in self.logits:
            raise unknown("answer", self.answer, self.logits)


def read_options(
    file: Path, questions: Path | None = None, group: str | None = None
) -> dict[str, list[OptionQuestion]]:
    """Read a file of option weights.

    Args:
        file: NPZ where the name ends in `.npz`, else a table (`hedge_tasks.data.tables.KINDS`).
        questions: of an NPZ file: any table.
        group: column that alone says which questions belong together, "none" for none do; None finds the groups.

    Returns:
        By model the questions in the order of the file, with their groups; "" is the model of rows that name none.

    Raises:
        DataError: names the file, the line or row, and what is wrong there.
    """
    if file.suffix.lower() == ".npz":
        if questions is None:
            raise DataError(f"{file}: its questions are missing; give the file that has them with --questions")
        return _grouped(_read_arrays(file, questions, group), group)
    if questions is not None:
        raise DataError(f"{file}: its rows are questions already; --questions belongs to an .npz file")
    if group not in (None, NONE, "group", "image"):
        raise unknown(f"column of groups of {file}", group, ("group", "image", NONE))
    return _grouped(_questions_by_model(read_rows(file), str(file)), group)


def _grouped(models: Mapping[str, list[OptionQuestion]], group: str | None) -> dict[str, list[OptionQuestion]]:
    return {model: _with_groups(questions, group) for model, questions in models.items()}


def _with_groups(questions: Sequence[OptionQuestion], group: str | None) -> list[OptionQuestion]:
    """The questions with the groups that are found, or those that the user asks for."""
    texts, images = [q.question for q in questions], [q.image for q in questions]
    groups: Sequence[str | None]
    if group == NONE:
        groups = [None] * len(questions)
    elif group is not None:
        groups = images if group == "image" else [q.group for q in questions]
    else:
        rotated = [rotated_items(names, texts) for names in (images, [q.id for q in questions])]
        declared = [q.group for q in questions]
        groups = find_groups(declared if any(declared) else None, images, *rotated).groups
    return [replace(question, group=group_name) for question, group_name in zip(questions, groups, strict=True)]


def _questions_by_model(rows: Sequence[Row], name: str) -> dict[str, list[OptionQuestion]]:
    if not rows:
        raise DataError(f"{name}: no questions in it")
    models: dict[str, list[OptionQuestion]] = {}
    places: dict[tuple[str, str], str] = {}
    for where, row in rows:
        model, question = _read_row(row, where)
        if (model, question.id) in places:
            line = places[model, question.id].rpartition(":")[2]
            raise DataError(f"{where}: id {outside.shown(question.id)} is already on line {line}")
        places[model, question.id] = where
        models.setdefault(model, []).append(question)
    return models


def _read_row(row: Mapping[str, Any], where: str) -> tuple[str, OptionQuestion]:
    if foreign := row.keys() - {*_KEYS}:
        raise DataError(f"{where}: {unknown('key', min(foreign)[:100], _KEYS)}")
    kinds = [name for name in _WEIGHTS if row.get(name) is not None]
    if len(kinds) != 1:
        raise DataError(f"{where}: expected one of {', '.join(_WEIGHTS)}, got {' and '.join(kinds) or 'none'}")
    [kind] = kinds
    weights = {
        label: _weight(value, kind, f"{where}: {kind}[{outside.shown(label)}]")
        for label, value in _labelled(row[kind], f"{where}: {kind}").items()
    }
    if kind == "probabilities" and sum(map(math.exp, weights.values())) > _MOST_TOGETHER:
        raise DataError(f"{where}: probabilities: they add up to more than 1, so they are none of one choice")
    texts = {name: _optional_text(row.get(name), f"{where}: {name}") for name in _TEXTS}
    model = texts.pop("model") or ""
    options = {
        label: cells.required(value, f"{where}: options[{outside.shown(label)}]")
        for label, value in _labelled(row.get("options") or {}, f"{where}: options").items()
    }
    for label in options:
        if label not in weights:
            raise DataError(f"{where}: {unknown('option', label, weights)}")
    id, answer = (cells.required(row.get(name), f"{where}: {name}") for name in ("id", "answer"))
    return model, _question(where, id=id, answer=answer, logits=weights, options=options, **texts)


def _read_arrays(file: Path, questions: Path, group: str | None) -> dict[str, list[OptionQuestion]]:
    rows = _question_rows(questions)
    if group not in (None, NONE, "image") and not any(group in row for _, row in rows):
        raise unknown(f"column of {questions}", str(group), {key for _, row in rows for key in row})
    models: dict[str, list[OptionQuestion]] = {}
    for model, array in _load_arrays(file).items():
        at = f"{file}: array {outside.shown(model)}"
        if len(array) != len(rows):
            raise DataError(f"{at} has {len(array)} rows for the {len(rows)} questions of {questions}")
        labels = _list_labels(array.shape[1], at)
        if not models:
            _check_ids(rows)
        models[outside.clean(model)] = [
            _read_array_row(row, where, labels, [float(value) for value in logits], f"{at}, row {i}", group)
            for i, ((where, row), logits) in enumerate(zip(rows, array, strict=True))
        ]
    return models


def _read_array_row(
    row: Mapping[str, Any], where: str, labels: Sequence[str], logits: Sequence[float], at: str, group: str | None
) -> OptionQuestion:
    # The first column of groups that there is: names of patients come before those of their studies.
    by_name = {plain_name(column): column for column in reversed(list(row)) if row[column] is not None}
    column = group or next((by_name[name] for name in NAMES["group"] if name in by_name), None)
    return _question(
        where,
        id=cells.required(row.get("id"), f"{where}: id"),
        answer=cells.required(row.get("answer"), f"{where}: answer"),
        logits={label: _weight(v, "logits", f"{at}[{label}]") for label, v in zip(labels, logits, strict=True)},
        question=_optional_text(row.get("question"), f"{where}: question"),
        options={
            label: text for label in labels if (text := _optional_text(row.get(label), f"{where}: {label}")) is not None
        },
        question_type=_optional_text(row.get("question_type"), f"{where}: question_type"),
        group=None if column is None else _optional_text(row.get(column), f"{where}: {column}"),
        image=_optional_text(row.get("image"), f"{where}: image"),
    )


def _load_arrays(file: Path) -> dict[str, Any]:
    """The arrays of an NPZ file, of two dimensions and numbers only.

    Raises:
        DataError: it is none, too large, or holds anything else.
    """
    import numpy as np

    try:
        outside.check_archive(file)
        with np.load(file, allow_pickle=False) as loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    except DataError:
        raise
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror or error}") from error
    # What damaged archives and headers end in is the business of two libraries, and nowhere written down.
    except Exception as error:
        raise DataError(f"{file}: no NPZ file of numbers ({type(error).__name__}: {str(error)[:200]})") from error
    if not arrays:
        raise DataError(f"{file}: no arrays in it")
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind not in "fiu":
            shape = getattr(array, "shape", "none")
            raise DataError(f"{file}: array {outside.shown(name)}: expected numbers (questions, options), got {shape}")
    return arrays


def _question_rows(file: Path) -> list[Row]:
    # A CSV file has no other way to say that there is nothing.
    rows: list[Row] = [
        (where, {key: value for key, value in row.items() if value != ""}) for where, row in read_rows(file)
    ]
    if not rows:
        raise DataError(f"{file}: no questions in it")
    return rows


def _check_ids(rows: Sequence[Row]) -> None:
    seen: dict[str, str] = {}
    for where, row in rows:
        id = cells.required(row.get("id"), f"{where}: id")
        if id in seen:
            raise DataError(f"{where}: id {outside.shown(id)} is already at {seen[id]}")
        seen[id] = where


def _question(where: str, **fields: Any) -> OptionQuestion:
    try:
        return OptionQuestion(**fields)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None


def _labelled(value: object, where: str) -> Mapping[str, Any]:
    """An object by label; a list has the labels A, B, C, ..."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list):
        return dict(zip(_list_labels(len(value), where), value, strict=True))
    raise DataError(f"{where}: expected an object or a list, got {outside.shown(value)}")


def _list_labels(count: int, where: str) -> str:
    if not 2 <= count <= len(LABELS):
        raise DataError(f"{where}: expected 2 to {len(LABELS)} options, got {count}; more need labels of their own")
    return LABELS[:count]


def _weight(value: object, kind: str, where: str) -> float:
    """A log-weight in nats."""
    if kind != "probabilities" and value in ("-inf", -math.inf):
        return -math.inf  # an option that is never chosen; what was chosen has no such value
    if kind == "logprobs":
        return outside.log_probability(value, where)
    number = outside.number(value, where)
    if kind == "logits":
        return number
    if not 0 <= number <= 1:
        raise DataError(f"{where}: {number} is no probability")
    return math.log(number) if number else -math.inf


def _optional_text(value: object, where: str) -> str | None:
    return None if value is None else cells.required(value, where)

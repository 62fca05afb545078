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
_TEXTS = ("question", "question_type", "group", "image")
_KEYS = ("id", "answer", "options", "model", *_WEIGHTS, *_TEXTS)


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
    is_npz = file.suffix.lower() == ".npz"
    if is_npz and questions is None:
        raise DataError(f"{file}: its questions are missing; give the file that has them with --questions")
    if not is_npz and questions is not None:
        raise DataError(f"{file}: its rows are questions already; --questions belongs to an .npz file")
    if not is_npz and group not in (None, NONE, "group", "image"):
        raise unknown(f"column of groups of {file}", group, ("group", "image", NONE))
    rows = _array_rows(file, questions, group) if questions else read_rows(file)
    if not rows:
        raise DataError(f"{file}: no questions in it")
    models: dict[str, list[OptionQuestion]] = {}
    places: dict[tuple[str, str], str] = {}
    for where, row in rows:
        model, question = _read_row(row, where)
        first = places.setdefault((model, question.id), where)
        if first != where:
            raise DataError(f"{where}: id {outside.shown(question.id)} is already on line {first.rpartition(':')[2]}")
        models.setdefault(model, []).append(question)
    return {model: _with_groups(of_model, group) for model, of_model in models.items()}


def _with_groups(questions: Sequence[OptionQuestion], group: str | None) -> list[OptionQuestion]:
    """The questions with the groups that are found, or those that the user asks for."""
    texts, images, declared = ([getattr(q, name) for q in questions] for name in ("question", "image", "group"))
    groups: Sequence[str | None]
    if group is None:
        rotated = [rotated_items(names, texts) for names in (images, [q.id for q in questions])]
        groups = find_groups(declared if any(declared) else None, images, *rotated).groups
    else:
        groups = [None] * len(questions) if group == NONE else images if group == "image" else declared
    return [replace(question, group=name) for question, name in zip(questions, groups, strict=True)]


def _read_row(row: Mapping[str, Any], where: str) -> tuple[str, OptionQuestion]:
    """The model and the question of a row."""
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
    options = {
        label: cells.required(value, f"{where}: options[{outside.shown(label)}]")
        for label, value in _labelled(row.get("options") or {}, f"{where}: options").items()
    }
    if other_labels := options.keys() - weights:
        raise DataError(f"{where}: {unknown('option', min(other_labels), weights)}")
    id, answer = (cells.required(row.get(name), f"{where}: {name}") for name in ("id", "answer"))
    texts = {name: cells.required(row[name], f"{where}: {name}") for name in _TEXTS if row.get(name) is not None}
    try:
        return str(row.get("model") or ""), OptionQuestion(id, answer, weights, options=options, **texts)
    except ValueError as error:
        raise DataError(f"{where}: {error}") from None


def _array_rows(file: Path, questions: Path, group: str | None) -> list[Row]:
    """The rows of a table of questions with the weights of each model, in the shape of a table of weights."""
    # A CSV file has no other way to say that there is nothing.
    table = [
        (at, {key: value for key, value in row.items() if value not in (None, "")}) for at, row in read_rows(questions)
    ]
    columns = {key for _, row in table for key in row}
    by_name = {plain_name(column): column for column in sorted(columns, reverse=True)}
    # The first column of groups that there is: names of patients come before those of their studies.
    column = next((by_name[name] for name in NAMES["group"] if name in by_name), None)
    if group not in (None, NONE, "image"):
        if group not in columns:
            raise unknown(f"column of {questions}", str(group), columns)
        column = group
    rows: list[Row] = []
    for model, array in _load_arrays(file).items():
        at = f"{file}: array {outside.shown(model)}"
        if len(array) != len(table):
            raise DataError(f"{at} has {len(array)} rows for the {len(table)} questions of {questions}")
        labels = _list_labels(array.shape[1], at)
        for i, ((_, row), logits) in enumerate(zip(table, array.tolist(), strict=True)):
            fields = {name: row[name] for name in ("id", "answer", *_TEXTS) if name in row}
            fields["options"] = {label: row[label] for label in labels if label in row}
            fields |= {
                "group": row.get(str(column)),
                "model": outside.clean(model),
                "logits": dict(zip(labels, logits, strict=True)),
            }
            rows.append((f"{at}, row {i}", fields))
    return rows


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

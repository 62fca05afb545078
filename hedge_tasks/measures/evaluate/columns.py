"""Columns that users hand to a metric, checked before Arrow turns it into something else: to an integer column, 0.7 is
0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from hedge_tasks.data.answer_files import read_answer_set
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError, check_names
from hedge_tasks.io import outside


def as_list(column: Any, name: str) -> list[Any]:
    """Return a column as a list: of a list, an array, a tensor, a pandas or Arrow column.

    Raises:
        DataError: it is no column.
    """
    column = column.tolist() if hasattr(column, "tolist") else column
    if isinstance(column, (str, bytes, Mapping)) or not isinstance(column, Iterable):
        raise DataError(f"{name}: expected a list, got {outside.shown(column)}")
    return list(column)


def labels_of(references: Any, n: int) -> list[int | None]:
    """Labels 0 or 1, None where there is none.

    Args:
        references: a column; None: no label at all.
        n: how many there have to be.

    Raises:
        DataError: there are more or fewer, or one is something else; names the place.
    """
    if references is None:
        return [None] * n
    values = as_list(references, "references")
    if len(values) != n:
        raise DataError(f"{n} predictions and {len(values)} references")
    return [_label(value, f"references[{i}]") for i, value in enumerate(values)]


def _label(value: Any, where: str) -> int | None:
    number = _number(value)
    if value is None or (number is not None and math.isnan(number)):
        return None
    if number not in (0, 1):
        raise DataError(f"{where}: expected 1 (hallucinated), 0 or None, got {outside.shown(value)}")
    return int(number)


def scores_of(predictions: Any) -> list[float | None]:
    """Numbers, None where a document has no score.

    Raises:
        DataError: one is no number; names the place.
    """
    values = as_list(predictions, "predictions")
    for i, value in enumerate(values):
        if value is not None and (_number(value) is None or isinstance(value, bool)):
            raise DataError(f"predictions[{i}]: expected a number, got {outside.shown(value)}")
    return [_number(value) for value in values]


def _number(value: Any) -> float | None:
    value = value.item() if hasattr(value, "item") else value  # NumPy's own booleans are no numbers
    return float(value) if isinstance(value, Real) else None


def answer_sets_of(predictions: Any, first: int = 0) -> list[AnswerSet]:
    """The answers to each question, in any of the shapes that `hedge score` reads, as plain texts, or as `AnswerSet`.

    Args:
        first: number of the first question, which is its id where it has none.

    Raises:
        DataError: names the place and the field.
    """
    sets = []
    for i, value in enumerate(as_list(predictions, "predictions")):
        where = f"predictions[{i}]"
        if isinstance(value, AnswerSet):
            sets.append(value)
            continue
        if isinstance(value, (list, tuple)):
            value = {"answers": list(value)}
        if not isinstance(value, Mapping):
            raise DataError(f"{where}: expected the answers to a question, got {outside.shown(value)}")
        check_names(where, value, {*AnswerSet.__dataclass_fields__, "answers"})
        sets.append(read_answer_set({"id": str(first + i), **value}, where))
    return sets


def with_labels(answer_sets: Sequence[AnswerSet], labels: Sequence[int | None]) -> list[int | None]:
    """Return the labels of both sources.

    Raises:
        DataError: they contradict each other; names the place.
    """
    for i, (answers, label) in enumerate(zip(answer_sets, labels, strict=True)):
        if None not in (label, answers.label) and label != answers.label:
            raise DataError(f"predictions[{i}] has the label {answers.label}, references[{i}] is {label}")
    return [a.label if label is None else label for a, label in zip(answer_sets, labels, strict=True)]

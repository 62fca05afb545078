"""Weights of models on the options of multiple-choice questions: one log-weight an option, from any harness.

A table, a question a row (docs/options.md has an example): `{"id", "answer", "logits", "question"?, "options"?,
"question_type"?, "group"?, "image"?, "model"?}`. The weights are an object (label -> number) or a list, whose labels
are A, B, C, ...; `options` holds the texts in the same form. Rows of several models may stand in one file. Questions of
one group or one picture vary together.

Logits need not be normalised. An option that cannot be chosen has minus infinity.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated

from pydantic import BeforeValidator

from hedge_tasks.data import cells
from hedge_tasks.data.groups import find_groups
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError, check_names, unknown
from hedge_tasks.io import outside
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
        options: label -> text, of all options or of none.
        question_type, group: as in an answer set.
        image: name or digest of the picture; questions with the same one are of one group.

    Raises:
        ValueError: there are fewer than two options, none can be chosen, the answer or a text is of none of them, or
            some have a text and others have none.
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
        if self.options and (without := self.logits.keys() - self.options.keys()):
            raise ValueError(f"options: no text of {', '.join(sorted(without))}, which logits have")


def read_options(file: Path) -> dict[str, list[OptionQuestion]]:
    """Read a table of option weights (`hedge_tasks.data.tables.KINDS`).

    Returns:
        By model the questions in the order of the file, with the groups that are found; "" is the model of rows that
        name none.

    Raises:
        HedgeError: names the file, the line or row, and what is wrong there.
    """
    models: dict[str, dict[str, OptionQuestion]] = defaultdict(dict)
    for where, row in read_rows(file):
        check_names(f"key ({where})", row, {*OptionQuestion.__dataclass_fields__, "model"})
        filled = {key: value for key, value in row.items() if value not in (None, "")}
        of_model, question = models[str(row.get("model") or "")], checked(OptionQuestion, filled, where)
        if question.id in of_model:
            raise DataError(f"{where}: another row of the model has the id {outside.shown(question.id)}")
        of_model[question.id] = question
    if not models:
        raise DataError(f"{file}: no questions in it")
    return {model: _with_groups(list(of_model.values())) for model, of_model in models.items()}


def _with_groups(questions: Sequence[OptionQuestion]) -> list[OptionQuestion]:
    images, declared = ([getattr(q, name) for q in questions] for name in ("image", "group"))
    groups = find_groups(declared, images)
    return [replace(question, group=name) for question, name in zip(questions, groups, strict=True)]

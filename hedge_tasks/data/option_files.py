"""Weights of models on the options of multiple-choice questions: one log-weight an option, from any harness.

A table, a question a row (docs/options.md has an example): `{"id", "answer", "logits", "question"?, "options"?,
"question_type"?, "group"?, "model"?}`. The weights are an object (label -> number) or a list, whose labels are A, B, C,
...; `options` holds the texts in the same form. Rows of several models may stand in one file. Questions of one group,
such as those about one picture, vary together.

Logits need not be normalised. An option that cannot be chosen has minus infinity.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated

from pydantic import BeforeValidator

from hedge_tasks.data import cells
from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError, check_names, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.records import checked

LABELS = ascii_uppercase
"""Labels of options that are given as a list, in order."""

_NO_LOGITS: Mapping[str, tuple[Callable[[float], float], str]] = {
    "probabilities": (lambda weight: weight, "write their logarithms"),
    "percentages": (lambda weight: weight / 100, "write the logarithms of their hundredths"),
    "losses": (lambda weight: math.exp(-weight), "write them with a minus in front"),
}
"""Kind of weights that are no logits -> which share of 1 each is then, and the way out."""


def _by_label(value: object) -> object:
    """A list as an object with the labels A, B, C, ..."""
    if isinstance(value, list) and len(value) > len(LABELS):
        raise DataError(f"expected an object, or a list of at most {len(LABELS)}")
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

    def __post_init__(self) -> None:
        if len(self.logits) < 2:
            raise ValueError("expected 2 options or more")
        if max(self.logits.values()) == -math.inf:
            raise ValueError("no option can be chosen: all logits are -inf")
        if self.answer not in self.logits:
            raise unknown("answer", self.answer, self.logits)
        if self.options and (alone := self.logits.keys() ^ self.options.keys()):
            raise ValueError(f"options and logits do not have the same labels: {sorted(alone)}")


def read_options(file: Path) -> dict[str, list[OptionQuestion]]:
    """Read a table of option weights (`hedge_tasks.data.tables.KINDS`).

    Returns:
        By model the questions in the order of the file; "" is the model of rows that name none.

    Raises:
        HedgeError: names the file, the line or row, and what is wrong there, such as probabilities in place of logits.
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
    weights = [question.logits.values() for of_model in models.values() for question in of_model.values()]
    for kind, (share, way_out) in _NO_LOGITS.items():
        # Shares may have been rounded to two decimals.
        if all(min(row) >= 0 and math.isclose(sum(map(share, row)), 1, abs_tol=0.011) for row in weights):
            raise DataError(f"{file}: logits: these are {kind}, which add up to one whole in every row; {way_out}")
    return {model: [*of_model.values()] for model, of_model in models.items()}

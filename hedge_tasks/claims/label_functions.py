"""Which claims are hallucinated by a function of the user's: RadGraph, GREEN, a table of one's own.

`python:module:function` names one that Python can import; another package adds its own under the entry-point group
`hedge_tasks.claim_labels`. The function is called once an answer, with the answer and its claims, and says of each
claim, in their order, what a file of labels would (`hedge_tasks.data.spans.read_spans`): 1 = hallucinated, 0 =
supported, "silent", None, or an object with `label`, `severity` and `correction`.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hedge_tasks.claims.base import Claim
from hedge_tasks.claims.decomposition import Decomposed
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import outside
from hedge_tasks.registry import Registry

LabelFunction = Callable[[AnswerSet, Sequence[Claim]], Sequence[Any]]

PYTHON = "python:"

LABEL_FUNCTIONS: Registry[Any] = Registry("function that labels claims", "hedge_tasks.claim_labels", {})
"""Functions of other packages, by name."""

_FIELDS = ("label", "severity", "correction")


def label_function(name: str) -> LabelFunction:
    """A function that labels claims.

    Args:
        name: `python:module:function`, where the module may lie in the working directory, or one of `LABEL_FUNCTIONS`.

    Raises:
        ConfigError: there is no such function.
    """
    function = _imported(name) if name.startswith(PYTHON) else LABEL_FUNCTIONS.get(name)
    if not callable(function):
        raise ConfigError(f"labels: {name!r} is no function")
    labels_claims: LabelFunction = function
    return labels_claims


def function_labels(
    answer_sets: Sequence[AnswerSet], decomposed: Sequence[Decomposed], function: LabelFunction
) -> dict[str, tuple[LabelledSpan, ...]]:
    """Return what a function says of every claim, as labelled spans by the answer's id.

    Raises:
        DataError: it says something else than a label of each claim; names the answer.
    """
    spans_by_id = {}
    for answers, claims_of in zip(answer_sets, decomposed, strict=True):
        labels = list(function(answers, claims_of.claims))
        where = f"labels of {outside.shown(answers.id)}"
        if len(labels) != len(claims_of.claims):
            raise DataError(f"{where}: expected one for each of {len(claims_of.claims)} claims, got {len(labels)}")
        spans = [
            {"start": claim.start, "end": claim.end, **_fields(row, f"{where}[{i}]")}
            for i, (claim, row) in enumerate(zip(claims_of.claims, labels, strict=True))
        ]
        spans_by_id[answers.id] = read_spans(spans, answers.baseline.text, where)
    return spans_by_id


def _fields(row: object, where: str) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        return {"label": row}
    if set(row) - set(_FIELDS):
        raise DataError(f"{where}: expected {', '.join(_FIELDS)}, got {outside.shown(row)}")
    return row


def _imported(name: str) -> Any:
    module, _, function = name.removeprefix(PYTHON).partition(":")
    if not module or not function:
        raise ConfigError(f"labels: expected {PYTHON}module:function, got {name!r}")
    working_folder = os.getcwd()
    if working_folder not in sys.path:
        sys.path.append(working_folder)
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"labels: {name!r} cannot be had: {error}") from None

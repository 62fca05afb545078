"""Made and released sets as solvers see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.cells import first_of
from hedge_tasks.data.tables import read_rows
from hedge_tasks.making.gate.attack import AttackedItem
from hedge_tasks.suites.shale.items import options_of

TRUE, HALLUCINATED = "true", "hallucinated"
_ANSWER = ("answer", "response", "model_answer")
_QUESTION = ("question", "instruction", "prompt")
_REFERENCE = ("reference", "ground_truth", "gt_answer")


def answer_pairs(rows: Iterable[Mapping[str, Any]]) -> list[AttackedItem]:
    """True and wrong answers in the columns of MedHallu; who judges one is not shown the other."""
    items = []
    for row in rows:
        question = str(row["Question"])
        for label, column in ((TRUE, "Ground Truth"), (HALLUCINATED, "Hallucinated Answer")):
            items.append(AttackedItem(label, question, str(row[column]), group=question))
    return items


def read_released(
    path: Path, *, label: str = "label", group: str | None = None, stratum: str | None = None
) -> list[AttackedItem]:
    """Items of a table: in MedHallu's columns, or question, answer, reference and label.

    Args:
        label, group, stratum: Columns; without a group that of the picture, or else the question, is taken.

    Raises:
        DataError: A row has no label.
    """
    rows = read_rows(path)
    if rows and {"Question", "Ground Truth", "Hallucinated Answer"} <= set(rows[0][1]):
        return answer_pairs(row for _, row in rows)
    items = []
    for where, row in rows:
        right = first_of(row, (label,), where, "label")
        question = _text(row, _QUESTION)
        options = options_of(question)
        group_key = str(row.get(group) if group else row.get("image") or question)
        stratum_name = str(row.get(stratum)) if stratum else ""
        answer = _text(row, _ANSWER) if label not in _ANSWER else ""
        reference = _text(row, _REFERENCE)
        items.append(AttackedItem(right, question, answer, reference, options, group=group_key, stratum=stratum_name))
    return items


def _text(row: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((str(row[name]) for name in names if row.get(name) is not None), "")

"""Files about claims: labels that people gave, and scores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import DataError
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims


def read_labels(path: Path, answer_sets: Sequence[AnswerSet]) -> Mapping[str, Sequence[LabelledSpan]]:
    """Labels of claims by the answer's id: `{"id", "claims": [...]}` a line, as `hedge_tasks.data.spans.read_spans`.

    Raises:
        DataError: a line is no such object, names an answer that is not there, or one twice; or a span does not stand
            in its answer.
    """
    answers = {a.id: a.baseline.text for a in answer_sets}
    found: dict[str, Sequence[LabelledSpan]] = {}
    for where, row in read_objects(path):
        id = row.get("id")
        if isinstance(id, bool) or not isinstance(id, (str, int)) or "claims" not in row:
            raise DataError(f"{where}: expected the id of an answer and its claims")
        if str(id) not in answers:
            raise DataError(f"{where}: there is no answer with the id {outside.shown(str(id))}")
        if str(id) in found:
            raise DataError(f"{where}: the id {outside.shown(str(id))} is labelled twice")
        found[str(id)] = read_spans(row["claims"], answers[str(id)], f"{where}: claims")
    if not found:
        raise DataError(f"{path}: no labels in it")
    return found


def write_claim_scores(path: Path, scored: ScoredClaims) -> None:
    """Write one line a claim: id, answer, text, start, end, label where it has one, and the number of every detector.

    The file appears as a whole or not at all.
    """
    rows = (row for one in scored.answers for row in _rows(one))
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def _rows(one: ScoredAnswer) -> list[dict[str, Any]]:
    rows = []
    for k, (claim, label) in enumerate(zip(one.claims, one.labels.labels, strict=True)):
        told = {} if label is None else {k: v for k, v in label.to_dict().items() if k not in ("start", "end")}
        scores = {name: _written(float(values[k])) for name, values in one.scores.items()}
        place = {"text": claim.text, "start": claim.start, "end": claim.end}
        rows.append({"id": claim.id, "answer": claim.answer, **place, **told, "scores": scores})
    return rows


def _written(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)

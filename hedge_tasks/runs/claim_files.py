"""Files about claims: labels that people gave, and scores."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.claims.labels import ERRORS, SILENT
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.outside import shown
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims
from hedge_tasks.runs.run_files import Run


def read_labels(path: Path, answer_sets: Sequence[AnswerSet]) -> Mapping[str, Sequence[LabelledSpan]]:
    """Read labels of claims by the answer's id: `{"id", "claims": [...]}` a line; see `hedge_tasks.data.spans`.

    Raises:
        DataError: a line is no such object, names an answer that is not there, or one twice; or a span does not stand
            in its answer.
    """
    answers = {a.id: a.baseline.text for a in answer_sets}
    labels: dict[str, Sequence[LabelledSpan]] = {}
    for where, row in read_objects(path):
        id = str(row.get("id"))
        if id not in answers or id in labels or "claims" not in row:
            raise DataError(f"{where}: expected claims of an answer not labelled before, got those of {shown(id)}")
        labels[id] = read_spans(row["claims"], answers[id], f"{where}: claims")
    if not labels:
        raise DataError(f"{path}: no labels in it")
    return labels


def write_claim_scores(path: Path, scored: ScoredClaims) -> None:
    """Write one line a claim: id, answer, text, start, end, label where it has one, and the number of every detector.

    The file appears as a whole or not at all.
    """
    write_whole(
        path, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for a in scored.answers for row in claim_rows(a))
    )


def claim_rows(answer: ScoredAnswer) -> list[dict[str, Any]]:
    """Return one row a claim, ready for JSON; see `write_claim_scores`."""
    rows = []
    for k, (claim, label) in enumerate(zip(answer.claims, answer.labels, strict=True)):
        scores = {name: _json_score(float(values[k])) for name, values in answer.scores.items()}
        about = {"id": claim.id, "answer": claim.answer, "text": claim.text, **(label.to_dict() if label else {})}
        rows.append({**about, "start": claim.start, "end": claim.end, "scores": scores})
    return rows


def _json_score(value: float) -> float | str | None:
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)


SETTING = "claims"
"""Setting of a run: under `labels` which labels of claims count."""


def label_options(run: Run) -> dict[str, Any]:
    """Return which labels count in a run's own rows; see `hedge_tasks.claims.labels.label_of`."""
    labels = (run.settings.get(SETTING) or {}).get("labels") or {}
    return {name: labels.get(name) or default for name, default in (("silent", SILENT[0]), ("errors", ERRORS[0]))}

"""The claims of a run as a section of its report: numbers beside the blind baselines, and the worst answers."""

from __future__ import annotations

from typing import Any

from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import HedgeError
from hedge_tasks.measures.claim_finding import claim_finding
from hedge_tasks.measures.unit_table import measured_claims, score_kept_claims
from hedge_tasks.report.claim_page import default_detector, threshold_of, worst_answers
from hedge_tasks.report.pictures import NONE, Thumbnails
from hedge_tasks.runs.run_files import Run

ANSWERS = 3
"""Answers that a report shows; `hedge claims RUN --html` shows them all."""


def claim_section(run: Run, anchor: str, pictures: Thumbnails = NONE) -> dict[str, Any] | None:
    """Return the template's view of the claims kept with a run; None where nothing is kept. No model is called.

    Args:
        anchor: in front of all anchors of this run.
        pictures: of the documents.
    """
    try:
        scored = score_kept_claims(run)
        if scored is None:
            return None
        table, why = measured_claims(scored, run)
        name = default_detector(scored, table)
        answers, n_answers = worst_answers(
            scored, table, name, ANSWERS, anchor, pictures=pictures, verdicts=run.verdicts
        )
    except HedgeError as error:
        return {"failed": str(error)}
    return {
        "failed": "",
        "about": f"{scored.settings.get('decomposition', 'claims')} by {scored.settings.get('support', 'support')}",
        "price": str(scored.price),
        "sentence": claim_finding(table) if table is not None else "",
        "table": table,
        "why": why,
        "detector": get(name).title,
        "threshold": threshold_of(table, name),
        "answers": answers,
        "n_answers": n_answers,
        "left_out": list((table.left_out if table else scored.left_out).items()),
    }

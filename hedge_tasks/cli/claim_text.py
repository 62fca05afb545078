"""Facts and tables of a run scored by claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.printing import Details

if TYPE_CHECKING:
    from hedge_tasks.measures.unit_table import UnitTable
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.claims import ScoredClaims
    from hedge_tasks.runs.run_files import Run

_LISTED = 10
"""Claims that are listed where nothing is labelled."""


def claim_block(run: Run) -> dict[str, Any]:
    """Return the claims kept with a run, in short, to stand beside the numbers of its answers; empty where none are."""
    from hedge_tasks.measures.unit_table import kept_numbers

    if (kept := kept_numbers(run)) is None:
        return {}
    return {"claims": kept.why if kept.scored is None else claim_facts(kept.scored, kept.table, kept.why)}


def claim_facts(
    scored: ScoredClaims,
    measured: UnitTable | None,
    why: str = "",
    *,
    left_out: Mapping[str, str] | None = None,
    everything: bool = False,
) -> dict[str, Any]:
    """Return detectors of claims with their price and blind baselines; without labels the most suspicious claims.

    Args:
        why: Why there are no numbers, where there are none.
        left_out: Fitted detector -> why it has no scores.
        everything: With numbers within answers and the flagged claims.
    """
    from hedge_tasks.measures.detector_table import numbers_table
    from hedge_tasks.numbers import reason_lines

    source = scored.support.source
    decomposed = [supported.decomposed for supported in scored.support.answers.values()]
    facts = {
        **{"run": scored.title, **source.settings, "price": Details(source.price.model_dump())},
        "claims": sum(len(answer.claims) for answer in scored.answers),
        "covered": sum(answer.covered for answer in decomposed) / len(decomposed),
        "unlocated": sum(answer.unlocated for answer in decomposed),
        "left_out": Details((scored if measured is None else measured).left_out),
    }
    price = f"to ask for all of it: {source.price}"
    if measured is None:
        return {**facts, "labelled": 0, "suspicious": _suspicious(scored, price, why)}
    notes = ["*: turned round", *reason_lines("left out", {**measured.left_out, **(left_out or {})}.items())]
    return {
        **facts,
        **measured.settings,
        "labels": scored.labelled_by,
        "labelled": measured.n_labelled,
        "hallucinated": measured.counted.n_positive,
        "silent_claims": measured.counted.n_silent,
        "unknown_support": measured.counted.n_unknown,
        "detectors": numbers_table(measured.rows, against="blind", brief=not everything, title=price, notes=notes),
    }


def _suspicious(scored: ScoredClaims, price: str, why: str) -> Table:
    """Return the most suspicious claims, where none has a label."""
    from hedge_tasks.numbers import Table
    from hedge_tasks.report.claim_page import default_detector

    by = default_detector(scored, None)
    rows = [
        (claim.answer, float(score), claim.text)
        for answer in scored.answers
        for claim, score in zip(answer.claims, answer.scores.get(by, ()), strict=False)
        if score == score
    ]
    rows = sorted(rows, key=lambda row: -row[1])[:_LISTED]
    notes = [why or "no claim is labelled: give --labels, or answers with a field claims"]
    return Table.of(("answer", "score", "claim"), rows, title=f"most suspicious by {by} ({price})", notes=notes)

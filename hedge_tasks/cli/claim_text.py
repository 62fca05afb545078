"""A run scored by claim, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedge_tasks.measures.unit_table import KeptNumbers, UnitTable
    from hedge_tasks.numbers import Cell, Table
    from hedge_tasks.runs.claims import ScoredClaims

_LISTED = 10
"""Claims that the text lists where nothing is labelled, the most suspicious first."""


def claim_block(kept: KeptNumbers | None) -> tuple[str, dict[str, Any]]:
    """Return the claims kept with a run, as a block below the numbers of its answers; empty where none are kept."""
    if kept is None:
        return "", {}
    return (f"claims: {kept.why}", {}) if kept.scored is None else block_of(kept.scored, kept.table, kept.why)


def block_of(scored: ScoredClaims, measured: UnitTable | None, why: str) -> tuple[str, dict[str, Any]]:
    """Return the detectors of claims in short, with their price and the best blind baseline; and all facts for JSON.

    Args:
        why: Why there are no numbers, where there are none.
    """
    facts = {"claims": claim_facts(scored, measured)}
    if measured is None:
        return f"claims ({_method(scored)}, {scored.price}): {why}", facts
    return str(claim_table(measured, brief=True)), facts


def claim_facts(scored: ScoredClaims, measured: UnitTable | None) -> dict[str, Any]:
    facts = {
        "run": scored.title,
        **scored.settings,
        "price": scored.price,
        "claims": sum(len(answer.claims) for answer in scored.answers),
        "covered": sum(answer.covered for answer in scored.decomposed) / len(scored.decomposed),
        "unlocated": sum(answer.unlocated for answer in scored.decomposed),
        "left_out": scored.left_out if measured is None else measured.left_out,
    }
    if measured is None:
        return {**facts, "labelled": 0}
    counted = measured.counted
    return {
        **facts,
        **measured.settings,
        "labels": scored.labelled_by,
        "labelled": measured.n_labelled,
        "hallucinated": counted.n_positive,
        "silent_claims": counted.n_silent,
        "unknown_support": counted.n_unknown,
        "unused_labels": counted.n_unused,
        "best_blind": dict(zip(("pooled", "within"), measured.against, strict=True)),
        "detectors": measured.rows,
    }


def _method(scored: ScoredClaims) -> str:
    return f"{scored.settings.get('decomposition')} by {scored.settings.get('support')}"


def claim_table(measured: UnitTable, *, left_out: Mapping[str, str] | None = None, brief: bool = False) -> Table:
    """Return the detectors of claims.

    Args:
        left_out: fitted detector -> why it has no scores.
        brief: without numbers within answers and without the flagged claims.
    """
    from hedge_tasks.measures.detector_table import numbers_table
    from hedge_tasks.numbers import WHOLE_PERCENT, reason_lines

    scored, counted = measured.scored, measured.counted
    title = (
        f"{scored.title}; {_method(scored)}; to ask for all of it: {scored.price}\n"
        f"{len(counted.units)} claims that cover {WHOLE_PERCENT(measured.covered)} of the text, {measured.n_labelled} "
        f"of them labelled by {scored.labelled_by}, {counted.n_positive} hallucinated"
    )
    lost = {
        "the reference is silent on": counted.n_silent,
        "claims of unknown support, left out:": counted.n_unknown,
        "labelled spans that lie over no claim:": counted.n_unused,
        "claims that could not be located:": measured.unlocated,
    }
    blind = [f"{name} ({which})" for name, which in zip(measured.against, ("all", "within"), strict=True) if name]
    notes = [f"blind: {', '.join(blind)}; * turned round" if blind else "no blind baseline"]
    notes += [f"{words} {n}" for words, n in lost.items() if n]
    notes += reason_lines("left out", {**measured.left_out, **(left_out or {})}.items())
    return numbers_table(measured.rows, against="blind", brief=brief, title=title, notes=notes)


def suspicious_table(scored: ScoredClaims) -> Table:
    """Return the most suspicious claims, where none has a label."""
    from hedge_tasks.numbers import Column, Table, reason_lines

    names = list(dict.fromkeys(name for answer in scored.answers for name in answer.scores))
    name = next((n for n in ("claim_luq", *names) if n in names), None)
    ranked = sorted(
        (-score, claim.answer, claim.text)
        for answer in scored.answers
        for claim, score in zip(answer.claims, answer.scores.get(name or "", ()), strict=False)
        if score == score
    )[:_LISTED]
    rows: list[dict[str, Cell]] = [
        {"answer": answer, "score": float(-score), "claim": text} for score, answer, text in ranked
    ]
    title = f"{scored.title}; {_method(scored)}; to ask for all of it: {scored.price}"
    notes = ["no claim is labelled: give --labels, or answers with a field claims"]
    notes += [] if name else reason_lines("left out", scored.left_out.items())
    return Table([*map(Column, ("answer", "score", "claim"))], rows, f"{title}\nmost suspicious by {name}:", notes)

"""A run scored by claim, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedge_tasks.measures.claim_probes import ClaimProbes
    from hedge_tasks.measures.kept_claims import KeptNumbers
    from hedge_tasks.measures.unit_table import UnitTable
    from hedge_tasks.numbers import Cell, Table
    from hedge_tasks.runs.claim_agreement import JointAgreement
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
    heading = f"claims ({_method(scored)}, {scored.price})"
    if measured is None:
        return f"{heading}: {why}", {"claims": claim_facts(scored, None)}
    from hedge_tasks.measures.detector_columns import numbers_table

    counted = f"{measured.n_labelled} labelled by {scored.labelled_by}, {measured.counted.n_positive} hallucinated"
    notes = [_best_blind(measured), *_left_out(measured.left_out)]
    table = numbers_table(measured.rows, against="blind", brief=True, title=f"{heading}; {counted}", notes=notes)
    return str(table), {"claims": claim_facts(scored, measured)}


def _method(scored: ScoredClaims) -> str:
    return f"{scored.settings.get('decomposition')} by {scored.settings.get('support')}"


def _best_blind(measured: UnitTable) -> str:
    blind = [f"{name} ({which})" for name, which in zip(measured.best_blind, ("all", "within"), strict=True) if name]
    return f"best blind baseline: {', '.join(blind)}; * turned round" if blind else "no blind baseline"


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
        "best_blind": dict(zip(("pooled", "within"), measured.best_blind, strict=True)),
        "detectors": measured.rows,
        "answers": {"label": measured.answer_label, "detectors": measured.answers},
        "curve": measured.curve,
    }


def joint_facts(agreed: JointAgreement) -> dict[str, Any]:
    """Return the agreement of joint calls with single ones, for JSON."""
    differ = [{"joint": a, "single": b, "n": n} for (a, b), n in sorted(agreed.differ.items())]
    names = ("calls", "verdicts", "unknown", "same", "kappa")
    return {**{name: getattr(agreed, name) for name in names}, "differ": differ}


def claim_text(measured: UnitTable) -> str:
    from hedge_tasks.measures.detector_columns import numbers_table
    from hedge_tasks.numbers import PERCENT, WHOLE_PERCENT

    scored, counted, n = measured.scored, measured.counted, measured.n_labelled
    lines = [
        f"{scored.title}; {_method(scored)}; to ask for all of it: {scored.price}",
        f"{len(counted.units)} claims that cover {WHOLE_PERCENT(measured.covered)} of the text, {n} of them labelled "
        f"by {scored.labelled_by}, {counted.n_positive} hallucinated ({PERCENT(counted.n_positive / n)})",
    ]
    left_out = {
        "the reference is silent on": counted.n_silent,
        "claims of unknown support, left out:": counted.n_unknown,
        "labelled spans that lie over no claim:": counted.n_unused,
        "claims that could not be located:": measured.unlocated,
    }
    lines += [f"{words} {n}" for words, n in left_out.items() if n]
    lines.append(str(numbers_table(measured.rows, against="blind", notes=[_best_blind(measured)])))
    for table in (_curve(measured), _whole_answers(measured)):
        lines += ["", str(table)] if table else []
    return "\n".join([*lines, *_left_out(measured.left_out)])


def probe_controls(probes: ClaimProbes) -> tuple[dict[str, Any], list[str]]:
    """Return the controls of fitted detectors, which have to be near 0.5, for JSON and in words; and label prices."""
    from hedge_tasks.numbers import FOUR_DIGITS, Column, Table

    if probes.fitted_on:
        return {}, ["", f"fitted detectors: on {probes.fitted_on}", *_left_out(probes.left_out)]
    facts: dict[str, dict[str, Any]] = {
        name: {
            "shuffled": control.mean,
            "foreign": probes.foreign[name],
            **{f"at_{n}": area for n, area in probes.prices.get(name, {}).items()},
        }
        for name, control in probes.shuffled.items()
    }
    prices = sorted({n for by_size in probes.prices.values() for n in by_size})
    columns = [
        Column("detector"),
        Column("shuffled", "shuffled labels", format=FOUR_DIGITS),
        Column("foreign", "another image's states", format=FOUR_DIGITS),
        *(Column(f"at_{n}", f"{n} labels", format=FOUR_DIGITS) for n in prices),
    ]
    rows = [{"detector": name, **controls} for name, controls in facts.items()]
    table = Table(columns, rows, "controls, near 0.5 where all is well")
    missing = [f"{probes.missing} labelled claims are no sentence with states"] if probes.missing else []
    return facts, ["", str(table), *missing, *_left_out(probes.left_out)]


def _whole_answers(measured: UnitTable) -> Table | str:
    from hedge_tasks.numbers import Column, Table

    rows = [
        {"detector": row.detector, "auroc": row.estimate, "spearman": row.spearman}
        for row in measured.answers
        if row.estimate.defined or row.spearman is not None
    ]
    title = f"whole answers: AUROC against {measured.answer_label}"
    if not rows:
        reasons = dict.fromkeys(str(row.estimate.reason) for row in measured.answers)
        return f"{title}: undefined: {'; '.join(reasons)}" if reasons else ""
    columns = [
        Column("detector"),
        Column("auroc", "AUROC"),
        Column("interval", "95 %", show="interval", of="auroc"),
        Column("spearman", "Spearman"),
    ]
    return Table(columns, rows, f"{title}; rank correlation with the share of wrong claims")


def _left_out(left_out: Mapping[str, str]) -> list[str]:
    from hedge_tasks.numbers import reason_lines

    return reason_lines("left out", left_out.items())


def _curve(measured: UnitTable) -> Table | None:
    from hedge_tasks.numbers import Column, Table

    sizes = sorted({point.n for point in measured.curve})
    if len(sizes) < 2:
        return None
    rows: dict[str, dict[str, Cell]] = {}
    for point in measured.curve:
        for name, number in ((point.detector, point.estimate), (f"{point.detector} within", point.within)):
            rows.setdefault(name, {"detector": name})[str(point.n)] = number.value
    columns = [Column("detector"), *(Column(str(n)) for n in sizes)]
    return Table(columns, list(rows.values()), "AUROC by number of draws")


def unlabelled_text(scored: ScoredClaims) -> str:
    """Return the most suspicious claims, where none has a label."""
    from hedge_tasks.numbers import Column, Table

    names = list(dict.fromkeys(name for answer in scored.answers for name in answer.scores))
    name = next((n for n in ("claim_luq", *names) if n in names), None)
    lines = [
        f"{scored.title}; {_method(scored)}; to ask for all of it: {scored.price}",
        "no claim is labelled: give --labels, or answers with a field claims",
    ]
    if name is None:
        return "\n".join([*lines, *_left_out(scored.left_out)])
    ranked = sorted(
        (-score, claim.answer, claim.text)
        for answer in scored.answers
        if name in answer.scores
        for claim, score in zip(answer.claims, answer.scores[name].tolist(), strict=True)
        if score == score
    )[:_LISTED]
    rows = [{"answer": answer, "score": -score, "claim": text} for score, answer, text in ranked]
    table = Table([Column("answer"), Column("score"), Column("claim")], rows, f"most suspicious by {name}:")
    return "\n".join([*lines, str(table)])

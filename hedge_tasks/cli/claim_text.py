"""A run scored by claim, for people and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import number, table

if TYPE_CHECKING:
    from hedge_tasks.measures.claim_table import ClaimRow, ClaimTable
    from hedge_tasks.measures.kept_claims import KeptNumbers
    from hedge_tasks.scoring.claim_agreement import JointAgreement
    from hedge_tasks.scoring.claims import ScoredClaims
    from hedge_tasks.statistics import Comparison

_LISTED = 10
"""Claims that the text lists where nothing is labelled, the most suspicious first."""


def claim_block(kept: KeptNumbers | None) -> tuple[str, dict[str, Any]]:
    """The claims that are kept with a run, as a block below the numbers of its answers; empty where nothing is kept."""
    if kept is None:
        return "", {}
    return (f"claims: {kept.why}", {}) if kept.scored is None else block_of(kept.scored, kept.table, kept.why)


def block_of(scored: ScoredClaims, found: ClaimTable | None, why: str) -> tuple[str, dict[str, Any]]:
    """Detectors of claims in short, with their price and the best blind baseline; and all that is known, for JSON.

    Args:
        why: there are no numbers.
    """
    about = f"claims ({scored.settings.get('decomposition')} by {scored.settings.get('support')}"
    about += f", {scored.price})"
    if found is None:
        return f"{about}: {why}", {"claims": claim_facts(scored, None)}
    data = found.labelled
    counted = f"{len(data.labels)} labelled by {scored.labelled_by}, {int(data.labels.sum())} hallucinated"
    header = ["detector of claims", "draws", "AUROC", "95 %", "within", "95 %"]
    header += ["- blind", "p (Holm)", "- blind within", "p (Holm)"]
    lines = [f"{about}; {counted}", table(header, [_brief(row) for row in found.rows]), _best_blind(found)]
    return "\n".join([*lines, *_left_out(found.left_out)]), {"claims": claim_facts(scored, found)}


def _brief(row: ClaimRow) -> list[str]:
    cells = _cells(row)
    return [*cells[:6], *cells[11:]]


def _best_blind(found: ClaimTable) -> str:
    blind = [f"{name} ({what})" for name, what in zip(found.best_blind, ("all", "within"), strict=True) if name]
    return f"best blind baseline: {', '.join(blind)}; * turned round" if blind else "no blind baseline"


def claim_facts(scored: ScoredClaims, found: ClaimTable | None) -> dict[str, Any]:
    about = {
        "run": scored.title,
        **scored.settings,
        "price": asdict(scored.price),
        "claims": sum(len(one.claims) for one in scored.answers),
        "covered": sum(one.covered for one in scored.decomposed) / len(scored.decomposed),
        "unlocated": sum(one.unlocated for one in scored.decomposed),
        "left_out": dict(scored.left_out if found is None else found.left_out),
    }
    if found is None:
        return {**about, "labelled": 0}
    data = found.labelled
    facts = {
        **about,
        **found.settings,
        "labels": scored.labelled_by,
        "labelled": len(data.labels),
        "hallucinated": int(data.labels.sum()),
        "silent_claims": data.n_silent,
        "unknown_support": data.n_unknown,
        "unused_labels": data.n_unused,
        "best_blind": dict(zip(("pooled", "within"), found.best_blind, strict=True)),
        "detectors": [{**asdict(row), "within": _within(row.within)} for row in found.rows],
        "answers": {"label": found.answer_label, "detectors": [asdict(row) for row in found.answers]},
        "curve": [{**asdict(point), "within": _within(point.within)} for point in found.curve],
    }
    plain: dict[str, Any] = _plain(facts)
    return plain


def joint_facts(agreed: JointAgreement) -> dict[str, Any]:
    """The agreement of joint calls with single ones, for JSON."""
    differ = [{"joint": a, "single": b, "n": n} for (a, b), n in sorted(agreed.differ.items())]
    about = {"calls": agreed.calls, "verdicts": agreed.verdicts, "unknown": agreed.unknown}
    same = {**asdict(agreed.same), "interval": agreed.same.interval}
    return {**about, "same": same, "kappa": asdict(agreed.kappa), "differ": differ}


def _plain(value: Any) -> Any:
    """Infinite numbers (the threshold of an impossible token) as text, since JSON has none."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _within(found: Any) -> dict[str, Any]:
    """Without the AUROC of every single answer."""
    return {key: getattr(found, key) for key in ("value", "stderr", "interval", "n_pairs", "reason")}


def claim_text(found: ClaimTable) -> str:
    scored, data = found.scored, found.labelled
    about = f"{scored.settings.get('decomposition')} by {scored.settings.get('support')}"
    lines = [
        f"{scored.title}; {about}; price: {scored.price}",
        f"{data.n_claims} claims that cover {found.covered:.0%} of the text, {len(data.labels)} of them labelled by "
        f"{scored.labelled_by}, {int(data.labels.sum())} hallucinated ({data.labels.mean():.1%})",
    ]
    counts = {
        "the reference is silent on": data.n_silent,
        "claims of unknown support, left out:": data.n_unknown,
        "labelled spans that lie over no claim:": data.n_unused,
        "claims that could not be located:": found.unlocated,
    }
    lines += [f"{what} {n}" for what, n in counts.items() if n]
    header = [
        "detector",
        "draws",
        "AUROC",
        "95 %",
        "within",
        "95 %",
        "top",
        "(chance)",
        "flagged",
        "precision",
        "recall",
    ]
    header += ["- blind", "p (Holm)", "- blind within", "p (Holm)"]
    lines.append(table(header, [_cells(row) for row in found.rows]))
    lines.append(_best_blind(found))
    lines += _curve(found)
    lines += _whole_answers(found)
    return "\n".join([*lines, *_left_out(found.left_out)])


def _whole_answers(found: ClaimTable) -> list[str]:
    rows = [
        [row.detector, number(row.estimate.value, 3), _interval(row.estimate.interval), number(row.spearman, 3)]
        for row in found.answers
        if row.estimate.value is not None or row.spearman is not None
    ]
    about = f"whole answers: AUROC against {found.answer_label}"
    if not rows:
        reasons = dict.fromkeys(str(row.estimate.reason) for row in found.answers)
        return ["", f"{about}: undefined: {'; '.join(reasons)}"] if reasons else []
    about += "; rank correlation with the share of wrong claims"
    return ["", about, table(["detector", "AUROC", "95 %", "Spearman"], rows)]


def _left_out(left_out: Mapping[str, str]) -> list[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    return [f"{', '.join(names)} left out: {reason}" for reason, names in reasons.items()]


def _cells(row: ClaimRow) -> list[str]:
    flag = row.flagged
    return [
        row.detector + ("*" if row.reversed else "") + (" (blind)" if row.blind else ""),
        str(row.draws),
        number(row.estimate.value, 3),
        _interval(row.estimate.interval),
        number(row.within.value, 3),
        _interval(row.within.interval),
        number(row.top.rate.value, 3) if row.top else "N/A",
        f"({number(row.top.chance.value, 3)})" if row.top else "",
        f"{flag.share:.3f}" if flag else "N/A",
        number(flag.precision.value, 3) if flag else "N/A",
        number(flag.recall.value, 3) if flag else "N/A",
        *_difference(row.against_blind[0], row.p_holm[0]),
        *_difference(row.against_blind[1], row.p_holm[1]),
    ]


def _difference(found: Comparison | None, p: float | None) -> list[str]:
    if found is None or found.difference is None:
        return ["", ""]
    return [f"{found.difference:+.3f}", number(p)]


def _interval(bounds: tuple[float, float] | None) -> str:
    return f"[{bounds[0]:.3f}, {bounds[1]:.3f}]" if bounds else "N/A"


def _curve(found: ClaimTable) -> list[str]:
    sizes = sorted({point.n for point in found.curve})
    names = list(dict.fromkeys(point.detector for point in found.curve))
    if len(sizes) < 2:
        return []
    value = {(point.detector, point.n): point for point in found.curve}
    rows = []
    for name in names:
        for what in ("estimate", "within"):
            cells = [value.get((name, n)) for n in sizes]
            shown = [number(getattr(cell, what).value, 3) if cell else "" for cell in cells]
            rows.append([name + (" within" if what == "within" else ""), *shown])
    return ["", "AUROC by number of draws", table(["detector", *map(str, sizes)], rows)]


def unlabelled_text(scored: ScoredClaims) -> str:
    """The most suspicious claims, where nothing is known of any."""
    names = list(dict.fromkeys(name for one in scored.answers for name in one.scores))
    name = next((n for n in ("claim_luq", *names) if n in names), None)
    about = f"{scored.settings.get('decomposition')} by {scored.settings.get('support')}; price: {scored.price}"
    lines = [f"{scored.title}; {about}", "no claim is labelled: give --labels, or answers with a field claims"]
    if name is None:
        return "\n".join([*lines, *_left_out(scored.left_out)])
    ranked = sorted(
        (
            (-score, claim.answer, claim.text)
            for one in scored.answers
            if name in one.scores
            for claim, score in zip(one.claims, one.scores[name].tolist(), strict=True)
            if score == score
        ),
    )[:_LISTED]
    lines.append(f"most suspicious by {name}:")
    return "\n".join([*lines, *(f"  {-score:.3f}  {answer}: {text}" for score, answer, text in ranked)])

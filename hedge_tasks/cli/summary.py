"""The summary of one clustering's scores on many questions, for people and as JSON."""

from __future__ import annotations

from typing import Any


def facts_of(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary for JSON: the AUROCs within question types with that of every type."""
    within = summary["auroc_within_question_types"]
    strata = {name: {**auroc.to_dict(), "strata": auroc.strata} for name, auroc in within.items()}
    return {**summary, "auroc_within_question_types": strata}


def as_text(summary: dict[str, Any]) -> str:
    """Return how the answers were scored, and the AUROC of every score where there are labels."""
    from hedge_tasks.numbers import PERCENT, count_of

    n, labelled, rate = summary["n"], summary["n_labelled"], summary["hallucination_rate"]
    clustering, n_given = summary["clustering"], summary["clusters_given"]
    how = clustering if isinstance(clustering, str) else ", ".join(f"{k}={v}" for k, v in clustering.items())
    tuned_on = f"; its threshold was tuned on {summary['n_held_out']} of them, which no ROC-AUC counts"
    lines = [
        f"{count_of(n, 'question')}, {labelled} labelled"
        + (f", {PERCENT(rate)} of them hallucinated" if rate is not None else " (no labels, so no AUROC)"),
        f"clustering: {how}"
        + (", with the question" if summary["with_question"] else "")
        + (f"; {count_of(n_given, 'question')} came with cluster ids" if n_given else "")
        + (tuned_on if summary["n_held_out"] else ""),
        f"weights: {summary['weighting']}",
    ]
    if summary["lexical_sampled"]:
        sampled = count_of(summary["lexical_sampled"], "question")
        lines.append(f"lexical: a sample of the pairs of answers, for {sampled}")
    return "\n".join([*lines, "", _table(summary)] if labelled else lines)


def _draws(price: int | dict[str, float]) -> str:
    from hedge_tasks.detectors.pipeline import Price

    return str(price if isinstance(price, int) else Price(price["mean"], int(price["least"]), int(price["most"])))


def _table(summary: dict[str, Any]) -> str:
    """Return a row for each detector with an AUROC; those without one stand below, with the reason."""
    from hedge_tasks.numbers import FOUR_DIGITS, Column, Table, format_value, reason_lines

    within = summary["auroc_within_question_types"]
    rows = [
        {
            "score": name,
            "draws": _draws(summary["draws"][name]),
            "auroc": auroc,
            "experts": summary.get("experts", {}).get(name),
            "within": format_value(within[name].value, FOUR_DIGITS),
        }
        for name, auroc in summary["auroc"].items()
        if auroc.defined
    ]
    columns = [
        Column("score"),
        Column("draws"),
        Column("auroc", "ROC-AUC", format=FOUR_DIGITS),
        Column("stderr", format=FOUR_DIGITS, show="stderr", of="auroc"),
        Column("rarer", "rarer class", show="n_rarer", of="auroc"),
        *([Column("experts", "against experts", format=FOUR_DIGITS, interval=True)] if summary.get("experts") else []),
        Column("within", "within question types"),
    ]
    reasons = ((name, str(auroc.reason)) for name, auroc in summary["auroc"].items() if not auroc.defined)
    return str(
        Table(
            columns,
            rows,
            notes=[*reason_lines("undefined", reasons), *([summary["labels"]] if "labels" in summary else [])],
        )
    )

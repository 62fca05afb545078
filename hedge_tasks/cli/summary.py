"""The summary of one clustering's scores on many questions, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hedge_tasks.io.commands import number, table


def as_json(summary: dict[str, Any]) -> dict[str, Any]:
    tables = {
        key: {name: asdict(e) for name, e in summary[key].items()} for key in ("auroc", "auroc_within_question_types")
    }
    return {**summary, **tables}


def as_text(summary: dict[str, Any]) -> str:
    """What was scored and how, and the AUROC of every score where there are labels."""
    n, labelled, rate = summary["n"], summary["n_labelled"], summary["hallucination_rate"]
    clustering, given = summary["clustering"], summary["clusters_given"]
    how = clustering if isinstance(clustering, str) else ", ".join(f"{k}={v}" for k, v in clustering.items())
    tuned_on = f"; its threshold was tuned on {summary['n_held_out']} of them, which no ROC-AUC counts"
    lines = [
        f"{n} questions, {labelled} labelled"
        + (f", {rate:.1%} of them hallucinated" if rate is not None else " (no labels, so no AUROC)"),
        f"clustering: {how}"
        + (", with the question" if summary["with_question"] else "")
        + (f"; {given} questions came with cluster ids" if given else "")
        + (tuned_on if summary["n_held_out"] else ""),
        f"weights: {summary['weighting']}",
    ]
    if summary["lexical_sampled"]:
        lines.append(f"lexical: a sample of the pairs of answers, for {summary['lexical_sampled']} questions")
    return "\n".join([*lines, "", auroc_table(summary)] if labelled else lines)


def auroc_table(summary: dict[str, Any]) -> str:
    """One line a detector: what it costs, AUROC, its standard error, and the AUROC within question types.

    Those without an AUROC come after the table, together where the reason is one.
    """
    rows: list[list[str]] = []
    reasons: dict[str, list[str]] = {}
    for name, estimate in summary["auroc"].items():
        if estimate.value is None:
            reasons.setdefault(str(estimate.reason), []).append(name)
            continue
        within = summary["auroc_within_question_types"][name].value
        rows.append(
            [name, str(summary["draws"][name]), number(estimate.value), number(estimate.stderr), number(within)]
        )
    header = ["score", "draws", "ROC-AUC", "stderr", "within question types"]
    return "\n".join([*([table(header, rows)] if rows else []), *undefined(reasons)])


def undefined(reasons: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for every reason, with the detectors that have no AUROC for it."""
    return [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} undefined: {reason}"
        for reason, names in reasons.items()
    ]

"""The judges of a panel against each other: where they disagree, and how much."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import Case, Verdict
from hedge_tasks.statistics.agreement import Agreement, cohen_kappa, krippendorff_alpha, percent_agreement


def votes_by_judge(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Return the votes behind a panel's verdicts, by judge, each list in the order of the verdicts.

    Judges of one name (the same model with two prompts) are told apart by version and number.

    Raises:
        DataError: a verdict is none of a panel, or the panels differ.
    """
    panels = {tuple((vote.judge, vote.version) for vote in verdict.votes) for verdict in verdicts}
    if panels and (len(panels) > 1 or panels == {()}):
        raise DataError("the verdicts are of different judges, or of one alone, which has nobody to agree with")
    [panel] = panels or [()]
    names = [name for name, _ in panel]
    if len(set(names)) < len(names):
        names = [f"{name} {version} ({i})" for i, (name, version) in enumerate(panel, start=1)]
    return {name: [verdict.votes[i] for verdict in verdicts] for i, name in enumerate(names)}


def disagreements(cases: Sequence[Case], verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return the cases with both labels among their votes, ready for JSON. A judge without a label is ignored."""
    votes, rows = votes_by_judge(verdicts), []
    for i, case in enumerate(cases):
        by_judge = {judge: votes_of_judge[i] for judge, votes_of_judge in votes.items()}
        if {vote.label for vote in by_judge.values()} >= {0, 1}:
            texts = _present(case, "id", "question", "reference", "answer", "description")
            labels = {judge: _present(v, "label", "reason", "category") for judge, v in by_judge.items()}
            rows.append({**texts, "votes": labels})
    return rows


def _present(record: Case | Verdict, *names: str) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(record, name)) is not None}


def agreement(verdicts: Sequence[Verdict], groups: Sequence[Hashable] | None = None) -> dict[str, Agreement]:
    """Return the agreement of the judges of a panel: over all of them, and Cohen's kappa of each pair.

    A case that a judge does not label counts for the others only (percent, Krippendorff), or for none (kappas).

    Args:
        groups: of each verdict's document, such as its image, where some share one: errors are between groups.

    Raises:
        DataError: as `votes_by_judge`.
    """
    labels = {judge: [vote.label for vote in votes] for judge, votes in votes_by_judge(verdicts).items()}
    columns, pairs = list(labels.values()), combinations(labels, 2)
    return {
        "percent agreement": percent_agreement(columns, groups=groups),
        "Krippendorff's alpha": krippendorff_alpha(columns, groups=groups),
        **{f"Cohen's kappa: {a}, {b}": cohen_kappa(labels[a], labels[b], groups=groups) for a, b in pairs},
    }

"""Several judges of the same answers: where they disagree, how much, and what each of them would make of a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

from hedge_tasks.detectors.units import shared_groups
from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import Case, Verdict

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.numbers import Number
    from hedge_tasks.statistics.agreement import Agreement

MAJORITY = "majority"


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


def labels_by_judge(verdicts: Sequence[Verdict]) -> dict[str, list[int | None]]:
    """Return the labels of `votes_by_judge`, with those of the majority at the end."""
    votes = {judge: [v.label for v in votes] for judge, votes in votes_by_judge(verdicts).items()}
    return votes | {MAJORITY: [verdict.label for verdict in verdicts]}


def disagreements(cases: Sequence[Case], verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return the cases with both labels among their votes, ready for JSON. A judge without a label is ignored."""
    votes = votes_by_judge(verdicts)
    rows = []
    for i, case in enumerate(cases):
        of_case = {judge: judged[i] for judge, judged in votes.items()}
        if {vote.label for vote in of_case.values()} >= {0, 1}:
            texts = {key: getattr(case, key) for key in ("id", "question", "reference", "answer", "description")}
            by_judge = {
                judge: {key: value for key in ("label", "reason", "category") if (value := getattr(v, key)) is not None}
                for judge, v in of_case.items()
            }
            rows.append({**{key: text for key, text in texts.items() if text is not None}, "votes": by_judge})
    return rows


def auroc_by_judge(
    scores: Sequence[Scores], labels: Mapping[str, Mapping[str, int | None]], **options: Any
) -> dict[str, dict[str, Number]]:
    """Return the ROC-AUC of every score of the HEDGE paper with the labels of each judge.

    Every judge's AUROC is over the documents that it labels, so judges that decline differently are compared on
    different documents; `Number.n` says on how many.

    Args:
        scores: of the documents, from any scorer.
        labels: by judge, by the document's id.
        options: of `hedge_tasks.detectors.pipeline.detection_auroc`.

    Raises:
        DataError: a judge has no verdict on a document; names both.
    """
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.detectors.units import detection_auroc

    table: dict[str, dict[str, Number]] = {}
    for judge, by_id in labels.items():
        if absent := [s.id for s in scores if s.id not in by_id]:
            raise DataError(f"{judge} has no verdict on {absent[0]!r}")
        relabelled = [replace(s, label=by_id[s.id]) for s in scores]
        table[judge] = {name: detection_auroc(relabelled, name, **options) for name in SCORE_NAMES}
    return table


def agreement(verdicts: Sequence[Verdict], groups: Sequence[str | None] | None = None) -> dict[str, Agreement]:
    """Return the agreement of the judges of a panel: over all of them, and Cohen's kappa of each pair.

    A case that a judge does not label counts for the others only (percent, Krippendorff), or for none (kappas).

    Args:
        groups: of each verdict's document, such as its image; where some share one, errors are between groups.

    Raises:
        DataError: as `votes_by_judge`.
    """
    from hedge_tasks.statistics.agreement import cohen_kappa, krippendorff_alpha, percent_agreement

    votes = {judge: [v.label for v in judged] for judge, judged in votes_by_judge(verdicts).items()}
    labels = list(votes.values())
    whole = None if groups is None else shared_groups(groups)
    agreements = {
        "percent agreement": percent_agreement(labels, groups=whole),
        "Krippendorff's alpha": krippendorff_alpha(labels, groups=whole),
    }
    pairs = combinations(votes.items(), 2)
    return agreements | {f"Cohen's kappa: {a}, {b}": cohen_kappa(x, y, groups=whole) for (a, x), (b, y) in pairs}

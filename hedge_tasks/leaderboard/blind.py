"""Blind baselines in submissions: scores that see neither picture nor draws, which every detector has to beat.

A submission has their scores by document. AUROCs, and which detectors do not beat the best of them, are computed again
always; the scores where the texts are there, and lengths in tokens without them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import labelled
from hedge_tasks.leaderboard.recomputation import NO_TEXTS, PartStatus
from hedge_tasks.leaderboard.stated import has_texts, is_equal, number_fields, number_in
from hedge_tasks.measures.blind import LENGTH, TITLES, AgainstBlind, beside_blind, blind_scores
from hedge_tasks.numbers import Number
from hedge_tasks.statistics.roc import auroc

_SCORE_TOLERANCE = 1e-3
"""Of a classifier's probabilities: versions of its library end their search at other digits."""

_WEAKER = 0.01
"""ROC-AUC that a stated baseline may lack beside ours."""

_CLASSES = (0, 1)

_ANOTHER = 0.05
"""Mean difference of a classifier's probabilities that no other version explains."""


def scores_by_document(answer_sets: Sequence[AnswerSet]) -> list[dict[str, float | None]]:
    """Return the scores of the blind baselines of each document, for a submission; empty where there are none."""
    values, _ = blind_scores(answer_sets, [answers.label for answers in answer_sets])
    return [{name: column[i] for name, column in values.items()} for i in range(len(answer_sets))]


def record_of(content: Mapping[str, Any], scores: Mapping[str, Sequence[Scores]]) -> dict[str, Any]:
    """Return the blind baselines beside the detectors of each clustering.

    Args:
        content: the submission.
        scores: of its documents as it states them, by clustering.
    """
    return {name: _record_of_comparison(_beside(content, name, rows)) for name, rows in scores.items()}


def _beside(content: Mapping[str, Any], clustering: str, scores: Sequence[Scores]) -> AgainstBlind:
    record = content["clusterings"][clustering]
    defined = [name for name in record["detectors"] if record["aggregates"].get(name, {}).get("auroc") is not None]
    columns = {name: labelled(scores, name) for name in defined}
    return beside_blind(columns, scores, _values(content), {})


def check_blind(
    submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet], scores: Mapping[str, Sequence[Scores]]
) -> tuple[dict[str, PartStatus], list[str]]:
    """Compute AUROCs and comparisons again, and the scores where that is possible.

    Args:
        answer_sets, scores: of its documents, as it states them; scores by clustering.

    Returns:
        Whether the scores of each baseline are verified, and what is wrong.
    """
    documents = submission["documents"]
    named = {frozenset(document.get("blind", {})) for document in documents}
    if len(named) > 1:
        return {}, ["documents[].blind: not the same baselines in all documents"]
    if strange := sorted(next(iter(named)) - TITLES.keys()):
        return {}, [f"documents[].blind: {strange[0][:80]!r} is no blind baseline"]
    if stray := [i for i, d in enumerate(documents) if d["label"] is None and any(_has_scores(d))]:
        return {}, [f"documents[{stray[0]}].blind: it has no label, and so no such score"]
    stated_records, wrong = submission["blind"], []
    ours = record_of(submission, scores)
    for clustering in ours.keys() | stated_records.keys():
        if clustering not in ours or clustering not in stated_records:
            wrong.append(f"blind.{clustering[:80]}: {'is missing' if clustering in ours else 'no such clustering'}")
        elif not _is_same_record(ours[clustering], stated_records[clustering]):
            wrong.append(f"blind.{clustering}: stated {stated_records[clustering]}, computed {ours[clustering]}"[:500])
    parts, faults = _scores_again(submission, answer_sets)
    return parts, [*wrong, *faults]


def best_of(content: Mapping[str, Any], clustering: str) -> tuple[str, Number] | None:
    """Return the best blind baseline of a submission, and its AUROC; None where it has none."""
    rows = content["blind"].get(clustering, {"rows": []})["rows"]
    return shown_rows(content, clustering)[0] if rows else None


def shown_rows(content: Mapping[str, Any], clustering: str) -> list[tuple[str, Number]]:
    """Return what each blind baseline is, and its AUROC, the best first."""
    titled = []
    for row in content["blind"].get(clustering, {"rows": []})["rows"]:
        title = TITLES[row["name"]] + (", turned round" if row["reversed"] else "")
        titled.append((f"{row['name']}: {title}", number_in(row, "auroc")))
    return titled


def not_better(content: Mapping[str, Any], clustering: str, detector: str) -> bool:
    """Return whether a detector does not beat the best blind baseline by more than chance (paired, max-T)."""
    return detector in content["blind"].get(clustering, {"not_better": ()})["not_better"]


def _record_of_comparison(comparison: AgainstBlind) -> dict[str, Any]:
    rows = []
    for row in comparison.rows:
        estimate = row.estimate
        counts = {"n": estimate.n, "n_positive": estimate.n_positive or 0}
        rows.append({"name": row.name, "reversed": row.reversed, **number_fields(estimate, "auroc"), **counts})
    return {"rows": rows, "not_better": sorted(comparison.not_better) if rows else []}


def _values(content: Mapping[str, Any]) -> dict[str, list[float | None]]:
    documents = content["documents"]
    return {name: [document["blind"][name] for document in documents] for name in documents[0].get("blind", {})}


def _has_scores(document: Mapping[str, Any]) -> list[bool]:
    return [value is not None for value in document.get("blind", {}).values()]


def _is_same_record(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Whether two records agree, apart from rounding."""
    if list(ours["not_better"]) != list(theirs["not_better"]) or len(ours["rows"]) != len(theirs["rows"]):
        return False
    return all(is_equal(a[key], b[key]) for a, b in zip(ours["rows"], theirs["rows"], strict=True) for key in a)


def _scores_again(submission: Mapping[str, Any], sets: Sequence[AnswerSet]) -> tuple[dict[str, PartStatus], list[str]]:
    """Whether the scores are those of the texts, or of the counts of tokens."""
    documents = submission["documents"]
    stated_scores = _values(submission)
    with_texts = has_texts(submission)
    if not with_texts and not all(tokens and tokens[0] for d in documents for tokens in [d.get("n_tokens")]):
        return {name: PartStatus(False, NO_TEXTS) for name in stated_scores}, []
    ours, _ = blind_scores(sets, [a.label for a in sets])
    parts, wrong = {}, []
    if with_texts and (missing := sorted(ours.keys() - stated_scores.keys())):
        wrong.append(f"documents[].blind: {missing[0]} is left out")
    labels = [a.label for a in sets]
    for name, values in stated_scores.items():
        if name in ours and _weaker(ours[name], values, labels):
            wrong.append(f"documents[].blind.{name}: weaker than this classifier is here, which rounding does not do")
        if not with_texts and name != LENGTH:
            parts[name] = PartStatus(False, NO_TEXTS)
        elif all(_near(*pair) for pair in zip(ours.get(name, [None] * len(sets)), values, strict=True)):
            parts[name] = PartStatus(True, "computed again from the texts" if with_texts else "tokens are counted")
        elif name == LENGTH:
            wrong.append(f"documents[].blind.{name}: not the lengths of the answers")
        elif _far(ours.get(name, [None] * len(sets)), values):
            wrong.append(f"documents[].blind.{name}: not this classifier's scores, whatever the version of its library")
        else:
            parts[name] = PartStatus(False, "another classifier here: its library may be of another version")
    return parts, wrong


def _weaker(ours: Sequence[float | None], theirs: Sequence[float | None], labels: Sequence[int | None]) -> bool:
    """Whether stated scores tell less of the labels than ours, though each is near: detectors would beat them."""
    triples = [(a, b, c) for a, b, c in zip(ours, theirs, labels, strict=True) if None not in (a, b, c)]
    if len({label for _, _, label in triples}) < len(_CLASSES):
        return False
    mine, stated_scores, label = zip(*triples, strict=True)
    strength = [max(value, 1 - value) for value in (auroc(mine, label), auroc(stated_scores, label))]
    return strength[0] - strength[1] > _WEAKER


def _far(ours: Sequence[float | None], theirs: Sequence[float | None]) -> bool:
    both = [abs(a - b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    return [a is None for a in ours] != [b is None for b in theirs] or sum(both) > _ANOTHER * max(len(both), 1)


def _near(ours: float | None, theirs: float | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return abs(ours - theirs) <= _SCORE_TOLERANCE

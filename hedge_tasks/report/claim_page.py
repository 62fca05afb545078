"""The answers of a run as text, each claim shaded by its score: which sentence is hallucinated, and what draws say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from hedge_tasks import __version__
from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.data.words import words
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import DataError
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.measures.claim_finding import claim_finding
from hedge_tasks.measures.headline import Headline, judge_in_words
from hedge_tasks.measures.unit_numbers import Flagged, flagged
from hedge_tasks.measures.unit_table import UnitTable
from hedge_tasks.report.pages import View, asset, render
from hedge_tasks.report.pictures import NONE, Thumbnails, thumbnails
from hedge_tasks.report.run_names import names_of_runs
from hedge_tasks.report.texts import script_json
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims
from hedge_tasks.runs.run_files import Run, now
from hedge_tasks.statistics.base import FloatArray

LEVELS = 5
"""Shades of suspicion above none."""

ANSWERS = 200
"""Answers that a page shows; the numbers are of all."""

_CLAIMS = 80
_LONGEST = 300
_DRAWS = 40
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)

_VERDICTS = ("contradicting", "silent", "supporting")
_MARKS = {1: "hallucinated", 0: "supported", None: "unlabelled"}


def build_claim_page(
    scored: ScoredClaims,
    table: UnitTable | None,
    run: Run,
    *,
    finding: Headline | None = None,
    detector: str | None = None,
    answers: int = ANSWERS,
    pictures: bool = True,
    views: Sequence[View] = (),
) -> str:
    """Return the page as HTML.

    Args:
        table: numbers of the run; None where nothing is labelled.
        run: whose claims they are: verdicts and pictures of the answers come from it.
        finding: of the run, whose state of trust then stands on the page.
        detector: whose scores shade the claims; by default the best that is not blind, else LUQ.
        answers: most answers to show, those of the highest mean score.
        pictures: whether the pictures of the answers are looked for.
        views: other pages about the run.

    Raises:
        DataError: no claim has a score of that detector.
    """
    name = detector or default_detector(scored, table)
    chosen = {answer.answers.id for _, answer in ranked_answers(scored, name)[:answers]}
    part = replace(run, answer_sets=tuple(a for a in run.answer_sets if a.id in chosen))
    small_pictures = thumbnails(part) if pictures else NONE
    shown, n_ranked = worst_answers(scored, table, name, answers, pictures=small_pictures, verdicts=run.verdicts)
    threshold = threshold_of(table, name)
    return render(
        "claims.html.j2",
        scripts=[asset("page.js"), asset("claims.js")],
        title=f"Claims of {names_of_runs([run])[0]}",
        version=__version__,
        written=now()[:16].replace("T", " ") + " UTC",
        views=views,
        finding=finding,
        sentence=claim_finding(table) if table else "No claim is labelled, so nobody knows which of them are wrong.",
        claims_labelled=table is not None,
        verdicts=sorted({answer["verdict"]["label"] for answer in shown if answer["verdict"]}),
        pictures_note=small_pictures.note,
        about=f"{scored.settings.get('decomposition', 'claims')} by {scored.settings.get('support', 'support')}",
        price=str(scored.price),
        detector=get(name).title,
        name=name,
        table=table,
        points=_points(table, name),
        threshold=threshold,
        data=_data(table, name, threshold),
        answers=shown,
        n_answers=n_ranked,
        left_out=list((table.left_out if table else scored.left_out).items()),
    )


def worst_answers(
    scored: ScoredClaims,
    table: UnitTable | None,
    name: str,
    most: int,
    prefix: str = "",
    *,
    pictures: Thumbnails = NONE,
    verdicts: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> tuple[list[dict[str, Any]], int]:
    """Return the answers of the highest mean score, as the templates show them, and how many there are in all.

    Args:
        name: of the detector whose scores shade the claims.
        most: answers to show.
        prefix: of all anchors, so that a page may show several runs.
        pictures: of the documents.
        verdicts: on the whole answers, by id.

    Raises:
        DataError: no claim has a score of that detector.
    """
    ranked = ranked_answers(scored, name)
    values = np.concatenate([scored_answer.scores[name] for _, scored_answer in ranked])
    values = values[np.isfinite(values)]
    ends = float(values.min()), float(values.max())
    options = dict(table.settings) if table else {}
    entries = []
    for place, (_, scored_answer) in enumerate(ranked[:most]):
        answer = _answer(scored_answer, scored_answer.scores[name], ends, options, f"{prefix}a{place}")
        places = dict(pictures.of_document).get(scored_answer.answers.id, ())
        answer["pictures"] = [pictures.addresses[i] for i in places]
        answer["verdict"] = _verdict(scored_answer, verdicts.get(scored_answer.answers.id))
        entries.append(answer)
    return entries, len(ranked)


def ranked_answers(scored: ScoredClaims, name: str) -> list[tuple[float, ScoredAnswer]]:
    """Return the answers that have a score of a detector with the mean over their claims, the highest first.

    Raises:
        DataError: no claim has one.
    """
    with_scores = ((answer.scores[name], answer) for answer in scored.answers if name in answer.scores)
    finite = [(values[np.isfinite(values)], answer) for values, answer in with_scores]
    means = [(float(np.mean(values)), answer) for values, answer in finite if len(values)]
    if not means:
        raise DataError(f"{scored.title}: no claim has a score of {name}")
    return sorted(means, key=lambda pair: -pair[0])


def _verdict(answer: ScoredAnswer, verdict: Mapping[str, Any] | None) -> dict[str, str] | None:
    """Return the verdict on the whole answer: its label, and why; None where it was not judged."""
    label = answer.answers.label
    if label is None and not verdict:
        return None
    facts = verdict or {}
    return {
        "label": outcome_of({**facts, "label": label}),
        "judge": judge_in_words(str(facts["judge"])) if facts.get("judge") else "",
        "reason": str(facts.get("reason") or "")[:_LONGEST],
    }


def default_detector(scored: ScoredClaims, table: UnitTable | None) -> str:
    """Return the best detector that is not blind; without labels LUQ, else whatever there is."""
    if table is not None:
        seeing = [row.detector for row in table.rows if not row.blind and row.estimate.value is not None]
        if seeing:
            return seeing[0]
    names = dict.fromkeys(name for answer in scored.answers for name in answer.scores)
    return next((name for name in ("claim_luq", *names) if name in names), "claim_luq")


def threshold_of(table: UnitTable | None, name: str) -> float | None:
    """From which score on claims are flagged; None without labels."""
    rows = {row.detector: row for row in table.rows} if table else {}
    flag = rows[name].flagged if name in rows else None
    return flag.threshold if flag else None


def _points(table: UnitTable | None, name: str) -> list[Flagged]:
    """Precision and recall at some shares, for readers without script."""
    if table is None or name not in table.columns:
        return []
    points = [flagged(table.columns[name], share) for share in _SHARES]
    return list({point.threshold: point for point in points if point is not None}.values())


def _data(table: UnitTable | None, name: str, threshold: float | None) -> Any:
    """Scores and labels of all labelled claims, for the slider."""
    from markupsafe import Markup

    if table is None or threshold is None or not np.isfinite(table.columns[name].values).all():
        return None
    pairs = [table.columns[name].values.tolist(), table.columns[name].labels.tolist()]
    return Markup(script_json({"scores": pairs[0], "labels": pairs[1], "threshold": threshold}))


def _answer(
    scored_answer: ScoredAnswer, values: FloatArray, ends: tuple[float, float], options: dict[str, object], anchor: str
) -> dict[str, Any]:
    counting: dict[str, str] = {key: str(options[key]) for key in ("silent", "errors") if key in options}
    shown_values = values[:_CLAIMS].tolist()
    claims = [_claim(scored_answer, k, value, ends, counting, anchor) for k, value in enumerate(shown_values)]
    finite, answers = values[np.isfinite(values)], scored_answer.answers
    return {
        "id": answers.id,
        "question": answers.question,
        "anchor": anchor,
        "mean": float(finite.mean()),
        "worst": float(finite.max()),
        "reference": answers.reference or "",
        "segments": _segments(scored_answer, claims),
        "claims": claims,
        "more": max(0, len(scored_answer.claims) - _CLAIMS),
        "draws": [(f"clean {j}", answer.text) for j, answer in enumerate(answers.clean[:_DRAWS])]
        + [(f"noisy {j}", answer.text) for j, answer in enumerate(answers.noisy[:_DRAWS])],
    }


def _claim(
    answer: ScoredAnswer, k: int, value: float, ends: tuple[float, float], counting: dict[str, str], anchor: str
) -> dict[str, Any]:
    claim_label = answer.labels[k]
    label = answer.counted_labels(**counting)[k]
    mark = "silent" if claim_label is not None and claim_label.silent else _MARKS[label]
    low, high = ends
    share = (value - low) / (high - low) if high > low else 0.0
    return {
        "number": k + 1,
        "anchor": f"{anchor}-{k + 1}",
        "text": answer.claims[k].text,
        "score": value if math.isfinite(value) else None,
        "level": min(LEVELS, math.ceil(share * LEVELS - 1e-9)) if math.isfinite(value) else 0,
        "mark": mark,
        "severity": claim_label.severity if claim_label is not None and label == 1 else None,
        "correction": claim_label.correction if claim_label is not None else None,
        "groups": _draws(answer, k),
    }


def _segments(answer: ScoredAnswer, claims: Sequence[dict[str, Any]]) -> list[tuple[str, dict[str, Any] | None]]:
    """Return the answer's text in pieces, each with the claim that it belongs to: of claims that overlap, the first."""
    text, at = answer.answers.baseline.text, 0
    segments: list[tuple[str, dict[str, Any] | None]] = []
    for claim, entry in sorted(zip(answer.claims, claims, strict=False), key=lambda both: both[0].start):
        start = max(at, claim.start)
        if start >= claim.end:
            continue
        if start > at:
            segments.append((text[at:start], None))
        segments.append((text[start : claim.end], entry))
        at = claim.end
    return [*segments, (text[at:], None)] if at < len(text) else segments


def _draws(answer: ScoredAnswer, k: int) -> list[dict[str, Any]]:
    """Return the verdict of each draw on a claim, with its sentence nearest to the claim: contradictions first."""
    claim_words = frozenset(words(answer.claims[k].text))
    answers = [*answer.answers.clean, *answer.answers.noisy]
    rows = []
    for number, (draw, verdict, entailed) in enumerate(answer.evidence.verdicts(k)):
        if (draw.startswith("clean") and number >= _DRAWS) or number - answer.evidence.n_clean >= _DRAWS:
            continue
        near, sentence = _nearest(claim_words, answers[number].text)
        rows.append({"draw": draw, "said": verdict, "entail": entailed, "near": near, "sentence": sentence})
    return [
        {"said": verdict.capitalize(), "rows": sorted(same_verdict, key=lambda row: (-row["near"], row["draw"]))}
        for verdict in _VERDICTS
        if (same_verdict := [row for row in rows if row["said"] == verdict])
    ]


def _nearest(claim_words: frozenset[str], text: str) -> tuple[float, str]:
    """Return the sentence that shares most words with a claim, of all words of both; and that share."""
    best, nearest = -1.0, text
    for sentence in split_sentences(text):
        sentence_words = frozenset(words(sentence))
        share = (
            len(sentence_words & claim_words) / len(sentence_words | claim_words)
            if sentence_words | claim_words
            else 0.0
        )
        if share > best:
            best, nearest = share, sentence
    return best, nearest

"""The answers of a run as text, each claim shaded by its score: which sentence is hallucinated, and what draws say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import numpy as np

from hedge_tasks import __version__
from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.data.words import words
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.judging.outcomes import outcome_of
from hedge_tasks.measures.claim_finding import claim_finding
from hedge_tasks.measures.detector_table import numbers_table
from hedge_tasks.measures.headline import Headline, judge_in_words
from hedge_tasks.measures.unit_table import UnitTable, kept_numbers
from hedge_tasks.numbers import reason_lines
from hedge_tasks.report.pages import asset, render
from hedge_tasks.report.pictures import NONE, Thumbnails, thumbnails
from hedge_tasks.report.run_names import names_of_runs
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims
from hedge_tasks.runs.run_files import Run, now
from hedge_tasks.statistics.base import FloatArray

LEVELS = 5
"""Shades of suspicion above none."""

ANSWERS = 200
"""Answers that a page shows; the numbers are of all."""

IN_REPORT = 3
"""Answers that a report shows; `hedge claims RUN --html` shows them all."""

_CLAIMS = 80
_LONGEST = 300
_DRAWS = 40

_VERDICTS = ("contradicting", "silent", "supporting")
_MARKS = {1: "hallucinated", 0: "supported", None: "unlabelled"}


def build_claim_page(
    scored: ScoredClaims,
    table: UnitTable | None,
    run: Run,
    *,
    finding: Headline | None = None,
    answers: int = ANSWERS,
    pictures: bool = True,
) -> str:
    """Return the page as HTML.

    Args:
        table: numbers of the run; None where nothing is labelled.
        run: whose claims they are: verdicts and pictures of the answers come from it.
        finding: of the run, whose state of trust then stands on the page.
        answers: most answers to show, those of the highest mean score.
        pictures: whether the pictures of the answers are looked for.

    Raises:
        DataError: no claim has a score.
    """
    chosen = {answer.answers.id for _, answer in ranked_answers(scored, default_detector(scored, table))[:answers]}
    part = replace(run, answer_sets=tuple(a for a in run.answer_sets if a.id in chosen))
    small_pictures = thumbnails(part) if pictures else NONE
    return render(
        "claims.html.j2",
        scripts=[asset("page.js"), asset("claims.js")],
        title=f"Claims of {names_of_runs([run])[0]}",
        version=__version__,
        written=now()[:16].replace("T", " ") + " UTC",
        finding=finding,
        claims=_view(scored, table, run, small_pictures, answers),
        pictures_note=small_pictures.note,
    )


def claim_section(run: Run, anchor: str, pictures: Thumbnails = NONE) -> dict[str, Any] | None:
    """Return a report's view of the claims kept with a run; None where nothing is kept. No model is called.

    Args:
        anchor: in front of all anchors of this run.
        pictures: of the documents.
    """
    kept = kept_numbers(run)
    if kept is None:
        return None
    try:
        return _view(kept.scored, kept.table, run, pictures, IN_REPORT, anchor) if kept.scored else {"failed": kept.why}
    except HedgeError as error:
        return {"failed": str(error)}


def _view(
    scored: ScoredClaims, table: UnitTable | None, run: Run, pictures: Thumbnails, most: int, anchor: str = ""
) -> dict[str, Any]:
    """Return what the templates show: the finding, the price, numbers, and the most suspicious answers.

    Raises:
        DataError: no claim has a score.
    """
    name = default_detector(scored, table)
    ranked = ranked_answers(scored, name)
    left_out = reason_lines("left out", (table.left_out if table else scored.left_out).items())
    return {
        "failed": "",
        "about": scored.support.source.title,
        "price": str(scored.support.source.price),
        "sentence": claim_finding(table) if table else "No claim is labelled, so nobody knows which of them are wrong.",
        "labelled": table is not None,
        "numbers": numbers_table(table.rows, against="blind", brief=True, title="", notes=left_out) if table else None,
        "detector": get(name).title,
        "answers": worst_answers(ranked[:most], name, table, anchor, pictures=pictures, verdicts=run.verdicts),
        "n_answers": len(ranked),
    }


def worst_answers(
    ranked: Sequence[tuple[float, ScoredAnswer]],
    name: str,
    table: UnitTable | None,
    prefix: str = "",
    *,
    pictures: Thumbnails = NONE,
    verdicts: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return answers as the templates show them.

    Args:
        ranked: as `ranked_answers` gives them.
        name: of the detector whose scores shade the claims.
        prefix: of all anchors, so that a page may show several runs.
        pictures: of the documents.
        verdicts: on the whole answers, by id.
    """
    values = np.concatenate([answer.scores[name] for _, answer in ranked])
    values = values[np.isfinite(values)]
    ends = float(values.min()), float(values.max())
    counting = {key: str(table.settings[key]) for key in ("silent", "errors")} if table else {}
    entries = []
    for place, (mean, answer) in enumerate(ranked):
        id = answer.answers.id
        entries.append(
            {
                **_answer(answer, answer.scores[name], ends, counting, f"{prefix}a{place}"),
                "mean": mean,
                "pictures": [pictures.addresses[i] for i in pictures.of_document.get(id, ())],
                "verdict": _verdict(answer, verdicts.get(id)),
            }
        )
    return entries


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


def _answer(
    scored_answer: ScoredAnswer, values: FloatArray, ends: tuple[float, float], counting: Mapping[str, str], anchor: str
) -> dict[str, Any]:
    labels = scored_answer.counted_labels(**counting)
    shown = values[:_CLAIMS].tolist()
    claims = [_claim(scored_answer, k, value, labels[k], ends, anchor) for k, value in enumerate(shown)]
    answers = scored_answer.answers
    return {
        "id": answers.id,
        "question": answers.question,
        "anchor": anchor,
        "reference": answers.reference or "",
        "segments": _segments(scored_answer, claims),
        "claims": claims,
        "more": max(0, len(scored_answer.claims) - _CLAIMS),
    }


def _claim(
    answer: ScoredAnswer, k: int, value: float, label: int | None, ends: tuple[float, float], anchor: str
) -> dict[str, Any]:
    known = answer.labels[k]
    low, high = ends
    share = (value - low) / (high - low) if high > low else 0.0
    return {
        "number": k + 1,
        "anchor": f"{anchor}-{k + 1}",
        "text": answer.claims[k].text,
        "score": value if math.isfinite(value) else None,
        "level": min(LEVELS, math.ceil(share * LEVELS - 1e-9)) if math.isfinite(value) else 0,
        "mark": "silent" if known is not None and known.silent else _MARKS[label],
        "correction": known.correction if known is not None else None,
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
    draws = [*answer.answers.clean, *answer.answers.noisy]
    rows: dict[str, list[tuple[float, str, str]]] = {verdict: [] for verdict in _VERDICTS}
    for (draw, verdict, _), text in zip(answer.evidence.verdicts(k), draws, strict=False):
        sentences = (_shared(claim_words, sentence) for sentence in split_sentences(text.text) or [text.text])
        near, sentence = max(sentences, key=itemgetter(0))
        rows[verdict].append((-near, draw, sentence))
    return [
        {"said": verdict.capitalize(), "n": len(same), "rows": [(d, s) for _, d, s in sorted(same)[:_DRAWS]]}
        for verdict, same in rows.items()
        if same
    ]


def _shared(claim_words: frozenset[str], sentence: str) -> tuple[float, str]:
    """Return the share of words that a sentence shares with a claim, of all words of both; and the sentence."""
    own = frozenset(words(sentence))
    return len(own & claim_words) / max(len(own | claim_words), 1), sentence

"""The questions of a run as data for the page: answers, clusters, scores and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.pictures import Thumbnails
from hedge_tasks.report.texts import clean

TEXT_BUDGET = 5_000_000
"""Characters of all answers of a page together."""

_LONGEST, _SHORTEST = 2000, 40
_QUESTION = 1000
_DIGITS = 5


def explorer_data(analysis: Analysis, pictures: Thumbnails, *, most: int = 2000, budget: int = TEXT_BUDGET) -> Any:
    """What the page's script reads. Texts are raw (cleaned and cut): the script never makes markup of them.

    Args:
        most: questions shown; the first ones.
        budget: characters of answers; the more there are, the shorter each is cut.

    Returns:
        `{"clusterings": [], "scores": [], "images": [], "questions": [], "left_out": number}`, ready for JSON.
    """
    shown = analysis.run.answer_sets[:most]
    longest = _longest(shown, budget)
    by_clustering = {name: {s.id: s for s in scores} for name, scores in analysis.scores.items()}
    return {
        "clusterings": list(analysis.scores),
        "scores": [name for name in analysis.detectors if _any(analysis, name)],
        "images": list(pictures.addresses),
        "questions": [_question(a, analysis, by_clustering, pictures, longest) for a in shown],
        "left_out": len(analysis.run.answer_sets) - len(shown),
    }


def _question(
    answers: AnswerSet,
    analysis: Analysis,
    by_clustering: Mapping[str, Mapping[str, Scores]],
    pictures: Thumbnails,
    longest: int,
) -> dict[str, Any]:
    verdict = analysis.run.verdicts.get(answers.id) or {}
    texts = list(dict.fromkeys(answers.texts))
    number = {text: i for i, text in enumerate(texts)}
    fields = {
        "id": clean(answers.id, 200),
        "question": clean(answers.question or "", _QUESTION),
        "reference": clean(answers.reference or "", _QUESTION),
        "question_type": clean(answers.question_type or "", 100),
        "label": answers.label,
        "judge": clean(str(verdict.get("judge") or ""), 200),
        "reason": clean(str(verdict.get("reason") or ""), _QUESTION),
        "category": clean(str(verdict.get("category") or ""), 100),
        "images": list(pictures.of_document.get(answers.id, ())),
        "texts": [clean(text, longest) for text in texts],
        # Place of each answer's text, the baseline answer first, then the clean ones, then the noisy ones.
        "answers": [number[text] for text in answers.texts],
        "n_clean": len(answers.clean),
        "logprobs": [_number(answer.mean_logprob) for answer in answers.answers],
        "clusters": {name: list(scores[answers.id].cluster_ids) for name, scores in by_clustering.items()},
        "scores": {name: _scores(scores[answers.id]) for name, scores in by_clustering.items()},
    }
    return {key: value for key, value in fields.items() if value not in ("", [])}


def _scores(scores: Scores) -> dict[str, float | None]:
    return {name: _number(value) for name, value in scores.items()}


def _number(value: float | None) -> float | None:
    """JSON has no infinity."""
    return None if value is None or not math.isfinite(value) else round(value, _DIGITS)


def _any(analysis: Analysis, name: str) -> bool:
    return any(s.get(name) is not None for scores in analysis.scores.values() for s in scores)


def _longest(shown: Sequence[AnswerSet], budget: int) -> int:
    """How long an answer may be so that all of them stay within the budget."""
    lengths = [len(text) for a in shown for text in dict.fromkeys(a.texts)]
    longest = _LONGEST
    while longest > _SHORTEST and sum(min(length, longest) for length in lengths) > budget:
        longest //= 2
    return longest

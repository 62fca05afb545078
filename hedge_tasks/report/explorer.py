"""The questions of a run as data for the page: answers, clusters, scores and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.pictures import Thumbnails
from hedge_tasks.report.texts import clean, json_number

QUESTIONS = 5000
"""Questions that a page shows, of all its runs together."""

TEXT_BUDGET = 8_000_000
"""Characters of all answers of a page together."""

_LONGEST, _SHORTEST = 2000, 40
_QUESTION = 1000
_DIGITS = 5
_MOST_VOTES = 9


def explorer_data(
    analysis: Analysis, pictures: Thumbnails, *, name: str = "", most: int = QUESTIONS, budget: int = TEXT_BUDGET
) -> dict[str, Any]:
    """Return what the page's script reads. Texts are raw (cleaned and cut): the script never makes markup of them.

    Args:
        name: of the run, where several stand on the page.
        most: questions shown; the first ones.
        budget: characters of answers; the more there are, the shorter each is cut.

    Returns:
        `{"task", "name", "clusterings", "leading", "alphas", "scores", "detectors", "images", "questions",
        "left_out"}`, ready for JSON.
    """
    answer_sets = analysis.run.answer_sets[:most]
    names = [name for name in analysis.detectors if _has_value(analysis, name)]
    by_clustering = {name: {s.id: s for s in scores} for name, scores in analysis.scores.items()}
    entries = _QuestionEntries(analysis, by_clustering, pictures, _longest(answer_sets, budget))
    return {
        "task": clean(analysis.run.task, 200),
        "name": name,
        "clusterings": list(analysis.scores),
        "leading": analysis.leading,
        "alphas": {name: analysis.scorers[name].alpha for name in analysis.scores if name in analysis.scorers},
        "scores": names,
        "detectors": {name: _detector_facts(name) for name in names},
        "images": list(pictures.addresses),
        "questions": [entries.question(a) for a in answer_sets],
        "left_out": len(analysis.run.answer_sets) - len(answer_sets),
    }


def _detector_facts(name: str) -> dict[str, str]:
    if name not in registry.names():
        return {"label": name, "title": name}
    detector = registry.get(name)
    return {"label": detector.label, "title": ". ".join(filter(None, (detector.title, detector.source)))}


@dataclass(frozen=True)
class _QuestionEntries:
    analysis: Analysis
    by_clustering: Mapping[str, Mapping[str, Scores]]
    pictures: Thumbnails
    longest: int

    def question(self, answers: AnswerSet) -> dict[str, Any]:
        texts = list(dict.fromkeys(answers.texts))
        number = {text: i for i, text in enumerate(texts)}
        scores = {name: by_id[answers.id] for name, by_id in self.by_clustering.items()}
        fields = {
            "id": clean(answers.id, 200),
            "question": clean(answers.question or "", _QUESTION),
            "reference": clean(answers.reference or "", _QUESTION),
            "question_type": clean(answers.question_type or "", 100),
            "label": self.analysis.labels[answers.id],
            "judged": answers.label if self.analysis.audit else "",
            **_verdict(self.analysis.run.verdicts.get(answers.id) or {}),
            "images": list(self.pictures.of_document.get(answers.id, ())),
            "texts": [clean(text, self.longest) for text in texts],
            # Place of each answer's text, the baseline answer first, then the clean ones, then the noisy ones.
            "answers": [number[text] for text in answers.texts],
            "n_clean": len(answers.clean),
            "logprobs": [json_number(answer.mean_logprob, _DIGITS) for answer in answers.answers],
            # Weights are all the same; else a sample without a log-probability has -inf, and weighs nothing.
            "uniform": not answers.has_logprobs,
            "clusters": {name: list(of_document.cluster_ids) for name, of_document in scores.items()},
            "scores": {
                name: {detector: json_number(value, _DIGITS) for detector, value in of_document.items()}
                for name, of_document in scores.items()
            },
        }
        return {key: value for key, value in fields.items() if value not in ("", [])}


def _verdict(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge's verdict with its reason, and the votes of the judges behind it."""
    votes = verdict.get("votes")
    listed = [vote for vote in votes if isinstance(vote, Mapping)] if isinstance(votes, list) else []
    return {**_judgement(verdict), "votes": [{**_judgement(v), "label": _label(v)} for v in listed[:_MOST_VOTES]]}


def _label(vote: Mapping[str, Any]) -> int | None:
    label = vote.get("label")
    return int(label) if isinstance(label, int) and label in (0, 1) else None


def _judgement(verdict: Mapping[str, Any]) -> dict[str, str]:
    lengths = {"judge": 200, "reason": _QUESTION, "category": 100, "raw": _LONGEST}
    texts = {key: clean(str(verdict.get(key) or ""), most) for key, most in lengths.items()}
    return {key: text for key, text in texts.items() if text}


def _has_value(analysis: Analysis, name: str) -> bool:
    return any(s.get(name) is not None for scores in analysis.scores.values() for s in scores)


def _longest(answer_sets: Sequence[AnswerSet], budget: int) -> int:
    """Return how many characters an answer may have so that all of them stay within the budget."""
    lengths = [len(text) for answers in answer_sets for text in set(answers.texts)]
    longest = _LONGEST
    while longest > _SHORTEST and sum(min(n, longest) for n in lengths) > budget:
        longest //= 2
    return longest

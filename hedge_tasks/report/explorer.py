"""The questions of a run as data for the page: answers, clusters, scores, verdicts, and models' outputs for pairs."""

from __future__ import annotations

import base64
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedge_tasks.clustering.model_outputs import COSINES
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.io import outside
from hedge_tasks.report import noisy
from hedge_tasks.report.analysis import Analysis
from hedge_tasks.report.noisy import PictureAddresses, most_scattered
from hedge_tasks.report.pictures import Thumbnails
from hedge_tasks.report.texts import clean, json_number
from hedge_tasks.runs.evidence import DocumentOutputs, document_outputs

QUESTIONS = 5000
"""Questions that a page shows, of all its runs together."""

TEXT_BUDGET = 8_000_000
"""Bytes of all answers of a page together."""

PAIR_BUDGET = 3_000_000
"""Bytes of the models' outputs for pairs of answers, of a page together."""

READ_WITHOUT_SCRIPT = 60
"""Questions that readers without script find, of each run."""

_LONGEST, _SHORTEST = 2000, 40
_QUESTION = 1000
_REPLY = 2000
_DIGITS = 5
_MOST_TEXTS = 24
_MOST_VOTES = 9
_UNKNOWN, _SCALE = 255, 250
"""A number between 0 and 1 is written as one byte: so many steps, and one value for "unknown"."""


def explorer_data(
    analysis: Analysis,
    pictures: Thumbnails,
    seen: PictureAddresses = noisy.NONE,
    *,
    most: int = QUESTIONS,
    budget: int = TEXT_BUDGET,
    pair_budget: int = PAIR_BUDGET,
) -> Any:
    """Return what the page's script reads. Texts are raw (cleaned and cut): the script never makes markup of them.

    Args:
        seen: pictures of some questions as their draws saw them.
        most: questions shown; the first ones.
        budget: bytes of answers; the more there are, the shorter each is cut.
        pair_budget: bytes of relations and cosines; those questions have them whose answers scatter most.

    Returns:
        `{"clusterings", "alphas", "scores", "detectors", "sources", "images", "questions", "left_out",
        "without_pairs"}`, ready for JSON.
    """
    answer_sets = analysis.run.answer_sets[:most]
    by_clustering = {name: {s.id: s for s in scores} for name, scores in analysis.scores.items()}
    names = [name for name in analysis.detectors if _has_value(analysis, name)]
    pairs = _Pairs.of(analysis, answer_sets, pair_budget)
    longest = _longest(answer_sets, budget)
    entries = _QuestionEntries(analysis, by_clustering, pictures, seen, longest, pairs.of_document)
    return {
        "clusterings": list(analysis.scores),
        "alphas": {name: analysis.scorers[name].alpha for name in analysis.scores if name in analysis.scorers},
        "scores": names,
        "detectors": {name: _detector_facts(name) for name in names},
        "sources": pairs.sources,
        "images": [*pictures.addresses, *seen.addresses],
        "questions": [entries.question(a) for a in answer_sets],
        "left_out": len(analysis.run.answer_sets) - len(answer_sets),
        "without_pairs": pairs.left_out,
    }


def surprises_first(data: Any, most: int = READ_WITHOUT_SCRIPT) -> list[dict[str, Any]]:
    """Return the questions for readers without script: confident hallucinations and false alarms first.

    Args:
        data: what `explorer_data` gives.

    Returns:
        `question`, `answer`, `reference`, `label`, `scores` (of the first clustering, by name for people) and `said`
        (text, how often, of the samples) of each.
    """
    names = list(data["scores"])[:3]
    first = next(iter(data["clusterings"]), None)
    values = [q["scores"].get(first, {}).get(names[0]) if names else None for q in data["questions"]]
    sorted_values = sorted(value for value in values if value is not None)

    def surprise(pair: tuple[Mapping[str, Any], float | None]) -> float:
        question, value = pair
        if value is None or question["label"] is None:
            return -1.0
        # Share of the questions with a lower score, ties in the middle.
        rank = (bisect_left(sorted_values, value) + bisect_right(sorted_values, value)) / 2 / len(sorted_values)
        return 1 - rank if question["label"] else rank

    ranked = sorted(zip(data["questions"], values, strict=True), key=surprise, reverse=True)
    return [_without_script(question, names, first, data) for question, _ in ranked[:most]]


def _without_script(question: Mapping[str, Any], names: Sequence[str], first: str | None, data: Any) -> dict[str, Any]:
    counts: dict[int, int] = {}
    for place in question["answers"][1:]:
        counts[place] = counts.get(place, 0) + 1
    scores = question["scores"].get(first, {})
    samples = sorted(counts.items(), key=lambda pair: -pair[1])
    return {
        "id": question["id"],
        "question": clean(question.get("question") or question["id"], 300),
        "answer": clean(question["texts"][question["answers"][0]], 300),
        "reference": clean(question.get("reference") or "", 300),
        "label": question["label"],
        "reason": clean(question.get("reason") or "", 300),
        "scores": [(data["detectors"][name]["label"], scores.get(name)) for name in names],
        "said": [(clean(question["texts"][place], 120), n) for place, n in samples[:6]],
        "more": max(0, len(samples) - 6),
    }


def _detector_facts(name: str) -> dict[str, str]:
    if name not in registry.names():
        return {"label": name, "title": name, "unit": "", "source": ""}
    detector = registry.get(name)
    return {
        "label": detector.label,
        "title": detector.title,
        "unit": detector.unit or "",
        "source": detector.source or "",
    }


@dataclass(frozen=True)
class _QuestionEntries:
    analysis: Analysis
    by_clustering: Mapping[str, Mapping[str, Scores]]
    pictures: Thumbnails
    seen: PictureAddresses
    longest: int
    pairs: Mapping[str, Sequence[Any]]

    def question(self, answers: AnswerSet) -> dict[str, Any]:
        texts = list(dict.fromkeys(answers.texts))
        number = {text: i for i, text in enumerate(texts)}
        fields = {
            "id": clean(answers.id, 200),
            "question": clean(answers.question or "", _QUESTION),
            "reference": clean(answers.reference or "", _QUESTION),
            "question_type": clean(answers.question_type or "", 100),
            "label": answers.label,
            **_verdict(self.analysis.run.verdicts.get(answers.id) or {}),
            "images": list(self.pictures.of_document.get(answers.id, ())),
            "texts": [clean(text, self.longest) for text in texts],
            # Place of each answer's text, the baseline answer first, then the clean ones, then the noisy ones.
            "answers": [number[text] for text in answers.texts],
            "n_clean": len(answers.clean),
            "logprobs": [json_number(answer.mean_logprob, _DIGITS) for answer in answers.answers],
            # Weights are all the same; else a sample without a log-probability has -inf, and weighs nothing.
            "uniform": not answers.has_logprobs,
            "clusters": {name: list(scores[answers.id].cluster_ids) for name, scores in self.by_clustering.items()},
            "scores": {name: _scores(scores[answers.id]) for name, scores in self.by_clustering.items()},
            "pairs": list(self.pairs.get(answers.id, ())),
            **self._pictures_seen(answers.id),
        }
        return {key: value for key, value in fields.items() if value not in ("", [])}

    def _pictures_seen(self, id: str) -> dict[str, Any]:
        if id not in self.seen.of_document:
            return {}
        seen, start = self.seen.of_document[id], len(self.pictures.addresses)
        return {
            "seen": [start + place for place in seen.clean],
            "seen_noisy": [[start + place for place in of_draw] for of_draw in seen.noisy],
        }


def _verdict(verdict: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge's verdict with its reason, and the votes of the judges behind it."""
    votes = verdict.get("votes")
    listed = [vote for vote in votes if isinstance(vote, Mapping)] if isinstance(votes, list) else []
    return {
        **_judgement(verdict),
        "votes": [{**_judgement(vote), "label": _label(vote.get("label"))} for vote in listed[:_MOST_VOTES]],
    }


def _judgement(verdict: Mapping[str, Any]) -> dict[str, str]:
    lengths = {"judge": 200, "reason": _QUESTION, "category": 100, "raw": _REPLY}
    texts = {key: clean(str(verdict.get(key) or ""), most) for key, most in lengths.items()}
    return {key: text for key, text in texts.items() if text}


def _label(value: object) -> int | None:
    return int(value) if value in (0, 1) and isinstance(value, int) else None


@dataclass(frozen=True)
class _Pairs:
    """Outputs of models for pairs.

    Attributes:
        sources: who, for people, and of what kind.
        of_document: id -> [place of the source, places of the texts, base64 of u x u cells of 1 or 2 bytes].
        left_out: questions whose pairs did not fit.
    """

    sources: list[dict[str, str]]
    of_document: Mapping[str, Sequence[Any]]
    left_out: int

    @classmethod
    def of(cls, analysis: Analysis, answer_sets: Sequence[AnswerSet], budget: int) -> _Pairs:
        sets = {a.id: a for a in answer_sets}
        sources: list[dict[str, str]] = []
        by_document: dict[str, list[Any]] = {}
        outputs = analysis.run.outputs
        order = [id for id in most_scattered(analysis) if id in sets] if any(True for _ in outputs) else []
        for done, id in enumerate(order):
            if budget <= 0:
                return cls(sources, by_document, len(order) - done)
            for pair in document_outputs(outputs, sets[id]):
                description = _source(pair)
                if description not in sources:
                    sources.append(description)
                places, cells = _places(sets[id], pair.texts[:_MOST_TEXTS]), _packed(pair)
                by_document.setdefault(id, []).append([sources.index(description), places, cells])
                budget -= len(cells) + 4 * len(places) + 8
        return cls(sources, by_document, 0)


def _source(outputs: DocumentOutputs) -> dict[str, str]:
    source = outputs.source
    what = "with the question" if source.with_question else "the answers alone"
    return {"kind": source.kind, "name": clean(source.model, 200), "form": what}


def _places(answers: AnswerSet, texts: Sequence[str]) -> list[int]:
    """Return where the texts are among the different answers of the question, as the page numbers them."""
    place: dict[str, int] = {}
    for i, text in enumerate(dict.fromkeys(answers.texts)):
        place.setdefault(outside.clean(text), i)
    return [place[text] for text in texts]


def _packed(outputs: DocumentOutputs) -> str:
    """Return cosines as one byte a cell, relations as two (contradiction, entailment), row by row, as base64."""
    u = min(len(outputs.texts), _MOST_TEXTS)
    values, stated = outputs.values[:u, :u].astype(np.float64), outputs.known[:u, :u]
    cells = (values + 1) / 2 if outputs.source.kind == COSINES else values[..., [0, 2]]
    steps = np.where(stated[..., None], np.rint(np.clip(np.nan_to_num(cells), 0, 1) * _SCALE), _UNKNOWN)
    return base64.b64encode(steps.astype(np.uint8).tobytes()).decode()


def _scores(scores: Scores) -> dict[str, float | None]:
    return {name: json_number(value, _DIGITS) for name, value in scores.items()}


def _has_value(analysis: Analysis, name: str) -> bool:
    return any(s.get(name) is not None for scores in analysis.scores.values() for s in scores)


def _longest(answer_sets: Sequence[AnswerSet], budget: int) -> int:
    """Return how many characters an answer may have so that all of them stay within the budget of bytes."""
    lengths = list(_lengths(answer_sets))
    longest = _LONGEST
    while longest > _SHORTEST and sum(min(n, longest) * (size / n) for n, size in lengths) > budget:
        longest //= 2
    return longest


def _lengths(answer_sets: Sequence[AnswerSet]) -> Iterator[tuple[int, int]]:
    """Yield the characters of each answer, as far as they may be shown, and the bytes that they take in the page."""
    for answers in answer_sets:
        for text in dict.fromkeys(answers.texts):
            start = text[:_LONGEST]
            if start:
                yield len(start), len(start) if start.isascii() else len(json.dumps(start))

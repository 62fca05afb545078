"""How well objects that are not in the image fit the scene (section 3.4): distributions, and how far judges agree."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.judging.base import Case, Judge, Verdict
from hedge_tasks.measures.measure import Measure, Record
from hedge_tasks.numbers import Format, Number
from hedge_tasks.statistics import jackknife, weighted_kappa
from hedge_tasks.statistics.agreement import WEIGHTS
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.suites.vope.judge import FALSE_DESCRIPTION, TRUE_IMAGINATION
from hedge_tasks.suites.vope.measures import ObjectCount, ObjectShare, ObjectTest, absent, counting
from hedge_tasks.suites.vope.objects import ObjectRecord

SCORES = (1, 2, 3)

_KINDS = {"hallucinated": FALSE_DESCRIPTION, "imagined": TRUE_IMAGINATION}
"""The two rows of a model in Tables 4 to 6. Both are of objects that are not in the image."""


def rate(
    records: Sequence[Sequence[ObjectRecord]], stories: Sequence[Case], judges: Sequence[Judge]
) -> list[list[ObjectRecord]]:
    """Have absent objects rated.

    Args:
        records: of the objects of every story.
        stories: the case of each story, for its id and its images.
        judges: see `judge.relevance_judges`; each is asked about every object that is not in the image.

    Returns:
        The records, those of absent objects with one score a judge (None where it gave none).
    """
    places = [(s, o) for s, of_story in enumerate(records) for o, entry in enumerate(of_story) if not entry.present]
    cases = [_case(stories[s], records[s][o].word) for s, o in places]
    rated = [list(of_story) for of_story in records]
    if not judges or not cases:
        return rated
    ballots = zip(*(judge.judge(cases) for judge in judges), strict=True)
    for (s, o), votes in zip(places, ballots, strict=True):
        rated[s][o] = replace(rated[s][o], relevance=tuple(map(_score, votes)))
    return rated


def _case(story: Case, word: str) -> Case:
    return Case(f"{story.id}/{word}", "", "", word, images=story.images, image_key=story.image_key)


def _score(verdict: Verdict) -> int | None:
    return None if verdict.category is None else int(verdict.category)


@dataclass(frozen=True, eq=False, kw_only=True)
class RelevanceKappa(Measure):
    """Weighted kappa of the first two judges of relevance, over the absent objects that both rated.

    Attributes:
        weights: "linear" or "quadratic".
    """

    weights: str
    unit: str = "object"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        pairs = [entry["relevance"][:2] for entry in verdict["objects"] if len(entry["relevance"]) > 1]
        return {"pairs": [pair for pair in pairs if None not in pair], "group": scores.group or scores.id}

    def by_judge(self, records: Sequence[Record], groups: Sequence[Hashable] | None = None) -> Number:
        """Kappa with its jackknife standard error over images."""
        pairs = [(record["group"], pair) for record in records for pair in record["pairs"]]
        if not pairs:
            reason = "no object was rated by two judges (name two judges with the prompt vope_relevance)"
            return Number.undefined(reason, unit=self.unit)
        tables = np.zeros((len(pairs), len(SCORES), len(SCORES)))
        for table, (_, (first, second)) in zip(tables, pairs, strict=True):
            table[-first, -second] = 1  # descending

        def kappa(weights: FloatArray) -> float | None:
            return weighted_kappa(np.tensordot(weights, tables, 1), self.weights)

        number = jackknife(kappa, [group for group, _ in pairs], bounds=(-1.0, 1.0))
        if not number.defined:
            return replace(number, reason="both judges gave every object the same score", unit=self.unit)
        return replace(number, unit=self.unit)


def _rated(kind: str) -> ObjectTest:
    """Return what gives the first judge's score of an object of a kind; None where there is none."""
    return lambda entry: entry["relevance"][0] if entry["kind"] == kind and entry["relevance"] else None


def _rows(name: str, kind: str) -> Iterator[Measure]:
    rating = _rated(kind)
    yield ObjectShare(
        name=f"relevance_{name}",
        part=counting(rating),
        whole=counting(lambda entry: rating(entry) is not None),
        nothing=f"no {name} object was rated (a judge with the prompt vope_relevance rates them)",
        higher_is_better=True,
        bounds=(0.0, float(max(SCORES))),
        format=Format(),
    )
    for score in SCORES:
        count = counting(lambda entry, score=score: rating(entry) == score)  # type: ignore[misc]
        yield ObjectCount(name=f"relevance_{name}_{score}", count=count)


MEASURES: tuple[Measure, ...] = (
    *(measure for name, kind in _KINDS.items() for measure in _rows(name, kind)),
    ObjectShare(
        name="relevance_unrated",
        part=counting(lambda entry: not entry["present"] and None in (entry["relevance"] or [None])),
        whole=counting(absent),
        nothing="every object that was mentioned is in the image",
    ),
    *(RelevanceKappa(name=f"relevance_kappa_{weights}", weights=weights) for weights in WEIGHTS),
)
"""Measures of relevance."""

"""How well objects that are not in the image fit the scene (section 3.4): distributions, and how far judges agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.adjudication.base import Case, Judge, Verdict
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.evaluations.vope.judge import FALSE_DESCRIPTION, TRUE_IMAGINATION
from hedge_tasks.evaluations.vope.metrics import ObjectCount, ObjectShare
from hedge_tasks.evaluations.vope.objects import ObjectRecord
from hedge_tasks.lmms.metrics import NOT_AVAILABLE, Metric, Record

SCORES = (1, 2, 3)
WEIGHTS = ("linear", "quadratic")

_RESAMPLES = 1000
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
    places = [(s, o) for s, mine in enumerate(records) for o, entry in enumerate(mine) if not entry.present]
    cases = [_case(stories[s], records[s][o].word) for s, o in places]
    rated = [list(mine) for mine in records]
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


def weighted_kappa(confusion: npt.ArrayLike, weights: str = "linear") -> float | None:
    r"""Cohen's weighted kappa of two judges of an ordinal scale.

    .. math::
        \kappa_w = 1 - \frac{\sum_{ij} w_{ij} n_{ij}}{\sum_{ij} w_{ij} n_{i \cdot} n_{\cdot j} / n},
        \qquad w_{ij} = |i - j| \text{ or } (i - j)^2

    Source: Cohen 1968, Psychological Bulletin 70(4). VOPE's appendix E does not say which weights it takes.

    Args:
        confusion: counts, shape (k, k): how often one judge says i where the other says j.
        weights: "linear" or "quadratic".

    Returns:
        The statistic, at most 1; None where both judges only ever say the same one thing.

    Raises:
        ConfigError: there are no such weights.

    Example:
        >>> weighted_kappa([[2, 0, 0], [0, 1, 1], [0, 0, 2]])
        0.8
    """
    if weights not in WEIGHTS:
        raise unknown("kappa weights", weights, WEIGHTS)
    counts = np.asarray(confusion, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ConfigError(f"confusion: expected a square table, got the shape {counts.shape}")
    places = np.arange(len(counts))
    distance = np.abs(places[:, None] - places[None, :]) ** (1 if weights == "linear" else 2)
    n = counts.sum()
    expected = float((distance * np.outer(counts.sum(1), counts.sum(0))).sum())
    # An observed disagreement is an expected one, so that nothing is expected only where nobody ever disagrees.
    return 1 - n * float((distance * counts).sum()) / expected if expected else None


class RelevanceKappa:
    """Weighted kappa of the first two judges of relevance, over the absent objects that both rated."""

    higher_is_better = True

    def __init__(self, weights: str) -> None:
        self.weights = weights
        self.__name__ = f"relevance_kappa_{weights}"

    def record(self, scores: Scores, verdict: Record, document: Record) -> dict[str, Any]:
        pairs = [entry["relevance"][:2] for entry in verdict["objects"] if len(entry["relevance"]) > 1]
        return {"pairs": [pair for pair in pairs if None not in pair], "group": scores.group or scores.id}

    def __call__(self, records: Sequence[Record]) -> float | str:
        tables = self._tables(records)
        if not len(tables):
            return "undefined: no object was rated by two judges (name two judges with the prompt vope_relevance)"
        value = weighted_kappa(tables.sum(0), self.weights)
        return "undefined: both judges gave every object the same score" if value is None else value

    def stderr(self, records: Sequence[Record]) -> float | str:
        """Bootstrap standard error over images; resamples where the kappa is undefined are left out."""
        tables = self._tables(records)
        if len(tables) < 2:
            return NOT_AVAILABLE
        drawn = np.random.default_rng(0).multinomial(len(tables), np.full(len(tables), 1 / len(tables)), _RESAMPLES)
        resampled = (weighted_kappa(table, self.weights) for table in np.tensordot(drawn, tables, axes=1))
        values = [value for value in resampled if value is not None]
        return float(np.std(values, ddof=1)) if len(values) > 1 else NOT_AVAILABLE

    def _tables(self, records: Sequence[Record]) -> np.ndarray:
        """Confusion of the scores in each image, shape (images, 3, 3); in an order of their own."""
        images: dict[str, np.ndarray] = {}
        for record in records:
            table = images.setdefault(record["group"], np.zeros((len(SCORES), len(SCORES)), dtype=np.int64))
            for one, other in record["pairs"]:
                table[one - 1, other - 1] += 1
        return np.array(sorted(t.tolist() for t in images.values() if t.any()), dtype=np.int64)


def _counted(kind: str, score: int | None) -> Any:
    """Counts objects of a kind with a score of the first judge; None: with any."""

    def count(objects: Sequence[Mapping[str, Any]]) -> int:
        given = [entry["relevance"][0] for entry in objects if entry["kind"] == kind and entry["relevance"]]
        return sum(said == score if score is not None else said is not None for said in given)

    return count


def _summed(kind: str) -> Any:
    def total(objects: Sequence[Mapping[str, Any]]) -> int:
        return sum(entry["relevance"][0] or 0 for entry in objects if entry["kind"] == kind and entry["relevance"])

    return total


def _unrated(objects: Sequence[Mapping[str, Any]]) -> int:
    return sum(None in (entry["relevance"] or [None]) for entry in objects if not entry["present"])


def _absent(objects: Sequence[Mapping[str, Any]]) -> int:
    return sum(not entry["present"] for entry in objects)


def _rows(name: str, kind: str) -> list[Metric]:
    reason = f"no {name} object was rated (a judge with the prompt vope_relevance rates them)"
    mean = ObjectShare(f"relevance_{name}", _summed(kind), _counted(kind, None), reason, higher_is_better=True)
    return [mean, *(ObjectCount(f"relevance_{name}_{score}", _counted(kind, score)) for score in SCORES)]


_ALL: list[Metric] = [
    *(metric for name, kind in _KINDS.items() for metric in _rows(name, kind)),
    ObjectShare("relevance_unrated", _unrated, _absent, "every object that was mentioned is in the image"),
    *(RelevanceKappa(weights) for weights in WEIGHTS),
]

METRICS: dict[str, Metric] = {metric.__name__: metric for metric in _ALL}
"""Metrics of relevance, by the name that their row has."""

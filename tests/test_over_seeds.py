"""Runs that differ in the seed alone, as one, and the draws' share of a number's variance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.measures.seed_spread import draws_shares

N_DOCUMENTS, N_DRAWS = 60, 6
SCORER = Scorer("exact", ExactClustering(), detectors=("se", "radflag"))


def answers(seed: int, n: int = N_DRAWS) -> tuple[AnswerSet, ...]:
    """Documents that are the same at every seed, with draws that are not: wrong answers scatter more."""
    of_documents, rng = np.random.default_rng(7), np.random.default_rng(seed)
    found = []
    for i in range(N_DOCUMENTS):
        wrong = bool(of_documents.random() < 0.4)
        p = of_documents.dirichlet(np.full(4, 2.0 if wrong else 0.5))
        drawn = [Answer(f"word{k}") for k in rng.choice(4, size=n, p=p)]
        baseline = Answer(f"word{int(p.argmax())}")
        found.append(AnswerSet(f"d{i}", baseline, tuple(drawn), question="what?", reference="word", label=int(wrong)))
    return tuple(found)


@pytest.mark.slow
def test_the_draws_part_of_the_error_is_that_of_drawing_again() -> None:
    values: dict[str, list[float]] = {"se": [], "radflag": []}
    stated: dict[str, list[float]] = {"se": [], "radflag": []}
    for seed in range(30):
        drawn = answers(seed)
        scores = SCORER.score(drawn)
        for name, of in values.items():
            of.append(detection_auroc(scores, name).value or math.nan)
        if seed < 5:
            for share in draws_shares(drawn, SCORER, ("se", "radflag")):
                stated[share.detector].append(share.stderr)
                assert share.share is not None
                assert 0 < share.share <= 1
                assert share.enough is None or share.enough > 0
    for name in values:
        true = float(np.std(values[name], ddof=1))
        assert 0.6 * true < np.sqrt(np.mean(np.square(stated[name]))) < 1.8 * true

"""Scores of detectors with what they cost, each with as many of the first answers as a budget pays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.base import Detector
from hedge_tasks.detectors.pipeline import Scores, prices_of
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError


@dataclass(frozen=True)
class PricedScores:
    """The scores of a detector, and what they cost.

    Attributes:
        scores: of all questions; other detectors may be in them.
        draws: answers a question besides the baseline answer.
    """

    scores: Sequence[Scores]
    draws: int


def truncated(answer_set: AnswerSet, n: int, n_noisy: int | None = None) -> AnswerSet:
    """Return the answer set of a run with fewer draws, not clustered: draws do not depend on how many there are.

    Args:
        n: clean answers.
        n_noisy: noisy answers; as many as clean ones by default.
    """
    noisy = answer_set.noisy[: n if n_noisy is None else n_noisy]
    return replace(answer_set, clean=answer_set.clean[:n], noisy=noisy, cluster_ids=None)


def priced_columns(
    answer_sets: Sequence[AnswerSet], scorer: Scorer, detectors: Mapping[str, Detector], budget: int | None
) -> tuple[dict[str, PricedScores], dict[str, str]]:
    """Return scores by detector, one clustering for all that see the same answers; and why others have none.

    Args:
        detectors: by name.
        budget: most draws a question, as of `detector_table`; None gives every detector all answers.

    Raises:
        ConfigError: the budget is negative.
    """
    n, m = (min(len(getattr(a, name)) for a in answer_sets) for name in ("clean", "noisy"))
    if budget is None:
        scores = replace(scorer, detectors=tuple(detectors)).score(answer_sets)
        prices = prices_of(scores)
        return {name: PricedScores(scores, round(prices[name].mean)) for name in detectors}, {}
    if budget < 0:
        raise ConfigError(f"--draws: expected a number of draws from 0 on, got {budget}")
    sizes, left_out = _sizes(detectors, scorer, n, m, budget)
    columns: dict[str, PricedScores] = {}
    for (clean, noisy), names in sizes.items():
        prefixes = [truncated(answer_set, clean, noisy) for answer_set in answer_sets]
        scores = replace(scorer, detectors=tuple(names)).score(prefixes)
        columns |= {name: PricedScores(scores, detectors[name].draws(clean, noisy)) for name in names}
    return columns, left_out


def _sizes(
    detectors: Mapping[str, Detector], scorer: Scorer, n: int, m: int, budget: int
) -> tuple[dict[tuple[int, int], list[str]], dict[str, str]]:
    """Return the detectors that see as many clean and noisy answers, by these; and why others see none."""
    sizes: dict[tuple[int, int], list[str]] = defaultdict(list)
    left_out: dict[str, str] = {}
    for name, detector in detectors.items():
        affordable = affordable_answers(detector, n, m, budget)
        clusters = "clusters" in detector.needs
        if affordable is None:
            left_out[name] = f"costs more than {budget} draws"
        elif clusters and scorer.choice is not None and not affordable[0]:
            left_out[name] = "a threshold is chosen with clean answers, which this detector does not pay for"
        else:
            # What looks at no clusters does not mind further answers, and a clustering of nothing is none.
            clean, noisy = affordable
            sizes[clean if clusters or clean else n, noisy].append(name)
    return sizes, left_out


def affordable_answers(detector: Detector, n: int, m: int, budget: int) -> tuple[int, int] | None:
    """Return how many clean and noisy answers a detector can afford; None where not even one of each it looks at.

    Args:
        n, m: clean and noisy answers that there are.
        budget: most draws a question.
    """
    most = detector.draws(n, 0), detector.draws(0, m)
    for k in range(max(most), 0, -1):
        clean, noisy = min(k, most[0]), min(k, most[1])
        if clean + noisy <= budget:
            return clean, noisy
    return None if detector.draws(1, 1) else (0, 0)

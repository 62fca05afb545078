"""AUROC against the number of sampled answers, from one run, and against the perturbation's strength, from several.

The first is Table 3 and Figure 2 of the HEDGE paper; the second is what its §6.2 misses, where both grow together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from hedge_tasks.clustering import EmbeddingClustering, HybridClustering, NliClustering
from hedge_tasks.clustering.embedding import EmbeddingCache
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, detection_auroc, prices_of
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import tables
from hedge_tasks.measures.cost import Cost, measured
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run


@dataclass(frozen=True)
class Point:
    """The AUROC of one detector with n clean and n noisy answers, and how many of them it looks at: its price.

    In a sweep over prices, n is how many it may look at.
    """

    n: int
    score: str
    estimate: Number
    draws: int


def usual_sizes(most: int) -> list[int]:
    """Numbers of answers worth a point on a curve that ends at `most`.

    Example:
        >>> usual_sizes(12)
        [1, 2, 3, 5, 10, 12]
    """
    return sorted({n for n in (1, 2, 3, 5, 10, *range(15, most, 5)) if n < most} | ({most} if most else set()))


def truncated(answer_set: AnswerSet, n: int) -> AnswerSet:
    """The answer set as a run with n clean and n noisy answers has it: draws do not depend on how many there are."""
    return replace(answer_set, clean=answer_set.clean[:n], noisy=answer_set.noisy[:n], cluster_ids=None)


def sweep(
    answer_sets: Sequence[AnswerSet],
    scorer: Scorer,
    sizes: Sequence[int],
    detectors: Sequence[str] = SCORE_NAMES,
    *,
    whole: Sequence[Scores] | None = None,
) -> Iterator[Point]:
    """Cluster and score nested prefixes of the answers; yields the points of one size after the other.

    Every size is clustered by itself, since a later answer may link two earlier ones.

    Args:
        whole: the scores by this scorer with all answers, where they are known: taken for the size that has them all.

    Raises:
        ConfigError: a size is not from 1 to the number of clean answers that every document has.
    """
    _check_sizes(answer_sets, sizes)
    scorer = replace(scorer, detectors=tuple(detectors))
    for n in sizes:
        all_of_them = all(max(len(a.clean), len(a.noisy)) <= n for a in answer_sets)
        given_scores = whole if all_of_them else None
        scores = given_scores or scorer.score([truncated(answer_set, n) for answer_set in answer_sets])
        draws = prices_of(scores)
        for name in detectors:
            yield Point(n, name, detection_auroc(scores, name), draws[name].most)


def sweep_draws(
    answer_sets: Sequence[AnswerSet], scorer: Scorer, budgets: Sequence[int], detectors: Sequence[str] = SCORE_NAMES
) -> Iterator[Point]:
    """The same at equal prices: of each number of draws, every detector gets what it can pay.

    Semantic entropy of 20 draws has 20 clean answers, VASE 10 clean and 10 noisy ones. `n` of the points is the budget,
    and `draws` what was spent of it. A detector that cannot pay has no point.

    Raises:
        ConfigError: a budget is negative.
    """
    from hedge_tasks.measures.detector_table import priced_columns

    if not answer_sets:
        raise DataError("there are no answers")
    check_samples(answer_sets)
    by_name = {name: get(name) for name in dict.fromkeys(detectors)}
    for budget in budgets:
        columns, _ = priced_columns(answer_sets, scorer, by_name, budget)
        for name in (name for name in by_name if name in columns):
            yield Point(budget, name, detection_auroc(columns[name].scores, name), columns[name].draws)


def check_samples(answer_sets: Sequence[AnswerSet]) -> None:
    """Raise where there is nothing to cluster.

    Raises:
        DataError: a document has no clean answer, as in a run with `n: 0`.
    """
    if any(not answer_set.clean for answer_set in answer_sets):
        raise DataError("the run has baseline answers alone (n: 0), and no samples to cluster")


def _check_sizes(answer_sets: Sequence[AnswerSet], sizes: Sequence[int]) -> None:
    if not answer_sets:
        raise DataError("there are no answers")
    check_samples(answer_sets)
    most = min(len(answer_set.clean) for answer_set in answer_sets)
    wrong = [n for n in sizes if not 1 <= n <= most]
    if wrong:
        raise ConfigError(f"n = {wrong[0]}: there are 1 to {most} clean answers for every question")


@dataclass(frozen=True)
class ScoringPrice:
    """Cost of clustering and scoring with n clean and n noisy answers a question: HEDGE Figure 3."""

    n: int
    clustering: str
    cost: Cost


def prices(
    answer_sets: Sequence[AnswerSet], scorers: Mapping[str, Scorer], sizes: Sequence[int]
) -> Iterator[ScoringPrice]:
    """Cluster and score every prefix from nothing: no relation and no embedding is taken from an earlier one.

    Raises:
        ConfigError: a size is not from 1 to the number of clean answers that every document has.
    """
    _check_sizes(answer_sets, sizes)
    for name, scorer in scorers.items():
        # Loading the model and warming it up is no part of the price.
        _without_memory(scorer).score([truncated(answer_set, 1) for answer_set in answer_sets[:2]])
        for n in sizes:
            sets = [truncated(answer_set, n) for answer_set in answer_sets]
            with measured() as cost:
                _without_memory(scorer).score(sets)
            yield ScoringPrice(n, name, cost)


def _without_memory(scorer: Scorer) -> Scorer:
    """The scorer with a backend that knows nothing of earlier texts."""
    backend = scorer.backend
    if isinstance(backend, EmbeddingClustering):
        return replace(scorer, backend=replace(backend, cache=EmbeddingCache()))
    if isinstance(backend, (NliClustering, HybridClustering)):
        return replace(scorer, backend=replace(backend, cache=False))
    return scorer


def prices_as_csv(measurements: Sequence[ScoringPrice]) -> str:
    """One line a price: n, clustering, seconds, cpu_seconds, peak_mb, gpu_peak_mb, gpu_added_mb."""
    names = [field.name for field in fields(Cost)]
    rows = ([price.n, price.clustering, *(getattr(price.cost, name) for name in names)] for price in measurements)
    return tables.as_csv([["n", "clustering", *names], *rows])


def strength_of(run: Run) -> float | None:
    """The factor on all ranges of a run's perturbation; None where it has none or records none."""
    noise = (run.settings.get("sampling") or {}).get("perturbation")
    strength = noise.get("strength") if isinstance(noise, Mapping) else None
    return float(strength) if isinstance(strength, (int, float)) and not isinstance(strength, bool) else None


def by_strength(run: Run, others: Iterable[Run]) -> dict[float, Run]:
    """A run and those that differ from it in nothing but the strength, by strength; the newest of each.

    Number of answers, temperature, seed, prompt and model are the same, so clean answers are, too.

    Raises:
        DataError: the run's perturbation has no strength.
    """
    if strength_of(run) is None:
        raise DataError(f"{run.title}: its perturbation has no strength")
    runs: dict[float, Run] = {}
    for candidate in sorted(others, key=lambda one: one.created):
        strength = strength_of(candidate)
        if (
            strength is not None
            and (candidate.task, candidate.model) == (run.task, run.model)
            and _alike(run, candidate)
        ):
            runs[strength] = candidate
    return runs


def _alike(first: Run, second: Run) -> bool:
    return _but_strength(first) == _but_strength(second) and first.settings.get("prompt") == second.settings.get(
        "prompt"
    )


def _but_strength(run: Run) -> dict[str, Any]:
    sampling = dict(run.settings.get("sampling") or {})
    sampling.pop("strength", None)
    noise = sampling.pop("perturbation", None)
    noise_settings = (
        {key: value for key, value in noise.items() if key != "strength"} if isinstance(noise, Mapping) else noise
    )
    return {**sampling, "perturbation": noise_settings}


def as_csv(points: Sequence[Point]) -> str:
    """One line a point: n, score, draws, auroc, stderr, low, high, n_documents, reason."""
    header = ["n", "score", "draws", "auroc", "stderr", "low", "high", "n_documents", "reason"]
    return tables.as_csv([header, *map(_row, points)])


def _row(point: Point) -> list[object]:
    estimate = point.estimate
    low, high = estimate.interval or (None, None)
    return [point.n, point.score, point.draws, estimate.value, estimate.stderr, low, high, estimate.n, estimate.reason]

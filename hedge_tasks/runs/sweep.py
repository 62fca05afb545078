"""AUROC against the number of sampled answers, from one run: Table 3 and Figure 2 of the HEDGE paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, detection_auroc, prices_of
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import tables
from hedge_tasks.statistics import Estimate


@dataclass(frozen=True)
class Point:
    """The AUROC of one detector with n clean and n noisy answers, and how many of them it looks at: its price.

    In a sweep over prices, n is how many it may look at.
    """

    n: int
    score: str
    estimate: Estimate
    draws: int


def usual_sizes(most: int) -> list[int]:
    """Numbers of answers worth a point on a curve that ends at `most`.

    Example:
        >>> usual_sizes(12)
        [1, 2, 3, 5, 7, 10, 12]
    """
    return sorted({n for n in (1, 2, 3, 5, 7, 10, *range(15, most, 5)) if n < most} | ({most} if most else set()))


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
    if not answer_sets:
        raise DataError("there are no answers")
    most = min(len(answer_set.clean) for answer_set in answer_sets)
    wrong = [n for n in sizes if not 1 <= n <= most]
    if wrong:
        raise ConfigError(f"n = {wrong[0]}: there are 1 to {most} clean answers for every question")
    scorer = replace(scorer, detectors=tuple(detectors))
    for n in sizes:
        all_of_them = all(max(len(a.clean), len(a.noisy)) <= n for a in answer_sets)
        known = whole if all_of_them else None
        scores = known or scorer.score([truncated(answer_set, n) for answer_set in answer_sets])
        draws = prices_of(scores)
        for name in detectors:
            yield Point(n, name, detection_auroc(scores, name), draws[name])


def sweep_draws(
    answer_sets: Sequence[AnswerSet], scorer: Scorer, budgets: Sequence[int], detectors: Sequence[str] = SCORE_NAMES
) -> Iterator[Point]:
    """The same at equal prices: of each number of draws, every detector gets what it can pay.

    Semantic entropy of 20 draws has 20 clean answers, VASE 10 clean and 10 noisy ones. `n` of the points is the budget,
    and `draws` what was spent of it. A detector that cannot pay has no point.

    Raises:
        ConfigError: a budget is negative.
    """
    from hedge_tasks.runs.detector_table import priced_columns

    if not answer_sets:
        raise DataError("there are no answers")
    asked = {name: get(name) for name in dict.fromkeys(detectors)}
    for budget in budgets:
        columns, _ = priced_columns(answer_sets, scorer, asked, budget)
        for name in (name for name in asked if name in columns):
            yield Point(budget, name, detection_auroc(columns[name].scores, name), columns[name].draws)


def as_csv(points: Sequence[Point]) -> str:
    """One line a point: n, score, draws, auroc, stderr, low, high, n_documents, reason."""
    header = ["n", "score", "draws", "auroc", "stderr", "low", "high", "n_documents", "reason"]
    return tables.as_csv([header, *map(_row, points)])


def _row(point: Point) -> list[object]:
    estimate = point.estimate
    low, high = estimate.interval or (None, None)
    return [point.n, point.score, point.draws, estimate.value, estimate.stderr, low, high, estimate.n, estimate.reason]

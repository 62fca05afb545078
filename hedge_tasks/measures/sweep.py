"""AUROC against the number of sampled answers, from one run: Table 3 and Figure 2 of the HEDGE paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores, prices_of
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.measures.priced_scores import priced_columns, truncated
from hedge_tasks.numbers import FOUR_DIGITS, Column, Number, Table


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
    """Return numbers of answers worth a point on a curve that ends at `most`.

    Example:
        >>> usual_sizes(12)
        [1, 2, 3, 5, 10, 12]
    """
    return sorted({n for n in (1, 2, 3, 5, 10, *range(15, most, 5)) if n < most} | ({most} if most else set()))


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
        complete = all(max(len(a.clean), len(a.noisy)) <= n for a in answer_sets)
        scores = (whole if complete else None) or scorer.score([truncated(a, n) for a in answer_sets])
        draws = prices_of(scores)
        for name in detectors:
            yield Point(n, name, detection_auroc(scores, name), draws[name].most)


def sweep_draws(
    answer_sets: Sequence[AnswerSet], scorer: Scorer, budgets: Sequence[int], detectors: Sequence[str] = SCORE_NAMES
) -> Iterator[Point]:
    """Yield the same at equal prices: of each number of draws, every detector gets what it can pay.

    Semantic entropy of 20 draws has 20 clean answers, VASE 10 clean and 10 noisy ones. `n` of the points is the budget,
    and `draws` what was spent of it. A detector that cannot pay has no point.

    Raises:
        ConfigError: a budget is negative.
    """
    check_samples(answer_sets)
    by_name = {name: get(name) for name in dict.fromkeys(detectors)}
    for budget in budgets:
        columns, _ = priced_columns(answer_sets, scorer, by_name, budget)
        for name in (name for name in by_name if name in columns):
            yield Point(budget, name, detection_auroc(columns[name].scores, name), columns[name].draws)


def check_samples(answer_sets: Sequence[AnswerSet]) -> None:
    """Raise where there is nothing to cluster.

    Raises:
        DataError: there are no answers, or a document has no clean one, as in a run with `n: 0`.
    """
    if not answer_sets:
        raise DataError("there are no answers")
    if any(not answer_set.clean for answer_set in answer_sets):
        raise DataError("the run has baseline answers alone (n: 0), and no samples to cluster")


def _check_sizes(answer_sets: Sequence[AnswerSet], sizes: Sequence[int]) -> None:
    check_samples(answer_sets)
    most = min(len(answer_set.clean) for answer_set in answer_sets)
    if wrong := [n for n in sizes if not 1 <= n <= most]:
        raise ConfigError(f"n = {wrong[0]}: there are 1 to {most} clean answers for every question")


def sweep_table(points: Sequence[Point], by: str) -> Table:
    """Return a row for each size and detector, with its price, since VASE at n costs twice as much as SE at n.

    Args:
        by: "n" or "draws": what the sizes are.
    """
    columns = [
        *(Column("n", "n" if by == "n" else "at most"), Column("score", "detector"), Column("draws")),
        Column("estimate", "ROC-AUC", format=FOUR_DIGITS),
        Column("interval", "95 %", show="interval", of="estimate"),
        Column("rarer", "rarer class", show="n_rarer", of="estimate"),
    ]
    rows = [{name: getattr(point, name) for name in ("n", "score", "draws", "estimate")} for point in points]
    return Table(columns, rows)

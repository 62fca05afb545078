"""The detectors on one entry's answers, all of them and all at one price, whatever the submitter had scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.detectors.scorer import score_all
from hedge_tasks.errors import DataError
from hedge_tasks.leaderboard.submission import answer_set_of, clustered_as_stated, follows_from_numbers
from hedge_tasks.measures.detector_table import Rank, ranks_of
from hedge_tasks.measures.priced_scores import affordable_answers
from hedge_tasks.measures.seed_spread import jackknifed
from hedge_tasks.statistics import UndefinedStatistic, auroc

PRICES = ("equal", "all")
"""At one price (every detector gets as many of the first answers as the clean ones cost), and with all answers."""

MOST_JACKKNIFED = 64
"""Clean answers a question, above which draws are not left out one by one: the time grows with their square."""

_MOST_HAVE = 0.5


@dataclass(frozen=True)
class Priced:
    """A detector on an entry's answers.

    Attributes:
        auroc: ROC-AUC.
        draws: answers a question that it looked at besides the baseline answer.
        by_draws: what other draws of the same documents would change, as a standard error: a jackknife over draws, with
            the baseline answer and its label as they are; None where it cannot be told.
    """

    auroc: float
    draws: int
    by_draws: float | None = None


@dataclass(frozen=True)
class DetectorBoard:
    """Detectors over entries.

    Attributes:
        ranks: the best first.
        rows: by detector, what it has on each entry that counts, as (task, model, number).
        counted: entries that count.
        left_out: entries that lack one of these detectors.
    """

    ranks: Sequence[Rank]
    rows: Mapping[str, Sequence[tuple[str, str, Priced]]]
    counted: int
    left_out: int


def priced(submission: Mapping[str, Any]) -> dict[str, dict[str, dict[str, Priced]]]:
    """Return ROC-AUCs by price, clustering and detector, of detectors that need no texts and are not experimental.

    Cluster ids are those of all answers, also where a detector pays for the first of them only.
    """
    detectors = [name for name in names() if follows_from_numbers(name) and not get(name).experimental]
    documents = submission["documents"]
    answer_sets = [answer_set_of(document) for document in documents]
    by_price: dict[str, dict[str, dict[str, Priced]]] = {price: {} for price in PRICES}
    for name, clustering in submission["clusterings"].items():
        clustered = [clustered_as_stated(a, d, name) for a, d in zip(answer_sets, documents, strict=True)]
        clean, noisy = (min(len(getattr(a, kind)) for a in clustered) for kind in ("clean", "noisy"))
        for price in PRICES:
            sizes: dict[tuple[int, int], list[str]] = {}
            for detector in detectors:
                size = affordable_answers(get(detector), clean, noisy, clean) if price == "equal" else (clean, noisy)
                if size is not None:
                    sizes.setdefault(size, []).append(detector)
            numbers = [_scored(clustered, size, some, clustering["alpha"]) for size, some in sizes.items()]
            by_price[price][name] = {detector: number for some in numbers for detector, number in some.items()}
    return by_price


def detector_board(
    entries: Sequence[tuple[str, str, Mapping[str, Priced]]],
) -> DetectorBoard:
    """Rank the detectors that at least half of the entries have, by mean rank.

    Args:
        entries: task, model and ROC-AUC of each detector; intervals are of resampling models.
    """
    having = Counter(name for _, _, aurocs in entries for name in aurocs)
    chosen = [name for name, n in having.items() if n >= _MOST_HAVE * len(entries)]
    counted = [(task, model, aurocs) for task, model, aurocs in entries if all(name in aurocs for name in chosen)]
    values = [{name: aurocs[name].auroc for name in chosen} for _, _, aurocs in counted]
    ranks = ranks_of(values, [model for _, model, _ in counted]) if chosen else []
    rows = {name: [(task, model, aurocs[name]) for task, model, aurocs in counted] for name in chosen}
    return DetectorBoard(ranks, rows, len(counted), len(entries) - len(counted))


def _scored(
    answer_sets: Sequence[AnswerSet], size: tuple[int, int], detectors: Sequence[str], alpha: float
) -> dict[str, Priced]:
    clean, noisy = size
    whole = _aurocs(answer_sets, range(clean), range(noisy), detectors, alpha)
    drawing = [name for name in whole if get(name).draws(*size)]
    # Draws of one place are independent of those of another; without as many noisy as clean ones there are no pairs.
    places = range(clean) if 1 < clean <= MOST_JACKKNIFED and noisy in (0, clean) and drawing else range(0)
    left_in = [[i for i in range(clean) if i != place] for place in places]
    without = [_aurocs(answer_sets, some, some if noisy else [], drawing, alpha) for some in left_in]
    results = {}
    for name, value in whole.items():
        values = [aurocs[name] for aurocs in without if name in aurocs]
        by_draws = jackknifed(values) if values and len(values) == clean else None
        results[name] = Priced(value, get(name).draws(*size), by_draws)
    return results


def _aurocs(
    answer_sets: Sequence[AnswerSet],
    clean: Sequence[int],
    noisy: Sequence[int],
    detectors: Sequence[str],
    alpha: float,
) -> dict[str, float]:
    """By detector, on these clean and noisy answers of every document; without those that have no number."""
    try:
        scores = score_all([_some(answers, clean, noisy) for answers in answer_sets], None, detectors, alpha=alpha)
    except DataError:
        return {}
    return {name: value for name in detectors if (value := _auroc(scores, name)) is not None}


def _some(answers: AnswerSet, clean: Sequence[int], noisy: Sequence[int]) -> AnswerSet:
    """The clean and noisy answers of these places, with the cluster ids that they have among all."""
    ids = answers.cluster_ids or ()
    start = 1 + len(answers.clean)
    cluster_ids = [*ids[:1], *(ids[1 + i] for i in clean), *(ids[start + i] for i in noisy)]
    answers_left = tuple(answers.clean[i] for i in clean), tuple(answers.noisy[i] for i in noisy)
    return replace(answers, clean=answers_left[0], noisy=answers_left[1], cluster_ids=None).with_clusters(cluster_ids)


def _auroc(scores: Sequence[Scores], name: str) -> float | None:
    """None where a document has no number, all have the same, or there is only one class."""
    rows = [(s[name], s.reported_label) for s in scores if s.reported_label is not None]
    if any(value is None for value, _ in rows) or len({value for value, _ in rows}) < 2:
        return None
    try:
        return auroc(np.array([value for value, _ in rows], dtype=np.float64), [label for _, label in rows])
    except UndefinedStatistic:
        return None

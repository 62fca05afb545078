"""A promised risk holds as often as promised, and not by accident."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from hedge_tasks.statistics.grouped_risk import most_won
from hedge_tasks.statistics.risk_control import control_risk


def documents(rng: np.random.Generator, n: int, group_size: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores in [0, 1] whose square is the chance of being hallucinated; those of a group are alike."""
    groups = np.repeat(np.arange(n // group_size), group_size)
    base = rng.random(len(groups) // group_size)[groups]
    scores = base if group_size > 1 else rng.random(len(groups))
    draw = rng.random(len(groups) // group_size)[groups] if group_size > 1 else rng.random(len(groups))
    return scores, (draw < scores**2).astype(float), groups


def placed_by(
    placing: np.ndarray, scores: np.ndarray, labels: np.ndarray, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels in an order in which those in `placing` place the starts, and all the others are tested."""
    order = np.random.default_rng(seed).permutation(len(placing) + len(scores))
    assert len(placing) == max(20, len(order) // 12)
    ordered = np.empty((2, len(order)))
    ordered[:, order] = np.append(placing, scores), np.append(np.zeros(len(placing)), labels)
    return ordered[0], ordered[1]


@pytest.mark.slow
def test_documents_of_a_group_are_not_taken_for_independent() -> None:
    """Copies add nothing: with twenty of each, a test that takes them for documents breaks its promise."""
    rng, naive, ours = np.random.default_rng(2), 0, 0
    groups = np.repeat(np.arange(40), 20)
    for seed in range(200):
        labels = (rng.random(40) < 0.12).astype(float)[groups]  # everything is accepted, at a risk above that asked for
        naive += control_risk(np.zeros(800), labels, risk=0.1, seed=seed).chosen is not None
        ours += control_risk(np.zeros(800), labels, risk=0.1, groups=groups, seed=seed).chosen is not None
    assert ours <= binom.ppf(0.999, 200, 0.1) < naive


def test_a_test_of_one_candidate_is_the_exact_binomial_one() -> None:
    scores, labels = np.zeros(120), np.zeros(120)
    labels[:3] = 1
    found = control_risk(scores, labels, risk=0.2, confidence=0.9)
    [candidate] = found.candidates
    assert candidate.n_accepted == found.n == 100
    assert candidate.p_value == pytest.approx(
        sum(math.comb(100, k) * 0.2**k * 0.8 ** (100 - k) for k in range(candidate.n_wrong + 1))
    )
    assert found.chosen == candidate


def test_bets_on_groups_equal_those_by_hand() -> None:
    """The digital option of the module's words, one group after another, without arrays."""
    rng, risk, level, largest = np.random.default_rng(9), 0.3, 0.05, 3
    accepted = rng.integers(0, largest + 1, 60)
    wrong = np.minimum(accepted, rng.random(60) < 0.15).astype(int)
    normal, won, most = NormalDist(), 1.0, 1.0
    before, left = [risk * (1 - risk) * largest] * 3, int((accepted > 0).sum())
    for a, w in zip(accepted.tolist(), wrong.tolist(), strict=True):
        if a:
            d = normal.inv_cdf(min(won * level / 1.01, math.exp(-1e-6)))
            stake = normal.pdf(d) / normal.cdf(d) / math.sqrt(sum(before) / len(before) * left)
            won *= 1 + min(stake, 0.98 / (0.7 * largest)) * (risk * a - w)
            before, left, most = [*before, (risk * a - w) ** 2], left - 1, max(most, won)
    assert 1.5 < most < 100
    for counted in (accepted >= 0, accepted > 0):
        columns = (array[counted, None].astype(float) for array in (accepted, wrong))
        [winnings] = most_won(*columns, largest=largest, risk=risk, level=level)
        assert math.exp(winnings) == pytest.approx(most)


def test_no_start_is_where_bets_could_not_win_without_an_error() -> None:
    """Groups of five, no error at all: about 223 answers are needed at a risk of .05, and .4 of 500 are fewer.

    Four groups say where the start is, and may be far off.
    """
    rng, codes = np.random.default_rng(0), np.repeat(np.arange(104), 5)
    promises = [control_risk(rng.random(520), np.zeros(520), risk=0.05, groups=codes, seed=seed) for seed in range(20)]
    assert sum(promise.chosen is not None and promise.chosen.share == 1.0 for promise in promises) >= 18


def test_without_enough_labels_it_says_no_and_how_many_would_do() -> None:
    rng = np.random.default_rng(3)
    scores, labels, _ = documents(rng, 60)
    found = control_risk(scores, labels, risk=0.05, confidence=0.95)
    assert found.chosen is None
    counts = "60 labelled documents (40 tested, 20 place the start)"
    assert found.reason == f"{counts} are too few for this risk and confidence"
    enough = found.more_labels
    assert enough is not None
    assert enough > 40
    scores, labels, _ = documents(rng, 40 * enough)
    assert control_risk(scores, labels, risk=0.05, confidence=0.95).chosen is not None


def test_more_detectors_tried_is_more_to_correct_for() -> None:
    rng = np.random.default_rng(4)
    scores, labels, _ = documents(rng, 2000)
    alone, many = (control_risk(scores, labels, risk=0.1, n_detectors=k) for k in (1, 10_000))
    assert many.candidates[0].level < alone.candidates[0].level / 1_000
    assert alone.chosen is not None
    assert many.chosen is None or many.chosen.threshold <= alone.chosen.threshold


@pytest.mark.slow
def test_the_walk_is_the_fallback_procedure_over_every_score() -> None:
    """Wiens 2003 by his definition, over all scores from the first start on; lesser and greater levels differ."""
    rng, others = np.random.default_rng(6), {"alone": 0, "never given up": 0}
    for seed in range(40):
        scores, labels, _ = documents(rng, 2000)
        found = control_risk(*placed_by(rng.random(181), scores, labels, seed), risk=0.12, seed=seed)
        starts = sorted({c.threshold for c in found.candidates} - set(scores.tolist()))
        assert len(starts) == 2
        share = dict(zip(starts, (0.025, 0.075), strict=True))
        path = sorted({s for s in scores.tolist() if s >= starts[0]} | set(starts))
        accepted = scores[:, None] <= np.array(path)
        p = binom.cdf((accepted * labels[:, None]).sum(axis=0), accepted.sum(axis=0), 0.12).tolist()
        weights = [share.get(t, 0.0) for t in path]
        levels, kept = [weights[0]], []
        for i in range(len(path)):
            kept += [path[i]] if p[i] <= levels[i] else []
            if i + 1 < len(path):
                levels.append(weights[i + 1] + (levels[i] if p[i] <= levels[i] else 0.0))
        chosen = found.chosen.threshold if found.chosen else None
        assert chosen == max(kept, default=None)
        others["alone"] += chosen != max((t for t, q, w in zip(path, p, weights, strict=True) if q <= w), default=None)
        others["never given up"] += chosen != max((t for t, q in zip(path, p, strict=True) if q <= 0.1), default=None)
    assert min(others.values()) > 0, others


@pytest.mark.slow
@pytest.mark.parametrize("risks", [(0.5, 0.3, 0.7), (0.4, 0.4, 0.7), (0.3, 0.5, 0.45), (0.1, 0.7, 0.51)])
def test_no_promise_is_broken_more_often_than_said_over_all_outcomes_of_ten_documents(risks: tuple[float, ...]) -> None:
    """Exact: every way in which ten documents fall on three scores and two labels, at a risk of .4 or just above."""
    shares, risk, level = np.array([0.4, 0.3, 0.3]), 0.4, 0.3
    wrong = np.array(risks)
    cells = np.concatenate([shares * (1 - wrong), shares * wrong])
    bad = np.cumsum(shares * wrong) / np.cumsum(shares) > risk - 1e-9  # at the boundary it counts as broken
    placing = np.repeat([0.0, 1.0, 2.0], [8, 6, 6])
    broken = 0.0
    for bars in combinations(range(15), 5):
        counts = np.diff([-1, *bars, 15]) - 1
        scores, labels = np.repeat([0.0, 1.0, 2.0] * 2, counts), np.repeat([0.0] * 3 + [1.0] * 3, counts)
        found = control_risk(*placed_by(placing, scores, labels), risk=risk, confidence=1 - level)
        if found.chosen is not None and bad[int(found.chosen.threshold)]:
            broken += multinomial.pmf(counts, 10, cells)
    assert level / 10 < broken <= level


def shapes(rng: np.random.Generator, shape: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Documents whose risk is known: (scores, labels, groups)."""
    if shape == "surest are worst":  # confident hallucinations: the risk falls with the score, then grows
        scores = rng.random(300)
        chance = np.where(scores < 0.1, 0.6, np.where(scores < 0.5, 0.05, 0.7))
        return scores, (rng.random(300) < chance).astype(float), np.arange(300)
    if shape == "ties":
        scores = rng.integers(0, 6, 300) / 5.0
        return scores, (rng.random(300) < scores).astype(float), np.arange(300)
    # Errors depend on the size of the group: none in groups of one, in groups of five three of ten documents.
    sizes = np.where(rng.random(150) < 0.5, 1, 5)
    groups = np.repeat(np.arange(150), sizes)
    return np.zeros(len(groups)), ((rng.random(len(groups)) < 0.3) & (sizes[groups] == 5)).astype(float), groups


RISK_AT = {
    "surest are worst": lambda t: (
        (0.6 * min(t, 0.1) + 0.05 * min(max(t - 0.1, 0), 0.4) + 0.7 * max(t - 0.5, 0)) / t if t else 0.6
    ),
    "ties": lambda t: t / 2,
    "large groups are worse": lambda t: 0.25,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "risk"), [("surest are worst", 0.2), ("ties", 0.15), ("large groups are worse", 0.24)]
)
def test_the_promise_holds_where_the_risk_is_not_monotone_scores_tie_or_errors_depend_on_group_sizes(
    shape: str, risk: float
) -> None:
    rng, broken = np.random.default_rng(7), 0
    for seed in range(150):
        scores, labels, groups = shapes(rng, shape)
        found = control_risk(scores, labels, risk=risk, groups=groups, seed=seed).chosen
        broken += found is not None and RISK_AT[shape](found.threshold) > risk
    assert broken <= binom.ppf(0.999, 150, 0.1)


def test_documents_without_a_label_change_nothing() -> None:
    """However many there are, and whether they have a score (an unsure judge) or none (a declined answer)."""
    rng = np.random.default_rng(5)
    scores, labels, groups = documents(rng, 300, group_size=2)
    for names in (None, groups.tolist()):
        alone = control_risk(scores, labels, risk=0.2, groups=names)
        assert alone.chosen is not None
        for extra in (np.full(30, np.nan), rng.random(500), np.ones(4000)):
            new = None if names is None else [*names, *range(1000, 1000 + len(extra))]
            unlabelled = np.append(labels, np.full(len(extra), np.nan))
            assert control_risk(np.append(scores, extra), unlabelled, risk=0.2, groups=new) == alone


def test_a_score_that_is_missing_is_never_accepted() -> None:
    scores = np.array([0.0] * 100 + [np.nan] * 100)
    found = control_risk(scores, np.zeros(200), risk=0.1)
    assert found.chosen is not None
    assert found.chosen.threshold == 0.0
    assert found.chosen.share < 0.6

"""A promised risk holds as often as promised, and not by accident."""

from __future__ import annotations

import math
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest
from at_border import at_border
from scipy.stats import binom, multinomial

from hedge_tasks.statistics.grouped_risk import most_won
from hedge_tasks.statistics.risk_control import RiskControl, control_risk


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


@pytest.mark.parametrize(("n_wrong", "risk"), [(0, 0.01), (3, 0.05), (4, 0.05)])
def test_more_labels_are_the_fewest_with_which_what_was_seen_would_do(n_wrong: int, risk: float) -> None:
    scores, labels = placed_by(np.zeros(20), np.zeros(100), (np.arange(100) < n_wrong).astype(float))
    found = control_risk(scores, labels, risk=risk)

    def would_do(tested: int) -> bool:
        return bool(binom.cdf(math.ceil(n_wrong * tested / 100 - 1e-9), tested, risk) <= 0.1)

    assert found.more_labels is not None
    counts = "120 labelled documents (100 tested, 20 place the start)"
    assert found.reason == f"{counts} are too few for this risk and confidence"
    tested = int(found.more_labels / 1.2 + 1e-9)
    fewest = next(n for n in range(100, 10_000) if all(would_do(m) for m in range(n, n + 30)))
    assert 100 < tested <= 1.01 * fewest + 1
    assert would_do(tested)
    assert not all(would_do(n) for n in range(tested - max(1, tested // 100), tested))
    at_risk = control_risk(*placed_by(np.zeros(20), np.zeros(100), np.arange(100) < 5), risk=0.05)
    assert at_risk.more_labels is None
    assert at_risk.reason == "the least risk seen where the test starts is 0.050 (5 of 100), not below 0.05"


@pytest.mark.parametrize(("size", "wrong"), [(2, 3), (2, 9), (5, 14)])
def test_more_labels_of_groups_are_those_of_a_z_test_and_of_the_boldest_bets(size: int, wrong: int) -> None:
    groups = np.repeat(np.arange(60), size)
    placing = np.isin(groups, np.random.default_rng(0).permutation(60)[: 20 // size])
    labels = np.zeros(len(groups))
    labels[np.flatnonzero(~placing)[::size][:wrong]] = 1
    found = control_risk(np.zeros(len(groups)), labels, risk=(risk := 0.08), confidence=0.95, groups=groups)
    k = 60 - 20 // size
    x = np.array([risk * size - 1] * wrong + [risk * size] * (k - wrong))
    z = NormalDist().inv_cdf(0.05)
    of_z = (z / x.mean()) ** 2 * (x**2).mean()
    of_bets = math.log(20) / math.log1p(0.98 / ((1 - risk) * size) * risk * size)
    assert found.chosen is None
    if x.mean() <= 0:
        assert found.more_labels is None
    else:
        tested = math.ceil(k * size * max(of_z, of_bets, k + 1) / k)
        assert found.more_labels == math.ceil(tested * len(groups) / (k * size))


def test_without_scores_or_documents_to_test_there_is_no_promise() -> None:
    nothing = control_risk(np.zeros(20), np.zeros(20), risk=0.1)
    assert nothing.reason == "no labelled documents are left to test on; 20 place the starts"
    assert "20 labelled documents" in str(control_risk(np.full(90, np.nan), np.zeros(90), risk=0.1).reason)
    at_border(lambda n: control_risk(np.zeros(20 + int(n)), np.zeros(20 + int(n)), risk=0.1).chosen, 22, "011")
    for wrong in ({"risk": 0.0}, {"risk": 1.0}, {"risk": 0.1, "n_detectors": 0}, {"risk": 0.1, "groups": [1]}):
        with pytest.raises(ValueError, match=next(reversed(wrong))):
            control_risk(np.zeros(40), np.zeros(40), **wrong)


def by_the_words(
    scores: np.ndarray, labels: np.ndarray, groups: np.ndarray | None, risk: float, level: float, seed: int
) -> tuple[dict[float, float], float | None]:
    """Starts with their levels, and the threshold that the module's words choose."""
    names, codes = np.unique(np.arange(len(scores)) if groups is None else groups, return_inverse=True)
    order, sizes = np.random.default_rng(seed).permutation(len(names)), np.bincount(codes)
    enough = next(i for i in range(1, len(order) + 1) if sizes[order[:i]].sum() >= 20)
    first = order[: max(enough, len(names) // 12)]
    placing = np.isin(codes, first)
    x, wrong, codes, placed = scores[~placing], labels[~placing], codes[~placing], np.sort(scores[placing])
    n = (len(names) - len(first)) * placing.sum() / len(first)
    largest = sizes[np.unique(codes)].max()
    alone, boldest = math.log(level) / math.log(1 - risk), 0.98 / ((1 - risk) * largest)
    fewest, widest = (alone, 0.2) if groups is None else (-math.log(level) / (boldest * risk), 0.4)
    shares = [min(1.0, max(widest, 1.25 * fewest / n))]
    while shares[-1] / 3 * n * risk >= 14:
        shares.append(shares[-1] / 3)
    weights = [3.0**-i / sum(3.0**-j for j in range(len(shares))) for i in range(len(shares))]
    starts: dict[float, float] = {}
    for share, weight in sorted(zip(shares, weights, strict=True)):
        at = float(placed[math.ceil(share * len(placed) - 1e-9) - 1])
        starts[at] = starts.get(at, 0.0) + level * weight
    path = sorted({s for s in x.tolist() if s >= min(starts)} | set(starts))
    passed = []
    if groups is None:
        in_hand = 0.0
        for t in path:
            in_hand += starts.get(t, 0.0)
            if in_hand and binom.cdf(wrong[x <= t].sum(), (x <= t).sum(), risk) <= in_hand:
                passed.append(t)
            else:
                in_hand = 0.0
        return starts, max(passed, default=None)
    units = np.unique(codes)
    units = units[np.argsort(np.random.default_rng([seed, 1]).permutation(len(units)))]
    of_units, accepted = (codes == units[:, None]).astype(float), (x[:, None] <= path).astype(float)
    counts = of_units @ accepted, of_units @ (accepted * wrong[:, None])
    for start, own in starts.items():
        won = most_won(*counts, largest=largest, risk=risk, level=own)
        for t, winnings in zip(path, won.tolist(), strict=True):
            if t >= start:
                if math.exp(-winnings) > own:
                    break
                passed.append(t)
    return starts, max(passed, default=None)


@pytest.mark.parametrize(
    ("n", "size", "risk", "level", "n_starts"),
    [
        (1831, 1, 0.125, 0.1, 1),
        (1832, 1, 0.125, 0.1, 2),  # .2 / 3 of 1,680 at a risk of 1 / 8 are 14 errors
        (6000, 1, 0.15, 0.05, 3),
        (240, 1, 0.05, 0.1, 1),
        (1000, 2, 0.2, 0.1, 2),
        (500, 5, 0.2, 0.2, 1),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_starts_levels_and_the_way_are_those_of_the_modules_words(
    n: int, size: int, risk: float, level: float, n_starts: int, seed: int
) -> None:
    scores, labels, groups = documents(np.random.default_rng(seed), n, size)
    scores = scores.round(2)
    of = groups if size > 1 else None
    found = control_risk(scores, labels, risk=risk, confidence=1 - level / 2, groups=of, seed=seed)
    halved = control_risk(scores, labels, risk=risk, confidence=1 - level, groups=of, n_detectors=2, seed=seed)
    assert [c.level for c in halved.candidates] == pytest.approx([c.level for c in found.candidates])
    starts, threshold = by_the_words(scores, labels, of, risk, level / 2, seed)
    assert len(starts) == n_starts
    assert (found.chosen and found.chosen.threshold) == threshold
    levels = {c.threshold: c.level for c in found.candidates}
    assert levels[min(starts)] == pytest.approx(starts[min(starts)])
    assert sum(starts.values()) == pytest.approx(level / 2)
    if of is None:
        p_values = [binom.cdf(c.n_wrong, c.n_accepted, risk) for c in found.candidates]
        assert [c.p_value for c in found.candidates] == pytest.approx(p_values)
    elif found.chosen is not None:
        assert sum(a for a, _ in found.bets) == found.chosen.n_accepted
        assert math.exp(-max_won(found, risk)) == pytest.approx(found.chosen.p_value)


def max_won(found: RiskControl, risk: float) -> float:
    accepted, wrong = np.array(found.bets).T[:, :, None]
    assert found.chosen is not None
    return float(most_won(accepted, wrong, largest=found.largest, risk=risk, level=found.chosen.level)[0])


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

"""Several detectors against one: the largest deviation of as many, as correlated as these."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from hedge_tasks.statistics import compare_scores, compare_within, holm, max_t
from hedge_tasks.statistics.multiple import step_down


def made(n=240, many=5, seed=0, gain=0.4):
    """Labels, a reference, and scores of which the last one is better."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.4).astype(int)
    reference = rng.normal(size=n) + labels
    common = rng.normal(size=n)
    scores = [reference + 0.6 * common + 0.3 * rng.normal(size=n) for _ in range(many)]
    return labels, reference, [*scores[:-1], scores[-1] + gain * labels]


def test_uncorrelated_deviations_are_sidaks_and_copies_are_one():
    observed = np.array([2.5, 1.0, 2.0])
    p = 2 * norm.sf(observed)
    found = step_down(observed, np.eye(3), None)
    assert found == pytest.approx([1 - (1 - p[0]) ** 3, p[1], 1 - (1 - p[2]) ** 2], abs=0.006)
    copies = step_down(np.array([2.5, 2.5]), np.ones((9, 2)), 12)
    assert copies == pytest.approx([2 * student.sf(2.5, 12)] * 2, abs=0.003)


@pytest.mark.parametrize("by_group", [False, True])
def test_between_the_raw_p_value_and_holms(by_group):
    labels, reference, scores = made()
    groups = [i // 3 for i in range(len(labels))] if by_group else None
    raw = [compare_scores(one, reference, labels, groups=groups).p_value for one in scores]
    found = max_t([(one, reference) for one in scores], labels, groups=groups)
    for p, adjusted, most in zip(raw, found, holm(raw), strict=True):
        assert p <= adjusted <= most + 0.005
    # The common part makes them one detector and a half: far fewer than five.
    assert sum(found) < sum(holm(raw))
    assert found == max_t([(one, reference) for one in scores], labels, groups=groups)


def test_what_does_not_differ_counts_for_none():
    labels, reference, scores = made(many=2)
    perfect, again = labels + 0.0, 2.0 * labels
    pairs = [(scores[1], reference), (reference, 2 * reference), (perfect, again)]
    alone = compare_scores(scores[1], reference, labels).p_value
    assert max_t(pairs, labels) == pytest.approx([alone, 1.0, 1.0])
    few = [1] * 3 + [0] * (len(labels) - 3)
    assert max_t([(scores[0], reference)] * 2, few) == [None, None]


def test_within_strata_it_is_of_the_comparisons_within():
    labels, reference, scores = made(seed=2)
    kinds = [i % 4 for i in range(len(labels) - 1)] + [9]  # the last one is alone in its stratum
    raw = [compare_within(one, reference, labels, kinds).p_value for one in scores]
    found = max_t([(one, reference) for one in scores], labels, strata=kinds)
    assert all(p <= adjusted <= most + 0.005 for p, adjusted, most in zip(raw, found, holm(raw), strict=True))


def test_few_groups_hold_the_level():
    """12 groups and 6 detectors without a difference: any is found in at most 5 % but for chance."""
    rng, wrong = np.random.default_rng(4), 0
    for _ in range(60):
        codes = np.repeat(np.arange(12), 6)
        labels = (rng.random(72) < 0.4).astype(int)
        reference, common = rng.normal(size=12)[codes] + labels, rng.normal(size=12)[codes]
        scores = [reference + common + rng.normal(size=72) for _ in range(6)]
        reference = reference + rng.normal(size=12)[codes] + rng.normal(size=72)
        wrong += min(max_t([(one, reference) for one in scores], labels, groups=codes.tolist())) < 0.05
    assert wrong <= 8

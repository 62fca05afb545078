"""Several detectors against one: the largest deviation of as many, as correlated as these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from hedge_tasks.statistics import (
    compare_scores,
    max_t,
)
from hedge_tasks.statistics.multiple import step_down


def test_uncorrelated_deviations_are_sidaks_and_copies_are_one():
    p = np.array([0.012, 0.3, 0.05])
    found = step_down(p, np.eye(3))
    assert found == pytest.approx([1 - (1 - p[0]) ** 3, p[1], 1 - (1 - p[2]) ** 2], abs=0.006)
    assert step_down(np.array([0.03, 0.03]), np.ones((9, 2))) == pytest.approx([0.03, 0.03], abs=0.004)


def test_two_correlated_ones_are_the_normal_distribution_of_two():
    factors, p = np.array([[1.0, 0.8], [0.0, 0.6]]), 0.02
    z = norm.isf(p / 2)
    normal = multivariate_normal([0, 0], factors.T @ factors)
    within = normal.cdf([z, z], lower_limit=[-z, -z])
    assert step_down(np.array([p, 0.5]), factors)[0] == pytest.approx(1 - within, abs=0.003)


def test_comparisons_are_joined_by_document_and_group():
    """Of the same differences in another order they are one; of other documents they are independent."""
    rng = np.random.default_rng(0)
    labels = (rng.random(240) < 0.4).astype(int)
    reference = rng.normal(size=240) + labels
    score = reference + rng.normal(size=240)
    groups = np.array([f"g{i // 3}" for i in range(len(labels))])
    order = np.random.default_rng(3).permutation(len(labels))
    for by_group in (False, True):
        found, again = (
            compare_scores(score[at], reference[at], labels[at], groups=groups[at].tolist() if by_group else None).of(
                at.tolist()
            )
            for at in (np.arange(len(labels)), order)
        )
        if not by_group:
            assert max_t([found, again])[0] == pytest.approx(found.p_value, abs=0.01)
        sidak = 1 - (1 - found.p_value) ** 2
        for other in (found.of(f"other {i}" for i in range(len(labels))), replace(found, ids=None)):
            assert max_t([found, other])[0] == pytest.approx(sidak, abs=0.01)

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.detectors import discrete_semantic_entropy, semantic_entropy, vase

INF, NAN = math.inf, math.nan
ids = st.integers(-3, 6)
logprobs = st.floats(-30, 0)
samples = st.lists(st.tuples(ids, logprobs), min_size=1, max_size=12)


def is_plus_zero(value: float) -> bool:
    return value == 0.0 and math.copysign(1.0, value) == 1.0


# An independent reference, straight from the formulas, with nothing but `math` and dictionaries.


def shares(cluster_ids, lps, support):
    weight = dict.fromkeys(support, 0.0)
    for i, lp in zip(cluster_ids, lps, strict=True):
        weight[i] += math.exp(lp)
    total = sum(weight.values())
    return {i: w / total for i, w in weight.items()}


def entropy(ps):
    return sum(-p * math.log(p) for p in ps if p > 0)


def brute_force_vase(baseline, clean, noisy, clean_lps, noisy_lps, alpha):
    support = {baseline, *clean, *noisy}
    s, t = shares(clean, clean_lps, support), shares(noisy, noisy_lps, support)
    weight = {i: math.exp(s[i] + alpha * (s[i] - t[i])) for i in support}
    return entropy(w / sum(weight.values()) for w in weight.values())


# --- semantic distribution -------------------------------------------------------------------------------------------


# --- semantic entropy ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 10, 39])
def test_a_single_cluster_has_exactly_zero_entropy(n):
    lps = np.random.default_rng(n).normal(-3, 2, size=n)
    assert is_plus_zero(semantic_entropy([4] * n, lps))
    assert is_plus_zero(discrete_semantic_entropy([4] * n))


@settings(max_examples=20)
@given(samples)
def test_entropy_equals_brute_force_and_is_bounded(sample):
    cluster_ids, lps = zip(*sample, strict=True)
    got = semantic_entropy(cluster_ids, lps)
    # Twelve digits are kept, so that equal entropies are equal numbers.
    assert got == pytest.approx(entropy(shares(cluster_ids, lps, set(cluster_ids)).values()), rel=1e-11, abs=1e-12)
    assert 0.0 <= got <= math.log(len(set(cluster_ids))) + 1e-11
    assert math.copysign(1.0, got) == 1.0


# --- VASE ------------------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(ids, samples, samples, st.floats(-3, 3))
def test_vase_equals_brute_force_and_is_bounded(baseline, clean, noisy, alpha):
    (c, clp), (d, dlp) = zip(*clean, strict=True), zip(*noisy, strict=True)
    got = vase(c, d, clp, dlp, baseline_id=baseline, alpha=alpha)
    assert got == pytest.approx(brute_force_vase(baseline, c, d, clp, dlp, alpha), rel=1e-11, abs=1e-11)  # 12 digits
    assert 0.0 <= got <= math.log(len({baseline, *c, *d})) + 1e-11


@pytest.mark.filterwarnings("error")
def test_a_huge_alpha_gives_the_limit_and_no_warning():
    assert vase([0, 0, 1], [0, 1, 1], alpha=1e308) == 0.0


# --- bad input -------------------------------------------------------------------------------------------------------

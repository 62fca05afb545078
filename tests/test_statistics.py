from __future__ import annotations

import math

import numpy as np
import pytest

from hedge_tasks.statistics import (
    UndefinedStatistic,
    auroc,
    cohen_kappa,
    compare_runs,
    compare_scores,
    estimate_auroc,
    estimate_mean,
    estimate_of_sums,
    estimate_rate,
    krippendorff_alpha,
    percent_agreement,
    ratio,
    stratified_auroc,
    wilson_interval,
)
from hedge_tasks.statistics.base import midranks, two_sided_p

NAN = math.nan


# --- What heavy libraries are not imported for -----------------------------------------------------------------------


def test_midranks_are_scipys():
    from scipy.stats import rankdata

    for decimals in (9, 0):
        scores = np.random.default_rng(1).normal(size=60).round(decimals)
        assert midranks(scores).tolist() == rankdata(scores).tolist()
    assert midranks([math.inf, 0.0, math.inf, -math.inf]).tolist() == [3.5, 2, 3.5, 1]
    assert midranks([]).tolist() == []


@pytest.mark.parametrize("deviation", [0.0, 0.3, 1.96, 8.0])
def test_p_values_are_scipys(deviation):
    from scipy.stats import norm, t

    assert two_sided_p(deviation) == pytest.approx(2 * norm.sf(deviation), rel=1e-12)
    assert two_sided_p(deviation, 4) == pytest.approx(2 * t(4).sf(deviation), rel=1e-12)


# --- what has no number, and what no number is asked of ---------------------------------------------------------------

TEN = [0, 1] * 5
UNDEFINED = [
    (lambda: estimate_auroc([], []), "no documents"),
    (lambda: estimate_auroc([0.1, 0.2], [0, 0]), "no document is labelled hallucinated"),
    (lambda: estimate_auroc([0.1], [1]), "every document is labelled hallucinated (1 document)"),
    (lambda: estimate_auroc([0.1, NAN, 0.3], [0, 1, 1]), "score of 1 of 3 documents is missing"),
    (lambda: estimate_auroc([0.1, 0.2, 0.3], [0, 1, NAN]), "label of 1 of 3 documents is missing"),
    (lambda: stratified_auroc([], [], []), "no documents"),
    (lambda: stratified_auroc([0.1, 0.9], [0, 1], ["a", "b"]), "no stratum has both"),
    (lambda: stratified_auroc([0.1, 0.9, NAN], [0, 1, 1], ["a", "a", "b"]), "NaN"),
    (lambda: compare_scores([1, NAN], [2, 1], [0, 1]), "a: the score of 1 of 2 documents is missing (NaN)"),
    (lambda: compare_runs(TEN, TEN, TEN[::-1], [0] * 10), "b: no document is labelled hallucinated (10 documents)"),
    (lambda: compare_runs([], [], [], []), "no documents"),
    (lambda: estimate_rate([]), "no documents"),
    (lambda: estimate_rate([1, NAN]), "1 of 2 documents is missing"),
    (lambda: estimate_mean([], []), "no documents"),
    (lambda: cohen_kappa([1, 1], [1, 1]), "all ratings are the same"),
    (lambda: krippendorff_alpha([[0, 0]] * 3), "all ratings are the same"),
    (lambda: estimate_of_sums(np.zeros((3, 2)), [1, 2, 3], ratio), "no document counts for it"),
    (lambda: estimate_of_sums(np.zeros((0, 2)), [], ratio), "no document counts for it"),
]
ALONE = [
    (lambda: estimate_auroc([0.1, 0.2, 0.3], [0, 0, 1], fewest=1), "a single document only"),
    (lambda: estimate_auroc([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], groups=list("abcb"), fewest=1), "a single group only"),
    (lambda: estimate_rate([1, 0], groups=["a", "a"]), "single group"),
    (lambda: estimate_mean([1.0, 3.0], ["a", "a"]), "single group"),
    (lambda: estimate_of_sums(np.ones((3, 2)), [1, 1, 1], ratio), "a single group"),
]
WRONG = [
    (lambda: auroc([0.1], [0, 1]), "differ in length: 1 and 2"),
    (lambda: auroc([0.1, 0.2], [0, 2]), r"labels\[1\] is 2"),
    (lambda: auroc([[0.1, 0.2]], [[0, 1]]), "one dimension"),
    (lambda: estimate_auroc([0.1, 0.2], [0, 1], groups=["a"]), "groups has length 1, but there are 2"),
    (lambda: stratified_auroc([0.1, 0.2], [0, 1], ["a"]), "strata has length 1, but there are 2"),
    (lambda: compare_scores([1, 2], [1], [0, 1]), "differ in length"),
    (lambda: compare_scores([1, 2], [1, 2], [0, 1], confidence=2), "between 0 and 1"),
    (lambda: compare_scores([1, 2], [1, 2], [0, 1], groups=["a"]), "groups has length 1"),
    (lambda: compare_runs([1, 2], [0, 1], [1], [0]), "two runs differ in length: 2 and 1"),
    (lambda: percent_agreement([[1, 0]]), "at least two judges, got 1"),
    (lambda: cohen_kappa([1, 0], [1]), r"different numbers of items: \[2, 1\]"),
    (lambda: cohen_kappa([1, 0], [1, 1], groups=["a"]), "groups has length 1"),
    (lambda: estimate_mean([1.0, 2.0], ["a"]), "groups has length 1"),
    (lambda: estimate_rate([2]), "0 or 1"),
    (lambda: wilson_interval(3, 2), "successes"),
    (lambda: wilson_interval(0, 0), "successes"),
]


@pytest.mark.parametrize(("call", "reason"), UNDEFINED + ALONE, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_undefined_has_a_reason(call, reason):
    found = call()
    assert reason in found.reason
    assert (found.stderr, found.interval) == (None, None)
    assert (getattr(found, "value", None) is not None) == ((call, reason) in ALONE)


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_mistake_of_the_caller_is_an_error_of_another_kind(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert not isinstance(caught.value, UndefinedStatistic)

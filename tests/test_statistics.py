from __future__ import annotations

import math

import numpy as np
import pytest

from hedge_tasks.statistics import UndefinedStatistic, auroc, estimate_auroc, stratified_auroc
from hedge_tasks.statistics.base import midranks, two_sided_p

NAN = math.nan


def simulated(n, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 3 == 0).astype(int)
    scores = rng.normal(size=n) + labels
    return (scores if decimals is None else scores.round(decimals)), labels


# --- What heavy libraries are not imported for -----------------------------------------------------------------------


def test_midranks_are_scipys():
    from scipy.stats import rankdata

    for decimals in (None, 0):
        scores, _ = simulated(60, 1, decimals)
        assert midranks(scores).tolist() == rankdata(scores).tolist()
    assert midranks([math.inf, 0.0, math.inf, -math.inf]).tolist() == [3.5, 2, 3.5, 1]
    assert midranks([]).tolist() == []


@pytest.mark.parametrize("deviation", [0.0, 0.3, 1.96, 8.0])
def test_p_values_are_scipys(deviation):
    from scipy.stats import norm, t

    assert two_sided_p(deviation) == pytest.approx(2 * norm.sf(deviation), rel=1e-12)
    assert two_sided_p(deviation, 4) == pytest.approx(2 * t(4).sf(deviation), rel=1e-12)


# --- AUROC -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "labels", "reason"),
    [
        ([], [], "no documents"),
        ([0.1, 0.2], [0, 0], "no document is labelled hallucinated"),
        ([0.1], [1], r"every document is labelled hallucinated \(1 document\)"),
        ([0.1, NAN, 0.3], [0, 1, 1], "score of 1 of 3 documents is missing"),
        ([0.1, 0.2, 0.3], [0, 1, NAN], "label of 1 of 3 documents is missing"),
    ],
)
def test_an_undefined_auroc_is_reported_with_its_reason(scores, labels, reason):
    with pytest.raises(UndefinedStatistic, match=reason):
        auroc(scores, labels)
    estimate = estimate_auroc(scores, labels)
    assert (estimate.value, estimate.stderr) == (None, None)
    assert estimate.n == len(scores)
    assert estimate.n_positive == labels.count(1)
    with pytest.raises(UndefinedStatistic, match=reason):
        raise UndefinedStatistic(estimate.reason)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: auroc([0.1], [0, 1]), "differ in length: 1 and 2"),
        (lambda: auroc([0.1, 0.2], [0, 2]), r"labels\[1\] is 2"),
        (lambda: auroc([[0.1, 0.2]], [[0, 1]]), "one dimension"),
        (lambda: estimate_auroc([0.1, 0.2], [0, 1], groups=["a"]), "groups has length 1, but there are 2"),
        (lambda: stratified_auroc([0.1, 0.2], [0, 1], ["a"]), "strata has length 1, but there are 2"),
    ],
)
def test_a_mistake_of_the_caller_is_an_error_of_another_kind(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert not isinstance(caught.value, UndefinedStatistic)


@pytest.mark.parametrize(
    ("scores", "labels", "groups", "reason"),
    [
        ([0.1, 0.2, 0.3], [0, 0, 1], None, "one of the classes occurs in a single document only"),
        ([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], ["a"] * 4, "one of the classes occurs in a single group only"),
        ([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], ["a", "b", "c", "b"], "one of the classes occurs in a single group only"),
    ],
)
def test_too_few_documents_for_a_stderr_still_have_a_value(scores, labels, groups, reason):
    estimate = estimate_auroc(scores, labels, groups=groups, fewest=1)
    assert estimate.value == auroc(scores, labels)
    assert estimate.stderr is None
    assert reason in estimate.reason


# --- stratified AUROC ------------------------------------------------------------------------------------------------


def test_a_stratum_with_one_class_is_reported_and_adds_nothing():
    result = stratified_auroc([0.1] * 5 + [0.9] * 5 + [0.5], [0] * 5 + [1] * 6, ["a"] * 10 + ["b"])
    assert (result.value, result.n_pairs) == (1.0, 25)
    assert result.strata["b"].value is None
    assert "every document" in result.strata["b"].reason


@pytest.mark.parametrize(
    ("scores", "labels", "strata", "reason"),
    [
        ([], [], [], "no documents"),
        ([0.1, 0.9], [0, 1], ["a", "b"], "no stratum has both"),
        ([0.1, 0.9, NAN], [0, 1, 1], ["a", "a", "b"], "NaN"),
    ],
)
def test_an_undefined_stratified_auroc_is_reported_with_its_reason(scores, labels, strata, reason):
    result = stratified_auroc(scores, labels, strata)
    assert result.value is None
    assert reason in result.reason

from __future__ import annotations

import dataclasses
import doctest
import importlib
import math
import subprocess
import sys

import numpy as np
import pytest

from hedge_tasks.numbers import Number
from hedge_tasks.statistics import UndefinedStatistic, auroc, estimate_auroc, resampling, stratified_auroc
from hedge_tasks.statistics.base import midranks, two_sided_p, wilson

NAN = math.nan


def pair_counting_auroc(scores, labels):
    wins = [
        (x > z) + 0.5 * (x == z)
        for x, y in zip(scores, labels, strict=True)
        if y == 1
        for z, w in zip(scores, labels, strict=True)
        if w == 0
    ]
    return sum(wins) / len(wins)


def delong_stderr(scores, labels):
    """DeLong et al. 1988: from the variance of the placement values of each class."""
    positive, negative = scores[labels == 1], scores[labels == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    return math.sqrt(wins.mean(1).var(ddof=1) / len(positive) + wins.mean(0).var(ddof=1) / len(negative))


def hanley_mcneil_stderr(area, n_positive, n_negative):
    """Hanley and McNeil 1982, for exponentially distributed scores."""
    q1, q2 = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (n_positive - 1) * (q1 - area**2) + (n_negative - 1) * (q2 - area**2)
    return math.sqrt(variance / (n_positive * n_negative))


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


@pytest.mark.parametrize(("share", "n"), [(0.0, 7.0), (0.31, 12.7), (0.5, 1.0), (1.0, 300.0)])
def test_wilsons_interval_is_that_of_statsmodels(share, n):
    from statsmodels.stats.proportion import proportion_confint

    expected = proportion_confint(share * n, n, alpha=0.1, method="wilson")
    assert wilson(share, n, 0.9) == pytest.approx(tuple(map(float, expected)), abs=1e-12)


# --- AUROC -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("decimals", [None, 0])
def test_auroc_equals_counting_of_pairs(seed, decimals):
    scores, labels = simulated(40, seed, decimals)
    assert auroc(scores, labels) == pytest.approx(pair_counting_auroc(scores, labels), abs=1e-12)


@pytest.mark.parametrize(("scores", "expected"), [([0, 1, 2], 1.0), ([2, 1, 0], 0.0), ([1, 1, 1], 0.5)])
def test_a_higher_score_for_hallucinated_answers_is_a_higher_auroc(scores, expected):
    assert auroc(scores, [0, 0, 1]) == expected


def test_infinite_scores_are_ranked():
    assert auroc([-math.inf, 0.0, math.inf, math.inf], [0, 1, 0, 1]) == 0.625


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
        (
            lambda: estimate_auroc([0.1, 0.2], [0, 1], method="bootstrap", n_resamples=1),
            "n_resamples must be at least 2",
        ),
        (lambda: estimate_auroc([0.1, 0.2], [0, 1], groups=["a"]), "groups has length 1, but there are 2"),
        (lambda: stratified_auroc([0.1, 0.2], [0, 1], ["a"]), "strata has length 1, but there are 2"),
    ],
)
def test_a_mistake_of_the_caller_is_an_error_of_another_kind(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert not isinstance(caught.value, UndefinedStatistic)


# --- bootstrap -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "decimals"), [(90, None), (300, None), (300, 0), (900, 1)])
def test_bootstrap_stderr_agrees_with_delong(n, decimals):
    scores, labels = simulated(n, seed=n, decimals=decimals)
    estimate = estimate_auroc(scores, labels, method="bootstrap", n_resamples=4000)
    assert estimate.value == auroc(scores, labels)
    assert estimate.stderr == pytest.approx(delong_stderr(scores, labels), rel=0.06)


@pytest.mark.slow
def test_bootstrap_stderr_agrees_with_hanley_and_mcneil_on_exponential_scores():
    rng = np.random.default_rng(3)
    labels = np.arange(1200) % 2
    scores = rng.exponential(np.where(labels == 1, 3.0, 1.0))
    estimate = estimate_auroc(scores, labels, method="bootstrap", n_resamples=4000)
    assert estimate.stderr == pytest.approx(hanley_mcneil_stderr(estimate.value, 600, 600), rel=0.08)


def test_bootstrap_equals_resampling_of_documents_one_by_one():
    scores, labels = simulated(60, seed=5, decimals=1)
    rng = np.random.default_rng(11)
    positive, negative = scores[labels == 1], scores[labels == 0]
    areas = []
    for _ in range(3000):
        x, z = rng.choice(positive, len(positive)), rng.choice(negative, len(negative))
        areas.append(((x[:, None] > z) + 0.5 * (x[:, None] == z)).mean())
    assert estimate_auroc(scores, labels, method="bootstrap", n_resamples=3000).stderr == pytest.approx(
        np.std(areas, ddof=1), rel=0.06
    )


def test_bootstrap_is_reproducible_and_independent_of_document_order_and_of_the_scale():
    scores, labels = simulated(100)
    order = np.random.default_rng(1).permutation(100)
    first = estimate_auroc(scores, labels, method="bootstrap", seed=4)
    assert estimate_auroc(scores[order], labels[order], method="bootstrap", seed=4) == first
    assert estimate_auroc(np.exp(scores), labels, method="bootstrap", seed=4) == first
    assert estimate_auroc(scores, labels, method="bootstrap", seed=5).stderr != first.stderr


@pytest.mark.parametrize("groups", [None, [i // 4 for i in range(100)]], ids=["stratified", "groups"])
def test_resampling_in_blocks_changes_nothing(monkeypatch, groups):
    scores, labels = simulated(100)
    whole = estimate_auroc(scores, labels, method="bootstrap", n_resamples=50, groups=groups)
    monkeypatch.setattr(resampling, "BLOCK", 700)
    assert resampling.block_sizes(50, 100) == [7] * 7 + [1]
    assert estimate_auroc(scores, labels, method="bootstrap", n_resamples=50, groups=groups) == whole


def test_resamples_are_drawn_once_and_the_same_in_blocks(monkeypatch):
    [whole] = resampling.unit_counts(9, 40, 1, 3)
    assert whole.sum(axis=1).tolist() == [9] * 40
    [again] = resampling.unit_counts(9, 40, 5, 3)
    assert again is whole
    with pytest.raises(ValueError, match="read-only"):
        whole += 1
    [other] = resampling.unit_counts(9, 40, 1, 4)
    assert (other != whole).any()
    monkeypatch.setattr(resampling, "BLOCK", 100)
    blocks = list(resampling.unit_counts(9, 40, 1, 3))
    assert len(blocks) == 4
    assert np.array_equal(np.concatenate(blocks), whole)


def test_copies_of_documents_in_a_group_do_not_shrink_the_stderr():
    scores, labels = simulated(150, seed=2)
    single = estimate_auroc(scores, labels, groups=range(150), method="bootstrap", n_resamples=3000)
    copied = estimate_auroc(
        np.repeat(scores, 4), np.repeat(labels, 4), groups=[f"image {i // 4}" for i in range(600)], n_resamples=3000
    )
    naive = estimate_auroc(np.repeat(scores, 4), np.repeat(labels, 4), method="bootstrap", n_resamples=3000)
    assert copied.stderr == pytest.approx(single.stderr, rel=0.08)
    assert single.stderr == pytest.approx(delong_stderr(scores, labels), rel=0.08)
    assert naive.stderr == pytest.approx(single.stderr / 2, rel=0.1)


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


@pytest.mark.parametrize(("wrong", "right", "kind"), [(4, 30, "are hallucinated"), (30, 1, "is supported")])
def test_below_five_of_a_class_there_is_no_auroc_but_the_reason(wrong, right, kind):
    scores, labels = list(range(wrong + right)), [1] * wrong + [0] * right
    for found in (estimate_auroc(scores, labels), stratified_auroc(scores, labels, ["kind"] * len(labels))):
        assert (found.value, found.interval, found.n_rarer) == (None, None, min(wrong, right))
        assert (
            found.reason
            == f"only {min(wrong, right)} of {wrong + right} documents {kind}; an AUROC needs 5 of each class"
        )
    assert estimate_auroc(scores + [0.5] * 9, [*labels, 0, 1, 0, 1, 0, 1, 0, 1, 0]).value is not None


@pytest.mark.slow
def test_resamples_of_groups_that_lack_a_class_are_left_out():
    scores, labels, groups = [0.1, 0.4, 0.3, 0.2, 0.5, 0.6], [0, 0, 1, 1, 1, 1], list("abcdef")
    stderr = estimate_auroc(scores, labels, groups=groups, method="bootstrap", fewest=2).stderr
    assert 0 < stderr < 0.5
    rng, areas = np.random.default_rng(0), []
    for _ in range(4000):
        chosen = rng.integers(0, 6, size=6)
        resampled = np.take(labels, chosen)
        if 0 < resampled.sum() < 6:
            areas.append(pair_counting_auroc(np.take(scores, chosen), resampled))
    assert len(areas) < 4000
    assert stderr == pytest.approx(np.std(areas, ddof=1), rel=0.1)


def test_an_estimate_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Number(0.5, stderr=0.1, n=3, n_positive=1).value = 0.7


# --- stratified AUROC ------------------------------------------------------------------------------------------------


def test_stratified_auroc_compares_within_strata_only():
    rng = np.random.default_rng(0)
    strata = rng.choice(["open", "closed", "choice"], size=80)
    labels = rng.integers(0, 2, size=80)
    scores = (rng.normal(size=80) + labels + 5 * (strata == "open")).round(1)
    wins, pairs = 0.0, 0
    for name in set(strata):
        chosen = strata == name
        count = labels[chosen].sum() * (1 - labels[chosen]).sum()
        wins, pairs = wins + count * pair_counting_auroc(scores[chosen], labels[chosen]), pairs + count
    result = stratified_auroc(scores, labels, list(strata))
    assert result.value == pytest.approx(wins / pairs, abs=1e-12)
    assert result.n_pairs == pairs
    assert result.strata["open"].value == auroc(scores[strata == "open"], labels[strata == "open"])
    assert result.value != pytest.approx(auroc(scores, labels), abs=0.05)


def test_a_score_that_only_recognises_the_stratum_is_at_chance_within():
    scores, labels, strata = [0] * 6 + [1] * 6, [0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1], list("aaaaaabbbbbb")
    assert auroc(scores, labels) > 0.6
    assert stratified_auroc(scores, labels, strata).value == 0.5


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


@pytest.mark.parametrize(
    "name",
    ["base", "roc", "strata", "paired", "curves", "calibration", "agreement", "rates", "resampling", "placements"],
)
def test_docstring_examples(name):
    results = doctest.testmod(importlib.import_module(f"hedge_tasks.statistics.{name}"))
    assert results.failed == 0
    assert results.attempted >= {"base": 0, "resampling": 0, "placements": 0}.get(name, 1)


@pytest.mark.slow
def test_importing_the_statistics_loads_no_heavy_library():
    code = (
        "import sys, hedge_tasks.statistics\n"
        "print([name for name in ('scipy', 'sklearn', 'statsmodels', 'pandas', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

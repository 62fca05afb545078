"""Is one score better than another, is one run easier to judge than another: paired differences of AUROCs."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import (
    BoolArray,
    FloatArray,
    IntArray,
    Interval,
    UndefinedError,
    UndefinedStatistic,
    as_data,
    check_confidence,
    check_defined,
    check_enough,
    codes_of,
    levels_of,
    quantile_of,
    two_sided_p,
)
from hedge_tasks.statistics.means import clustered_spread
from hedge_tasks.statistics.placements import (
    auroc_components,
    check_units,
    component_variance,
    degrees_of_freedom,
    deleted_spread,
    whole_auroc,
    without_each_group,
)
from hedge_tasks.statistics.roc import JACKKNIFE, auroc
from hedge_tasks.statistics.strata import pooled_within

_Data = tuple[FloatArray, FloatArray]  # scores and labels


@dataclass(frozen=True)
class Comparison:
    """The difference of two numbers (AUROCs, or rates) on the same documents.

    Attributes:
        a: First number; `None` if undefined.
        b: Second number; `None` if undefined.
        difference: `a - b`; `None` if either is undefined.
        stderr: Standard error of the difference.
        interval: Confidence interval of the difference, within [-1, 1].
        p_value: Two-sided, of the hypothesis that the expected difference is 0.
        n: Number of documents.
        method: How standard error, interval and p-value were made, in words.
        reason: Why something is `None`; `None` if nothing is.
        n_positive: Number of documents labelled hallucinated, of two runs in the one with fewer of its rarer class;
            `None` for what has no classes, such as a rate.
        deviations: What each document adds to the difference, in any unit, shape `(documents compared,)`; all of a
            group stands at its first document. `None` where that is not known.
        ids: Of these documents; `None` where they have no names.
    """

    a: float | None
    b: float | None
    difference: float | None
    stderr: float | None
    interval: Interval | None
    p_value: float | None
    n: int
    method: str
    reason: str | None = None
    n_positive: int | None = None
    deviations: FloatArray | None = field(default=None, repr=False, compare=False)
    ids: tuple[Hashable, ...] | None = field(default=None, repr=False, compare=False)

    def of(self, ids: Iterable[Hashable]) -> Comparison:
        """Return it with the names of its documents, by which several comparisons are corrected together (`max_t`).

        Raises:
            ValueError: there are more or fewer of them than documents.
        """
        names = tuple(ids)
        if self.deviations is not None and len(names) != len(self.deviations):
            raise ValueError(f"{len(names)} ids of {len(self.deviations)} documents")
        return replace(self, ids=names)

    def among(self, places: Sequence[int], n: int) -> Comparison:
        """Return it as one of n documents, of which only those at some places were compared."""
        if self.deviations is None:
            return self
        deviations = np.zeros(n)
        deviations[list(places)] = self.deviations
        return replace(self, deviations=deviations)

    @classmethod
    def undefined(cls, n: int, method: str, reason: str, n_positive: int | None = None) -> Comparison:
        """The comparison without any number."""
        return cls(None, None, None, None, None, None, n, method, reason, n_positive)

    def as_json(self) -> dict[str, Any]:
        """The numbers by name, without those of single documents."""
        return {attribute.name: getattr(self, attribute.name) for attribute in fields(self) if attribute.repr}

    @property
    def number(self) -> Number:
        """The difference, with its uncertainty."""
        details: dict[str, Any] = {"n_positive": self.n_positive, "reason": self.reason, "method": self.method}
        return Number(self.difference, self.stderr, self.interval, self.n, **details)


@dataclass(frozen=True)
class _Uncertainty:
    stderr: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    reason: str | None = None
    deviations: FloatArray | None = None


def compare_scores(
    scores_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    extra_stderr: float = 0.0,
) -> Comparison:
    """Difference in AUROC of two scores for the same answers, e.g. VASE and semantic entropy of one run.

    The test of DeLong et al. 1988: the difference of the AUROCs is normal, with the variance of the differences of
    placement values (Sun & Xu 2014). With `groups` the variance is that of the delete-one-group jackknife and the test
    Student's, as in `estimate_auroc`. With few groups, or a few large ones, that is cautious: where there is a
    difference, a permutation of both scores within groups gives p-values that are 2 to 10 times smaller.

    Args:
        scores_a: First score, shape `(n,)`; higher = more likely hallucinated.
        scores_b: Second score of the same documents, shape `(n,)`.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.
        groups: Group (e.g. image id) of each document, length `n`.
        confidence: Level of the interval, in (0, 1).
        extra_stderr: Standard error of the difference that these scores do not show, such as that of fitting a score on
            the same documents; added in quadrature.

    Returns:
        The comparison; what is undefined is `None`, with the reason.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or the level is not in (0, 1).

    Example:
        >>> a, b = [9, 8, 7, 6, 3, 5, 4, 3, 2, 1], [9, 1, 7, 6, 5, 5, 8, 8, 2, 1]
        >>> result = compare_scores(a, b, [1] * 5 + [0] * 5)
        >>> round(result.difference, 3), round(result.p_value, 2)
        (0.34, 0.11)
    """
    check_confidence(confidence)
    (x_a, y), (x_b, _) = as_data(scores_a, labels), as_data(scores_b, labels)
    codes = None if groups is None else codes_of(groups, len(y), "groups")
    name = "DeLong" if codes is None else JACKKNIFE
    return _compared((x_a, y), (x_b, y), name, lambda: _delong(x_a, x_b, y == 1, codes, confidence, extra_stderr))


def compare_within(
    scores_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    labels: npt.ArrayLike,
    strata: Sequence[Hashable],
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    extra_stderr: float = 0.0,
) -> Comparison:
    """Difference in AUROC within strata of two scores for the same documents, e.g. of claims within their answers.

    DeLong's test (with `groups` the delete-one-group jackknife's) for the difference of two `stratified_auroc`: each
    document adds the difference of what it adds to either.

    Args:
        scores_a: First score, shape `(n,)`; higher = more likely hallucinated.
        scores_b: Second score of the same documents, shape `(n,)`.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.
        strata: Stratum of each document, length `n`.
        groups: Group (e.g. image id) of each document, length `n`.
        confidence: Level of the interval, in (0, 1).
        extra_stderr: See `compare_scores`.

    Returns:
        The comparison; `n` counts the documents in strata with both labels. What is undefined is `None`, with the
        reason.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or the level is not in (0, 1).

    Example:
        >>> a, b = [9, 1, 8, 2, 7, 3, 6, 4, 9, 1], [9, 1, 2, 8, 7, 3, 6, 4, 9, 1]
        >>> result = compare_within(a, b, [1, 0] * 5, list("vvwwxxyyzz"))
        >>> round(result.difference, 3), result.n
        (0.2, 10)
    """
    check_confidence(confidence)
    (x_a, y), (x_b, _) = as_data(scores_a, labels), as_data(scores_b, labels)
    codes = codes_of(strata, len(y), "strata")
    units = None if groups is None else codes_of(groups, len(y), "groups")
    name = f"{'DeLong' if units is None else JACKKNIFE} within strata"
    if np.isnan([x_a, x_b, y]).any():
        return Comparison.undefined(0, name, "a score or label is missing (NaN)")
    positive = y == 1
    sizes = np.stack([np.bincount(codes[chosen], minlength=len(y)) for chosen in (positive, ~positive)])
    with_both = (sizes[:, codes] > 0).all(axis=0)
    if not with_both.any():
        reason = "no stratum has both hallucinated and supported documents" if len(y) else "no documents"
        return Comparison.undefined(0, name, reason)
    codes, positive = np.unique(codes[with_both], return_inverse=True)[1].astype(np.int64), positive[with_both]
    units = None if units is None else np.unique(units[with_both], return_inverse=True)[1].astype(np.int64)
    n_positive = int(positive.sum())
    (a, parts_a, pairs), (b, parts_b, _) = (pooled_within(x[with_both], positive, codes) for x in (x_a, x_b))
    try:
        check_enough(positive)
        if units is None:
            deviations = parts_a - parts_b
            stderr = float(np.sqrt(component_variance(deviations, positive)))
        else:
            stderr, deviations = _deleted((x_a[with_both], x_b[with_both]), (positive, positive), units, codes)
    except UndefinedStatistic as error:
        return Comparison.undefined(len(positive), name, str(error), n_positive)
    except UndefinedError as error:
        return Comparison(a, b, a - b, None, None, None, len(positive), name, str(error), n_positive)
    if stderr == 0:
        # Components are deviations: those of perfect scores and of perfectly wrong ones are all zero.
        uncertainty = _without_variation(a - b, identical=a == b and bool(np.array_equal(parts_a, parts_b)))
    else:
        whole = math.hypot(stderr, extra_stderr)
        uncertainty = _tested(a - b, whole, degrees_of_freedom(positive, units, pairs), confidence)
    of_all = np.zeros(len(y))
    of_all[with_both] = deviations
    tested = (uncertainty.stderr, uncertainty.interval, uncertainty.p_value)
    return Comparison(a, b, a - b, *tested, len(positive), name, uncertainty.reason, n_positive, of_all)


def compare_runs(
    scores_a: npt.ArrayLike,
    labels_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    labels_b: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Comparison:
    r"""Difference in AUROC of two runs on the same documents, e.g. of two models.

    Every model is judged on its own baseline answers, so a document may be hallucinated in one run and supported in the
    other. DeLong's test does not apply: it pairs the placement values of each class, and here the two runs have
    different classes. Taking the runs for independent would be wrong as well: they share the documents' difficulty.

    The infinitesimal jackknife takes its place: with :math:`c_i` what document
    :math:`i` adds to the deviation of a run's AUROC (its placement value less the AUROC, over the size of its class in
    that run), over the :math:`K` groups of documents (or documents),

    .. math:: \mathrm{SE}^2 = \frac{K}{K - 1} \sum_k \Bigl(\sum_{i \in k} (c_i^a - c_i^b)\Bigr)^2

    With groups each of them is deleted in turn instead, as in `estimate_auroc`.

    Args:
        scores_a: Scores of the first run, shape `(n,)`; higher = more likely hallucinated.
        labels_a: Labels 0 or 1 of the first run, shape `(n,)`; 1 = hallucinated.
        scores_b: Scores of the second run on the same documents in the same order, shape `(n,)`.
        labels_b: Its labels, shape `(n,)`.
        groups: Group (e.g. image id) of each document, length `n`.
        confidence: Level of the interval, in (0, 1).

    Returns:
        The comparison; what is undefined is `None`, with the reason.

    Raises:
        ValueError: If lengths differ, a label is neither 0 nor 1, or the level is not in (0, 1).

    Example:
        >>> labels, others = [1] * 5 + [0] * 5, [0, 1] * 5
        >>> result = compare_runs([9, 8, 7, 6, 5, 4, 3, 2, 1, 0], labels, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], others)
        >>> round(result.difference, 2)
        0.6
    """
    check_confidence(confidence)
    a, b = as_data(scores_a, labels_a), as_data(scores_b, labels_b)
    if len(a[0]) != len(b[0]):
        raise ValueError(f"the two runs differ in length: {len(a[0])} and {len(b[0])} documents")
    codes = None if groups is None else codes_of(groups, len(a[0]), "groups")
    kind = "document" if codes is None else "group"
    return _compared(a, b, f"paired jackknife by {kind}", lambda: _jackknife(a, b, codes, confidence))


def _compared(
    a: _Data,
    b: _Data,
    method: str,
    uncertainty: Callable[[], _Uncertainty],
) -> Comparison:
    n = len(a[0])
    n_positive = min((int((y == 1).sum()) for _, y in (a, b)), key=lambda count: min(count, n - count))
    areas: list[float | None] = []
    reasons: list[str] = []
    for name, (x, y) in (("a", a), ("b", b)):
        try:
            check_defined(x, y)
            check_enough(y == 1)
            areas.append(auroc(x, y))
        except UndefinedStatistic as error:
            areas.append(None)
            reasons.append(f"{name}: {error}")
    area_a, area_b = areas
    if area_a is None or area_b is None:
        # Both for the same reason, such as labels that they share: say it once.
        texts = dict.fromkeys(reason.split(": ", 1)[1] for reason in reasons)
        reason = texts.popitem()[0] if len(reasons) == 2 and len(texts) == 1 else "; ".join(reasons)
        return Comparison(area_a, area_b, None, None, None, None, n, method, reason, n_positive)
    try:
        tested = uncertainty()
    except UndefinedError as error:
        tested = _Uncertainty(reason=str(error))
    results = (tested.stderr, tested.interval, tested.p_value, n, method, tested.reason, n_positive, tested.deviations)
    return Comparison(area_a, area_b, area_a - area_b, *results)


def _delong(
    x_a: FloatArray,
    x_b: FloatArray,
    positive: BoolArray,
    groups: IntArray | None,
    confidence: float,
    extra_stderr: float,
) -> _Uncertainty:
    (area_a, components_a), (area_b, components_b) = auroc_components(x_a, positive), auroc_components(x_b, positive)
    # Differences of components, not of variances: scores of the same order then have exactly no variance.
    difference = area_a - area_b
    if groups is None:
        deviations = components_a - components_b
        stderr = float(np.sqrt(component_variance(deviations, positive)))
    else:
        stderr, deviations = _deleted((x_a, x_b), (positive, positive), groups)
    if stderr == 0:
        return _without_variation(difference, identical=bool((levels_of(x_a) == levels_of(x_b)).all()))
    degrees = degrees_of_freedom(positive, groups)
    tested = _tested(difference, math.hypot(stderr, extra_stderr), degrees, confidence)
    return replace(tested, deviations=deviations)


def _jackknife(a: _Data, b: _Data, groups: IntArray | None, confidence: float) -> _Uncertainty:
    (x_a, positive_a), (x_b, positive_b) = ((x, y == 1) for x, y in (a, b))
    for positive in (positive_a, positive_b):
        check_units(positive, groups)
    (area_a, components_a), (area_b, components_b) = (
        auroc_components(x_a, positive_a),
        auroc_components(x_b, positive_b),
    )
    stderr: float | None
    if groups is None:
        deviations = components_a - components_b
        stderr = clustered_spread(deviations, np.arange(len(x_a)))
    else:
        stderr, deviations = _deleted((x_a, x_b), (positive_a, positive_b), groups)
    if not stderr:
        identical = bool((levels_of(x_a) == levels_of(x_b)).all() and (positive_a == positive_b).all())
        return _without_variation(area_a - area_b, identical=identical)
    tested = _tested(area_a - area_b, stderr, rarest_degrees((positive_a, positive_b), groups), confidence)
    return replace(tested, deviations=deviations)


def _deleted(
    scores: tuple[FloatArray, FloatArray],
    classes: tuple[BoolArray, BoolArray],
    groups: IntArray,
    strata: IntArray | None = None,
) -> tuple[float, FloatArray]:
    """Standard error of a difference of AUROCs, from the differences without each group in turn; and what each adds."""
    for positive in classes:
        check_units(positive, groups)
    # The groups of all documents and, last, of none: both differences come from the same sums, and what is the same
    # for all groups has no variance, not even of rounding.
    a, b = (
        np.append(without_each_group(x, positive, groups, strata), whole_auroc(x, positive, strata))
        for x, positive in zip(scores, classes, strict=True)
    )
    if np.isnan(a - b).any():
        raise UndefinedError("no standard error: without one of the groups there is nothing left to compare")
    without = (a - b)[:-1] - (a - b)[-1]
    return deleted_spread(without), at_first(-without, groups)


def at_first(values: FloatArray, groups: IntArray) -> FloatArray:
    """Contributions of groups, at the first document of each; 0 at the others.

    Args:
        values: of the groups, in the order of their numbers, shape `(g,)`.
        groups: number of the group of each document, without gaps, shape `(n,)`.
    """
    of_documents = np.zeros(len(groups))
    of_documents[np.unique(groups, return_index=True)[1]] = values
    return of_documents


def rarest_degrees(classes: Iterable[BoolArray], groups: IntArray | None) -> float | None:
    """Degrees of freedom of a difference of runs: those of the run that has fewest; None (normal) without groups."""
    degrees = [degrees_of_freedom(positive, groups) for positive in classes]
    return min((d for d in degrees if d is not None), default=None)


def _tested(difference: float, stderr: float, degrees: float | None, confidence: float) -> _Uncertainty:
    """Interval and two-sided p-value, normal or Student's."""
    half = quantile_of(confidence, degrees) * stderr
    p_value = two_sided_p(abs(difference) / stderr, degrees)
    return _Uncertainty(stderr, (max(-1.0, difference - half), min(1.0, difference + half)), p_value)


def _without_variation(difference: float, *, identical: bool) -> _Uncertainty:
    """Of two rankings of which no document says anything else than the others."""
    if identical:
        return _Uncertainty(0.0, (0.0, 0.0), 1.0)
    reason = "no standard error: no document deviates from the others (perfect separation or constant scores)"
    return _Uncertainty(reason=reason)

r"""AUROCs and rates against experts, of whose labels there is a designed sample, with the judge's labels of all.

A judge labels every document :math:`i`, experts a sample with known inclusion probabilities :math:`\pi_i`
(`hedge_tasks.statistics.designs`). The *pseudo-label* of a document,

.. math:: \hat y_i = m_i + \frac{\delta_i}{\pi_i} (y_i - m_i),

is the experts' on average, whatever the prediction :math:`m_i`: how good the judge is decides how sure the number is,
never whether it is right. The prediction is the experts' rate among documents of the same stratum and judge's label,
fitted without the document's own fold of groups, times a tuned weight (PPI++: Angelopoulos, Duchi & Zrnic 2023).

- A number made of sums (a rate, an F1) is that of the sums of pseudo-labels.
- An AUROC is a ratio of two sums over pairs, :math:`\sum K_{ij} \hat y_i \hat y'_j / \sum \hat y_i \hat y'_j` (Alonzo &
  Pepe 2005; Rotnitzky, Faraggi & Schisterman 2006). Products of residuals need the pair's own inclusion probability:
  numerator and denominator are then unbiased, also where whole images are drawn.

Two errors are told apart: that of *this run's* number, which more labels would make 0, and that of *documents like
these*, which adds what the choice of the documents (or of their groups) adds. The least variance of a stratum follows
from its rate with some labels more of either kind, so that a few labels that happen to be alike do not seem sure.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Interval, Number
from hedge_tasks.statistics.base import (
    FloatArray,
    IntArray,
    check_confidence,
    codes_of,
    levels_of,
    logit_interval,
    quantile_of,
    two_sided_p,
    wilson,
)
from hedge_tasks.statistics.designs import Design
from hedge_tasks.statistics.paired import Comparison
from hedge_tasks.statistics.sums import Statistic, ratio

FOLDS = 5
"""Of the cross-fitted predictions; a group is in one."""

_PRIOR = 2.0
"""Labels that a stratum's rate is drawn towards the rate of the judge's label with."""

_LEAST_PRIOR, _LEAST_EITHER = 2.0, 1.0
"""The same for the least variance, and labels of either kind that the rate of the judge's label gets.

With half of either, 95 % intervals hold in .86 to .91 where the judge is nearly right: all labels then agree with it.
"""

_RIGHT, _WRONG, _RARER = (0.02, 2.0), 0.1, ((6, 12, 24), (0.2, 0.5, 1.0))
"""Factor of the least variance, from the share of labels in which experts and judge differ.

Where they seldom differ the errors that matter are those not seen yet: up to 2 % twice the variance. Where they often
do (10 %, linear between), labels show the variance themselves: a fifth of it with 6 labels of the rarer kind, half with
12, all with 24. Set on benchmarks/audit_coverage.py: one factor is too short with good judges, too long with bad ones.
"""

_GUESS = {"hallucinated": np.array([0.2, 0.8, 0.3]), "supported": np.array([0.8, 0.2, 0.3])}
"""Rate of a judge's label (supported, hallucinated, none) before any expert has been asked; it weighs one label."""

_LEAST_COUNT = 0.5
"""Answers down to a score: pseudo-labels may be below 0 where experts find no answer."""

_SCALE, _STEP = 2.0**20, 1e-5

_Labels = tuple[FloatArray, FloatArray]
"""Of each document: hallucinated, and supported. Both are 0 where there is no answer; shape `(n,)` each."""


@dataclass(frozen=True)
class Audited(Number):
    """A number against experts. Error and interval are for documents like these.

    Attributes:
        n_labels: documents that experts labelled.
        n_effective: labels of a simple random sample, without a judge, that would be as sure; None where unknown.
        run_stderr: standard error for this run's documents alone.
        run_interval: interval for this run's documents alone.
    """

    n_labels: int = 0
    n_effective: float | None = None
    run_stderr: float | None = None
    run_interval: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        extras = {name: getattr(self, name) for name in ("n_labels", "n_effective", "run_stderr", "run_interval")}
        return {**super().to_dict(), **{name: value for name, value in extras.items() if value is not None}}


@dataclass(frozen=True, eq=False)
class Verified:
    """Labels of all documents by a judge, and of a designed sample by experts.

    Attributes:
        judged: 1 = hallucinated, 0 = supported, nan where the judge gives no label, shape `(n,)`.
        hallucinated: share of the experts who say so, in [0, 1]; 0 outside the sample, shape `(n,)`.
        supported: share of the experts who say so; the rest finds no answer; 0 outside the sample, shape `(n,)`.
        design: how the sample was drawn.
        groups: group of each document, whole numbers from 0 without gaps, shape `(n,)`.
    """

    judged: FloatArray
    hallucinated: FloatArray
    supported: FloatArray
    design: Design
    groups: IntArray

    @property
    def n_labels(self) -> int:
        return int(self.design.drawn.sum())

    @property
    def experts(self) -> _Labels:
        return self.hallucinated, self.supported


def verified(
    judged: Sequence[float | None],
    experts: Sequence[float | None],
    design: Design,
    *,
    groups: Sequence[Hashable] | None = None,
    answered: Sequence[float] | None = None,
) -> Verified:
    """Put labels together.

    Args:
        judged: 1, 0, or None of each document.
        experts: 1 (hallucinated), 0 (supported) or a share between of each document; None outside the sample.
        design: how the sample was drawn.
        groups: group of each document; None: each its own.
        answered: share of experts who find an answer at all; by default 1.

    Raises:
        ValueError: lengths differ, or a document of the sample has no label.
    """
    by_judge, y = (np.array(list(labels), dtype=np.float64) for labels in (judged, experts))
    answered_share = np.ones(len(y)) if answered is None else np.asarray(answered, dtype=np.float64)
    if not len(by_judge) == len(y) == len(answered_share) == len(design.drawn):
        raise ValueError("labels differ in length")
    if np.isnan(y[design.drawn]).any():
        raise ValueError("a document of the sample has no label of an expert")
    codes = np.arange(len(y)) if groups is None else codes_of(groups, len(y), "groups")
    share = np.where(design.drawn, np.nan_to_num(y), 0.0)
    answered_share = np.where(design.drawn, answered_share, 0.0)
    return Verified(by_judge, share * answered_share, (1 - share) * answered_share, design, codes)


# --- numbers ----------------------------------------------------------------------------------------------------------


def audited_auroc(scores: npt.ArrayLike, labels: Verified, *, confidence: float = 0.95) -> Audited:
    """AUROC of a score against experts; the interval is Student's on the logit scale.

    Args:
        scores: shape `(n,)`; higher = more likely hallucinated.
        labels: of the same documents.
        confidence: level of the interval, in (0, 1).
    """
    x = _scores(scores, labels)
    return _audited(OfPairs(x), labels, _undefined(x, labels), confidence)


def audited_precision(scores: npt.ArrayLike, labels: Verified, *, confidence: float = 0.95) -> Audited:
    """Average precision (AUPRC) of a score against experts; arguments as for `audited_auroc`."""
    x = _scores(scores, labels)
    return _audited(_Precision(x), labels, _undefined(x, labels), confidence)


def audited_risk_coverage(scores: npt.ArrayLike, labels: Verified, *, confidence: float = 0.95) -> Audited:
    """Area under the risk-coverage curve (AURC) against experts: the risk, averaged over the share of documents kept.

    Answers in which experts find none are no part of the risk. Arguments as for `audited_auroc`.
    """
    x = _scores(scores, labels)
    return _audited(_RiskCoverage(x), labels, _undefined(x, labels), confidence)


def audited_rate(labels: Verified, *, confidence: float = 0.95) -> Audited:
    """Share of hallucinated among all answers, by experts; the interval is Student's on the logit scale."""
    return _audited(_rate(labels), labels, _unlabelled(labels), confidence)


def audited_sums(
    hallucinated: npt.ArrayLike,
    supported: npt.ArrayLike,
    unanswered: npt.ArrayLike,
    statistic: Statistic,
    labels: Verified,
    *,
    confidence: float = 0.95,
) -> Audited:
    """A function of sums over documents, in [0, 1], of which each adds by its label.

    Args:
        hallucinated, supported, unanswered: what a document adds under each label, shape `(n, ...)`.
        statistic: of the sums; see `hedge_tasks.statistics.sums`.
        labels: of the same documents.
        confidence: level of the interval, in (0, 1).
    """
    first, second, none = (np.asarray(a, dtype=np.float64) for a in (hallucinated, supported, unanswered))
    sums = _Sums(first, second, none, statistic)
    return _audited(sums, labels, _unlabelled(labels), confidence)


def compare_audited_scores(
    scores_a: npt.ArrayLike, scores_b: npt.ArrayLike, labels: Verified, *, confidence: float = 0.95
) -> Comparison:
    """Difference in AUROC of two scores for the same answers, against experts, paired by document."""
    check_confidence(confidence)
    a, b = (_scores(scores, labels) for scores in (scores_a, scores_b))
    why = _undefined(a, labels) or _undefined(b, labels)
    name = f"{labels.n_labels} labels of experts, paired by document"
    if why is not None:
        return Comparison.undefined(len(a), name, why)
    first, second = (_fit(OfPairs(x), labels) for x in (a, b))
    effects = first.effects[0] - second.effects[0], first.effects[1] - second.effects[1]
    error = _error(effects, labels, first.predicted)
    return _compared(first.value, second.value, error.total, error.degrees, len(a), name, confidence)


def compare_audited_runs(
    scores_a: npt.ArrayLike | None,
    labels_a: Verified,
    scores_b: npt.ArrayLike | None,
    labels_b: Verified,
    *,
    confidence: float = 0.95,
) -> Comparison:
    """Difference in AUROC (or, without scores, in the rate) of two runs on the same documents, each with its audit.

    The audits are drawn apart, so that their errors add up; what the documents add is paired by group.

    Raises:
        ValueError: the runs differ in their groups.
    """
    check_confidence(confidence)
    n, name = len(labels_a.judged), f"{labels_a.n_labels} and {labels_b.n_labels} labels of experts, paired by document"
    gap = audited_gap(scores_a, labels_a, scores_b, labels_b)
    if isinstance(gap, str):
        return Comparison.undefined(n, name, gap)
    return _compared(gap.a, gap.b, gap.variance, gap.degrees, n, name, confidence)


class Gap(NamedTuple):
    """Numbers of two runs, and the variance of their difference with its degrees of freedom."""

    a: float
    b: float
    variance: float
    degrees: float


def audited_gap(
    scores_a: npt.ArrayLike | None, labels_a: Verified, scores_b: npt.ArrayLike | None, labels_b: Verified
) -> Gap | str:
    """Return what `compare_audited_runs` tests; the reason where a number is undefined."""
    if not np.array_equal(labels_a.groups, labels_b.groups):
        raise ValueError("the two runs differ in their groups")
    fits, errors, reasons = [], [], []
    for side, scores, labels in (("a", scores_a, labels_a), ("b", scores_b, labels_b)):
        x = None if scores is None else _scores(scores, labels)
        why = _unlabelled(labels) if x is None else _undefined(x, labels)
        if why is not None:
            reasons.append(f"{side}: {why}")
            continue
        fit = _fit(_rate(labels) if x is None else OfPairs(x), labels)
        fits.append(fit)
        errors.append(_error(fit.effects, labels, fit.predicted))
    if reasons:
        return "; ".join(reasons)
    first, second = errors
    run = first.run + second.run
    noise, least = first.noise + second.noise, min(first.least, second.least)
    total, degrees = _total(
        run, min(first.run_degrees, second.run_degrees), first.sums - second.sums, noise, least, labels_a.groups
    )
    return Gap(fits[0].value, fits[1].value, total, degrees)


def _compared(
    a: float, b: float, variance: float, degrees: float, n: int, method: str, confidence: float
) -> Comparison:
    difference, stderr = a - b, math.sqrt(variance)
    if stderr < 1e-12:
        return Comparison(a, b, difference, 0.0, (difference, difference), 1.0 if a == b else None, n, method)
    half = _quantile(confidence, degrees) * stderr
    interval = max(-1.0, difference - half), min(1.0, difference + half)
    return Comparison(a, b, difference, stderr, interval, _p(abs(difference) / stderr, degrees), n, method)


def _quantile(confidence: float, degrees: float) -> float:
    return quantile_of(confidence, max(1, math.floor(degrees)))


def _p(deviation: float, degrees: float) -> float:
    return two_sided_p(deviation, max(1, math.floor(degrees)))


def _scores(scores: npt.ArrayLike, labels: Verified) -> FloatArray:
    x = np.asarray(scores, dtype=np.float64)
    if x.shape != labels.judged.shape:
        raise ValueError(f"scores and labels differ in shape: {x.shape} and {labels.judged.shape}")
    return x


def _undefined(x: FloatArray, labels: Verified) -> str | None:
    if np.isnan(x).any():
        return f"the score of {int(np.isnan(x).sum())} of {len(x)} documents is missing (NaN)"
    hallucinated, supported = (float(part.sum()) for part in labels.experts)
    if hallucinated and supported:
        return None
    return f"the experts call {'every' if hallucinated else 'no'} answer hallucinated ({labels.n_labels} labels)"


def _unlabelled(labels: Verified) -> str | None:
    return None if sum(float(part.sum()) for part in labels.experts) else "no expert labelled an answer"


# --- statistics of pseudo-labels --------------------------------------------------------------------------------------


class _Statistic(Protocol):
    tuned: ClassVar[bool]
    """Whether predictions get a tuned weight; else they weigh one."""

    def value(self, labels: _Labels, residuals: _Labels, design: Design) -> float:
        """Return the number of pseudo-labels; nan where there is none."""

    def effects(self, labels: _Labels, value: float) -> _Labels:
        """Return the derivative of the number by a document's pseudo-labels."""


class OfPairs:
    """A ratio of sums over pairs: those in order, of all."""

    tuned: ClassVar[bool] = True

    def __init__(self, x: FloatArray) -> None:
        self.levels = levels_of(x)
        self.n_levels = int(self.levels.max(initial=0)) + 1

    def _below(self, weights: FloatArray) -> FloatArray:
        """Sum of weights over the documents with a lower score, and half of it over those with the same."""
        at = np.bincount(self.levels, weights, self.n_levels)
        below: FloatArray = (np.cumsum(at) - at / 2)[self.levels]
        return below

    def pair_sums(self, labels: _Labels, residuals: _Labels, design: Design) -> tuple[float, float]:
        """Return how many pairs are in order, ties half, and how many there are; both are right on average."""
        positive, negative = labels
        own = float((positive * negative).sum())  # no document is a pair with itself
        ordered = float((positive * self._below(negative)).sum()) - own / 2
        pairs = float(positive.sum() * negative.sum()) - own
        more_ordered, more_pairs = self._drawn_together(residuals, design)
        return ordered + more_ordered, pairs + more_pairs

    def value(self, labels: _Labels, residuals: _Labels, design: Design) -> float:
        ordered, pairs = self.pair_sums(labels, residuals, design)
        return min(1.0, max(0.0, ordered / pairs)) if pairs > 0 else math.nan

    def _drawn_together(self, residuals: _Labels, design: Design) -> tuple[float, float]:
        """Terms that products of residuals lack, as pairs of one stratum are drawn with a probability of their own."""
        ordered = pairs = 0.0
        for members, weight in _drawn_together(design):
            levels = self.levels[members]
            weight *= residuals[0][members][:, None] * residuals[1][members][None]
            above = np.sign(levels[:, None] - levels[None]) / 2 + 0.5
            ordered, pairs = ordered + float((weight * above).sum()), pairs + float(weight.sum())
        return ordered, pairs

    def effects(self, labels: _Labels, value: float) -> _Labels:
        positive, negative = labels
        n1, n0 = float(positive.sum()), float(negative.sum())
        below, above = self._below(negative), n1 - self._below(positive)
        return (below - value * n0) / (n1 * n0), (above - value * n1) / (n1 * n0)


class _Precision:
    """Average precision: over the hallucinated, the mean share of hallucinated among what scores as high."""

    tuned: ClassVar[bool] = False  # a weight would make noise of the count of answers, known where all have one

    def __init__(self, x: FloatArray) -> None:
        self.levels = levels_of(-x)
        self.n_levels = int(self.levels.max(initial=0)) + 1

    def _sums(self, labels: _Labels) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Hallucinated at each level, and hallucinated and answers down to it; shape (levels,) each."""
        positive, negative = (np.bincount(self.levels, part, self.n_levels) for part in labels)
        whole = np.maximum(np.cumsum(positive + negative), _LEAST_COUNT)
        return positive.astype(np.float64), np.cumsum(positive), whole

    def value(self, labels: _Labels, residuals: _Labels, design: Design) -> float:
        at, above, whole = self._sums(labels)
        # A document is above itself once, and the square of its pseudo-label is not that.
        own = np.bincount(self.levels, labels[0] - labels[0] ** 2, self.n_levels)
        total = float(((at * above + own) / whole).sum())
        for members, weight in _drawn_together(design):
            levels, left = self.levels[members], residuals[0][members]
            higher = levels[None] <= levels[:, None]
            total += float((weight * higher * (left / whole[levels])[:, None] * left[None]).sum())
        positives = float(labels[0].sum())
        return min(1.0, max(0.0, total / positives)) if positives > 0 else math.nan

    def effects(self, labels: _Labels, value: float) -> _Labels:
        at, above, whole = self._sums(labels)
        positives = float(labels[0].sum())
        after = np.cumsum((at / whole)[::-1])[::-1]
        of_answer = -np.cumsum((at * above / whole**2)[::-1])[::-1] / positives
        of_positive = (above / whole + after - value) / positives
        return (of_positive + of_answer)[self.levels], of_answer[self.levels]


class _RiskCoverage:
    """The share of hallucinated among the k answers of the lowest scores, averaged over k; ties are spread."""

    tuned: ClassVar[bool] = False

    def __init__(self, x: FloatArray) -> None:
        self.levels = levels_of(x)
        sizes = np.bincount(self.levels)
        self.n_levels = len(sizes)
        self.level_of = np.repeat(np.arange(len(sizes)), sizes)
        self.ends = np.cumsum(sizes)
        place = np.arange(1, len(x) + 1)
        self.shares = (place - (self.ends - sizes)[self.level_of]) / sizes[self.level_of]

    def _kept(self, weights: FloatArray) -> FloatArray:
        """Sum of weights over the k documents of the lowest scores, for each k."""
        at = np.bincount(self.levels, weights, self.n_levels)
        kept: FloatArray = (np.cumsum(at) - at)[self.level_of] + self.shares * at[self.level_of]
        return kept

    def value(self, labels: _Labels, residuals: _Labels, design: Design) -> float:
        wrong, whole = self._kept(labels[0]), np.maximum(self._kept(labels[0] + labels[1]), _LEAST_COUNT)
        return min(1.0, max(0.0, float((wrong / whole).mean())))

    def effects(self, labels: _Labels, value: float) -> _Labels:
        wrong, whole = self._kept(labels[0]), np.maximum(self._kept(labels[0] + labels[1]), _LEAST_COUNT)
        of_positive, of_answer = self._of_document(1 / whole), self._of_document(-wrong / whole**2)
        return of_positive + of_answer, of_answer

    def _of_document(self, slopes: FloatArray) -> FloatArray:
        """Mean over k of slope times the share in which each document is kept."""
        inside = np.bincount(self.level_of, self.shares * slopes, self.n_levels)
        after = float(slopes.sum()) - np.cumsum(slopes)[self.ends - 1]
        slopes_of: FloatArray = ((inside + after) / len(slopes))[self.levels]
        return slopes_of


def _drawn_together(design: Design) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield the drawn of each stratum, and what products of two residuals of theirs lack, less the product itself."""
    for stratum in range(len(design.sizes[0])):
        members = np.flatnonzero(design.drawn & (design.strata == stratum))
        factor, alone = design.pair_factor(stratum), design.probabilities[members[0]]
        if factor == alone == 1:
            continue
        units = design.units[members]
        weight = np.where(units[:, None] == units[None], alone, factor) - 1.0
        np.fill_diagonal(weight, 0.0)
        yield members, weight


@dataclass(frozen=True, eq=False)
class _Sums:
    """A function of sums to which a document adds by its label."""

    tuned: ClassVar[bool] = True

    hallucinated: FloatArray
    supported: FloatArray
    unanswered: FloatArray
    statistic: Statistic

    def _of(self, labels: _Labels) -> FloatArray:
        first, second = (np.tensordot(w, part, 1) for w, part in zip(labels, self._parts, strict=True))
        total: FloatArray = self.unanswered.sum(axis=0) + first + second
        return total

    @property
    def _parts(self) -> _Labels:
        return self.hallucinated - self.unanswered, self.supported - self.unanswered

    def value(self, labels: _Labels, residuals: _Labels, design: Design) -> float:
        return float(self.statistic(_SCALE * self._of(labels)[None])[0])

    def effects(self, labels: _Labels, value: float) -> _Labels:
        slope = self._slope(labels)
        first, second = (part.reshape(len(part), -1) @ slope for part in self._parts)
        return first, second

    def alone(self, labels: _Labels) -> FloatArray:
        """Effect of each document without an answer; labels add theirs."""
        contribution: FloatArray = self.unanswered.reshape(len(self.unanswered), -1) @ self._slope(labels)
        return contribution

    def labels_behind(self, labels: Verified) -> float:
        """Labels that add to the sums, as many as count alike (Kish 1965)."""
        first, second, none = (
            (part.reshape(len(part), -1) != 0).any(axis=1)
            for part in (self.hallucinated, self.supported, self.unanswered)
        )
        y1, y0 = labels.experts
        shares = first * y1 + second * y0 + none * (labels.design.drawn - y1 - y0)
        weights = shares / labels.design.probabilities
        return float(weights.sum() ** 2 / max(float((weights**2).sum()), 1e-12))

    def _slope(self, labels: _Labels) -> FloatArray:
        whole = _SCALE * self._of(labels)
        step = _STEP * max(float(np.abs(whole).max()), 1.0)
        steps = step * np.eye(whole.size).reshape(whole.size, *whole.shape)
        slope: FloatArray = (self.statistic(whole + steps) - self.statistic(whole - steps)) / (2 * step) * _SCALE
        return slope


def _rate(labels: Verified) -> _Sums:
    n = len(labels.judged)
    return _Sums(np.tile([1.0, 1.0], (n, 1)), np.tile([0.0, 1.0], (n, 1)), np.zeros((n, 2)), ratio)


# --- how --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Fit:
    """A number with what it rests on.

    Attributes:
        effects: change of the number with the label of each document.
        predicted, plain: predictions with and without their tuned weight.
        labels: pseudo-labels.
    """

    value: float
    effects: _Labels
    predicted: _Labels
    labels: _Labels
    plain: _Labels


@dataclass(frozen=True, eq=False)
class _Error:
    """Variances.

    Attributes:
        run: by the draw of the labels.
        sums: what each group adds to the deviation, shape `(groups,)`.
        noise: what the draw of the labels adds to their squares.
        least: that documents like these differ by at the very least.
        total: for documents like these.
    """

    run: float
    run_degrees: float
    sums: FloatArray
    noise: float
    least: float
    total: float
    degrees: float


def _audited(statistic: _Statistic, labels: Verified, why: str | None, confidence: float) -> Audited:
    check_confidence(confidence)
    counts: dict[str, Any] = {"n": len(labels.judged), "n_labels": labels.n_labels}
    if why is not None:
        return Audited(None, reason=why, **counts)
    fit = _fit(statistic, labels)
    if math.isnan(fit.value):
        return Audited(None, reason=f"{labels.n_labels} labels of experts are too few for it", **counts)
    alone = statistic.alone(fit.labels) if isinstance(statistic, _Sums) else None
    behind = statistic.labels_behind(labels) if isinstance(statistic, _Sums) else None
    error = _error(fit.effects, labels, fit.predicted, None if alone is None else (alone, *fit.plain))
    return Audited(
        fit.value,
        math.sqrt(error.total),
        _interval(fit.value, error.total, error.degrees, labels, confidence, behind),
        n_groups=int(labels.groups.max()) + 1,
        method=f"{labels.n_labels} labels of experts, doubly robust; Student's interval on the logit scale",
        n_effective=_effective(fit.effects, labels, error.run),
        run_stderr=math.sqrt(error.run),
        run_interval=_interval(fit.value, error.run, error.run_degrees, labels, confidence, behind),
        **counts,
    )


def _interval(
    value: float, variance: float, degrees: float, labels: Verified, confidence: float, behind: float | None = None
) -> Interval:
    """Interval of a number.

    Args:
        behind: labels that it rests on; None: those of the rarer kind.
    """
    stderr = math.sqrt(variance)
    if not stderr:
        return value, value  # every document has a label
    n = max(1.0, min(float(part.sum()) for part in labels.experts) if behind is None else behind)
    # Within half a label of the bounds a logit says nothing.
    near = 0.0 if behind is None else 0.5 / n
    if near < value < 1 - near:
        return logit_interval(value, stderr, confidence, max(1, math.floor(degrees)))
    # At the bounds: no shorter than the labels say, or than the error does.
    low, high = wilson(min(1.0, max(0.0, value)), n, confidence)
    half = _quantile(confidence, degrees) * stderr
    return max(0.0, min(low, value - half)), min(1.0, max(high, value + half))


def _effective(effects: _Labels, labels: Verified, variance: float) -> float | None:
    """Labels of a simple random sample, without a judge, that leave as much variance."""
    (d1, d0), (y1, y0) = effects, labels.experts
    n, weights = len(y1), labels.design.drawn / labels.design.probabilities
    alone = n * float((weights * (y1 * d1 + y0 * d0) ** 2).sum())
    return None if variance <= 0 else alone / (variance + alone / n)


def _fit(statistic: _Statistic, labels: Verified) -> _Fit:
    predicted = cross_fitted(labels)
    pseudo, residuals = pseudo_labels(predicted, labels)
    (d1, d0), (y1, y0), (m1, m0) = (
        statistic.effects(pseudo, statistic.value(pseudo, residuals, labels.design)),
        labels.experts,
        predicted,
    )
    weight = _weight(d1 * y1 + d0 * y0, d1 * m1 + d0 * m0, labels.design) if statistic.tuned else 1.0
    plain, predicted = predicted, (weight * m1, weight * m0)
    pseudo, residuals = pseudo_labels(predicted, labels)
    value = statistic.value(pseudo, residuals, labels.design)
    return _Fit(value, statistic.effects(pseudo, value), predicted, pseudo, plain)


def pseudo_labels(predicted: _Labels, labels: Verified) -> tuple[_Labels, _Labels]:
    """Return pseudo-labels, and what they add to the predictions."""
    is_drawn, pi = labels.design.drawn, labels.design.probabilities
    e1, e0 = (np.where(is_drawn, (y - m) / pi, 0.0) for y, m in zip(labels.experts, predicted, strict=True))
    return (predicted[0] + e1, predicted[1] + e0), (e1, e0)


def _weight(observed: FloatArray, predicted: FloatArray, design: Design) -> float:
    """Weight of the predictions that leaves the least variance, in [0, 1]."""
    both, apart, alone = (design.variance(v)[0] for v in (observed + predicted, observed - predicted, predicted))
    return float(np.clip((both - apart) / 4 / alone, 0.0, 1.0)) if alone > 0 else 1.0


def cross_fitted(labels: Verified) -> _Labels:
    """Return the experts' rate among documents with the same judge's label and stratum, in the other folds."""
    design, judged = labels.design, _codes(labels)
    cells, n_cells = 3 * design.strata + judged, 3 * (int(design.strata.max()) + 1)
    folds = labels.groups % FOLDS
    predictions = []
    for y, guess in zip(labels.experts, _GUESS.values(), strict=True):
        m = np.empty(len(y))
        for fold in range(FOLDS):
            train = (design.drawn & (folds != fold)).astype(np.float64)
            weights = train / design.probabilities
            weights *= train.sum() / max(float(weights.sum()), 1e-9)
            of_judge = (np.bincount(judged, weights * y, 3) + guess) / (np.bincount(judged, weights, 3) + 1)
            drawn_to = of_judge[np.arange(n_cells) % 3]
            counts = np.bincount(cells, train, n_cells)
            rates = (np.bincount(cells, train * y, n_cells) + _PRIOR * drawn_to) / (counts + _PRIOR)
            m[folds == fold] = rates[cells[folds == fold]]
        predictions.append(m)
    return predictions[0], predictions[1]


def _codes(labels: Verified) -> IntArray:
    """The judge's label: 0, 1, and 2 where there is none."""
    return np.where(np.isnan(labels.judged), 2, labels.judged).astype(np.int64)


def _error(
    effects: _Labels,
    labels: Verified,
    predicted: _Labels,
    of_sums: tuple[FloatArray, FloatArray, FloatArray] | None = None,
) -> _Error:
    """Variances of a number.

    Args:
        of_sums: of a function of sums, the effect of each document without an answer, and predictions without their
            weight, which is 0 where all labels of a stratum are alike and would make noise of documents like these.
    """
    design, (y1, y0), (d1, d0), (m1, m0) = labels.design, labels.experts, effects, predicted
    pi = design.probabilities
    left = np.where(design.drawn, d1 * (y1 - m1) + d0 * (y0 - m0), 0.0)
    least = _least(effects, labels)
    run, run_degrees = design.variance(left, least)
    own = d1 * m1 + d0 * m0
    if of_sums is not None:
        alone, p1, p0 = of_sums
        own = alone + d1 * p1 + d0 * p0
        left = np.where(design.drawn, d1 * (y1 - p1) + d0 * (y0 - p0), 0.0)
    sums: FloatArray = np.bincount(labels.groups, own + left / pi).astype(np.float64)
    n_units = len(design.drawn_units)
    of_unit = np.bincount(design.units, left / pi, n_units)
    missed = np.zeros(n_units)
    missed[design.units] = 1 - pi
    noise, at_least = float((missed * of_unit**2).sum()), float(least.sum())
    total, degrees = _total(run, run_degrees, sums, noise, at_least, labels.groups)
    return _Error(run, run_degrees, sums, noise, at_least, total, degrees)


def _total(
    run: float, run_degrees: float, sums: FloatArray, noise: float, least: float, groups: IntArray
) -> tuple[float, float]:
    """Variance for documents like these, and its degrees of freedom: a few large groups are as sure as few groups."""
    n_groups = len(sums)
    spread = float(sums @ sums) * n_groups / max(n_groups - 1, 1)
    like_these = max(spread - noise, least)
    sizes = np.bincount(groups).astype(np.float64) ** 2
    group_degrees = max(float(sizes.sum() ** 2 / (sizes @ sizes)) - 1, 1.0)
    total = run + like_these
    parts = run**2 / max(run_degrees, 1.0) + like_these**2 / group_degrees
    return total, total**2 / parts if parts > 0 else 1.0


def _least(effects: _Labels, labels: Verified) -> FloatArray:
    """Variance of a document's part that its stratum's labels leave possible, also where the few there are alike.

    The rate of a judge's label in a stratum is drawn towards that of the label in all of them, to which a label of
    either kind is added; the variance then follows how often experts and judge differ (`_factor`).
    """
    design, (d1, d0), judged = labels.design, effects, _codes(labels)
    cells = 3 * design.strata + judged
    n = int(cells.max()) + 1
    n_drawn = np.bincount(cells[design.drawn], minlength=n)[cells]
    of_judge = np.bincount(judged[design.drawn], minlength=3)
    rates = []
    for y in labels.experts:
        wide = ((np.bincount(judged, y, 3) + _LEAST_EITHER) / (of_judge + 2 * _LEAST_EITHER))[judged]
        rates.append((np.bincount(cells, y, n)[cells] + _LEAST_PRIOR * wide) / (n_drawn + _LEAST_PRIOR))
    p1, p0 = rates
    variances: FloatArray = np.maximum(p1 * d1**2 + p0 * d0**2 - (p1 * d1 + p0 * d0) ** 2, 0.0)
    return variances * _factor(labels, judged)


def _factor(labels: Verified, judged: IntArray) -> float:
    """Of the least variance; 1 where the judge labels nothing that experts did."""
    both = labels.design.drawn & (judged < 2)
    if not both.any():
        return 1.0
    agree = np.where(judged == 1, labels.hallucinated, labels.supported)[both]
    low, most = _RIGHT
    least = float(np.interp(min(float(part.sum()) for part in labels.experts), *_RARER))
    return float(np.interp(1 - agree.mean(), (low, _WRONG), (most, least)))

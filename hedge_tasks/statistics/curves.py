r"""What a score is worth for answering only when sure: rejection and risk-coverage curves and their areas.

Everything here starts from one curve: the mean quality :math:`Q(k)` of the :math:`k` answers with the lowest scores.
*Quality* is a number in [0, 1] per answer, `1 - label` where there is only a label; *risk* is `1 - quality`.

Scores of few sampled answers are full of ties. Among equal scores :math:`Q(k)` is the expectation over all orders
(the running sum of the qualities grows linearly through a tie), so no result depends on the order of the documents,
and a constant score is exactly as good as a random one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Number
from hedge_tasks.statistics.base import (
    FloatArray,
    IntArray,
    UndefinedStatistic,
    as_columns,
    as_data,
    check_complete,
    check_confidence,
    check_resamples,
    codes_of,
    levels_of,
)
from hedge_tasks.statistics.memory import by_content
from hedge_tasks.statistics.resampling import canonical_units, percentile_interval, unit_counts


@dataclass(frozen=True)
class Curve:
    """Points of a curve, ascending in `x`.

    Attributes:
        x: Shape `(n,)`.
        y: Shape `(n,)`.
    """

    x: FloatArray
    y: FloatArray


def average_precision(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    r"""Area under the precision-recall curve of finding hallucinations (AUPRC), as average precision.

    .. math::
        \mathrm{AP} = \sum_t (R_t - R_{t-1}) P_t

    over the distinct scores as thresholds, from the highest, without interpolation
    (`sklearn.metrics.average_precision_score`). A random score has the share of hallucinations, not 0.5: compare only
    on the same documents.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        labels: Labels 0 or 1, shape `(n,)`; 1 = hallucinated.

    Raises:
        UndefinedStatistic: If no document is labelled hallucinated, or a number is `nan`.
        ValueError: If the lengths differ or a label is neither 0 nor 1.

    Example:
        >>> round(average_precision([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]), 4)
        0.8333
    """
    x, y = as_data(scores, labels)
    check_complete(x, y, "label")
    if not (y == 1).any():
        raise UndefinedStatistic("no document is labelled hallucinated")
    return float(_average_precision(_Counts.of(x, 1 - y))[0])


def rejection_curve(scores: npt.ArrayLike, quality: npt.ArrayLike) -> Curve:
    """Mean quality of the answers kept (with labels: accuracy) against the share rejected, highest scores first.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        quality: Quality of each answer in [0, 1], shape `(n,)`; `1 - label` where there is only a label.

    Returns:
        `n` points, at the shares 0, 1/n, ..., (n - 1)/n.

    Raises:
        UndefinedStatistic: If there is no document or a number is `nan`.
        ValueError: If the lengths differ or a quality is outside [0, 1].

    Example:
        >>> rejection_curve([0.1, 0.2, 0.2, 0.9], [1, 1, 0, 0]).y.tolist()
        [0.5, 0.6666666666666666, 0.75, 1.0]
    """
    x, q = _as_quality(scores, quality)
    mean_kept = mean_quality(x, q)
    return Curve(np.arange(len(x)) / len(x), mean_kept[::-1].copy())


def risk_coverage_curve(scores: npt.ArrayLike, quality: npt.ArrayLike) -> Curve:
    """Mean risk (with labels: share of hallucinations) of the answers kept against their share, lowest scores first.

    Source: El-Yaniv & Wiener 2010, JMLR 11. Arguments and errors as for `rejection_curve`.

    Returns:
        `n` points, at the coverages 1/n, 2/n, ..., 1.

    Example:
        >>> risk_coverage_curve([0.1, 0.2, 0.2, 0.9], [1, 1, 0, 0]).y.tolist()
        [0.0, 0.25, 0.33333333333333337, 0.5]
    """
    x, q = _as_quality(scores, quality)
    return Curve(np.arange(1, len(x) + 1) / len(x), 1 - mean_quality(x, q))


def area_under_risk_coverage(scores: npt.ArrayLike, quality: npt.ArrayLike) -> float:
    r"""AURC: the mean of the risk over all coverages; lower is better, a random score has the mean risk.

    .. math::
        \mathrm{AURC} = \frac{1}{n} \sum_{k=1}^{n} \bigl(1 - Q(k)\bigr)

    Source: Geifman, Uziel & El-Yaniv 2019, "Bias-Reduced Uncertainty Estimation". Arguments and errors as for
    `rejection_curve`.

    Example:
        >>> round(area_under_risk_coverage([0.1, 0.2, 0.2, 0.9], [1, 1, 0, 0]), 4)
        0.2708
    """
    x, q = _as_quality(scores, quality)
    return float(1 - mean_quality(x, q).mean())


def prediction_rejection_ratio(scores: npt.ArrayLike, quality: npt.ArrayLike, *, max_rejection: float = 1.0) -> float:
    r"""PRR: how much of the way from random rejection to the oracle's the score goes.

    .. math::
        \mathrm{PRR} = \frac{A_\mathrm{score} - A_\mathrm{random}}{A_\mathrm{oracle} - A_\mathrm{random}}, \qquad
        A = \frac{1}{r} \sum_{k=n-r+1}^{n} Q(k), \qquad r = \lfloor n \cdot \mathtt{max\_rejection} \rfloor

    1 for the oracle, which rejects the answers of lowest quality first, 0 for random rejection (the mean quality at
    every :math:`k`), negative for worse than random. As in lm-polygraph (`PredictionRejectionArea`), with two
    differences: there ties fall as they are sorted, and random is the mean over 1000 shuffles.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        quality: Quality of each answer in [0, 1], shape `(n,)`; `1 - label` where there is only a label.
        max_rejection: Largest share rejected, in (0, 1]; lm-polygraph's papers report 1 and 0.5.

    Raises:
        UndefinedStatistic: If there is no document, a number is `nan`, all answers have the same quality, or no
            answer can be rejected.
        ValueError: If the lengths differ or a number is out of range.

    Example:
        >>> round(prediction_rejection_ratio([0.1, 0.2, 0.2, 0.9], [1, 1, 0, 0]), 4)
        0.7857
    """
    if not 0 < max_rejection <= 1:
        raise ValueError(f"max_rejection must be in (0, 1], got {max_rejection}")
    x, q = _as_quality(scores, quality)
    if not int(max_rejection * len(x)):
        raise UndefinedStatistic(f"no answer can be rejected: max_rejection {max_rejection:g} of {len(x)} documents")
    if np.ptp(q) == 0:
        raise UndefinedStatistic("all answers have the same quality, so that no order is better than another")
    return float(_prr(_Counts.of(x, q), max_rejection)[0])


def area_under_quality(scores: npt.ArrayLike, quality: npt.ArrayLike, *, resolution: int = 100) -> float:
    r"""AUG: area under the mean quality of the most confident share of the answers, for shares from 0 to 1.

    .. math::
        \mathrm{AUG} = \int_0^1 \bar q(c)\, \mathrm{d}c, \qquad \bar q(c) = Q(\lfloor c\, n \rfloor), \quad Q(0) = 0

    by the trapezoid rule over `resolution + 1` shares, exactly as the code of the VASE paper (Liao et al. 2025,
    quality there: the GREEN score) does: the empty share has quality 0, so that even flawless answers have an AUG a
    little below 1 (0.995 with 100 documents or more). Differences: ties in expectation, and :math:`\lfloor c\, n
    \rfloor` is exact here, where floating point loses an answer at times.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        quality: Quality of each answer in [0, 1], shape `(n,)`; `1 - label` where there is only a label.
        resolution: Number of steps, at least 1.

    Raises:
        UndefinedStatistic: If there is no document or a number is `nan`.
        ValueError: If the lengths differ or a number is out of range.

    Example:
        >>> round(area_under_quality([0.1, 0.2, 0.2, 0.9], [1, 1, 0, 0], resolution=4), 4)
        0.6667
    """
    if resolution < 1:
        raise ValueError(f"resolution must be at least 1, got {resolution}")
    x, q = _as_quality(scores, quality)
    return float(_aug(_Counts.of(x, q), resolution)[0])


def estimate_curves(
    scores: npt.ArrayLike,
    quality: npt.ArrayLike,
    *,
    groups: Sequence[Hashable] | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Mapping[str, Number]:
    """The areas of this module with bootstrap standard errors and percentile intervals, from the same resamples.

    Documents (with `groups` whole groups) are resampled; a resample where a number is undefined is left out for it.
    About the mean quality, i.e. what a random score has, see `estimate_rate`.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated.
        quality: Quality of each answer in [0, 1], shape `(n,)`; `1 - label` where there is only a label.
        groups: Group (e.g. image id) of each document, length `n`.
        n_resamples: Number of resamples, at least 2.
        seed: Seed of the resampling.
        confidence: Level of the intervals, in (0, 1).

    Returns:
        Estimates of `auprc` (undefined unless every quality is 0 or 1), `aurc`, `prr`, `prr_50` (at most half
        rejected) and `aug`. `n_positive` counts the answers of quality 0. What is undefined says why.

    Raises:
        ValueError: If lengths differ, or a number is out of range.

    Example:
        >>> found = estimate_curves([0.1, 0.2, 0.3, 0.9], [1, 1, 0, 0])
        >>> round(found["prr"].value, 3), round(found["auprc"].value, 3)
        (1.0, 1.0)
    """
    check_resamples(n_resamples)
    check_confidence(confidence)
    x, q = _as_columns_of_quality(scores, quality)
    codes = None if groups is None else codes_of(groups, len(x), "groups")
    n, n_positive = len(x), int((q == 0).sum())
    estimates, reasons = {}, {}
    for name, statistic in _POINT.items():
        try:
            estimates[name] = statistic(x, q)
        except UndefinedStatistic as error:
            reasons[name] = str(error)
    undefined = {name: Number(None, n=n, n_positive=n_positive, reason=reason) for name, reason in reasons.items()}
    if not estimates:
        return undefined
    samples = _resampled(x, q, codes, tuple(estimates), n_resamples, seed)
    kind = "document" if codes is None else "group"
    method = f"{kind} bootstrap ({n_resamples} resamples), percentile interval"
    defined = {
        name: _estimated(value, samples[name], n, n_positive, method, confidence) for name, value in estimates.items()
    }
    return {name: (defined | undefined)[name] for name in _POINT}


def mean_quality(x: FloatArray, q: FloatArray) -> FloatArray:
    """Q(k), k = 1, ..., n: mean quality of the k lowest scores, expected over the orders of ties; shape `(n,)`."""
    k = np.arange(1, len(x) + 1)
    return np.asarray(_Counts.of(x, q).sums_of(k[None])[0] / k)


@dataclass(frozen=True)
class _Counts:
    """Documents by distinct score, ascending: how many up to each, and the sums of their qualities; a row a resample.

    Attributes:
        ends: Number of documents with at most this score, shape `(rows, levels)`.
        sums: Sum of their qualities, shape `(rows, levels)`.
        n_best: Number of documents of each distinct quality, from the best, shape `(rows, qualities)`.
        best: These qualities, descending.
    """

    ends: FloatArray
    sums: FloatArray
    n_best: FloatArray
    best: FloatArray

    @classmethod
    def of(cls, x: FloatArray, q: FloatArray) -> _Counts:
        """Of the documents themselves, each once: one row."""
        return _Layout(x, q).counts(np.ones((1, len(x))))

    @property
    def n(self) -> IntArray:
        """Documents, shape `(rows,)`."""
        return self.ends[:, -1].astype(np.int64)

    def sums_of(self, n_kept: IntArray) -> FloatArray:
        """Sum of the qualities of the k lowest scores, expected over the orders of ties; of whole k and by row."""
        # One interpolation for all rows, each of them shifted to a place of its own.
        shift = (np.arange(len(self.ends)) * (int(self.n.max()) + 1))[:, None]
        nothing = np.zeros((len(self.ends), 1))
        ends, sums = (np.concatenate([nothing, part], axis=1) for part in (self.ends, self.sums))
        values = np.interp((n_kept + shift).ravel(), (ends + shift).ravel(), sums.ravel())
        return np.asarray(values.reshape(n_kept.shape))

    def mean_above(self, least: IntArray) -> FloatArray:
        """Mean of Q(k) over k from `least + 1` to n, shape `(rows,)`."""
        return _mean_above(self.ends, self.sums, least)

    def oracle_mean_above(self, least: IntArray) -> FloatArray:
        """The same if the answers came in the order of their quality."""
        return _mean_above(np.cumsum(self.n_best, axis=1), np.cumsum(self.n_best * self.best, axis=1), least)


class _Layout:
    """Where documents lie among scores and qualities; worked out once for all resamples."""

    def __init__(self, x: FloatArray, q: FloatArray) -> None:
        self.q, self.levels = q, levels_of(x)
        best, place = np.unique(-q, return_inverse=True)
        self.best, self.place = -best, place.astype(np.int64)
        self._by_level, self._by_place = _sorted(self.levels), _sorted(self.place)

    def counts(self, times: FloatArray) -> _Counts:
        """Of the documents, each counted `times` often, shape `(rows, n)`."""
        of_level, quality = _sums(times, *self._by_level), _sums(times * self.q, *self._by_level)
        ends, sums = np.cumsum(of_level, axis=1), np.cumsum(quality, axis=1)
        return _Counts(ends, sums, _sums(times, *self._by_place), self.best)


def _sorted(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Documents in the order of their codes 0, 1, ..., and where each code begins."""
    order = np.argsort(codes, kind="stable")
    return order, np.searchsorted(codes[order], np.arange(int(codes.max()) + 1))


def _sums(weights: FloatArray, order: IntArray, starts: IntArray) -> FloatArray:
    return np.add.reduceat(weights[:, order], starts, axis=1)


def _mean_above(ends: FloatArray, sums: FloatArray, least: IntArray) -> FloatArray:
    r"""Mean of :math:`S(k) / k` over k from `least + 1` on, S running linearly through each level.

    Within a level :math:`S(k) = a + b k`, so that :math:`\sum S(k) / k = a \sum 1/k + b \sum 1`.
    """
    n = int(ends[:, -1].max())
    harmonic = np.append(0.0, np.cumsum(1.0 / np.arange(1, n + 1)))
    starts, before = _shifted(ends), _shifted(sums)
    slope = np.divide(sums - before, ends - starts, out=np.zeros_like(ends), where=ends > starts)
    low, high = (np.maximum(bound, least[:, None]).astype(np.int64) for bound in (starts, ends))
    areas = slope * (high - low) + (before - slope * starts) * (harmonic[high] - harmonic[low])
    with np.errstate(invalid="ignore"):
        return np.asarray(areas.sum(axis=1) / (ends[:, -1] - least))


def _shifted(values: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros((len(values), 1)), values[:, :-1]], axis=1)


def _aurc(counts: _Counts) -> FloatArray:
    return 1 - counts.mean_above(np.zeros(len(counts.ends), dtype=np.int64))


def _prr(counts: _Counts, max_rejection: float) -> FloatArray:
    kept_at_least = counts.n - (max_rejection * counts.n).astype(np.int64)
    area, oracle = counts.mean_above(kept_at_least), counts.oracle_mean_above(kept_at_least)
    random = counts.sums[:, -1] / counts.n
    # Equal qualities: their sums differ from k times one of them by rounding only.
    defined = (oracle - random > 1e-12) & (kept_at_least < counts.n)
    return np.divide(area - random, oracle - random, out=np.full(len(area), np.nan), where=defined)


def _aug(counts: _Counts, resolution: int) -> FloatArray:
    n_kept = np.arange(resolution + 1) * counts.n[:, None] // resolution
    quality = counts.sums_of(n_kept) / np.maximum(n_kept, 1)
    return np.asarray((quality[:, 1:] + quality[:, :-1]).sum(axis=1) / 2 / resolution)


def _average_precision(counts: _Counts) -> FloatArray:
    """Of qualities 0 and 1: found from the highest score down."""
    rejected = counts.n[:, None] - _shifted(counts.ends)
    positives = rejected - (counts.sums[:, -1:] - _shifted(counts.sums))
    new = positives - np.concatenate([positives[:, 1:], np.zeros((len(positives), 1))], axis=1)
    parts = np.divide(new * positives, rejected, out=np.zeros_like(positives), where=(new > 0) & (rejected > 0))
    all_found = positives[:, 0]
    return np.divide(parts.sum(axis=1), all_found, out=np.full(len(positives), np.nan), where=all_found > 0)


_POINT: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "auprc": lambda x, q: average_precision(x, 1 - _as_labels(q)),
    "aurc": area_under_risk_coverage,
    "prr": prediction_rejection_ratio,
    "prr_50": lambda x, q: prediction_rejection_ratio(x, q, max_rejection=0.5),
    "aug": area_under_quality,
}
_OF_COUNTS: dict[str, Callable[[_Counts], FloatArray]] = {
    "auprc": _average_precision,
    "aurc": _aurc,
    "prr": lambda counts: _prr(counts, 1.0),
    "prr_50": lambda counts: _prr(counts, 0.5),
    "aug": lambda counts: _aug(counts, 100),
}


@by_content(keep=64)
def _resampled(
    x: FloatArray, q: FloatArray, groups: IntArray | None, names: tuple[str, ...], n_resamples: int, seed: int
) -> dict[str, FloatArray]:
    layout = _Layout(x, q)
    units, n_units = canonical_units(groups, layout.levels, layout.place)
    samples: dict[str, list[FloatArray]] = {name: [] for name in names}
    for block in unit_counts(n_units, n_resamples, len(x), seed):
        counts = layout.counts(block[:, units].astype(np.float64))
        for name in names:
            samples[name].append(_OF_COUNTS[name](counts))
    return {name: np.concatenate(values) for name, values in samples.items()}


def _estimated(value: float, samples: FloatArray, n: int, n_positive: int, method: str, confidence: float) -> Number:
    samples = samples[~np.isnan(samples)]
    if len(samples) < 2 or np.ptp(samples) < 1e-12:
        return Number(value, n=n, n_positive=n_positive, reason="no standard error: it is the same in every resample")
    stderr, interval = float(samples.std(ddof=1)), percentile_interval(samples, confidence)
    return Number(value, stderr=stderr, n=n, n_positive=n_positive, interval=interval, method=method)


def _as_labels(q: FloatArray) -> FloatArray:
    if not np.isin(q[~np.isnan(q)], (0, 1)).all():
        raise UndefinedStatistic("precision needs answers that are either hallucinated or not; these have a degree")
    return q


def _as_quality(scores: npt.ArrayLike, quality: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, q = _as_columns_of_quality(scores, quality)
    check_complete(x, q, "quality")
    return x, q


def _as_columns_of_quality(scores: npt.ArrayLike, quality: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, q = as_columns(scores, quality, "quality")
    wrong = (q < 0) | (q > 1)
    if wrong.any():
        raise ValueError(f"quality must be between 0 and 1, but quality[{wrong.argmax()}] is {q[wrong][0]:g}")
    return x, q

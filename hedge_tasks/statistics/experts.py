r"""Numbers by labels of experts, who saw a sample of the documents in proportion to the judge's labels.

Drawn in proportion, the labels are treated as a simple random sample: every number is what it is of the judge's labels,
on the documents that experts labelled and by their labels. Only a share of all documents uses the judge's labels of the
others: it is the mean of the shares of the strata, weighted by their sizes, which are known.

The interval of such a mean is the square-and-add of Wilson's limits of each stratum (Newcombe 1998, Statistics in
Medicine 17(8), methods 10 and 11; Zou & Donner 2008, Statistics in Medicine 27(10)),

.. math::
    L = \hat p - \sqrt{\sum_h W_h^2 (\hat p_h - l_h)^2}, \qquad U = \hat p + \sqrt{\sum_h W_h^2 (u_h - \hat p_h)^2},

so that a few labels that happen to agree with the judge never seem sure. An interval for documents like these also has
the draw of the documents, :math:`\sum_h W_h (\hat p_h - \hat p)^2 / N`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import Interval, Number
from hedge_tasks.statistics.base import IntArray, check_confidence, quantile_of, two_sided_p, wilson
from hedge_tasks.statistics.means import estimate_mean
from hedge_tasks.statistics.paired import Comparison


@dataclass(frozen=True)
class Audited(Number):
    """A number by labels of experts, for documents like these.

    Attributes:
        n_labels: documents that experts labelled.
        n_effective: labels of a simple random sample, without a judge, that would be as sure.
    """

    n_labels: int = 0
    n_effective: float | None = None

    def to_dict(self) -> dict[str, Any]:
        extras = {"n_labels": self.n_labels, "n_effective": self.n_effective}
        return {**super().to_dict(), **{name: value for name, value in extras.items() if value is not None}}


def by_labels_alone(number: Number, n_labels: int) -> Audited:
    """A number of the labelled documents; each label is worth one of a simple random sample."""
    return Audited(**vars(number), n_labels=n_labels, n_effective=float(n_labels) if number.defined else None)


def audited_rate(
    values: npt.ArrayLike,
    strata: IntArray,
    sizes: IntArray,
    *,
    groups: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Audited:
    """Share of all documents, from a sample that was drawn in proportion within strata.

    Args:
        values: 0 or 1 of each labelled document, shape `(n,)`.
        strata: their strata, whole numbers from 0, shape `(n,)`.
        sizes: documents of each stratum, labelled or not, shape `(strata,)`; each has a label.
        groups: group (e.g. image id) of each labelled document.
        confidence: level of the interval, in (0, 1).

    Raises:
        ValueError: a stratum has documents and no label.

    Example:
        >>> values, strata = np.array([1] * 9 + [0] * 11), np.array([0] * 10 + [1] * 10)
        >>> rate = audited_rate(values, strata, np.array([100, 100]))
        >>> rate.value, [round(bound, 2) for bound in rate.interval], round(rate.n_effective)
        (0.45, [0.29, 0.61], 31)
    """
    check_confidence(confidence)
    y, n_documents = np.asarray(values, dtype=np.float64), int(sizes.sum())
    n_labels = np.bincount(strata, minlength=len(sizes))
    if (n_labels[sizes > 0] == 0).any():
        raise ValueError("a stratum has documents and no label")
    weights, shares = sizes / n_documents, np.bincount(strata, y, len(sizes)) / np.maximum(n_labels, 1)
    value = float(weights @ shares)
    effect = _design_effect(y, groups)
    between = float(weights @ (shares - value) ** 2) / n_documents
    limits = np.array([wilson(p, max(n, 1) / effect, confidence) for p, n in zip(shares, n_labels, strict=True)])
    distances = weights[:, None] * (shares[:, None] - limits)
    low, high = np.sqrt((distances**2).sum(axis=0) + between * quantile_of(confidence) ** 2).tolist()
    interval = max(0.0, value - low), min(1.0, value + high)
    variance = float((weights**2 * shares * (1 - shares) / np.maximum(n_labels, 1)).sum()) * effect + between
    return Audited(
        value,
        math.sqrt(variance),
        interval,
        n=len(y),
        method="Wilson's limits of the strata, square-and-add",
        n_labels=len(y),
        n_effective=_worth(value, interval, len(y) / effect, confidence) * effect,
    )


def _design_effect(y: npt.NDArray[np.float64], groups: Sequence[Hashable] | None) -> float:
    """Variance between groups as a multiple of that of independent documents, at least 1."""
    if groups is None or not 0 < y.mean() < 1:
        return 1.0
    stderr = estimate_mean(y, groups).stderr
    return 1.0 if stderr is None else max(1.0, stderr**2 * len(y) / float(y.var()))


def _worth(value: float, interval: Interval, n: float, confidence: float) -> float:
    """Labels with which Wilson's interval of the share alone would be as long."""
    low, high = wilson(value, n, confidence)
    return n * ((high - low) / max(interval[1] - interval[0], 1e-9)) ** 2


def difference_of(a: Number, b: Number) -> Comparison:
    """Difference of two numbers with independent errors, such as those of two runs whose audits were drawn apart.

    The interval is the square-and-add of both (Newcombe 1998, method 10); the p-value is normal. Where documents are
    shared and what they add goes together, both are cautious.
    """
    n, name = min(a.n, b.n), "labels of experts, drawn apart"
    if a.value is None or b.value is None or a.interval is None or b.interval is None:
        reason = "; ".join(f"{side}: {x.reason}" for side, x in (("a", a), ("b", b)) if x.interval is None)
        return Comparison.undefined(n, name, reason)
    difference, stderr = a.value - b.value, math.hypot(a.stderr or 0.0, b.stderr or 0.0)
    low = difference - math.hypot(a.value - a.interval[0], b.interval[1] - b.value)
    high = difference + math.hypot(a.interval[1] - a.value, b.value - b.interval[0])
    p_value = two_sided_p(abs(difference) / stderr) if stderr else None
    return Comparison(a.value, b.value, difference, stderr, (max(-1.0, low), min(1.0, high)), p_value, n, name)

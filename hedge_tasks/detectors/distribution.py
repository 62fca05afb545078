r"""Distributions over meanings and their entropy: what the detectors on cluster ids have in common.

Conventions, common to all pure functions of the detectors:

* Scores are oriented: **higher = more likely hallucinated**.
* Entropies are in nats, log-probabilities in nats per token.
* Cluster ids are labels, not numbers: any hashable values, not necessarily contiguous, negative ones allowed.
* Computations are in float64. A result is a plain `float` and never `-0.0`.
* Sums are exact (`math.fsum`), so that no order of clusters or answers changes a digit, and entropies have 12
  significant digits: 2, 2, 2, 2, 2 and 1, 1, 1, 1, 2, 4 answers have one entropy, which rounding would make two. Ties
  are half of an AUROC of discrete scores, and must not be broken by the fifteenth digit.
* A log-probability of `-inf` is allowed and gives that answer zero weight; `nan` and `+inf` are errors.
* Bad input raises `ValueError` naming the argument.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

DIGITS = 12
"""Significant digits of an entropy."""


class _ArrayLike(Protocol):
    """Common part of numpy arrays, torch tensors and pandas series."""

    def tolist(self) -> Any: ...


ClusterIds = Iterable[Hashable] | _ArrayLike
LogProbs = npt.ArrayLike


def semantic_distribution(
    cluster_ids: ClusterIds, mean_logprobs: LogProbs | None = None, *, support: ClusterIds | None = None
) -> FloatArray:
    r"""Probability of each meaning: the likelihood-weighted share of the answers in each cluster.

    .. math::
        s_j = \frac{\sum_{i: c_i = j} \exp(\ell_i - \max_k \ell_k)}{\sum_i \exp(\ell_i - \max_k \ell_k)}

    HEDGE paper, Eq. 1. As printed there, the numerator and each term of the denominator carry a *second* `exp` around
    the sum. We leave it out, as the reference implementation `hedge-bench` (0.1.2) does: with it a
    cluster of zero weight would still get :math:`e^0 = 1`, the shift by :math:`\max \ell` would change the result
    rather than only guard against underflow, and :math:`s` would not be the distribution of Farquhar et al. 2024, which
    the paper cites.

    Args:
        cluster_ids: Cluster id of each answer, shape `(n,)`, `n >= 1`.
        mean_logprobs: Mean token log-probability of each answer in nats per token, shape `(n,)`. `-inf` is zero
            weight. `None` weighs all answers equally.
        support: The distinct cluster ids over which to lay the distribution out, shape `(k,)`, in the order wanted.
            It may name clusters without an answer (probability 0) and must name every id in `cluster_ids`. By default
            the ids that occur, sorted (or in order of first appearance if they cannot be sorted).

    Returns:
        Probabilities, shape `(k,)`, float64, summing to 1.

    Raises:
        ValueError: If there is no answer, the lengths differ, a log-probability is `nan` or `+inf`, all of them are
            `-inf`, or `support` has duplicates or lacks an id.

    Example:
        >>> import math
        >>> semantic_distribution([0, 1, 1, 2], [math.log(0.4), math.log(0.2), math.log(0.2), math.log(0.2)])
        array([0.4, 0.4, 0.2])
        >>> semantic_distribution(["yes", "no", "no", "no"], support=["no", "yes", "maybe"])
        array([0.75, 0.25, 0.  ])
    """
    ids = as_ids(cluster_ids, "cluster_ids")
    if not ids:
        raise ValueError("cluster_ids is empty: there must be at least one answer")
    return shares(ids, relative_weights(mean_logprobs, len(ids), "mean_logprobs"), _layout(ids, support))


def shares(ids: Sequence[Hashable], weights: FloatArray, position: Mapping[Hashable, int]) -> FloatArray:
    """Return the distribution that `semantic_distribution` describes, from weights and the place of every id."""
    parts: list[list[float]] = [[] for _ in position]
    for value, weight in zip(ids, weights.tolist(), strict=True):
        parts[position[value]].append(weight)
    masses = [math.fsum(part) for part in parts]
    # Dividing by the sum of the masses, not of the weights, makes a lone cluster exactly 1.0 whatever the rounding.
    return np.array(masses) / math.fsum(masses)


def entropy(probabilities: npt.ArrayLike) -> float:
    r"""Shannon entropy in nats, with :math:`0 \ln 0 = 0`.

    The sum is exact, so that the order of the probabilities does not change a digit. Summed as they come, clusters of
    1, 3 and 6 answers have three different entropies, and questions that should tie do not.

    Example:
        >>> entropy([0.1, 0.3, 0.6]) == entropy([0.6, 0.1, 0.3])
        True
        >>> entropy([1.0])
        0.0
    """
    values = np.asarray(probabilities, dtype=np.float64).tolist()
    # max() turns both a rounding error below zero and -0.0 into 0.0.
    return significant(max(0.0, -math.fsum(p * math.log(p) for p in values if p > 0)))


def significant(value: float) -> float:
    """Return the number to 12 significant digits, without those that rounding makes: what is equal ties.

    Example:
        >>> entropy([0.2] * 5) == entropy([0.1, 0.1, 0.1, 0.1, 0.2, 0.4]) == significant(math.log(5))
        True
    """
    return float(f"{value:.{DIGITS}g}")


def mean(values: Iterable[float]) -> float:
    """Arithmetic mean; the sum is exact, so that the order of the values does not change a digit."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)


def softmax(logits: FloatArray) -> FloatArray:
    """Exponentials in proportion, shape `(k,)`."""
    with np.errstate(over="ignore"):  # a difference may become -inf, of which exp is the right 0
        weights = np.exp(logits - logits.max())
    return np.asarray(weights / math.fsum(weights), dtype=np.float64)


def negative(value: float) -> float:
    return 0.0 - value  # unlike -value, never -0.0


def as_ids(values: ClusterIds, name: str) -> list[Hashable]:
    """Return the ids as plain Python values.

    Array scalars are converted because a torch scalar is hashed by identity: two equal ids would be two clusters.
    """
    ids: list[Any] = list(values.tolist() if hasattr(values, "tolist") else values)
    if all(type(value) is int for value in ids):  # what a clustering gives: nothing to convert, nothing to refuse
        return ids
    ids = [value.item() if hasattr(value, "item") else value for value in ids]
    for i, value in enumerate(ids):
        if not isinstance(value, Hashable):
            raise ValueError(f"{name}[{i}] is not hashable: {value!r}")
        if value != value:
            raise ValueError(f"{name}[{i}] is NaN: it would be equal to no cluster, not even to its own")
    return ids


def _layout(ids: list[Hashable], support: ClusterIds | None) -> dict[Hashable, int]:
    """Position of every id of the support."""
    if support is None:
        return {value: i for i, value in enumerate(distinct(ids))}
    support_ids = as_ids(support, "support")
    position = {value: i for i, value in enumerate(support_ids)}
    if len(position) != len(support_ids):
        raise ValueError("support has duplicate ids")
    if missing := [value for value in dict.fromkeys(ids) if value not in position]:
        raise ValueError(f"support lacks the ids {missing!r} that occur in cluster_ids")
    return position


def distinct(ids: Iterable[Hashable]) -> list[Hashable]:
    """Return the distinct ids, sorted where they can be."""
    distinct: list[Any] = list(dict.fromkeys(ids))
    try:
        return sorted(distinct)
    except TypeError:  # e.g. ids of mixed types: any fixed order will do
        return distinct


def as_logprobs(values: LogProbs, name: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if not array.size:
        raise ValueError(f"{name} is empty: there must be at least one answer")
    if np.isfinite(array).all():  # nearly always, and asked for every question by every detector
        return array
    if np.isnan(array).any():
        raise ValueError(f"{name}[{int(np.isnan(array).argmax())}] is NaN or missing")
    if np.isposinf(array).any():
        raise ValueError(f"{name}[{int(np.isposinf(array).argmax())}] is +inf, which is no log-probability")
    return array


def relative_weights(logprobs: LogProbs | None, n: int, name: str = "mean_logprobs") -> FloatArray:
    """Weights relative to the likeliest answer, which keeps `exp` from underflowing for all of them at once."""
    if logprobs is None:
        return np.ones(n)
    array = as_logprobs(logprobs, name)
    if len(array) != n:
        raise ValueError(f"{name} has length {len(array)}, but there are {n} cluster ids")
    largest = array.max()
    if largest == -np.inf:
        raise ValueError(f"{name} are all -inf: every answer would have zero weight")
    return np.asarray(np.exp(array - largest), dtype=np.float64)

r"""Hallucination scores of one question: arrays in, floats out.

Everything here works on the *cluster ids* of already clustered answers (see `clustering`) and on the
mean token log-probabilities of those answers. Nothing here knows of models, of files or of an evaluation framework.

Conventions, common to all functions:

* Scores are oriented: **higher = more likely hallucinated**.
* Entropies are in nats, log-probabilities in nats per token.
* Cluster ids are labels, not numbers: any hashable values, not necessarily contiguous, negative ones allowed.
* Computations are in float64. A result is a plain `float` and never `-0.0`.
* A log-probability of `-inf` is allowed and gives that answer zero weight; `nan` and `+inf` are errors.
* Bad input raises `ValueError` naming the argument.

Papers: HEDGE (Eq. 1-5), Farquhar et al. 2024 (semantic entropy), Zhang et al. 2024 (RadFlag), Liao et al. 2025 (VASE),
Kuhn et al. 2023 and Lin et al. 2024 (lexical similarity).
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

__all__ = [
    "discrete_semantic_entropy",
    "lexical_disagreement",
    "negative_baseline_logprob",
    "negative_mean_clean_logprob",
    "number_of_clusters",
    "radflag",
    "semantic_distribution",
    "semantic_entropy",
    "vase",
]

FloatArray = npt.NDArray[np.float64]


class _ArrayLike(Protocol):
    """What numpy arrays, torch tensors and pandas series have in common."""

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
    ids = _as_ids(cluster_ids, "cluster_ids")
    if not ids:
        raise ValueError("cluster_ids is empty: there must be at least one answer")
    weights = relative_weights(mean_logprobs, len(ids), "mean_logprobs")
    position = _layout(ids, support)
    masses = np.bincount([position[i] for i in ids], weights=weights, minlength=len(position))
    # Dividing by the sum of the masses, not of the weights, makes a lone cluster exactly 1.0 whatever the rounding.
    return np.asarray(masses / masses.sum(), dtype=np.float64)


def semantic_entropy(cluster_ids: ClusterIds, mean_logprobs: LogProbs | None = None) -> float:
    r"""Semantic entropy (SE) of the sampled answers, in nats.

    .. math::
        \mathrm{SE}(s) = -\sum_j s_j \ln s_j

    with :math:`s` the `semantic_distribution` and :math:`0 \ln 0 = 0`. HEDGE paper, Eq. 2 and 3 (there over the
    clean answers); introduced by Farquhar et al. 2024.

    Args:
        cluster_ids: Cluster id of each (clean) answer, shape `(n,)`, `n >= 1`.
        mean_logprobs: Mean token log-probabilities, nats per token, shape `(n,)`; `None` weighs all answers
            equally.

    Returns:
        A number in :math:`[0, \ln k]` for `k` clusters; exactly 0.0 for a single cluster.

    Raises:
        ValueError: As `semantic_distribution`.

    Example:
        >>> round(semantic_entropy([0, 0, 1], [-0.1, -0.3, -0.2]), 5)
        0.63574
        >>> semantic_entropy([7, 7, 7], [-0.1, -2.0, -0.5])
        0.0
    """
    return _entropy(semantic_distribution(cluster_ids, mean_logprobs))


def discrete_semantic_entropy(cluster_ids: ClusterIds) -> float:
    r"""Semantic entropy with every answer weighing the same: the entropy of the cluster counts, in nats.

    .. math::
        \mathrm{DSE} = -\sum_j \frac{n_j}{n} \ln \frac{n_j}{n}

    Farquhar et al. 2024 ("discrete semantic entropy"), for models that give no log-probabilities.

    Args:
        cluster_ids: Cluster id of each (clean) answer, shape `(n,)`, `n >= 1`.

    Returns:
        A number in :math:`[0, \ln k]` for `k` clusters.

    Raises:
        ValueError: If there is no answer.

    Example:
        >>> round(discrete_semantic_entropy([0, 0, 1, 2, 1]), 5)
        1.05492
    """
    return semantic_entropy(cluster_ids, None)


def radflag(baseline_id: Hashable, clean_ids: ClusterIds) -> float:
    r"""RadFlag: the share of clean answers that do *not* mean what the baseline answer means.

    .. math::
        \mathrm{RadFlag} = 1 - \frac{1}{n} \sum_{i=1}^{n} \mathbf{1}[c_i = c_0]

    HEDGE paper, Eq. 4 (after Zhang et al. 2024). The reference implementation returns the share of *agreeing* answers,
    i.e. one minus this; we follow the paper, so that higher means more likely hallucinated, as for all scores here.

    Args:
        baseline_id: Cluster id :math:`c_0` of the baseline answer.
        clean_ids: Cluster ids of the clean answers from the same clustering, shape `(n,)`, `n >= 1`.

    Returns:
        A number in `[0, 1]`.

    Raises:
        ValueError: If there is no clean answer.

    Example:
        >>> radflag(0, [0, 0, 1, 2])
        0.5
    """
    ids = _as_ids(clean_ids, "clean_ids")
    if not ids:
        raise ValueError("clean_ids is empty: RadFlag needs at least one clean answer")
    (baseline,) = _as_ids([baseline_id], "baseline_id")
    return sum(i != baseline for i in ids) / len(ids)


def vase(
    clean_ids: ClusterIds,
    noisy_ids: ClusterIds,
    clean_logprobs: LogProbs | None = None,
    noisy_logprobs: LogProbs | None = None,
    *,
    baseline_id: Hashable | None = None,
    alpha: float = 1.0,
) -> float:
    r"""Vision-amplified semantic entropy (VASE), in nats.

    .. math::
        \mathrm{VASE} = H\bigl(\operatorname{softmax}(s_\mathrm{clean}
        + \alpha (s_\mathrm{clean} - s_\mathrm{noisy}))\bigr), \qquad H(p) = -\sum_j p_j \ln p_j

    HEDGE paper, Eq. 5 (after Liao et al. 2025). Both distributions are laid out over *all* cluster ids of the joint
    clustering of baseline, clean and noisy answers, as the reference implementation does: a cluster that holds only the
    baseline answer has probability 0 in both and still takes part in the softmax. The reference adds `1e-10` inside
    the logarithm; we do not (a softmax is never 0 unless it underflows, and then :math:`0 \ln 0 = 0`), so that a single
    cluster gives exactly 0.0. The difference is at most about `k * 1e-10`.

    Args:
        clean_ids: Cluster ids of the clean answers, shape `(n,)`, `n >= 1`.
        noisy_ids: Cluster ids of the noisy answers from the same clustering, shape `(m,)`, `m >= 1`; `m` may
            differ from `n`.
        clean_logprobs: Mean token log-probabilities of the clean answers, nats per token, shape `(n,)`; `None` =
            equal weights.
        noisy_logprobs: The same for the noisy answers, shape `(m,)`.
        baseline_id: Cluster id of the baseline answer. Give it to get the reference's number; `None` leaves the
            baseline out of the support.
        alpha: Strength of the clean-noisy contrast, dimensionless and finite; 1 in the papers.

    Returns:
        A number in :math:`[0, \ln k]` for `k` ids in the joint clustering; exactly 0.0 for a single one.

    Raises:
        ValueError: If clean or noisy answers are missing, lengths differ, a log-probability is `nan` or `+inf`, all
            of a condition's are `-inf`, or `alpha` is not finite.

    Example:
        >>> round(vase([0, 0, 1], [1, 1, 2], baseline_id=0), 5)
        0.83197
        >>> vase([0, 0], [0, 0], baseline_id=0)
        0.0
    """
    clean, noisy = _as_ids(clean_ids, "clean_ids"), _as_ids(noisy_ids, "noisy_ids")
    for name, ids, condition in (("clean_ids", clean, "clean"), ("noisy_ids", noisy, "noisy")):
        if not ids:
            raise ValueError(f"{name} is empty: VASE needs at least one {condition} answer")
    if not math.isfinite(alpha):
        raise ValueError(f"alpha must be a finite number, got {alpha!r}")
    # Checked here so that an error names the caller's argument, not the one of semantic_distribution.
    relative_weights(clean_logprobs, len(clean), "clean_logprobs")
    relative_weights(noisy_logprobs, len(noisy), "noisy_logprobs")
    baseline = [] if baseline_id is None else _as_ids([baseline_id], "baseline_id")
    support = _distinct(itertools.chain(baseline, clean, noisy))
    s_clean = semantic_distribution(clean, clean_logprobs, support=support)
    s_noisy = semantic_distribution(noisy, noisy_logprobs, support=support)
    return _entropy(_softmax(s_clean + alpha * (s_clean - s_noisy)))


def negative_baseline_logprob(baseline_logprob: float) -> float:
    r"""Negative mean token log-probability of the baseline answer, in nats per token.

    .. math::
        -\ell_0

    The length-normalised sequence likelihood of Malinin and Gales 2021: how surprising the model finds its own answer.
    The simplest baseline; it needs no further samples.

    Args:
        baseline_logprob: Mean token log-probability of the baseline answer; `-inf` gives `inf`.

    Returns:
        A number, `>= 0` for true log-probabilities.

    Raises:
        ValueError: If it is missing, `nan` or `+inf`.

    Example:
        >>> negative_baseline_logprob(-0.25)
        0.25
    """
    return _negative(float(_as_logprobs([baseline_logprob], "baseline_logprob")[0]))


def negative_mean_clean_logprob(clean_logprobs: LogProbs) -> float:
    r"""Negative mean over the clean answers of their mean token log-probabilities, in nats per token.

    .. math::
        -\frac{1}{n} \sum_{i=1}^{n} \ell_i

    A Monte Carlo estimate of the length-normalised predictive entropy (Malinin and Gales 2021; the "naive entropy" that
    Farquhar et al. 2024 compare semantic entropy with).

    Args:
        clean_logprobs: Mean token log-probabilities of the clean answers, shape `(n,)`, `n >= 1`. One `-inf`
            makes the result `inf`: there is no weight to be zero here.

    Returns:
        A number, `>= 0` for true log-probabilities.

    Raises:
        ValueError: If there is none, or one is `nan` or `+inf`.

    Example:
        >>> negative_mean_clean_logprob([-0.5, -1.0, -1.5])
        1.0
    """
    return _negative(float(_as_logprobs(clean_logprobs, "clean_logprobs").mean()))


def number_of_clusters(clean_ids: ClusterIds) -> float:
    r"""Number of different meanings among the clean answers.

    .. math::
        |\{c_1, \ldots, c_n\}|

    "Number of semantic sets" in Kuhn et al. 2023 and Lin et al. 2024.

    Args:
        clean_ids: Cluster ids of the clean answers, shape `(n,)`, `n >= 1`.

    Returns:
        A whole number in `[1, n]`, as a float like all scores.

    Raises:
        ValueError: If there is no clean answer.

    Example:
        >>> number_of_clusters([0, 0, 3, -1])
        3.0
    """
    ids = _as_ids(clean_ids, "clean_ids")
    if not ids:
        raise ValueError("clean_ids is empty: there must be at least one clean answer")
    return float(len(set(ids)))


def lexical_disagreement(clean_answers: Sequence[str]) -> float:
    r"""One minus the mean pairwise ROUGE-L of the clean answers: how much their wording differs.

    .. math::
        1 - \frac{2}{n (n - 1)} \sum_{i < j} \frac{2 \, \mathrm{LCS}(a_i, a_j)}{|a_i| + |a_j|}

    where LCS is the length of the longest common subsequence of the two token lists, so that each summand is the
    ROUGE-L F-measure (:math:`F_1`; Lin 2004). Lexical similarity in this form is the baseline of Kuhn et al. 2023 and
    of lm-polygraph; this is its complement. Tokens are the runs of letters and digits of the case-folded text in any
    script; unlike the `rouge-score` package we do not stem, which it does for English only.

    Args:
        clean_answers: The texts of the clean answers, length `n >= 1`.

    Returns:
        A number in `[0, 1]`. A single answer disagrees with nothing: 0.0. Two answers without any token count as
        equal.

    Raises:
        ValueError: If there is no answer, or a bare string is given.

    Example:
        >>> lexical_disagreement(["a small left effusion", "small left effusion", "small left effusion"])
        0.0952...
        >>> lexical_disagreement(["Pneumonia."])
        0.0
    """
    if isinstance(clean_answers, str):
        raise ValueError("clean_answers must be a sequence of answers, got one string")
    if not len(clean_answers):
        raise ValueError("clean_answers is empty: there must be at least one clean answer")
    tokens = [_tokens(answer) for answer in clean_answers]
    distances = [1.0 - _rouge_l(a, b) for a, b in itertools.combinations(tokens, 2)]
    return math.fsum(distances) / len(distances) if distances else 0.0


def _as_ids(values: ClusterIds, name: str) -> list[Hashable]:
    """The ids as plain Python values.

    Array scalars are converted because a torch scalar is hashed by identity: two equal ids would be two clusters.
    """
    ids = [_as_id(v) for v in (values.tolist() if hasattr(values, "tolist") else values)]
    for i, value in enumerate(ids):
        if not _hashable(value):
            raise ValueError(f"{name}[{i}] is not hashable: {value!r}")
        if value != value:
            raise ValueError(f"{name}[{i}] is NaN: it would be equal to no cluster, not even to its own")
    return ids


def _as_id(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _layout(ids: list[Hashable], support: ClusterIds | None) -> dict[Hashable, int]:
    """Position of every id of the support."""
    if support is None:
        return {value: i for i, value in enumerate(_distinct(ids))}
    wanted = _as_ids(support, "support")
    position = {value: i for i, value in enumerate(wanted)}
    if len(position) != len(wanted):
        raise ValueError("support has duplicate ids")
    if missing := [value for value in dict.fromkeys(ids) if value not in position]:
        raise ValueError(f"support lacks the ids {missing!r} that occur in cluster_ids")
    return position


def _distinct(ids: Iterable[Hashable]) -> list[Hashable]:
    """The distinct ids, sorted where they can be."""
    distinct: list[Any] = list(dict.fromkeys(ids))
    try:
        return sorted(distinct)
    except TypeError:  # e.g. ids of mixed types: any fixed order will do
        return distinct


def _as_logprobs(values: LogProbs, name: str) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if not array.size:
        raise ValueError(f"{name} is empty: there must be at least one answer")
    if np.isnan(array).any():
        raise ValueError(f"{name}[{int(np.isnan(array).argmax())}] is NaN or missing")
    if np.isposinf(array).any():
        raise ValueError(f"{name}[{int(np.isposinf(array).argmax())}] is +inf, which is no log-probability")
    return array


def relative_weights(logprobs: LogProbs | None, n: int, name: str = "mean_logprobs") -> FloatArray:
    """Weights relative to the likeliest answer, which keeps `exp` from underflowing for all of them at once."""
    if logprobs is None:
        return np.ones(n)
    array = _as_logprobs(logprobs, name)
    if len(array) != n:
        raise ValueError(f"{name} has length {len(array)}, but there are {n} cluster ids")
    largest = array.max()
    if np.isneginf(largest):
        raise ValueError(f"{name} are all -inf: every answer would have zero weight")
    return np.asarray(np.exp(array - largest), dtype=np.float64)


def _softmax(logits: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # for a huge alpha the difference may become -inf, of which exp is the right 0
        weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def _entropy(probabilities: FloatArray) -> float:
    positive = probabilities[probabilities > 0]
    # max() turns both a rounding error below zero and -0.0 into 0.0.
    return max(0.0, -float(positive @ np.log(positive)))


def _negative(value: float) -> float:
    return 0.0 - value  # unlike -value, never -0.0


_TOKEN = re.compile(r"[^\W_]+")


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _rouge_l(a: list[str], b: list[str]) -> float:
    """ROUGE-L F1 of two token lists."""
    if a == b:
        return 1.0
    return 2 * _lcs_length(a, b) / (len(a) + len(b))


def _lcs_length(a: list[str], b: list[str]) -> int:
    """Length of the longest common subsequence, one row of the usual table in one operation on its bits.

    Bit i of `row` is 0 where the table's row steps up at column i. An answer from outside may have a hundred thousand
    tokens. Source: Crochemore et al. 2001, A fast and practical bit-vector algorithm for the LCS problem, IPL 80(6).
    """
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    ones = (1 << len(a)) - 1
    row = ones
    for token in b:
        matches = row & places.get(token, 0)
        row = (row + matches | row - matches) & ones
    return len(a) - row.bit_count()

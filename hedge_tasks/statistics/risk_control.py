r"""A threshold on a detector's score below which the share of hallucinated answers is bounded, with a confidence.

Read off a risk-coverage curve, a threshold breaks the risk that was asked for in a third to a half of all samples: it
was chosen for looking good. Here a few candidate thresholds are fixed before any label is looked at, each is tested for
the hypothesis that its risk is too high, and a threshold is given out only where that is rejected with all candidates
accounted for (learn then test, Angelopoulos et al. 2021, arXiv 2110.01052; selective prediction as Geifman & El-Yaniv
2017).

The tests hold for finite samples and any distribution. Where every document stands for itself, the errors among the
accepted are binomial and the test is exact. Where documents come in groups, such as the questions on one image, the
groups are independent and the documents are not: the test is a bet on each group, whose expected winnings cannot exceed
one as long as the risk is too high (Waudby-Smith & Ramdas 2024, JRSS B 86:1).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray, as_data, check_confidence

_SHARES = tuple(i / 10 for i in range(1, 11))
"""Shares of documents that the candidate thresholds would accept."""

_FOR_CANDIDATES = 0.1
"""Share of the documents whose scores, and not labels, say where the candidates are."""

_FEWEST_FOR_CANDIDATES = 20
_STAKES = tuple(i / 40 for i in range(1, 40))
"""Parts of the largest stake that cannot lose everything; a bet is the mean of them all."""

_MOST_LABELS = 10**7


@dataclass(frozen=True)
class Candidate:
    """One threshold that was tried.

    Attributes:
        threshold: A document with a score of at most this is accepted.
        n_accepted: Documents of the test part that it accepts.
        n_wrong: Those of them that are hallucinated.
        share: `n_accepted` of all documents of the test part.
        p_value: For the hypothesis that more than the risk asked for of what it accepts is hallucinated, before any
            correction.
    """

    threshold: float
    n_accepted: int
    n_wrong: int
    share: float
    p_value: float


@dataclass(frozen=True)
class RiskControl:
    """What can be promised.

    Attributes:
        risk: Largest share of hallucinated answers among the accepted.
        confidence: That the promise holds, over the draw of the calibration documents.
        chosen: The candidate that accepts most among those that hold; `None` where none does.
        reason: Why there is none.
        more_labels: How many labelled documents there should be for the most promising candidate to hold, if what was
            seen of it is what it is; `None` where one holds, or where no number of labels would help.
        candidates: All that were tried, the strictest first.
        n: Labelled documents that were tested on.
        n_groups: Groups of them; `None` where every document stands for itself.
        n_hypotheses: What p-values were corrected for: candidates of all detectors that were tried.
    """

    risk: float
    confidence: float
    chosen: Candidate | None
    reason: str | None
    more_labels: int | None
    candidates: tuple[Candidate, ...]
    n: int
    n_groups: int | None
    n_hypotheses: int


def control_risk(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    risk: float,
    confidence: float = 0.9,
    groups: Sequence[Hashable] | npt.NDArray[np.generic] | None = None,
    n_detectors: int = 1,
    seed: int = 0,
) -> RiskControl:
    r"""Choose the threshold that accepts most while :math:`P(R(t) \le r) \ge 1 - \delta` holds.

    :math:`R(t)` is the share of hallucinated answers among those with a score of at most :math:`t`. Candidates are the
    deciles of the scores of a tenth of the documents, at least 20, and of all that have no label; the tests are on the
    others, by Holm's procedure at :math:`\delta / D` for :math:`D` detectors that were tried.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated. `nan` is never accepted.
        labels: 0, 1 (hallucinated) or `nan` (not known), shape `(n,)`.
        risk: :math:`r`, in (0, 1).
        confidence: :math:`1 - \delta`, in (0, 1).
        groups: Group of each document, length `n`. The promise is then about documents of new groups, none of which
            has more documents than the largest one here.
        n_detectors: How many detectors were tried, this one included.
        seed: Of the choice of documents that place the candidates.

    Raises:
        ValueError: Lengths differ, labels are neither 0, 1 nor nan, or risk or confidence is not in (0, 1).
    """
    x, y = as_data(scores, labels)
    check_confidence(confidence)
    if not 0 < risk < 1:
        raise ValueError(f"risk must be in (0, 1), got {risk}")
    if n_detectors < 1:
        raise ValueError(f"n_detectors must be 1 or more, got {n_detectors}")
    if groups is not None and len(groups) != len(x):
        raise ValueError(f"scores and groups differ in length: {len(x)} and {len(groups)}")
    x = np.where(np.isnan(x), np.inf, x)
    codes = _codes(groups) if groups is not None else np.arange(len(x))
    grouped = groups is not None and int(codes.max(initial=-1)) + 1 < len(codes)
    placing = _placing(codes, ~np.isnan(y), seed)
    tested = ~placing & ~np.isnan(y)
    thresholds = _thresholds(x[placing])
    test = _GroupedTest(codes[tested], risk) if grouped else _BinomialTest(risk)
    n = int(tested.sum())
    candidates = tuple(_candidate(t, x[tested], y[tested], test) for t in thresholds)
    n_hypotheses = len(candidates) * n_detectors
    level = (1 - confidence) / n_detectors
    chosen = _widest(candidates, level)
    reason = more = None
    if chosen is None:
        reason, more = _why_not(candidates, n, risk, level, test)
    n_groups = int(np.count_nonzero(np.bincount(codes[tested]))) if grouped else None
    return RiskControl(risk, confidence, chosen, reason, more, candidates, n, n_groups, n_hypotheses)


def _codes(groups: Sequence[Hashable] | npt.NDArray[np.generic]) -> IntArray:
    """Numbers of the groups, in the order of their names (of an array in that of its values)."""
    if isinstance(groups, np.ndarray):
        return np.unique(groups, return_inverse=True)[1]
    numbers = {group: i for i, group in enumerate(sorted(set(groups), key=repr))}
    return np.array([numbers[group] for group in groups], dtype=np.int64)


def _placing(codes: IntArray, labelled: BoolArray, seed: int) -> BoolArray:
    """The documents that say where the candidates are: whole groups, and those of no label."""
    names, sizes = np.unique(codes[labelled], return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    wanted = max(_FEWEST_FOR_CANDIDATES, _FOR_CANDIDATES * labelled.sum())
    n_taken = int(np.searchsorted(np.cumsum(sizes[order]), wanted)) + 1
    taken = np.zeros(int(codes.max(initial=-1)) + 1, dtype=bool)
    taken[names[order[:n_taken]]] = True
    return ~labelled | taken[codes]


def _thresholds(scores: FloatArray) -> list[float]:
    if len(scores) == 0:
        return []
    # Scores as they are, and no means of two: a detector that counts has but a few.
    found = np.quantile(scores, _SHARES, method="inverted_cdf")
    return [float(t) for t in np.unique(found) if math.isfinite(t)]


class _BinomialTest:
    """Exact: errors among k accepted documents are binomial, given k."""

    def __init__(self, risk: float) -> None:
        self.risk = risk

    def p_value(self, accepted: BoolArray, wrong: BoolArray) -> float:
        return self.of_counts(int(accepted.sum()), int((accepted & wrong).sum()))

    def of_counts(self, n_accepted: int, n_wrong: int) -> float:
        from scipy.special import bdtr  # the binomial distribution function, without a hundred times the overhead

        return float(bdtr(n_wrong, n_accepted, self.risk))

    def needed(self, candidate: Candidate, n: int, level: float) -> int | None:
        """Fewest documents at which the shares seen would be enough."""
        wrong = candidate.n_wrong / candidate.n_accepted
        if wrong >= self.risk:
            return None
        low, high = n, n
        while high < _MOST_LABELS and self._at(candidate, high / n) > level:
            low, high = high, high * 2
        while high - low > max(1, low // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if self._at(candidate, middle / n) <= level else (middle, high)
        return high if high < _MOST_LABELS else None

    def _at(self, candidate: Candidate, times: float) -> float:
        return self.of_counts(round(candidate.n_accepted * times), math.ceil(candidate.n_wrong * times))


class _GroupedTest:
    r"""A bet on each group: :math:`1 + \lambda \sum_i (r - y_i)` over its accepted documents.

    If the risk is above :math:`r`, the expected value of each factor is below one, and that of their product over
    independent groups, too, so that the product exceeds :math:`1 / p` with probability below :math:`p` (Markov). The
    mean over several stakes :math:`\lambda` is such a product as well. No order of the groups comes into it.
    """

    def __init__(self, codes: IntArray, risk: float) -> None:
        self.codes, self.risk = np.unique(codes, return_inverse=True)[1], risk
        sizes = np.bincount(self.codes)
        self._n, self._largest = len(sizes), int(sizes.max()) if len(codes) else 1
        self._stakes = np.array(_STAKES) / ((1 - risk) * self._largest)

    def p_value(self, accepted: BoolArray, wrong: BoolArray) -> float:
        return min(1.0, math.exp(-self._log_winnings(accepted, wrong)))

    def _log_winnings(self, accepted: BoolArray, wrong: BoolArray) -> float:
        n_accepted = np.bincount(self.codes[accepted], minlength=self._n)
        n_wrong = np.bincount(self.codes[accepted & wrong], minlength=self._n)
        # Groups with the same counts are one factor: there are few kinds of them. Those without any are one of one.
        kinds = np.bincount(n_accepted * (self._largest + 1) + n_wrong)
        [some] = kinds.nonzero()
        gains = some // (self._largest + 1) * self.risk - some % (self._largest + 1)
        logs = np.log1p(self._stakes[:, None] * gains[None, :]) @ kinds[some]
        return float(np.logaddexp.reduce(logs) - math.log(len(logs)))

    def needed(self, candidate: Candidate, n: int, level: float) -> int | None:
        """How many documents let the winnings grow to what is needed, if they grow as they did."""
        won = -math.log(candidate.p_value) if candidate.p_value > 0 else math.inf
        if won <= 0:
            return None
        needed = math.ceil(n * math.log(1 / level) / won)
        return needed if needed < _MOST_LABELS else None


def _candidate(threshold: float, x: FloatArray, y: FloatArray, test: _BinomialTest | _GroupedTest) -> Candidate:
    accepted, wrong = x <= threshold, y == 1
    n = int(accepted.sum())
    p = test.p_value(accepted, wrong) if n else 1.0
    return Candidate(threshold, n, int((accepted & wrong).sum()), n / len(x) if len(x) else 0.0, p)


def _widest(candidates: Sequence[Candidate], level: float) -> Candidate | None:
    """The candidate that accepts most among those rejected by Holm's procedure."""
    rejected: list[Candidate] = []
    for i, candidate in enumerate(sorted(candidates, key=lambda c: c.p_value)):
        if candidate.p_value > level / (len(candidates) - i):
            break
        rejected.append(candidate)
    return max(rejected, key=lambda c: c.threshold, default=None)


def _why_not(
    candidates: Sequence[Candidate], n: int, risk: float, level: float, test: _BinomialTest | _GroupedTest
) -> tuple[str, int | None]:
    if n == 0 or not candidates:
        return f"no labelled documents are left to test on; about {_FEWEST_FOR_CANDIDATES} place the candidates", None
    some = [c for c in candidates if c.n_accepted]
    best = min(some, key=lambda c: c.n_wrong / c.n_accepted, default=None)
    if best is None:
        return "no candidate accepts any document", None
    needed = [m for c in some if (m := test.needed(c, n, level / len(candidates))) is not None]
    if not needed:
        seen = best.n_wrong / best.n_accepted
        counts = f"{best.n_wrong} of {best.n_accepted}"
        return f"the least risk seen is {THREE_DIGITS(seen)} ({counts}), not below {risk:g}", None
    return f"{n} labelled documents are too few for this risk and confidence", min(needed)

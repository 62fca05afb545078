r"""A threshold on a detector's score below which the share of hallucinated answers is bounded, with a confidence.

Read off a risk-coverage curve, a threshold breaks the risk that was asked for in a third to a half of all samples: it
was chosen for looking good. Here thresholds are tested for the hypothesis that their risk is too high, from the
strictest to the widest, at every score that a document has, and the way ends where one is not rejected (fixed-sequence
testing, learn then test, Angelopoulos et al. 2021, arXiv 2110.01052; selective prediction as Geifman & El-Yaniv 2017).
The way does not begin at the strictest score, where a few documents say too little, but where a fifth of the
documents are accepted, with all of the error probability. Where there are documents enough for more, stricter starts
share it, and a way that reaches the next start takes its share along (the fallback procedure, Wiens 2003; a graphical
procedure as Bretz et al. 2009).

Why it holds, for any score, with ties, and where the risk does not grow with the score. Starts :math:`s_1 < s_2 < ...`
are placed on labelled documents that are not tested: to the tests they are fixed. These are whole groups, in an order
that the seed draws without a look at scores or labels, and how many there are depends on the number of groups and on
the sizes of those taken so far, and on nothing in the others: given the ones that are taken, the others are still
independent draws. Documents without a label have no say: they lack one for a reason (declined, undecided), so that
their scores are unlike those of the others, and starts that they place are too wide or nowhere. Let :math:`\tau_j` be
the first point from :math:`s_j` on, before the next start, whose risk :math:`R(t) = P(wrong \mid score \le t)` is above
:math:`r`; it is a fixed number, and as :math:`R` is continuous from the right, :math:`R(\tau_j) \ge r`. Nothing beyond
:math:`\tau_j` is reached in that stretch unless the test at the last score that is at most :math:`\tau_j` rejects (or
at the start, if there is none between). That test accepts exactly the documents with a score of at most :math:`\tau_j`,
whose errors are independent draws at risk :math:`R(\tau_j)`; so it rejects with at most the probability in hand, which
is the sum of the shares of the starts since the last such point. These sums have no start in common: together, at most
:math:`\delta`.

The tests hold for finite samples and any distribution. Where every document stands for itself, the errors among the
accepted are binomial and the test is exact. Where documents come in groups, such as the questions on one image, the
groups are independent and the documents are not: the test is a series of bets on groups
(:mod:`hedge_tasks.statistics.grouped_risk`). Such bets aim at the level, and one that rejects at a level need not
reject at a greater one, which the sums above take for granted. So each start there has its own way to the end, at its
share of the level and no other: the first point from :math:`s_j` on whose risk is above :math:`r` is passed with at
most that probability, and the shares add up to :math:`\delta`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.numbers import THREE_DIGITS
from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray, as_data, check_confidence
from hedge_tasks.statistics.grouped_risk import GroupedTest

_WIDEST, _WIDEST_OF_GROUPS = 0.2, 0.4
"""Share of the documents that the widest start accepts, without and with groups."""

_FEWER, _ALLOWED = 3, 14
"""How many times fewer each stricter start accepts, at as many times less of the level, and how many errors the risk
should allow among them at least: below that, all of the level stands at one start."""

_MARGIN = 1.25
"""How many times as many documents the widest start accepts at least as a test needs that sees no error."""

_PLACING, _PART = 20, 12
"""Labelled documents whose scores say where the starts are, and which are not tested: 20 at least, and one group in 12
(a document where each stands for itself)."""

_BLOCK = 128
"""Scores that are tested at once; the way ends in the first block or goes through many."""

_MOST_LABELS = 10**7


@dataclass(frozen=True)
class Candidate:
    """One threshold that was tested.

    Attributes:
        threshold: A document with a score of at most this is accepted.
        n_accepted: Documents of the test part that it accepts.
        n_wrong: Those of them that are hallucinated.
        share: `n_accepted` of all documents of the test part.
        p_value: For the hypothesis that more than the risk asked for of what it accepts is hallucinated.
        level: The p-value may at most be this for the hypothesis to be rejected.
    """

    threshold: float
    n_accepted: int
    n_wrong: int
    share: float
    p_value: float
    level: float


@dataclass(frozen=True)
class RiskControl:
    """The promise that labels allow.

    Attributes:
        risk: Largest share of hallucinated answers among the accepted.
        confidence: That the promise holds, over the draw of the calibration documents.
        chosen: The candidate that accepts most among those that hold; `None` where none does.
        reason: Why there is none.
        more_labels: How many labelled documents there should be for the most promising start to hold, if what was
            seen of it is what it is; `None` where one holds, or where no number of labels would help.
        candidates: All that were tested, the strictest first.
        bets: Of the chosen one: (accepted, wrong) of each group with any, in the order in which they were bet on, from
            which its p-value follows; empty where every document stands for itself, or nothing was chosen.
        largest: Documents of the largest group.
        n: Labelled documents that were tested on.
        n_groups: Groups of them; `None` where every document stands for itself.
        n_detectors: How many detectors were tried, which the levels account for.
    """

    risk: float
    confidence: float
    chosen: Candidate | None
    reason: str | None
    more_labels: int | None
    candidates: tuple[Candidate, ...]
    bets: tuple[tuple[int, int], ...]
    largest: int
    n: int
    n_groups: int | None
    n_detectors: int


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

    :math:`R(t)` is the share of hallucinated answers among those with a score of at most :math:`t`. The starts are
    placed on the scores of one in twelve labelled documents, and 20 at least (whole groups), which are not tested. All
    others are, by the fallback procedure at :math:`\delta / D` for :math:`D` detectors that were tried, or by a way of
    each start where there are groups (see the module). Documents without a label count for nothing.

    Args:
        scores: Scores, shape `(n,)`; higher = more likely hallucinated. `nan` is never accepted.
        labels: 0, 1 (hallucinated) or `nan` (not known), shape `(n,)`.
        risk: :math:`r`, in (0, 1).
        confidence: :math:`1 - \delta`, in (0, 1).
        groups: Group of each document, length `n`. The promise is then about documents of new groups, none of which
            has more documents than the largest one here.
        n_detectors: How many detectors were tried, this one included.
        seed: Of the choice of labelled documents that place the starts, and of the order of bets on groups.

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
    codes = _codes(groups) if groups is not None else np.arange(len(x))
    grouped = int(codes.max(initial=-1)) + 1 < len(codes)
    labelled = ~np.isnan(y)
    x, y, codes = np.where(np.isnan(x), np.inf, x)[labelled], y[labelled], codes[labelled]
    placing = _placing(codes, seed)
    rows = np.flatnonzero(~placing)[np.argsort(x[~placing], kind="stable")]
    wrong, level = y[rows] == 1, (1 - confidence) / n_detectors
    n_units = len(np.unique(codes[rows]))
    # As many as are tested, by the sizes of the groups that place the starts: those of the others must not move them.
    n = n_units * int(placing.sum()) / max(len(np.unique(codes[placing])), 1)
    test: _BinomialTest | GroupedTest
    if grouped:
        test = GroupedTest(wrong, codes[rows], risk, seed)
        starts = _starts(x[placing], n, level, test, widest=_WIDEST_OF_GROUPS)
        candidates, chosen = _walks(x[rows], starts, test)
    else:
        test = _BinomialTest(wrong, risk)
        starts = _starts(x[placing], n, level, test, widest=_WIDEST)
        candidates, chosen = _walk(x[rows], starts, test)
    reason = more_labels = None
    if chosen is None:
        tried = max(starts.values(), default=level)
        tested = [candidate for candidate in candidates if candidate.threshold in starts]
        reason, more_labels = _why_not(_deciles(x[rows], tried, test), tested, len(rows), len(x), test)
    return RiskControl(
        risk=risk,
        confidence=confidence,
        chosen=chosen,
        reason=reason,
        more_labels=more_labels,
        candidates=candidates,
        bets=test.bets(chosen.n_accepted) if chosen is not None else (),
        largest=test.largest,
        n=len(rows),
        n_groups=n_units if grouped else None,
        n_detectors=n_detectors,
    )


def binomial_p_value(n_accepted: int, n_wrong: int, risk: float) -> float:
    """Probability of at most so many errors among so many, each of probability `risk`."""
    from scipy.special import bdtr  # the binomial distribution function, without a hundred times the overhead

    return float(bdtr(n_wrong, n_accepted, risk)) if n_accepted else 1.0


def _codes(groups: Sequence[Hashable] | npt.NDArray[np.generic]) -> IntArray:
    """Numbers of the groups, in the order of their names (of an array in that of its values)."""
    if isinstance(groups, np.ndarray):
        return np.unique(groups, return_inverse=True)[1]
    numbers = {group: i for i, group in enumerate(sorted(set(groups), key=repr))}
    return np.array([numbers[group] for group in groups], dtype=np.int64)


def _placing(codes: IntArray, seed: int) -> BoolArray:
    """The labelled documents that say where the starts are: whole groups."""
    names, sizes = np.unique(codes, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    n_taken = max(int(np.searchsorted(np.cumsum(sizes[order]), _PLACING)) + 1, len(names) // _PART)
    return np.isin(codes, names[order[:n_taken]])


def _starts(
    scores: FloatArray, n: float, level: float, test: _BinomialTest | GroupedTest, *, widest: float
) -> dict[float, float]:
    """Thresholds to start from, the strictest first, each with its share of the level.

    Args:
        scores: Of the documents that place the starts.
        n: Documents that are tested, about.
        level: What the starts share.
        test: No start is where it could not reject without an error: from there on nothing would be tested.
        widest: Share of the documents that the widest start accepts.
    """
    parts = {min(1.0, max(widest, _MARGIN * test.fewest(level) / max(n, 1))): 1.0}
    while (share := min(parts) / _FEWER) * n * test.risk >= _ALLOWED:
        parts[share] = min(parts.values()) / _FEWER
    # Scores as they are, and no means of two: a detector that counts has but a few.
    starts: dict[float, float] = {}
    for share in sorted(parts) if len(scores) else ():
        threshold = float(np.quantile(scores, share, method="inverted_cdf"))
        if math.isfinite(threshold):
            starts[threshold] = starts.get(threshold, 0.0) + level * parts[share] / sum(parts.values())
    return starts


def _walk(
    x: FloatArray, starts: Mapping[float, float], test: _BinomialTest
) -> tuple[tuple[Candidate, ...], Candidate | None]:
    """Test every score from the first start on; after one that is not rejected, go on at the next start."""
    if not starts or len(x) == 0:
        return (), None
    path = np.unique(np.concatenate([x[np.isfinite(x) & (x >= min(starts))], list(starts)]))
    level, chosen = 0.0, None
    tested: list[Candidate] = []
    for threshold, n in zip(path.tolist(), np.searchsorted(x, path, side="right").tolist(), strict=True):
        level += starts.get(threshold, 0.0)
        if level == 0.0:
            continue
        tested.append(Candidate(threshold, n, test.n_wrong(n), n / len(x), test.p_value(n, level), level))
        if tested[-1].p_value <= level:
            chosen = tested[-1]
        else:
            level = 0.0
    return tuple(tested), chosen


def _walks(
    x: FloatArray, starts: Mapping[float, float], test: GroupedTest
) -> tuple[tuple[Candidate, ...], Candidate | None]:
    """From each start on, test every score at the start's own level, until one is not rejected."""
    tested: list[Candidate] = []
    passed: list[Candidate] = []
    for start, level in starts.items() if len(x) else ():
        path = np.unique(np.append(x[np.isfinite(x) & (x >= start)], start))
        for first in range(0, len(path), _BLOCK):
            block = path[first : first + _BLOCK]
            counts = np.searchsorted(x, block, side="right")
            values = test.p_values(counts, level).tolist()
            rejected = [p <= level for p in values]
            n = rejected.index(False) if False in rejected else len(block)
            some = zip(block.tolist(), counts.tolist(), values[: n + 1], strict=False)
            candidates = [Candidate(t, k, test.n_wrong(k), k / len(x), p, level) for t, k, p in some]
            tested, passed = tested + candidates, passed + candidates[:n]
            if n < len(block):
                break
    tested.sort(key=lambda c: c.threshold)
    return tuple(tested), max(passed, key=lambda c: c.threshold, default=None)


class _BinomialTest:
    """Exact: errors among k accepted documents are binomial, given k. Rows are in the order of their scores."""

    largest = 1

    def __init__(self, wrong: BoolArray, risk: float) -> None:
        self.risk = risk
        self._wrong = np.concatenate([[0], np.cumsum(wrong)])

    def n_wrong(self, n_accepted: int) -> int:
        return int(self._wrong[n_accepted])

    def p_value(self, n_accepted: int, level: float) -> float:
        """The level does not matter: nothing aims at it."""
        return binomial_p_value(n_accepted, self.n_wrong(n_accepted), self.risk)

    def bets(self, n_accepted: int) -> tuple[tuple[int, int], ...]:
        """None: counts of documents say it all."""
        return ()

    def fewest(self, level: float) -> float:
        """How many accepted documents are enough to reject where none is wrong."""
        return math.log(level) / math.log1p(-self.risk)

    def needed(self, n_accepted: int, n: int, level: float) -> int | None:
        """Fewest documents at which the shares seen would be enough."""
        if self.n_wrong(n_accepted) >= self.risk * n_accepted:
            return None
        low, high = n, n
        while high < _MOST_LABELS and self._at(n_accepted, high / n) > level:
            low, high = high, high * 2
        while high - low > max(1, low // 100):
            middle = (low + high) // 2
            low, high = (low, middle) if self._at(n_accepted, middle / n) <= level else (middle, high)
        return high

    def _at(self, n_accepted: int, times: float) -> float:
        return binomial_p_value(round(n_accepted * times), math.ceil(self.n_wrong(n_accepted) * times), self.risk)


def _deciles(x: FloatArray, level: float, test: _BinomialTest | GroupedTest) -> list[Candidate]:
    """The thresholds that accept a tenth, two tenths ... of the tested documents, as a start would be tested there."""
    counts = {int(n) for n in np.ceil(len(x) * np.arange(1, 11) / 10) if n and math.isfinite(x[int(n) - 1])}
    return [
        Candidate(float(x[n - 1]), n, test.n_wrong(n), n / len(x), test.p_value(n, level), level)
        for n in sorted(counts)
    ]


def _why_not(
    deciles: Sequence[Candidate],
    starts: Sequence[Candidate],
    n: int,
    labelled: int,
    test: _BinomialTest | GroupedTest,
) -> tuple[str, int | None]:
    """Why nothing holds, and how many labels would do.

    Args:
        starts: Candidates where tests began.
        n: Documents that were tested, of so many `labelled` ones.
    """
    if n == 0:
        return f"no labelled documents are left to test on; {labelled} place the starts", None
    if not starts:
        return f"most of the {labelled - n} labelled documents that place the start have no score", None
    # A wider threshold is reached from a start alone, whatever its own risk.
    reachable = [c for c in deciles if c.threshold < max(start.threshold for start in starts)]
    needed = [test.needed(c.n_accepted, n, c.level) or _MOST_LABELS for c in (*reachable, *starts)]
    if (more := min((m for m in needed if m > n), default=_MOST_LABELS)) < _MOST_LABELS:
        counts = f"{labelled} labelled documents ({n} tested, {labelled - n} place the start)"
        return f"{counts} are too few for this risk and confidence", math.ceil(more * labelled / n)
    least = min(starts, key=lambda c: c.n_wrong / max(c.n_accepted, 1))
    seen = f"{THREE_DIGITS(least.n_wrong / max(least.n_accepted, 1))} ({least.n_wrong} of {least.n_accepted})"
    return f"the least risk seen where the test starts is {seen}, not below {test.risk:g}", None

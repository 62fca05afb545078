r"""A test that too much of what is accepted is wrong, where documents come in groups and only groups are independent.

The hypothesis bounds a mean over groups: with :math:`a_g` accepted documents of a group, :math:`w_g` of them wrong, the
risk is at least :math:`r` where :math:`x_g = r a_g - w_g` has a mean of at most 0. A bettor begins with 1, goes through
the groups in an order that was drawn beforehand, and stakes :math:`\lambda_g` on each :math:`x_g`. The stake depends on
earlier groups alone, never on the size of the one to come, and is at most :math:`1 / ((1 - r) m)` for groups of at most
:math:`m` documents; then :math:`\prod_g (1 + \lambda_g x_g)` is never negative, and no way to stake can be expected to
win. The greatest winnings on the way reach :math:`1 / \alpha` with a probability of at most :math:`\alpha` (Ville's
inequality; Waudby-Smith & Ramdas 2024, JRSS B 86:1). That is all the proof needs: neither independence within a group,
nor errors that do not depend on its size. (A stake that depends on it would be wrong: with no error in groups of one
and .3 in groups of five, such bets win for ever where the risk over all documents is too high.)

Which stake wins most often? The number of groups :math:`n` is known, so that winnings after the last group are all that
counts. Of all bettors who cannot be expected to win, the one who most often ends at :math:`1 / \alpha` ends there or at
0, and has :math:`\Phi(d) / \alpha` before, :math:`\Phi(d)` being the chance to get there if the values to come were
normal with a variance :math:`v`. Their stake is the derivative, :math:`\phi(d) / \Phi(d) / \sqrt{v (n - g)}`. With many
groups this is as sharp as a z-test, where one stake for all groups gives away a third to a half of the labels. The
variance is that of the groups so far. (Voráček & Orabona 2025, arXiv 2505.22422, aim at a horizon in a similar way.)

What no test can do: a group of :math:`m` wrong documents that has not been seen yet has a probability of up to about
:math:`\ln(1 / \alpha) / n`. Its errors fit under the hypothesis, so that fewer than about :math:`m \ln(1 / \alpha) / r`
groups, with no error at all among them, prove nothing. One image with many questions makes a promise dear for all.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from hedge_tasks.statistics.base import BoolArray, FloatArray, IntArray

_BOLDEST = 0.98
"""Largest stake, as a part of the one that can lose everything."""

_PRIOR = 3.0
"""Groups that the variance before the first group counts for."""

_AIM = 1.01
"""Winnings to aim at, as a multiple of those needed: the goal itself would be reached with the last group only."""


def most_won(
    accepted: npt.NDArray[np.generic], wrong: npt.NDArray[np.generic], *, largest: int, risk: float, level: float
) -> FloatArray:
    """Logarithm of the greatest winnings on the way, by threshold; 0 where nothing was ever won.

    Args:
        accepted: accepted documents, shape `(groups, thresholds)`; groups in the order in which they are bet on.
        wrong: those of them that are wrong.
        largest: documents that a group has at most.
        risk: that the hypothesis puts as the least.
        level: at which it is to be rejected, which bets aim at; the winnings are valid for any other as well.
    """
    from scipy.special import ndtri

    values, some = (
        risk * np.asarray(accepted, dtype=np.float64) - np.asarray(wrong, dtype=np.float64),
        np.asarray(accepted) > 0,
    )
    won, most = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    # Groups of which nothing is accepted say nothing: given how many others there are, these are still independent.
    left = some.sum(axis=0).astype(np.float64)
    squares, seen = np.full(len(won), _PRIOR * risk * (1 - risk) * largest), np.full(len(won), _PRIOR)
    boldest, goal = _BOLDEST / ((1 - risk) * largest), math.log(_AIM / level)
    for x, is_there in zip(values, some, strict=True):
        chance = np.exp(np.clip(won - goal, -600.0, -1e-6))
        d = ndtri(chance)
        density = np.exp(-d * d / 2) / (math.sqrt(2 * math.pi) * chance)
        stake = np.minimum(density / np.sqrt(squares / seen * np.maximum(left, 1.0)), boldest)
        won += np.log1p(stake * x)
        np.maximum(most, won, out=most)
        squares += x * x
        seen += is_there
        left -= is_there
    return most


class GroupedTest:
    """The test for any number of documents with the least scores.

    Args:
        wrong: of the documents, in the order of their scores.
        codes: number of the group of each.
        risk: that the hypothesis puts as the least.
        seed: of the order of the groups.
    """

    def __init__(self, wrong: BoolArray, codes: IntArray, risk: float, seed: int) -> None:
        self.risk, self._wrong = risk, wrong
        places = np.unique(codes, return_inverse=True)[1]
        sizes = np.bincount(places)
        self.largest = int(sizes.max()) if len(codes) else 1
        self._n = len(sizes)
        self._places = np.random.default_rng([seed, 1]).permutation(self._n)[places] if self._n else places

    def n_wrong(self, n_accepted: int) -> int:
        return int(self._wrong[:n_accepted].sum())

    def p_values(self, n_accepted: IntArray, level: float) -> FloatArray:
        """Of the first so many documents each; the numbers grow."""
        accepted, wrong = self._counts(n_accepted)
        return np.exp(-most_won(accepted, wrong, largest=self.largest, risk=self.risk, level=level))

    def p_value(self, n_accepted: int, level: float) -> float:
        return float(self.p_values(np.array([n_accepted]), level)[0])

    def bets(self, n_accepted: int) -> tuple[tuple[int, int], ...]:
        """(accepted, wrong) of each group with any, in the order in which they are bet on."""
        accepted, wrong = (counts[:, 0] for counts in self._counts(np.array([n_accepted])))
        return tuple((int(a), int(w)) for a, w in zip(accepted, wrong, strict=True) if a)

    def fewest(self, level: float) -> float:
        """How many accepted documents win at the boldest stakes, about, where none is wrong."""
        return -math.log(level) * (1 - self.risk) * self.largest / (_BOLDEST * self.risk)

    def needed(self, n_accepted: int, n: int, level: float) -> int | None:
        """How many documents would do, if groups to come are like these; None where no number would.

        As many as let a z-test reject half of the time, and the boldest bets reach the winnings without an error.
        """
        from scipy.special import ndtri

        accepted, wrong = (counts[:, 0] for counts in self._counts(np.array([n_accepted])))
        x = (self.risk * accepted - wrong)[accepted > 0]
        if not len(x) or (mean := float(x.mean())) <= 0:
            return None
        by_variance = (ndtri(level) / mean) ** 2 * float(np.square(x).mean())
        boldest = _BOLDEST / ((1 - self.risk) * self.largest)
        by_bets = -math.log(level) / math.log1p(boldest * self.risk * float(accepted[accepted > 0].mean()))
        return math.ceil(n * max(by_variance, by_bets, len(x) + 1) / len(x))

    def _counts(self, n_accepted: IntArray) -> tuple[IntArray, IntArray]:
        """Accepted and wrong documents, shape `(groups, numbers)`."""
        some = len(n_accepted)
        columns = np.searchsorted(n_accepted, np.arange(n_accepted[-1]), side="right")
        cells = self._places[: len(columns)] * some + columns
        wrong = cells[self._wrong[: len(columns)]]
        shape = self._n, some
        accepted, errors = (np.bincount(c, minlength=math.prod(shape)).reshape(shape) for c in (cells, wrong))
        return accepted.cumsum(axis=1), errors.cumsum(axis=1)

r"""Tests of a mean that are valid at any time: whoever looks after each value, and stops when they like, is not misled.

A bettor starts with 1 and bets on each value that the mean is above a bound :math:`m`; their winnings after
:math:`x_1, ..., x_t` are :math:`\prod_i (1 + \lambda (x_i - m))`. As long as the mean of each value, given those before
it, is at most :math:`m`, no way to bet can be expected to win, and winnings reach :math:`1 / \alpha` at any time with
probability at most :math:`\alpha` (Ville's inequality; Waudby-Smith & Ramdas 2024, JRSS B 86:1). The winnings here are
the mean over stakes :math:`\lambda`, and a weighted mean over bettors who begin after 0, 1, 3, 7, ... values, so that a
change after a long good time is seen as well; a bettor who has not begun still has their 1.
"""

from __future__ import annotations

import math

import numpy as np

_PARTS = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9])
"""Of the largest stake that cannot lose everything."""


class MeanTest:
    """Tests that the mean of values in [0, 1] is at most a bound, after every value.

    Args:
        bound: in (0, 1].

    Example:
        >>> test = MeanTest(0.1)
        >>> for _ in range(5):
        ...     winnings = test.add(1.0)
        >>> winnings > 100
        True
    """

    def __init__(self, bound: float) -> None:
        if not 0 < bound <= 1:
            raise ValueError(f"bound must be in (0, 1], got {bound}")
        self.bound, self.n, self.total = bound, 0, 0.0
        self._logs = np.zeros((0, len(_PARTS)))

    def add(self, value: float) -> float:
        """Take a value, and return the winnings so far: at most 1 in expectation while the mean is at most the bound.

        Raises:
            ValueError: the value is not in [0, 1].
        """
        if not 0 <= value <= 1:
            raise ValueError(f"expected a value in [0, 1], got {value}")
        if (self.n + 1).bit_count() == 1:  # after 0, 1, 3, 7, ... values
            self._logs = np.vstack([self._logs, np.zeros(len(_PARTS))])
        self._logs += np.log1p(_PARTS / self.bound * (value - self.bound))
        self.n, self.total = self.n + 1, self.total + value
        return self.winnings

    @property
    def winnings(self) -> float:
        """The weighted mean of all bettors' winnings."""
        began = len(self._logs)
        shares = 1 / (np.arange(1, began + 1) * np.arange(2, began + 2))
        won = np.exp(np.minimum(self._logs, 700)).mean(axis=1)
        return float(min((shares * won).sum() + 1 / (began + 1), math.exp(700)))

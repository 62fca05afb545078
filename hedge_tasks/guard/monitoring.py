"""Whether a promise still holds while it is used: audits of accepted answers, and the share that is accepted.

Both are tested after every answer, at `LEVEL` for all times together (`hedge_tasks.statistics.betting`). Audited
answers must be picked at random among the accepted ones: of picked errors the test would learn about the picker.
"""

from __future__ import annotations

import threading
from typing import Literal

from loguru import logger

from hedge_tasks.guard.policy import Promise
from hedge_tasks.numbers import PERCENT
from hedge_tasks.statistics.betting import MeanTest

LEVEL = 0.01
"""Probability at most that a test ever alarms without a reason."""

StopOn = Literal["audits", "any", "none"]


class Monitor:
    """Tests what happens against the promise. Threads may share it.

    Args:
        promise: of the policy.
        stop_on: after which alarm nothing is accepted any more: of audits, of any test, or of none.

    Attributes:
        broken: whether audits have refuted the promise.
        shifted: whether another share is accepted than in calibration, so that the questions may be others.
    """

    def __init__(self, promise: Promise, stop_on: StopOn = "any") -> None:
        self.promise, self.stop_on = promise, stop_on
        low, high = promise.accepted_interval
        self._risk, self._more, self._fewer = MeanTest(promise.risk), MeanTest(high), MeanTest(1 - low)
        self.broken = self.shifted = False
        self._lock = threading.Lock()

    @property
    def audits(self) -> tuple[int, int]:
        """Audited answers, and how many of them were hallucinated."""
        return self._risk.n, round(self._risk.total)

    @property
    def reason(self) -> str | None:
        """Why nothing is accepted any more; None as long as it is."""
        if self.broken and self.stop_on != "none":
            n, wrong = self.audits
            return (
                f"audits have refuted the promise: {wrong} of {n} audited answers were hallucinated, and at most "
                f"{PERCENT(self.promise.risk)} were promised"
            )
        if self.shifted and self.stop_on == "any":
            return "another share of answers is accepted than in calibration: the questions may be others"
        return None

    def audited(self, *, hallucinated: bool) -> None:
        """Take what somebody found who looked at an accepted answer that was picked at random."""
        with self._lock:
            alarm = self._risk.add(float(hallucinated)) >= 1 / LEVEL
            already_broken, self.broken = self.broken, self.broken or alarm
        if alarm and not already_broken:
            logger.error("{} of {} audited answers were hallucinated: the promise is refuted", *reversed(self.audits))

    def judged(self, *, accepted: bool) -> None:
        """Take a verdict of the policy."""
        with self._lock:
            # Two tests share the level.
            won = max(self._more.add(float(accepted)), self._fewer.add(float(not accepted)))
            already_shifted, self.shifted = self.shifted, self.shifted or won >= 2 / LEVEL
        if self.shifted and not already_shifted:
            low, high = self.promise.accepted_interval
            logger.warning(
                "{} of {} answers were accepted, {} to {} in calibration: the questions may be others than the policy "
                "is about (`hedge calibrate --check` on labelled ones tells)",
                round(self._more.total),
                self._more.n,
                PERCENT(low),
                PERCENT(high),
            )

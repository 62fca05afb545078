"""What has happened, for Prometheus, and whether the questions are still those of the calibration."""

from __future__ import annotations

from collections import deque

from loguru import logger
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hedge_tasks.guard.calibrate import apart
from hedge_tasks.guard.policy import Policy, sure_interval
from hedge_tasks.guard.verdict import GuardVerdict
from hedge_tasks.numbers import PERCENT

OUTCOMES = ("accepted", "rejected", "undecided", "unjudged", "refused", "unauthorized", "overloaded", "failed", "gone")
"""What becomes of a request."""

_WINDOW = 500
_FEWEST = 50
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counts what becomes of requests. Asked from one event loop.

    Args:
        policy: whose share of accepted answers is watched: over the last 500 verdicts it should not leave, with its
            99 % interval, that of the calibration.
    """

    def __init__(self, policy: Policy) -> None:
        self._calibrated = policy.promise.accepted_interval
        self._last: deque[bool] = deque(maxlen=_WINDOW)
        self._drifting = False
        registry = self._registry = CollectorRegistry()
        name = "hedge_guard_"
        self._requests = Counter(f"{name}requests", "Requests by outcome", ["outcome"], registry=registry)
        for outcome in OUTCOMES:
            self._requests.labels(outcome)
        n = policy.circumstances.get("sampling", {}).get("n", 10)
        steps = sorted({0, *range(0, 2 * n + 1, max(1, n // 5)), n})
        self._draws = Histogram(f"{name}draws", "Draws of a verdict", buckets=steps, registry=registry)
        self._seconds = Histogram(f"{name}seconds", "Seconds of a verdict", buckets=_SECONDS, registry=registry)
        self.in_flight = Gauge(f"{name}in_flight", "Requests in the house", registry=registry)
        window = f"of the last {_WINDOW} verdicts"
        self._share = Gauge(f"{name}accepted_share", f"Share accepted {window}", registry=registry)
        self._share.set(float("nan"))
        Gauge(f"{name}calibrated_share", "Share accepted in calibration", registry=registry).set(
            policy.promise.accepted
        )
        about = f"1 where the share accepted {window} is apart from the calibration's"
        self._drift = Gauge(f"{name}drift", about, registry=registry)

    @property
    def drifting(self) -> bool:
        """Whether another share of answers is accepted than in calibration, so that the questions may be others."""
        return self._drifting

    def count(self, outcome: str) -> None:
        """Count a request without a verdict."""
        self._requests.labels(outcome).inc()

    def judged(self, verdict: GuardVerdict) -> None:
        """Count a verdict. One that was not reached in time says nothing of the questions."""
        self.count(verdict.state)
        self._draws.observe(verdict.draws)
        self._seconds.observe(verdict.seconds)
        if verdict.state == "undecided":
            return
        self._last.append(verdict.accepted)
        share = sum(self._last) / len(self._last)
        self._share.set(share)
        drifting = len(self._last) >= _FEWEST and apart(sure_interval(share, len(self._last)), self._calibrated)
        if drifting and not self._drifting:
            low, high = self._calibrated
            logger.warning(
                "{} of the last {} answers were accepted, {} to {} in calibration: the questions may be "
                "others than the policy is about (`hedge calibrate --check` on labelled ones tells)",
                PERCENT(share),
                len(self._last),
                PERCENT(low),
                PERCENT(high),
            )
        self._drifting = drifting
        self._drift.set(drifting)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)

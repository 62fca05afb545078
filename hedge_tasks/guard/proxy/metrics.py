"""Counts of what has happened, for Prometheus."""

from __future__ import annotations

from collections import deque

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from hedge_tasks.guard.monitoring import Monitor
from hedge_tasks.guard.policy import Policy
from hedge_tasks.guard.verdict import GuardVerdict

OUTCOMES = ("accepted", "rejected", "undecided", "unjudged", "refused", "unauthorized", "overloaded", "failed", "gone")
"""Outcomes of a request."""

_WINDOW = 500
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """Counts what becomes of requests. Asked from one event loop.

    Args:
        policy: whose verdicts are counted.
        monitor: says whether its promise still holds.
    """

    def __init__(self, policy: Policy, monitor: Monitor) -> None:
        self._monitor = monitor
        self._last: deque[bool] = deque(maxlen=_WINDOW)
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
        description = "1 where another share is accepted than in calibration"
        self._drift = Gauge(f"{name}drift", description, registry=registry)
        self._audits = Gauge(f"{name}audits", "Audited answers", registry=registry)
        self._audited_wrong = Gauge(f"{name}audits_hallucinated", "Of them, hallucinated", registry=registry)
        self._broken = Gauge(f"{name}promise_refuted", "1 where audits have refuted the promise", registry=registry)

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
        self._drift.set(self._monitor.shifted)

    def audited(self) -> None:
        """Count an audit."""
        n, wrong = self._monitor.audits
        self._audits.set(n)
        self._audited_wrong.set(wrong)
        self._broken.set(self._monitor.broken)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)

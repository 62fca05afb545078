"""The number that tables, reports, comparisons and submissions show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

Interval = tuple[float, float]
"""Lower and upper bound."""


@dataclass(frozen=True)
class Number:
    """A statistic with its uncertainty, or the reason why there is none.

    Attributes:
        value: the statistic; None if undefined.
        stderr: its standard error; None if undefined or not computed.
        interval: confidence interval (low, high), 95 % unless said otherwise; None where there is none.
        n: units that count for it.
        n_groups: independent groups that they are of; 0 where groups play no role.
        n_positive: units of the positive class (hallucinated); None where the statistic has no classes.
        reason: why `value`, or `stderr` where it was asked for, is None; None if nothing is missing.
        method: how standard error and interval were computed, in words; None without them.
        unit: name of one unit, such as "document" or "claim".

    Example:
        >>> Number(0.75, stderr=0.1, n=20, n_positive=6).n_rarer
        6
        >>> Number.undefined("no documents").defined
        False
    """

    value: float | None
    stderr: float | None = None
    interval: Interval | None = None
    n: int = 0
    n_groups: int = 0
    n_positive: int | None = None
    reason: str | None = None
    method: str | None = None
    unit: str = "document"

    @classmethod
    def undefined(cls, reason: str, **about: Any) -> Self:
        """Return a number without a value.

        Args:
            reason: why there is none, in words fit for a report.
            about: further attributes, such as `n`.
        """
        return cls(None, reason=reason, **about)

    @property
    def defined(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def n_rarer(self) -> int | None:
        """Number of units of the rarer class; None without classes. An AUROC is no surer than these allow."""
        return None if self.n_positive is None else min(self.n_positive, self.n - self.n_positive)

    @property
    def low(self) -> float | None:
        """Lower bound of the interval."""
        return None if self.interval is None else self.interval[0]

    @property
    def high(self) -> float | None:
        """Upper bound of the interval."""
        return None if self.interval is None else self.interval[1]

    def less(self, reference: float | None) -> Number:
        """Return the difference to a constant, such as a published value; undefined where either is missing."""
        if self.value is None or reference is None:
            return Number.undefined(self.reason or "there is nothing to compare with", n=self.n, unit=self.unit)
        bounds = None if self.interval is None else (self.interval[0] - reference, self.interval[1] - reference)
        return replace(_plain(self), value=self.value - reference, interval=bounds)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes that say something, for JSON: value always, the others where they are known."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        shown = {name: value for name, value in fields.items() if value is not None}
        if not self.n_groups:
            del shown["n_groups"]
        return {"value": self.value, **shown}


_FIELDS = ("value", "stderr", "interval", "n", "n_groups", "n_positive", "reason", "method", "unit")


def _plain(number: Number) -> Number:
    """Return the number without what a subclass adds."""
    return Number(**{name: getattr(number, name) for name in _FIELDS})

"""Thresholds at their border: which side the border itself is on."""

from __future__ import annotations

import math
from collections.abc import Callable


def at_border(decide: Callable[[float], object], border: float, sides: str) -> None:
    """Assert decisions just below, at and just above a border, as in "001" where only more than the border is a yes.

    Steps are 1 for an integer, and 1e-9 of the value otherwise.
    """
    step = 1 if isinstance(border, int) else max(1e-9, 1e-9 * abs(border))
    values = (border - step, border, border + step)
    assert "".join(str(int(bool(decide(value)))) for value in values) == sides, f"around {border}"
    assert all(math.isfinite(value) for value in values)

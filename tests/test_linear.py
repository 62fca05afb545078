"""The measurement of growth itself: linear work passes on a busy machine, quadratic work does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import cycle

import linear
import pytest
from linear import is_linear, sizes


def letters(n: int) -> str:
    return "a" * n


QUADRATIC: dict[str, Callable[[str], object]] = {
    "a regular expression that is tried everywhere": lambda text: re.search(r"a+b", text),
    "after a linear part": lambda text: (len(text.split("a")), re.search(r"a*\Z(?!)", text[: len(text) // 2] + "b")),
}


@pytest.mark.slow
@pytest.mark.parametrize("read", QUADRATIC.values(), ids=QUADRATIC)
def test_quadratic_work_is_found(read: Callable[[str], object]) -> None:
    assert not is_linear(read, letters, sizes(1000, 16_000))


def clock(power: int, disturbances: Iterator[float]) -> Callable[[Callable[[], object]], float]:
    """Seconds that work of some power takes where something else adds to them."""
    return lambda work: float(work()) ** power * (1 + next(disturbances))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "disturbances", [[0.0], [9.0, 50.0, 0.1, 7.0, 3.0, 30.0, 2.0], [0.0, 40.0, 0.0, 40.0, 0.0, 0.3]]
)
def test_disturbed_measurements_tell_linear_from_quadratic(
    monkeypatch: pytest.MonkeyPatch, disturbances: list[float]
) -> None:
    for power, first in ((1, None), (2, 400)):
        monkeypatch.setattr(linear, "_seconds", clock(power, cycle(disturbances)))
        assert linear.first_growth(lambda size: lambda: size, sizes(100, 6400)) == first

"""What statistics remember: equal content and nothing else, never more than asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.statistics import memory
from hedge_tasks.statistics.calibration import isotonic
from hedge_tasks.statistics.memory import by_content


def test_equal_content_is_computed_once_and_other_content_is_not_taken_for_it() -> None:
    seen = []

    @by_content()
    def total(values: np.ndarray, seed: int) -> float:
        seen.append(values)
        return float(values.sum()) + seed

    once = np.array([1, 2, 3, 4])
    assert total(once, 1) == total(once.copy(), 1) == 11
    assert len(seen) == 1
    others = [(once, 2), (once[::-1].copy(), 1), (once.astype(float), 1), (once.reshape(2, 2), 1), (once[:3], 1)]
    assert [total(*other) for other in others] == [12, 11, 11, 11, 7]
    assert len(seen) == 6
    assert total(np.array([1, 2, 3, 4, 9])[:4], 1) == 11  # a view, of the same numbers
    assert len(seen) == 6


def test_the_oldest_is_forgotten_and_large_data_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    @by_content(keep=2)
    def first(values: np.ndarray) -> int:
        calls.append(int(values[0]))
        return int(values[0])

    for number in (1, 2, 1, 3, 1, 2):
        assert first(np.array([number])) == number
    assert calls == [1, 2, 3, 2]
    monkeypatch.setattr(memory, "_MOST_NUMBERS", 3)
    for _ in range(2):
        first(np.array([7, 7, 7, 7]))
    assert calls[-2:] == [7, 7]


def test_what_is_shared_cannot_be_written_into_and_large_results_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    @by_content()
    def shapes(n: int) -> dict[str, tuple[np.ndarray, ...]]:
        calls.append(n)
        return {"of": (np.zeros(n), np.ones(n))}

    for array in (*shapes(2)["of"], *shapes(2)["of"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    monkeypatch.setattr(memory, "_MOST_IN_RESULT", 6)
    for n in (3, 3, 4, 4):
        assert shapes(n)["of"][1].sum() == n
    assert calls == [2, 3, 4, 4]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=40))
def test_isotonic_regression_is_scipys(levels: list[tuple[int, int]]) -> None:
    from scipy.optimize import isotonic_regression

    times = np.array([n for _, n in levels])
    sums = np.minimum(np.array([s for s, _ in levels]), times)
    assert isotonic(sums, times) == pytest.approx(isotonic_regression(sums / times, weights=times).x, abs=1e-12)

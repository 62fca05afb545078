"""Borders of what verdicts rest on: levels, coverage, and the width of a promise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from test_guard import POLICY

from hedge_tasks.measures.blind import beats
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.measures.unit_table import UnitTable
from hedge_tasks.statistics import Comparison
from hedge_tasks.statistics.base import wilson


@pytest.mark.parametrize(("difference", "p", "better"), [(0.1, 0.049, True), (0.1, 0.05, False), (-0.1, 0.01, False)])
def test_better_is_by_more_than_chance(difference: float, p: float, better: bool) -> None:
    assert beats(Comparison(0.7, 0.6, difference, 0.1, None, p, 100, "test"), p) is better


def test_claims_of_unknown_support_have_failed_and_the_others_are_undecided() -> None:
    table = SimpleNamespace(n_labelled=3, counted=SimpleNamespace(n_unknown=2, units=range(10)))
    coverage = UnitTable.coverage.fget(table)  # type: ignore[attr-defined]
    assert coverage == Coverage(labelled=3, undecided=5, failed=2)
    assert coverage.bounds(1) == (0.1, 0.8)


def test_the_images_are_what_is_independent() -> None:
    promise = POLICY.promise
    assert promise.n_groups is not None
    assert promise.n_groups < promise.n
    assert promise.accepted_interval == wilson(promise.accepted, promise.n_groups, 0.99)

"""Groups of documents: found from pictures and columns."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.data.groups import count_groups, effective_groups, find_groups
from hedge_tasks.detectors.units import shared_groups

KEYS = st.lists(st.tuples(*[st.sampled_from([None, "a", "b", "c", "d"])] * 3), max_size=12)


def connected(columns: Sequence[Sequence[str | None]], i: int) -> set[int]:
    """The documents that a document is connected with, by walking until nothing is new."""
    found = {i}
    while True:
        near = {
            k for column in columns for j in found for k in range(len(column)) if column[j] is not None is not column[k]
            if column[j] == column[k]
        }  # fmt: skip
        if near <= found:
            return found
        found |= near


@given(KEYS)
@settings(max_examples=60, deadline=None)
def test_groups_are_what_is_connected(rows: list[tuple[str | None, ...]]) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    groups = find_groups(*columns)
    for i, group in enumerate(groups):
        same = {j for j, other in enumerate(groups) if other == group and group is not None} or {i}
        assert same == connected(columns, i)


def test_a_name_is_the_declared_one_and_never_that_of_two_groups() -> None:
    assert find_groups(["p1", None, "p2"], ["x", "x", "p1"]) == ("p1", "p1", "p2")
    assert find_groups(["x", None, None], [None, "x", "x'"]) == ("x", "x'", "x''")
    assert find_groups(None, [None, "y"]) == (None, "y")
    assert count_groups([None, None, "a", "a"]) == 3


def test_the_effective_number_of_groups() -> None:
    assert effective_groups(["a", "b", "c"]) == 3
    assert effective_groups(["a"] * 3 + ["b"]) == 16 / 10
    assert effective_groups([]) == 0


def test_units_without_a_group_are_alone() -> None:
    """One document without a group does not make all others independent."""
    assert shared_groups(["a", "a", None, None]) == ("a", "a", ("alone", 2), ("alone", 3))
    assert shared_groups(["a", "b", None]) is None

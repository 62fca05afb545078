"""Groups of documents: found from pictures, numbers and columns, and reported by `hedge health`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from finished_runs import measure_health
from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.groups import count_groups, effective_groups, find_groups, missed_text, rotated_items
from hedge_tasks.data.option_files import read_options
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
    groups = find_groups(columns[0], *columns[1:]).groups
    for i, group in enumerate(groups):
        same = {j for j, other in enumerate(groups) if other == group and group is not None} or {i}
        assert same == connected(columns, i)


def test_a_name_is_the_declared_one_and_never_that_of_two_groups() -> None:
    assert find_groups(["p1", None, "p2"], ["x", "x", "p1"]).groups == ("p1", "p1", "p2")
    assert find_groups(["x", None, None], [None, "x", "x'"]).groups == ("x", "x'", "x''")
    assert find_groups(None, [None, "y"]).groups == (None, "y")
    assert count_groups([None, None, "a", "a"]) == 3


def test_a_declared_column_that_misses_groups() -> None:
    grouping = find_groups(["1", "2", "3"], ["x", "x", "y"])
    assert grouping.settings() == {"found": 2, "declared": 3}
    assert "names 3 where there are 2" in str(missed_text(grouping.settings()))
    assert missed_text(find_groups(["p", "p", "q"], ["x", "y", "z"]).settings()) is None
    assert missed_text(find_groups(None, ["x", "x"]).settings()) is None


def test_rotations_are_of_an_item_that_is_there_and_asks_the_same() -> None:
    names = ["i/7.png", "i/1000007.png", "i/2000007.png", "i/1000008.png", "j/7.png", None]
    assert rotated_items(names, ["w"] * 6) == ["i/7", "i/7", "i/7", None, None, None]
    # Other data sets have large numbers, too: pictures 107,077 and 2,107,077 are two.
    assert rotated_items(["107077", "2107077"], ["a cat?", "a dog?"]) == [None, None]
    # Without words every large number has to have its item.
    assert rotated_items(["1", "1000001", "2"], [None] * 3) == ["1", "1", None]
    assert rotated_items(["1", "1000001", "1000002"], [None] * 3) == [None] * 3


def test_the_effective_number_of_groups() -> None:
    assert effective_groups(["a", "b", "c"]) == 3
    assert effective_groups(["a"] * 3 + ["b"]) == 16 / 10
    assert effective_groups([]) == 0


def test_units_without_a_group_are_alone() -> None:
    """One document without a group does not make all others independent."""
    assert shared_groups(["a", "a", None, None]) == ("a", "a", ("alone", 2), ("alone", 3))
    assert shared_groups(["a", "b", None]) is None


def circular(n: int = 60) -> list[dict[str, object]]:
    dice = random.Random(0)
    rows = []
    for i in range(n):
        lean = dice.gauss(0, 3)
        for turn in range(4):
            number = i + turn * 10**6
            logits = {"A": lean + dice.gauss(0, 0.3), "B": 0.0}
            rows.append({"id": f"row{len(rows)}", "answer": "A", "question": f"item {i}?", "logits": logits,
                         "options": {"A": f"x{turn}", "B": f"y{turn}"}, "image": f"pictures/{number}.png"})  # fmt: skip
    return rows


@pytest.fixture
def rotations(tmp_path: Path) -> Path:
    file = tmp_path / "circular.jsonl"
    file.write_text("\n".join(map(json.dumps, circular())), "utf-8")
    return file


def test_imported_rotations_are_groups(rotations: Path) -> None:
    assert count_groups([q.group for q in read_options(rotations)[""]]) == 60


def asked(id_: str, question: str, group: str | None = None, label: int = 0) -> AnswerSet:
    return AnswerSet(id_, Answer("a"), (Answer("a"), Answer("b")), question=question, group=group, label=label)


def test_what_the_groups_of_a_run_do_not_know_is_a_finding() -> None:
    two = [asked("x", "q", "1"), asked("y", "r", "1")]
    texts = [
        finding.text
        for finding in measure_health(two, {}, documents={"grouping": {"declared": 2, "found": 1}}).findings
    ]
    assert any("names 2 where there are 1" in text for text in texts)

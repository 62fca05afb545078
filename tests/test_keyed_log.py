"""The log under the stores: whoever writes, the value of a key is the first one that says something."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.errors import DataError
from hedge_tasks.io.keyed_log import KeyedLog


def number(record: Any) -> int | None:
    value = record.get("value")
    if value is not None and not isinstance(value, int):
        raise DataError("no number")
    return value


def log_at(folder: Path | None) -> KeyedLog[int | None]:
    return KeyedLog(folder, "numbers", "numbers", number, lambda value: value is None)


writes = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 9)), max_size=12)


@pytest.mark.slow
@given(st.lists(writes, max_size=3))
def test_the_first_value_that_says_something_stands_for_every_reader(sessions: list[Any]) -> None:
    expected: dict[str, int | None] = {}
    for key, value in (write for session in sessions for write in session):
        if expected.get(key) is None:
            expected[key] = value
    with TemporaryDirectory() as name, log_at(None) as memory:
        for session in sessions:
            with log_at(Path(name)) as log:
                for key, value in session:
                    log.keep([(key, value, {"value": value})])
                    memory.keep([(key, value, {"value": value})])
        with log_at(Path(name)) as again:
            for one in (again, memory):
                assert {key: one[key] for key in one} == expected
            assert again.dropped == []
    assert memory.files() == []


def test_what_is_no_value_is_left_out_and_named(tmp_path: Path, said: list[str]) -> None:
    with log_at(tmp_path) as log:
        log.keep([("a", 1, {"value": 1}), ("b", 2, {"value": "two"})])
        log._append([{"value": 3}])
    found = log_at(tmp_path)
    assert ({key: found[key] for key in found}, found.conflicts) == ({"a": 1}, [])
    assert [line.problem for line in found.dropped] == ["no number", "a record of numbers without a key"]
    [warning] = [line for line in said if "damaged" in line]
    assert "2 damaged numbers are left out" in warning


def test_another_value_of_a_key_is_a_conflict(tmp_path: Path) -> None:
    for value in (1, 1, 2):
        with log_at(tmp_path) as log:
            log._append([{"key": "a", "value": value}])
    found = log_at(tmp_path)
    assert found["a"] == 1
    assert [line.record for line in found.conflicts] == [{"key": "a", "value": 2}]

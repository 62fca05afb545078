"""The log under the stores: whoever writes, the value of a key is the first one that says something."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io import keyed_log
from hedge_tasks.io.keyed_log import KeyedLog
from hedge_tasks.io.places import Remote


def number(record: Any) -> int | None:
    value = record.get("value")
    if value is not None and not isinstance(value, int):
        raise DataError("no number")
    return value


def log_at(folder: Path | None) -> KeyedLog[int | None]:
    return KeyedLog(folder, "numbers", "numbers", number, lambda value: value is None)


def test_values_in_memory_have_no_files() -> None:
    with log_at(None) as memory:
        for value in (None, 1, 2):
            memory.keep([("a", value, {"value": value})])
    assert ({key: memory[key] for key in memory}, memory.files()) == ({"a": 1}, [])


class Full:
    """A file on a disk that takes half of what it is given."""

    def __init__(self, file: Any) -> None:
        self.file, self.close = file, file.close

    def write(self, lines: bytes) -> int:
        return int(self.file.write(lines[: len(lines) // 2]))


ends = st.sampled_from(["goes on", "goes on", "is killed", "is cut", "has no disk"])
steps = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"), st.none() | st.integers(0, 9), ends))
"""Writer, key, value, and what becomes of the writer: a cut takes half of its last line with it."""


@pytest.mark.slow
@given(steps, st.booleans())
def test_the_first_value_that_says_something_stands_whatever_becomes_of_the_writers(
    steps: list[Any], is_remote: bool
) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_log, "UPLOAD_SECONDS", 0.0)
        patch.setattr(keyed_log, "LARGEST_OBJECT", 100)
        folder = Remote(f"memory:/{name}") if is_remote else Path(name)
        logs: dict[str, KeyedLog[int | None]] = {}
        files: list[list[tuple[str, int | None]]] = []
        at: dict[str, list[tuple[str, int | None]]] = {}
        n_damaged = 0
        for writer, key, value, end in steps:
            log = logs.setdefault(writer, log_at(folder))
            entries = [(key, value, {"value": value})]
            if end == "has no disk" and writer in at and not is_remote:
                log._file = Full(log._file)  # type: ignore[assignment]
                with pytest.raises(HedgeError, match="cannot write numbers to .*No space left"):
                    log.keep(entries)
                del at[writer]  # it goes on with another file
                n_damaged += 1
                continue
            log.keep(entries)
            if writer not in at:
                files.append(at.setdefault(writer, []))
            at[writer].append((key, value))
            if end in {"is killed", "is cut"}:
                if end == "is cut" and not is_remote:
                    file = Path(name, f"{log.stems[-1]}.jsonl")
                    file.write_bytes(file.read_bytes()[:-20])
                    at[writer].pop()
                    n_damaged += 1
                del logs[writer], at[writer]
        expected: dict[str, int | None] = {}
        n_conflicts = 0
        for key, value in (line for file in files for line in file):
            if expected.get(key) is None:
                expected[key] = value
            n_conflicts += expected[key] != value
        found = log_at(folder)
        assert {key: found[key] for key in found} == expected
        assert (len(found), len(found.dropped), len(found.conflicts)) == (len(expected), n_damaged, n_conflicts)


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

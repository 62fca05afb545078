"""The log under the stores: whoever writes, the value of a key is the first one that says something."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
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


class HalfFile:
    """Takes half of what it is given, as a disk does that fills up."""

    def __init__(self, file: Any) -> None:
        self.file, self.close = file, file.close

    def write(self, lines: bytes) -> int:
        return int(self.file.write(lines[: len(lines) // 2]))


def keep(log: KeyedLog[int | None], key: str, value: int | None) -> None:
    log.keep([(key, value, {"value": value})])


def damaged(log: KeyedLog[int | None], lines: list[Any], end: str | int) -> bool:
    """Bring a writer to its end; whether a line of its file is damaged by that, which is none of its lines then."""
    if end == "closed":
        log.close()
    if end in {"closed", "killed"} or not isinstance(log.folder, Path):
        return False
    if end == "no disk":
        log._file = HalfFile(log._file)  # type: ignore[assignment]
        with pytest.raises(HedgeError, match=r"cannot write numbers to .*No space left"):
            keep(log, "a", 1)
        return True
    file = log.folder / f"{log.stems[-1]}.jsonl"
    file.write_bytes(file.read_bytes()[: -int(end)])
    if end == 1:  # losing no more than the line break loses nothing
        return False
    lines.pop()
    return True


def standing(lines: Iterable[tuple[str, int | None]]) -> tuple[dict[str, int | None], int]:
    """The values that stand, and how many differ from those."""
    values: dict[str, int | None] = {}
    n_others = 0
    for key, value in lines:
        values[key] = value if values.get(key) is None else values[key]
        n_others += values[key] != value
    return values, n_others


several = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(0, 9)), min_size=1, max_size=6)
writers = st.lists(st.tuples(several, st.sampled_from(["closed", "killed", "no disk", 1, 2, 20])), max_size=4)
"""What each writes, and what becomes of it; a number: of bytes that a cut takes with it."""


@settings(max_examples=40, deadline=None)
@given(writers, st.booleans())
def test_the_first_value_that_says_something_stands_whatever_becomes_of_the_writers(
    writers: list[Any], is_remote: bool
) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyed_log, "UPLOAD_SECONDS", 0.0)
        patch.setattr(keyed_log, "LARGEST_OBJECT", 100)
        folder = Remote(f"memory:/{name}") if is_remote else Path(name)
        logs = [log_at(folder) for _ in writers]
        for turn in zip_longest(*(lines for lines, _ in writers)):
            for log, line in zip(logs, turn, strict=True):
                if line is not None:
                    keep(log, *line)
        n_damaged = sum(damaged(log, *writer) for log, writer in zip(logs, writers, strict=True))
        found = log_at(folder)
        assert (dict(found), len(found.conflicts)) == standing(line for lines, _ in writers for line in lines)
        assert len(found.dropped) == n_damaged


def test_after_a_full_disk_a_writer_goes_on_with_another_file(tmp_path: Path) -> None:
    log = log_at(tmp_path)
    keep(log, "a", 1)
    damaged(log, [], "no disk")
    keep(log, "b", 2)
    assert (dict(log_at(tmp_path)), len(log.files())) == ({"a": 1, "b": 2}, 2)
    with log_at(None) as memory:
        for value in (None, 1, 2):
            keep(memory, "a", value)
    assert (dict(memory), memory.files()) == ({"a": 1}, [])


def test_what_is_no_value_is_left_out_and_named(tmp_path: Path, said: list[str]) -> None:
    with log_at(tmp_path) as log:
        log.keep([("a", 1, {"value": 1}), ("b", 2, {"value": "two"})])
        log._append([{"value": 3}])
    found = log_at(tmp_path)
    assert (dict(found), found.conflicts) == ({"a": 1}, [])
    assert [line.problem for line in found.dropped] == ["no number", "a record of numbers without a key"]
    [warning] = [line for line in said if "damaged" in line]
    assert "2 damaged numbers are left out" in warning

"""The borders of what is read, written, kept and downloaded: sizes, ages, seconds, and the values of options."""

from __future__ import annotations

import gzip
import json
import os
import sys
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from at_border import at_border
from hostile import attempt
from hypothesis import given
from hypothesis import strategies as st
from test_keyed_log import keep, log_at

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import downloads, keyed_log, options, outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.io.json_objects import objects_in, whole_object
from hedge_tasks.io.places import Remote


def refused(call: Callable[[], Any]) -> bool:
    return attempt(call)[1] != ""


# --- what is read -----------------------------------------------------------------------------------------------------


def test_files_and_their_lines_are_read_up_to_their_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "LONGEST_LINE", 50)
    monkeypatch.setattr(outside, "LARGEST_FILE", 90)
    file = tmp_path / "x"

    def fault(*sizes: float) -> str:
        file.write_bytes(b"".join(b"x" * (int(size) - 1) + b"\n" for size in sizes))
        return attempt(lambda: list(outside.read_raw_lines(file)))[1]

    at_border(lambda n: f"{file}:2: a line" in fault(9, n), 50, "001")
    at_border(lambda n: f"{file}: larger" in fault(50, n), 40, "001")
    at_border(lambda n: refused(lambda: outside.read_text(file, largest=int(n))), 91, "100")
    file.write_bytes(b"\n {}\n\n")
    assert list(outside.read_raw_lines(file)) == [(2, b" {}\n")]
    assert list(read_objects(file)) == [(f"{file}:2", {})]


def test_what_unpacks_to_more_than_a_real_file_of_its_size_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed, archive = tmp_path / "x.gz", tmp_path / "x.zip"
    for unpacked in (10**6, 0):
        monkeypatch.setattr(outside, "_UNPACKED", unpacked)  # of a real file it is 256 MiB
        packed.write_bytes(gzip.compress(bytes(2 * 10**6)))
        size = max(unpacked, 100 * packed.stat().st_size)
        assert outside.most_unpacked(packed) == size
        at_border(lambda n: refused(lambda: outside.check_unpacked(packed, int(n))), size, "001")
    monkeypatch.setattr(outside, "_UNPACKED", 1000)
    monkeypatch.setattr(outside, "_MOST_TIMES", 1)

    def parts(n: float) -> None:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
            for name, size in (("a", 600), ("b", int(n))):
                file.writestr(name, bytes(size))
        outside.check_archive(archive)

    at_border(lambda n: refused(lambda: parts(n)), 400, "001")


def test_numbers_are_taken_up_to_their_borders() -> None:
    at_border(lambda n: refused(lambda: outside.number(n, "x")), int(sys.float_info.max), "001")
    at_border(lambda p: refused(lambda: outside.log_probability(p, "x")), 1e-4, "001")
    assert [outside.log_probability(p, "x") for p in (-0.5, 0, 5e-5)] == [-0.5, 0.0, 0.0]
    at_border(lambda n: refused(lambda: outside.parse_json("1" * int(n), "x")), 40, "001")
    at_border(lambda n: "digits" in outside.shown(n), 10**40, "011")
    at_border(lambda n: outside.shown("x" * int(n)).endswith("..."), 58, "001")
    assert outside.shown("x" * 99) == f"'{'x' * 59}..."


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers(), max_size=2), max_size=4), st.integers(0, 3))
def test_objects_in_a_reply_are_found_with_what_stands_between(objects: list[dict[str, int]], depth: int) -> None:
    texts = list(map(json.dumps, objects))
    found, between = objects_in(" and ".join([*texts, "{ no object }"]))
    assert found == list(zip(texts, objects, strict=True))
    assert between.split() == ["and"] * len(objects) + ["{", "no", "object", "}"]
    for inner in objects[:1]:
        nested: Any = inner
        for i in range(depth):
            nested = [nested] if i % 2 else json.dumps(nested)
        reply = nested if isinstance(nested, str) else json.dumps(nested)
        steps = depth + (not isinstance(nested, str))  # texts that are read, and lists of one that are opened
        for text in (reply, f"```json\n{reply}\n```", f"```{reply}```"):
            assert whole_object(text) == (inner if steps <= 3 else None)


def test_of_countless_objects_the_first_are_read() -> None:
    assert [len(objects_in("{}" * n)[0]) for n in (199, 200, 201)] == [199, 200, 200]


# --- what is written and kept -----------------------------------------------------------------------------------------


def test_what_dead_writers_left_behind_goes_after_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hedge_tasks.io.files.time", SimpleNamespace(time=lambda: 2.0e9))

    def is_kept(age: float, name: str = f"x.{'0' * 32}.part") -> bool:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (2.0e9 - age,) * 2)
        write_whole(tmp_path / "y", "z")
        return (tmp_path / name).exists()

    at_border(is_kept, 24 * 60 * 60, "110")
    assert is_kept(1e6, "somebody-elses.part")


@pytest.mark.parametrize("is_remote", [False, True])
def test_a_log_is_durable_again_once_so_much_time_has_gone(
    is_remote: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, done, write = [0.0], list[object](), Remote.write
    monkeypatch.setattr(keyed_log, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(keyed_log, "sync", lambda *where: done.append(where))
    monkeypatch.setattr(Remote, "write", lambda self, content: done.append(content) or write(self, content))

    def after(seconds: float) -> int:
        log = log_at(Remote(f"memory://{uuid.uuid4().hex}") if is_remote else tmp_path / str(seconds))
        done.clear()
        for now[0] in (0.0, seconds):
            keep(log, str(now[0]), 1)
        kept = len(done)
        log.close()
        assert len(log_at(log.folder)) == 2  # type: ignore[arg-type]
        return kept

    at_border(lambda s: after(s) == 2, keyed_log.UPLOAD_SECONDS if is_remote else keyed_log.SYNC_SECONDS, "011")


def test_an_object_of_so_many_bytes_is_the_last_that_a_writer_writes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_log, "UPLOAD_SECONDS", 0.0)

    def objects(largest: float) -> int:
        monkeypatch.setattr(keyed_log, "LARGEST_OBJECT", int(largest))
        log = log_at(Remote(f"memory://{uuid.uuid4().hex}"))
        for key in "ab":
            keep(log, key, 1)
        assert dict(log_at(log.folder)) == {"a": 1, "b": 1}  # type: ignore[arg-type]
        return len(log.files())

    line = len(keyed_log.seal({"key": "a", "value": 1}))
    at_border(lambda n: objects(n) == 2, line, "110")


def test_files_that_go_while_they_are_read_are_looked_for_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that becomes a segment is gone; what was read of the others before that counts once."""
    with log_at(tmp_path) as log:
        keep(log, "a", 1)
    (tmp_path / "numbers-0.jsonl").write_bytes(b"torn")
    listed = keyed_log.files_of

    def reads(gone: float) -> bool:
        left = iter(range(int(gone)))
        monkeypatch.setattr(
            keyed_log,
            "files_of",
            lambda *of: [*listed(*of), *([tmp_path / "gone"] if next(left, None) is not None else [])],
        )
        found, error = attempt(lambda: log_at(tmp_path))
        assert error or (dict(found), [line.file.name for line in found.dropped]) == ({"a": 1}, ["numbers-0.jsonl"])
        return not error

    at_border(reads, 9, "110")


# --- downloads --------------------------------------------------------------------------------------------------------


def test_a_redirect_stays_where_scheme_host_and_port_are_the_same() -> None:
    here = "https://a.org/x"
    assert all(downloads.same_origin(here, there) for there in (here, "https://a.org/y?z", "https://A.org"))
    elsewhere = (
        "http://a.org/x",
        "https://a.org:444/x",
        "https://b.a.org/x",
        "https://a.org.b/x",
        "https://127.0.0.1/x",
    )
    assert not any(downloads.same_origin(here, there) for there in elsewhere)


def test_a_download_is_bounded_in_bytes_and_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    class Slow:
        """A response of two halves, after each of which some time has gone."""

        def __init__(self, n: int, seconds: float) -> None:
            self.halves, self.seconds = [b"x" * (n // 2), b"x" * (n - n // 2)], seconds

        def __enter__(self) -> Slow:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read1(self, _: int) -> bytes:
            now[0] += self.seconds / 2
            return self.halves.pop() if self.halves else b""

    def downloaded(n: float = 10, seconds: float = 0.0) -> str:
        now[0] = 0.0
        response = Slow(int(n), seconds)
        monkeypatch.setattr(downloads, "build_opener", lambda *_: SimpleNamespace(open=lambda *_, **__: response))
        content, error = attempt(lambda: downloads.download("https://a.org/x"))
        assert error or content == b"x" * int(n)
        return error

    monkeypatch.setattr(downloads, "LARGEST", 100)
    monkeypatch.setattr(downloads, "time", SimpleNamespace(monotonic=lambda: now[0]))
    at_border(lambda n: "more than" in downloaded(n), 100, "001")
    at_border(lambda s: "not whole within 60 s" in downloaded(seconds=s), 60, "001")
    with pytest.raises(DataError, match="only https"):
        downloads.download("http://a.org/x")


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "border", "sides"),
    [
        (options.count, 0, "100"),
        (lambda key, n: options.count(key, n, at_least=3), 3, "100"),
        (options.number, 0.0, "100"),
        (lambda key, x: options.number(key, x, zero=False), 0.0, "110"),
        (options.share, 0.0, "100"),
        (options.share, 1.0, "001"),
        (options.finite, sys.float_info.max / 2, "000"),
    ],
)
def test_options_are_refused_beyond_their_borders(check: Callable[..., Any], border: float, sides: str) -> None:
    at_border(lambda value: refused(lambda: check("x", value)), border, sides)
    assert all(refused(lambda odd=odd: check("x", odd)) for odd in ("1", True, None, [1], float("nan"), float("inf")))


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.none() | st.booleans() | st.integers() | st.floats(-9, 9)
    )
)
def test_settings_in_one_text_are_read_one_by_one(values: dict[str, Any]) -> None:
    written = " , ".join(f"{key} = {str(value).upper()}" for key, value in values.items())
    assert options.pairs("x", written) == values
    assert options.named("x", f"y:{written}") == options.named("x", {**values, "name": "y"}) == {**values, "name": "y"}
    for key in list(values)[:1]:
        with pytest.raises(ConfigError, match="given twice"):
            options.pairs("x", f"{written},{key}=1")


def test_of_a_slip_of_the_pen_that_may_be_a_secret_little_is_quoted() -> None:
    def quoted(n: float) -> bool:
        return "x" * 5 in attempt(lambda: options.pairs("key", "x" * int(n)))[1]

    at_border(quoted, 12, "110")
    assert refused(lambda: options.pairs("key", "=1"))
    assert options.scalar("word") == "word"

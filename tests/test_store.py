"""The answer store: durable, shared, and never wrong about what it holds."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hedge_tasks.errors import HedgeError
from hedge_tasks.io import keyed_log
from hedge_tasks.sampling import Answer
from hedge_tasks.sampling.definition import draw_key
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw


def record(i: int, text: str = "yes") -> FinishedDraw:
    return FinishedDraw(draw_key({"i": i}), Answer(text, -0.25, 2), f"q{i}", "clean", i)


def test_key_depends_on_values_not_on_their_order() -> None:
    assert draw_key({"a": 1, "b": 2}) == draw_key({"b": 2, "a": 1}) != draw_key({"a": 2, "b": 1})


@pytest.mark.parametrize("when", ["at once", "at the end"])
def test_a_full_disk_is_a_clear_error(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if when == "at once":
        monkeypatch.setattr(keyed_log, "SYNC_SECONDS", 0)
    store = AnswerStore(tmp_path)
    store.put([record(1)])

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HedgeError, match=r"cannot write answers to .*No space left on device.*kept"), store:
        store.put([record(2)])
    assert AnswerStore(tmp_path).get(record(1).key) is not None

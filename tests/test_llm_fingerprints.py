"""What tells weights apart."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from hedge_tasks.llm import fingerprints
from hedge_tasks.llm.fingerprints import fingerprint, identity_of


def test_hidden_files_and_subfolders_are_no_part_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = fingerprint(tmp_path)
    (tmp_path / ".cache").write_text("x")
    (tmp_path / "checkpoint").mkdir()
    assert fingerprint(tmp_path) == before
    (tmp_path / "vocab.txt").write_text("x")
    assert fingerprint(tmp_path) != before


def test_what_is_no_folder_is_identified_by_its_commit(tmp_path: Path) -> None:
    assert identity_of("org/model", "abc") == "abc"
    assert identity_of("org/model") == "unknown"
    assert identity_of(str(tmp_path), "abc") == fingerprint(tmp_path)


@pytest.mark.parametrize(("size", "whole"), [(4999, True), (5000, False)])
def test_a_file_of_the_bound_is_sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, whole: bool
) -> None:
    assert (fingerprints.WHOLE_BELOW, fingerprints._SAMPLES, fingerprints._SAMPLE_BYTES) == (2**28, 256, 2**18)
    monkeypatch.setattr(fingerprints, "WHOLE_BELOW", 5000)
    monkeypatch.setattr(fingerprints, "_SAMPLE_BYTES", 8)
    content = os.urandom(size)
    (tmp_path / "a.bin").write_bytes(content)
    starts = [(size - 8) * i // 255 for i in range(256)]
    read = content if whole else b"".join(content[start : start + 8] for start in starts)
    assert fingerprint(tmp_path) == hashlib.blake2b(b"a.bin\0%d\0" % size + read, digest_size=16).hexdigest()

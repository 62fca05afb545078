"""Whose an entry is: the key that signed its run at the start, and announcements of entries to come.

An announcement is a file `NAME.signed` beside the entries: what a finished run has signed, without its answers. It
holds a place for them. Nobody can make one for answers that they have not seen, as the signed digests hold the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.signatures import can_check
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.stated import has_texts
from hedge_tasks.runs.signed_runs import (
    UNSIGNED,
    SignedRun,
    signature_faults,
    signed_run_of,
    statement_faults,
)

ANNOUNCEMENT = ".signed"
"""Ending of an announcement's file, in place of the entry's `.json`."""

_LARGEST = 64 << 10
NO_OWNER = PartStatus(False, UNSIGNED)


def check_owner(submission: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> tuple[PartStatus, list[str]]:
    """Check the signatures of an entry's run, and whether what was signed is this entry.

    Args:
        submission: the entry, of a valid form.
        answer_sets: of its documents, without texts where it has none.

    Returns:
        Whether a key has signed it, with the key's fingerprint and the time; and what is wrong.
    """
    signed = signed_run_of(submission["settings"])
    if signed is None:
        return NO_OWNER, []
    entry = submission["entry"]
    of_entry = (entry["task"], entry["model"], entry["created"], submission["settings"], answer_sets)
    faults = [*statement_faults(signed, *of_entry, texts=has_texts(submission)), *signature_faults(signed)]
    if not can_check():
        return PartStatus(False, f"{signed.in_words}, by its own word: ssh-keygen is missing here"), faults
    return PartStatus(not faults, signed.in_words), faults


def announcement_of(submission: Mapping[str, Any]) -> SignedRun:
    """Return what announces an entry.

    Raises:
        ConfigError: its run is not signed.
    """
    signed = signed_run_of(submission["settings"])
    if signed is None:
        raise ConfigError(f"--announce: the run is {UNSIGNED}, and only a signed one can be announced")
    return signed


def write_announcement(path: Path, announcement: SignedRun) -> None:
    """Write an announcement as a whole or not at all."""
    write_whole(path, json.dumps(announcement.model_dump(), ensure_ascii=True, indent=1) + "\n")


def read_announcement(path: Path) -> SignedRun:
    """Read an announcement and check its signatures.

    Raises:
        DataError: it is none, or a signature is not its key's.
    """
    if path.is_symlink() or not path.is_file():
        raise DataError(f"{path}: no plain file")
    announcement = SignedRun.read(read_json(path, largest=_LARGEST, constants=False), str(path))
    if faults := signature_faults(announcement):
        raise DataError(f"{path}: {faults[0]}")
    return announcement

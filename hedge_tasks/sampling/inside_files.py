"""Maintenance of side files with arrays from inside: compaction, and damage in them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hedge_tasks.data.inside import Inside
from hedge_tasks.errors import DataError
from hedge_tasks.io.chunks import chunks
from hedge_tasks.io.files import sync_folder
from hedge_tasks.io.keyed_log import log_files, read_lines
from hedge_tasks.io.places import Place
from hedge_tasks.sampling.compaction import why_it_stays
from hedge_tasks.sampling.inside import KIND, InsideStore

_AT_ONCE = 256
"""Documents whose arrays are copied at once."""


@dataclass(frozen=True)
class CompactedInside:
    """The result of compacting side files.

    Attributes:
        documents: whose arrays have been copied.
        replaced: files of numbers that are one now.
        left: logs that stay as they are, and why.
        bytes: of the new file.
    """

    documents: int
    replaced: int
    left: Mapping[str, str]
    bytes: int = 0


def compact_inside(folder: Place, *, everything: bool = False) -> CompactedInside:
    """Make one pair of files of those of processes that have ended; arrays that nobody finds any more are left out.

    The new pair is moved into its place as a whole, and the old ones are removed after that.

    Args:
        everything: also logs of other machines that may still be written to: the caller knows that they are not.

    Raises:
        DataError: a file cannot be read or written, or an array is damaged (`hedge store verify` shows it). Nothing is
            lost then.
    """
    if not isinstance(folder, Path):  # arrays are mapped, and lie in folders alone
        return CompactedInside(0, 0, {})
    left: dict[str, str] = {}
    with ExitStack() as locks:
        logs = []
        for log in log_files(folder, KIND):
            if reason := why_it_stays(log, locks, everything=everything):
                left[log.name] = reason
            else:
                logs.append(log)
        files = {Path(str(line.record["file"])).name for line in read_lines(logs) if line.record}
        if len(logs) < 2:
            return CompactedInside(0, 0, left)
        old, new = InsideStore(folder), folder / f"{KIND}-new-{uuid.uuid4().hex}"
        try:
            with InsideStore(new) as store:
                keys = old.keys_in(files)
                for chunk in chunks(keys, _AT_ONCE):
                    store.put({key: _undamaged(old, key, files) for key in chunk})
            moved = sorted(new.iterdir())  # numbers (.bin) before the log that names them (.jsonl)
            moved.sort(key=lambda file: file.suffix != ".bin")
            size = sum(file.stat().st_size for file in moved if file.suffix == ".bin")
            for file in moved:
                file.rename(folder / file.name)
            sync_folder(folder)
        except OSError as error:
            raise DataError(f"cannot compact {folder}: {error.strerror or error}") from error
        finally:
            old.close()
            shutil.rmtree(new, ignore_errors=True)
        for log in logs:
            Path(str(log)).unlink(missing_ok=True)
        for name in files:
            (folder / name).unlink(missing_ok=True)
        return CompactedInside(len(keys), len(files), left, size)


def _undamaged(store: InsideStore, key: str, files: set[str]) -> Inside:
    names = store.names_in(key, files)
    arrays = store.get(key, names)
    if damaged := sorted(names - arrays.keys()):
        raise DataError(f"{store.folder}: {', '.join(damaged)} of a document are damaged (hedge store verify)")
    return arrays


def problems_inside(folder: Place) -> tuple[int, list[dict[str, str]]]:
    """How many arrays there are, and what is wrong with them: place, kind and problem of each."""
    if not isinstance(folder, Path):
        return 0, []
    with InsideStore(folder) as store:
        return store.n_arrays, store.problems()

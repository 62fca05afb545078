"""Relations of pairs of texts by an NLI model, kept on disk across runs.

One SQLite file for each model (its content or revision, and its number format), in the folder that `HEDGE_CACHE`
names, or else `hedge_tasks` in the user's cache folder; `HEDGE_CACHE=off` does without. Several processes may use a
file at once. Texts are stored as hashes only. The files can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from loguru import logger

from hedge_tasks.clustering.relations import Pair
from hedge_tasks.io.chunks import chunks

# Part of every file's name: to be raised whenever the same model would be shown a pair in another way.
FORMAT = 2

LOCK_TIMEOUT_S = 15.0
_OFF = frozenset({"off", "0", "false", "no"})

_ROW = struct.Struct("<3f")

# SQLite allows at least 999 parameters in a statement.
_KEYS_PER_QUERY = 900

# Three probabilities in float32 sum to 1 to this; what does not is damaged.
_SUM_TOLERANCE = 1e-3

Probabilities = tuple[float, float, float]
"""Of contradiction, neutral and entailment (`LIKELIEST`), in float32."""


class RelationCache:
    """Probabilities by pair of texts, on disk.

    A file that cannot be used (damaged, locked, full, not writable) is reported once and left alone: nothing is read or
    written any more.

    Args:
        path: The file, made when it is not there; `None` to keep nothing.
    """

    def __init__(self, path: Path | None) -> None:
        self._connection: sqlite3.Connection | None = None
        if path is not None:
            with self._reported():
                path.parent.mkdir(parents=True, exist_ok=True)
                self._connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT_S, check_same_thread=False)
                with self._connection:
                    self._connection.execute(
                        "CREATE TABLE IF NOT EXISTS relations (pair BLOB PRIMARY KEY, probabilities BLOB) WITHOUT ROWID"
                    )

    def read(self, pairs: Sequence[Pair]) -> dict[Pair, Probabilities]:
        """Return what is stored of the pairs. Damaged entries are left out; a warning says how many there are."""
        by_key = {pair_key(pair): pair for pair in pairs}
        stored: dict[bytes, object] = {}
        with self._reported():
            for keys in chunks(list(by_key), _KEYS_PER_QUERY) if self._connection else ():
                query = f"SELECT pair, probabilities FROM relations WHERE pair IN ({','.join('?' * len(keys))})"
                stored.update(self._connection.execute(query, keys) if self._connection else ())
        read = {by_key[key]: _unpacked(value) for key, value in stored.items()}
        if damaged := sum(row is None for row in read.values()):
            logger.warning("{} damaged entries of the NLI cache are ignored and made anew", damaged)
        return {pair: row for pair, row in read.items() if row is not None}

    def write(self, rows: Mapping[Pair, Probabilities]) -> None:
        """Add probabilities, all of them or none."""
        if self._connection is not None:
            with self._reported(), self._connection:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO relations VALUES (?, ?)",
                    [(pair_key(pair), _ROW.pack(*row)) for pair, row in rows.items()],
                )

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _reported(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            logger.warning(
                "The NLI cache on disk cannot be used ({}); this run does without. HEDGE_CACHE names its folder, "
                "HEDGE_CACHE=off turns it off, and its files can be deleted.",
                error,
            )
            self.close()


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The folder of the caches; `None` if there is none or none is wanted.

    Example:
        >>> cache_folder({"HEDGE_CACHE": "off"})
        >>> cache_folder({"HEDGE_CACHE": "/tmp/cache"}).as_posix()
        '/tmp/cache'
    """
    chosen = environment.get("HEDGE_CACHE", "")
    if chosen.strip().casefold() in _OFF:
        return None
    try:
        if chosen:
            return Path(chosen).expanduser()
        base = Path(environment.get("XDG_CACHE_HOME", ""))
        # The XDG specification: a path that is not absolute is to be ignored.
        return (base if base.is_absolute() else Path.home() / ".cache") / "hedge_tasks"
    except RuntimeError:  # nobody's home
        return None


def cache_file(folder: Path, model: str, identity: str) -> Path:
    """The file for a model.

    Args:
        folder: The folder of the caches.
        model: Its name, to find the file again.
        identity: All that decides what it says; other identities get other files.
    """
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", Path(model).name)[-60:].strip("._") or "model"
    digest = hashlib.blake2b(f"{FORMAT}\0{identity}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return folder / f"nli-{readable}-{digest}.sqlite3"


def pair_key(pair: Pair) -> bytes:
    """Hash of a pair of texts."""
    # JSON escapes and lone surrogates come from models too: any string has a key.
    premise, hypothesis = (text.encode("utf-8", "surrogatepass") for text in pair)
    lengths = struct.pack("<2Q", len(premise), len(hypothesis))
    return hashlib.blake2b(lengths + premise + hypothesis, digest_size=16).digest()


def _unpacked(stored: object) -> Probabilities | None:
    """The stored probabilities; None if they are damaged."""
    if not isinstance(stored, bytes) or len(stored) != _ROW.size:
        return None
    row: Probabilities = _ROW.unpack(stored)
    return row if min(row) >= 0 and abs(sum(row) - 1) < _SUM_TOLERANCE else None

"""Predictions of an NLI model about pairs of texts, kept on disk across runs.

One SQLite file for each model (its content or revision, and its number format), in the folder that `HEDGE_CACHE`
names, or else `hedge_tasks` in the user's cache folder; `HEDGE_CACHE=off` does without. Several processes may use a
file at once. Texts are stored as hashes only. The files can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import sqlite3
import struct
import threading
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from loguru import logger

from hedge_tasks.clustering.relations import LIKELIEST, Pair, Relation
from hedge_tasks.io.chunks import chunks

# Part of every file's name: to be raised whenever the same model would be shown a pair in another way.
FORMAT = 1

LOCK_TIMEOUT_S = 15.0
_OFF = frozenset({"off", "0", "false", "no"})

# The order is part of the format.
RELATIONS = LIKELIEST

# Index of the relation, three probabilities, checksum of all that and the key.
_BODY, _CHECKSUM = struct.Struct("<B3f"), struct.Struct("<I")

# SQLite allows at least 999 parameters in a statement.
_KEYS_PER_QUERY = 900


class Prediction(NamedTuple):
    """Prediction of a model about a pair.

    Attributes:
        relation: The most likely relation.
        probabilities: Of contradiction, neutral and entailment, in float32.
    """

    relation: Relation
    probabilities: tuple[float, float, float]


class RelationCache:
    """Predictions by pair of texts.

    Args:
        path: The file, made when it is not there; `None` for a cache in memory.

    Raises:
        sqlite3.Error, OSError: From every method: the file cannot be opened, read or written, is locked for long, or is
            no cache. The caller can do without.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path if path is not None else ":memory:", timeout=LOCK_TIMEOUT_S, check_same_thread=False
        )
        with self._connection:
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS predictions (pair BLOB PRIMARY KEY, prediction BLOB NOT NULL) WITHOUT ROWID"
            )

    def read(self, pairs: Sequence[Pair]) -> dict[Pair, Prediction]:
        """Return the stored predictions. Damaged ones are left out; a warning says how many there are."""
        predictions: dict[Pair, Prediction] = {}
        damaged = 0
        for chunk in chunks(pairs, _KEYS_PER_QUERY):
            by_key = {pair_key(pair): pair for pair in chunk}
            query = f"SELECT pair, prediction FROM predictions WHERE pair IN ({','.join('?' * len(by_key))})"
            with self._lock:
                rows = self._connection.execute(query, list(by_key)).fetchall()
            for key, stored in rows:
                prediction = _unpack(key, stored)
                if prediction is None:
                    damaged += 1
                else:
                    predictions[by_key[key]] = prediction
        if damaged:
            logger.warning("{} damaged entries of the NLI cache are ignored and made anew", damaged)
        return predictions

    def write(self, predictions: Mapping[Pair, Prediction]) -> None:
        """Add predictions, all of them or none."""
        rows = [(key := pair_key(pair), _pack(key, prediction)) for pair, prediction in predictions.items()]
        with self._lock, self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO predictions VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


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


def _pack(key: bytes, prediction: Prediction) -> bytes:
    body = _BODY.pack(RELATIONS.index(prediction.relation), *prediction.probabilities)
    return body + _CHECKSUM.pack(zlib.crc32(key + body))


def _unpack(key: bytes, stored: object) -> Prediction | None:
    if not isinstance(stored, bytes) or len(stored) != _BODY.size + _CHECKSUM.size:
        return None
    body = stored[: _BODY.size]
    if zlib.crc32(key + body) != _CHECKSUM.unpack(stored[_BODY.size :])[0]:
        return None
    index, *probabilities = _BODY.unpack(body)
    if index >= len(RELATIONS) or not all(map(math.isfinite, probabilities)):
        return None
    return Prediction(RELATIONS[index], (probabilities[0], probabilities[1], probabilities[2]))

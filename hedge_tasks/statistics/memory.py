"""Remember results for equal numbers: a report has most of its intervals several times."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import wraps
from threading import Lock
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")

_MOST_NUMBERS = 100_000
"""Of more numbers than this nothing is kept: their digest and their results would not be small."""

_MOST_IN_RESULT = 200_000
"""A result of more numbers than this is not kept."""


def by_content(keep: int = 256) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Have a pure function of arrays and plain values remember its last results; their arrays are read-only.

    Detectors that look at no clusters are the same under every clustering, and two clusterings often agree: the
    resampling of both is one.

    Args:
        keep: number of results.
    """

    def remembering(function: Callable[..., Result]) -> Callable[..., Result]:
        cached: OrderedDict[bytes, Result] = OrderedDict()
        lock = Lock()

        @wraps(function)
        def remembered(*arguments: Any) -> Result:
            if sum(a.size for a in arguments if isinstance(a, np.ndarray)) > _MOST_NUMBERS:
                return function(*arguments)
            key = _digest(arguments)
            with lock:
                if key in cached:
                    cached.move_to_end(key)
                    return cached[key]
            result = function(*arguments)
            if _sealed(result) > _MOST_IN_RESULT:
                return result
            with lock:
                cached[key] = result
                while len(cached) > keep:
                    cached.popitem(last=False)
            return result

        return remembered

    return remembering


def _sealed(result: object) -> int:
    """Make the arrays of a result read-only, for everybody gets the same ones; how many numbers they have."""
    if isinstance(result, np.ndarray):
        result.setflags(write=False)
        return result.size
    if isinstance(result, Mapping):
        return sum(map(_sealed, result.values()))
    return sum(map(_sealed, result)) if isinstance(result, (tuple, list)) else 0


def _digest(arguments: tuple[Any, ...]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            digest.update(f"{argument.dtype.str}{argument.shape}".encode())
            digest.update(np.ascontiguousarray(argument).tobytes())
        else:
            digest.update(f"{type(argument).__name__} {argument!r}\0".encode())
    return digest.digest()

"""Errors that a user can act on. Each says what is wrong, where, and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

Value = TypeVar("Value")

# As many valid names as still help; a data set has thousands of ids.
_LISTED = 30


class HedgeError(Exception):
    """Base of everything this package raises on purpose."""


class ConfigError(HedgeError, ValueError):
    """A setting is unknown or has a value that makes no sense."""


class DataError(HedgeError, ValueError):
    """Input data is missing, unreadable or malformed."""


class DrawsFailed(HedgeError, RuntimeError):
    """The model did not answer some draws, even after retries. Finished draws are kept."""


def first_line(error: Exception) -> str:
    """Return the kind of an error and the first line of its text, at most 300 characters of it.

    Example:
        >>> first_line(OSError("no space\\non the disk")), first_line(KeyError())
        ('OSError: no space', 'KeyError')
    """
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def unknown(kind: str, name: str, valid: Iterable[str]) -> ConfigError:
    """Error for a name that is not one of `valid`, with the nearest valid one.

    Example:
        >>> str(unknown("filter option", "treshold", ["threshold", "model"]))
        "unknown filter option 'treshold', did you mean 'threshold'? Valid: model, threshold"
    """
    options = sorted(valid)
    nearest = difflib.get_close_matches(str(name), options, n=1, cutoff=0.5)
    hint = f", did you mean {nearest[0]!r}?" if nearest else "."
    others = f" and {len(options) - _LISTED} more" if len(options) > _LISTED else ""
    return ConfigError(f"unknown {kind} {name!r}{hint} Valid: {', '.join(options[:_LISTED])}{others}")


def check_names(kind: str, names: Iterable[object], valid: Collection[str]) -> None:
    """Refuse names that are not among the valid ones.

    Raises:
        ConfigError: as `unknown`, for the first such name.
    """
    for name in names:
        if name not in valid:
            raise unknown(kind, str(name), valid)


def lookup(kind: str, name: str, values: Mapping[str, Value]) -> Value:
    """Return the value that has a name.

    Raises:
        ConfigError: as `unknown`, where none has it.
    """
    check_names(kind, [name], values)
    return values[name]

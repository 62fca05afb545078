"""Numbers of a submission: how a file states them, how they are read, and where they are not what was computed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar

from hedge_tasks.numbers import Interval, Number

DECIMALS = 6

MOST_FAULTS = 20
"""Faults of one part that are listed."""

_TOLERANCE = 0.5 * 10**-DECIMALS + 1e-7
"""Half a unit in the last decimal is rounding; the derivative behind a standard error has a little of its own."""

_LONGEST = 300

Item = TypeVar("Item")


def number_fields(number: Number, name: str = "value") -> dict[str, float | None]:
    """Return value, standard error and interval of a number as a file states them, rounded.

    Args:
        name: key of the value.
    """
    fields = {name: number.value, "stderr": number.stderr, "low": number.low, "high": number.high}
    return {key: rounded(value) for key, value in fields.items()}


def rounded(value: float | None) -> float | None:
    """Return a number with the decimals of a file."""
    return None if value is None else round(value, DECIMALS)


def number_in(fields: Mapping[str, Any], name: str = "value") -> Number:
    """Return a number that a file states; `name` as for `number_fields`."""
    counts = {key: fields[key] for key in ("n", "n_groups", "n_positive", "reason") if key in fields}
    return Number(fields[name], fields["stderr"], interval_in(fields), **counts)


def present(values: Iterable[Item | None]) -> list[Item]:
    """Return the values that are not None."""
    return [value for value in values if value is not None]


def finite(value: float | None) -> float | None:
    """Return a score as JSON can hold it: what is infinite is left out."""
    return value if value is not None and math.isfinite(value) else None


def logprob_field(logprob: float | None) -> float | Literal["-inf"] | None:
    """Return a log-probability as a file states it: "-inf" where the answer is impossible."""
    return "-inf" if logprob == -math.inf else logprob


def logprob_in(field: float | str | None) -> float | None:
    """Return a log-probability that a file states."""
    return -math.inf if isinstance(field, str) else field


def interval_in(fields: Mapping[str, Any], prefix: str = "") -> Interval | None:
    """Return the interval that a file states; None where an end is missing."""
    low, high = fields[f"{prefix}low"], fields[f"{prefix}high"]
    return None if low is None or high is None else (low, high)


def differences(place: str, computed: Mapping[str, Any], stated: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a file states something else than was computed, rounding aside.

    Args:
        place: of the mappings in the file.
        computed, stated: by name, numbers or mappings of them.
    """
    for key in sorted(stated.keys() - computed.keys()):
        yield f"{place}.{key[:80]}: no such number"
    for key, ours in computed.items():
        if key not in stated:
            yield f"{place}.{key}: is missing"
        elif isinstance(ours, Mapping) and isinstance(stated[key], Mapping):
            yield from differences(f"{place}.{key}", ours, stated[key])
        elif not is_equal(ours, stated[key]):
            yield f"{place}.{key}: stated {stated[key]}, computed {ours}"[:_LONGEST]


def is_equal(computed: Any, stated: Any) -> bool:
    """Whether a stated value is what was computed, rounding aside."""
    if isinstance(computed, float) and isinstance(stated, (int, float)):
        return abs(computed - stated) <= _TOLERANCE
    return bool(computed == stated)


def has_texts(submission: Mapping[str, Any]) -> bool:
    """Whether questions, references and answers of all documents are in a submission."""
    return all("texts" in document for document in submission["documents"])


def recorded_decoding(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how the draws were made, by the run's own record; nothing where there is none."""
    decoding: Mapping[str, Any] = (settings.get("sampled") or {}).get("decoding") or {}
    return decoding

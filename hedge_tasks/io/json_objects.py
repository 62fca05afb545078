"""JSON objects in a reply, be they all of it, fenced, or somewhere in running text."""

from __future__ import annotations

import json
import re
from typing import Any

_FENCED = re.compile(r"```(?:json)?(.+)```", re.DOTALL)
_MOST_OBJECTS = 200


class Twice(dict[str, Any]):
    """A JSON object that names the same key with different values."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    is_consistent = all(fields[key] == value and type(fields[key]) is type(value) for key, value in pairs)
    return fields if is_consistent else Twice(fields)


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)


def whole_object(text: str) -> dict[str, Any] | None:
    """The object that the reply consists of, be it fenced, in a list of one, or a string of JSON."""
    fenced = _FENCED.fullmatch(text)
    value: Any = (fenced[1] if fenced else text).strip()
    for _ in range(3):
        if isinstance(value, str):
            try:
                value = _DECODER.decode(value)
            except (ValueError, RecursionError):
                return None
        elif isinstance(value, list) and len(value) == 1:
            [value] = value
        else:
            break
    return value if isinstance(value, dict) else None


def objects_in(text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """The JSON objects in running text with their source, and the text between them."""
    objects: list[tuple[str, dict[str, Any]]] = []
    between: list[str] = []
    at = tried = 0
    while (start := text.find("{", at)) >= 0 and tried < _MOST_OBJECTS:
        tried += 1
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
            between.append(text[at:end])
        else:
            between.append(text[at:start])
            objects.append((text[start:end], value))
        at = end
    return objects, " ".join([*between, text[at:]])

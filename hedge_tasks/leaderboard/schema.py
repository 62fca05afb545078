"""The JSON Schema of submissions, and a check against it.

Only the keywords that the schema uses are understood; one that is not raises, so that none is passed over in silence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    # As JSON Schema has it, 1.0 is an integer, too.
    "integer": lambda v: (isinstance(v, int) and not isinstance(v, bool)) or (isinstance(v, float) and v.is_integer()),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}
_SILENT = frozenset({"$schema", "$defs", "title", "description"})


@cache
def submission_schema() -> dict[str, Any]:
    """The schema of submissions, as published in `submission.schema.json`."""
    text = (resources.files("hedge_tasks.leaderboard") / "submission.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def faults(value: Any, schema: Mapping[str, Any] | None = None) -> Iterator[str]:
    """What is wrong with a value, each with its place such as `documents[3].label`; nothing if it is valid.

    Raises:
        NotImplementedError: the schema uses a keyword that is not understood here.
    """
    root = submission_schema() if schema is None else schema
    if _quick_check(root, root)(value):
        return
    for place, text in _faults(value, root, root, ()):
        yield f"{_place(place)}: {text}"


def _quick_check(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Callable[[Any], bool]:
    """A function that says whether a value surely is valid, without places: most files are, and they are large."""
    if "$ref" in schema:
        return _quick_check(_resolve(schema["$ref"], root), root)
    if not schema.keys() <= {*_CHECKS, *_SILENT, "items", "properties", "additionalProperties"}:
        return lambda value: False
    tests = [(_CHECKS[keyword], wanted) for keyword, wanted in schema.items() if keyword in _CHECKS]
    known = {key: _quick_check(inner, root) for key, inner in schema.get("properties", {}).items()}
    extra, of_items = schema.get("additionalProperties", True), schema.get("items", {})
    others = _quick_check(extra, root) if isinstance(extra, dict) else lambda value: bool(extra)
    item = _quick_check(of_items, root) if of_items else None

    def check(value: Any) -> bool:
        if any(test(value, wanted) for test, wanted in tests):
            return False
        if isinstance(value, dict):
            return all(known.get(key, others)(inner) for key, inner in value.items())
        if isinstance(value, list) and item is not None:
            return _all_plain(value, of_items) or all(map(item, value))
        return True

    return check


_Place = tuple[str | int, ...]
_Fault = tuple[_Place, str]


def _faults(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], at: _Place) -> Iterator[_Fault]:
    for keyword, wanted in schema.items():
        if keyword in _CHECKS:
            if text := _CHECKS[keyword](value, wanted):
                yield at, text
        elif keyword == "$ref":
            yield from _faults(value, _resolve(wanted, root), root, at)
        elif keyword == "items":
            if isinstance(value, list) and not _all_plain(value, wanted):
                for i, item in enumerate(value):
                    yield from _faults(item, wanted, root, (*at, i))
        elif keyword in ("properties", "additionalProperties"):
            if isinstance(value, dict):
                yield from _property_faults(value, schema, keyword, root, at)
        elif keyword not in _SILENT:
            raise NotImplementedError(f"JSON Schema keyword {keyword!r}")


def _property_faults(
    value: Mapping[str, Any], schema: Mapping[str, Any], keyword: str, root: Mapping[str, Any], at: _Place
) -> Iterator[_Fault]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    if keyword == "properties":
        for key in value.keys() & known.keys():
            yield from _faults(value[key], known[key], root, (*at, key))
    elif others is False:
        for key in value.keys() - known.keys():
            yield (*at, key), "no such field"
    elif isinstance(others, dict) and not (not known and _all_plain(list(value.values()), _deref(others, root))):
        for key in value.keys() - known.keys():
            yield from _faults(value[key], others, root, (*at, key))


# Of what Python's JSON reader makes, the types that are a type of the schema whatever the value.
_CERTAIN: Mapping[str, frozenset[type]] = {
    "number": frozenset({int, float}),
    "integer": frozenset({int}),
    "null": frozenset({type(None)}),
}


def _all_plain(items: list[Any], schema: Mapping[str, Any]) -> bool:
    """Whether all items surely are valid numbers or null: a quick answer for long lists of numbers, most of a file."""
    if not items or "type" not in schema or not schema.keys() <= {"type", "minimum", "pattern", *_SILENT}:
        return False
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    allowed = frozenset[type]().union(*(_CERTAIN.get(name, ()) for name in names))
    found = set(map(type, items))
    if not found <= allowed:
        return False
    return "minimum" not in schema or (type(None) not in found and bool(min(items) >= schema["minimum"]))


def _deref(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    return _resolve(schema["$ref"], root) if set(schema) == {"$ref"} else schema


def _resolve(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    resolved: Mapping[str, Any] = found
    return resolved


def _check_type(value: Any, wanted: str | list[str]) -> str | None:
    names = [wanted] if isinstance(wanted, str) else wanted
    return None if any(_TYPES[name](value) for name in names) else f"{_shown(value)} is no {' or '.join(names)}"


def _check_required(value: Any, wanted: list[str]) -> str | None:
    missing = [key for key in wanted if isinstance(value, dict) and key not in value]
    return f"{missing[0]!r} is missing" if missing else None


def _equal(a: Any, b: Any) -> bool:
    """As JSON has it: true is not 1."""
    return bool(a == b) and isinstance(a, bool) == isinstance(b, bool)


_CHECKS: Mapping[str, Callable[[Any, Any], str | None]] = {
    "type": _check_type,
    "required": _check_required,
    "const": lambda v, w: None if _equal(v, w) else f"expected {w!r}, got {_shown(v)}",
    "enum": lambda v, w: None if any(_equal(v, o) for o in w) else f"expected one of {w}, got {_shown(v)}",
    "pattern": lambda v, w: f"{_shown(v)} is not as it must be" if isinstance(v, str) and not re.search(w, v) else None,
    "minLength": lambda v, w: "is too short" if isinstance(v, str) and len(v) < w else None,
    "maxLength": lambda v, w: f"is longer than {w} characters" if isinstance(v, str) and len(v) > w else None,
    "minItems": lambda v, w: f"has fewer than {w} items" if isinstance(v, list) and len(v) < w else None,
    "minProperties": lambda v, w: "is empty" if isinstance(v, dict) and len(v) < w else None,
    "minimum": lambda v, w: f"{v} is below {w}" if _TYPES["number"](v) and v < w else None,
    "maximum": lambda v, w: f"{v} is above {w}" if _TYPES["number"](v) and v > w else None,
}


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _place(parts: _Place) -> str:
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if part.isidentifier() else _shown(part))
    return text or "the file"

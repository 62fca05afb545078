"""The strict base of what comes from outside: headers, settings, policies, submissions. A file is checked once, here.

A room declares what it reads as a subclass of `Record`; pydantic checks it, and what is wrong is said in this package's
words, in one line with file, line and key: `run.jsonl:1: settings.filters.nli.alpha: expected a number, got 'one'`.
Bulk (draws, scores) is read by plain code or as columns, not value by value through records of its own.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from hedge_tasks.errors import ConfigError, DataError, HedgeError, unknown
from hedge_tasks.io.outside import clean, shown

MOST_ITEMS = 1_000_000
"""Of a list, where a record says nothing else."""

LONGEST_TEXT = 1 << 20
"""Characters of a text, where a record says nothing else."""

_MOST_ALTERNATIVES = 20
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")

T = TypeVar("T")

Items = Annotated[tuple[T, ...], Strict(False), Field(max_length=MOST_ITEMS)]
"""A list, as a tuple."""

Pair = Annotated[tuple[T, T], Strict(False)]

Objects = Annotated[dict[str, T], Field(max_length=MOST_ITEMS)]
"""An object with any keys."""

Text = Annotated[str, Strict()]
CleanText = Annotated[str, Strict(), AfterValidator(clean)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]
Label = Annotated[int, Strict(), Field(ge=0, le=1)]
"""1 = hallucinated, 0 = supported. (`Literal[0, 1]` would take true and 1.0, too.)"""

AtLeastOne = Annotated[int, Field(ge=1)]
Above0 = Annotated[float, Field(gt=0)]
Name = Annotated[str, Field(min_length=1, max_length=500)]


class Record(BaseModel):
    """A frozen record whose values have exactly the types that it declares.

    No text counts as a number and no number as a text, numbers are finite, texts are bounded, and unknown keys are
    refused with the nearest valid one. Built from Python it raises `ERROR` as well.
    """

    model_config = ConfigDict(
        strict=True,
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        str_max_length=LONGEST_TEXT,
        arbitrary_types_allowed=True,
    )

    ERROR: ClassVar[type[HedgeError]] = DataError
    """The exception raised for a wrong value."""

    if not TYPE_CHECKING:  # pydantic's signature is the better one for type checkers

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise type(self).ERROR(fault(type(self), error)) from None

        # A record within another one is validated in place, so that errors keep their paths.
        __init__.__pydantic_base_init__ = True

    @classmethod
    def read(cls, value: object, where: str = "") -> Self:
        """Check and build from parsed JSON or YAML.

        Args:
            where: put in front of every error, such as a file name and line number.

        Raises:
            HedgeError: `ERROR`, with the place, the key and what was found there.
        """
        try:
            return cls.model_validate(value)
        except ValidationError as error:
            raise cls.ERROR(_with_place(where, fault(cls, error))) from None

    def replaced(self, **changes: Any) -> Self:
        """Return the same record with other values, which are checked."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)


class OpenRecord(Record):
    """A record that ignores other keys, for settings and verdicts to which other code may add."""

    model_config = ConfigDict(extra="ignore")


class Settings(Record):
    """A record that people write: wrong values are a `ConfigError`."""

    ERROR: ClassVar[type[HedgeError]] = ConfigError


def fault(kind: Any, error: ValidationError) -> str:
    """The first thing that is wrong, in one line, with its place such as `documents[3].label`."""
    errors = error.errors(include_url=False)
    first = next((e for e in errors if e["type"] in _UNKNOWN), errors[0])
    path = key_path(kind, first["loc"])
    # Of a union there is one error for each of its types: what is wrong deeper inside says more.
    placed_errors = [(key_path(kind, e["loc"]), e) for e in errors[:_MOST_ALTERNATIVES]]
    path, first = next(
        ((p, e) for p, e in placed_errors if path and p.startswith((f"{path}.", f"{path}["))), (path, first)
    )
    if first["type"] in _UNKNOWN:
        inside = key_path(kind, first["loc"][:-1])
        key = _short(str(first["loc"][-1]))
        return str(unknown(f"key of {inside}" if inside else "key", key, _keys_at(kind, first["loc"][:-1])))
    if first["type"] == "missing":
        return f"{path}: missing"
    if first["type"] == "value_error":
        return _with_place(path, str(first["ctx"]["error"]))
    alternatives = [e for p, e in placed_errors if e["input"] is first["input"] and p == path]
    expected = " or ".join(dict.fromkeys(_expected(e["type"], e.get("ctx") or {}) for e in alternatives))
    return _with_place(path, f"expected {expected}, got {shown(first['input'])}{_nearest_hint(first)}")


def key_path(kind: Any, loc: Sequence[int | str]) -> str:
    """A place as text: `documents[3].label`. Names of alternatives, which pydantic puts in between, are left out."""
    path, current = "", kind
    for part in loc:
        inner = _inner(current, part)
        if inner is None:
            continue
        current = inner
        path += f"[{part}]" if isinstance(part, int) else f".{_short(part)}" if path else _short(part)
    return path


def _short(key: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in key[:60])


def _with_place(where: str, text: str) -> str:
    if not where:
        return text
    return f"{where}{text}" if text.startswith("[") else f"{where}: {text}"


def _expected(kind: str, context: Mapping[str, Any]) -> str:
    if kind == "literal_error":
        return str(context["expected"])
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return words.format(context[key])
    return _EXPECTED.get(kind, kind.removesuffix("_type").replace("_", " "))


_EXPECTED = {
    "string_type": "a text",
    "string_unicode": "a text that can be encoded",
    "int_type": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "dataclass_type": "an object",
    "list_type": "a list",
    "tuple_type": "a list",
    "none_required": "nothing",
}

_BOUNDS = {
    "greater_than_equal": ("a number of at least {}", "ge"),
    "greater_than": ("a number above {}", "gt"),
    "less_than_equal": ("a number of at most {}", "le"),
    "less_than": ("a number below {}", "lt"),
    "string_too_short": ("a text of at least {} characters", "min_length"),
    "string_too_long": ("a text of at most {} characters", "max_length"),
    "string_pattern_mismatch": ("a text like {}", "pattern"),
    "too_long": ("at most {} items", "max_length"),
    "too_short": ("at least {} items", "min_length"),
}


def _nearest_hint(error: Any) -> str:
    """A hint where one of the valid names is meant."""
    if error["type"] != "literal_error" or not isinstance(error["input"], str):
        return ""
    valid = str(error["ctx"]["expected"]).replace(" or ", ", ").replace("'", "").split(", ")
    nearest = difflib.get_close_matches(error["input"], valid, n=1, cutoff=0.5)
    return f", did you mean {nearest[0]!r}?" if nearest else ""


def _keys_at(kind: Any, loc: Sequence[int | str]) -> list[str]:
    """The valid keys at a place."""
    for part in loc:
        kind = _inner(kind, part) or kind
    for alternative in _alternatives(kind):
        if dataclasses.is_dataclass(alternative):
            return [field.name for field in dataclasses.fields(alternative)]
        if isinstance(alternative, type) and issubclass(alternative, BaseModel):
            return [field.alias or name for name, field in alternative.model_fields.items()]
    return []


def _inner(kind: Any, part: int | str) -> Any:
    """The type of what is at a key or an index of a type; None where the type has no such thing."""
    for alternative in _alternatives(kind):
        if isinstance(alternative, type) and issubclass(alternative, BaseModel):
            names = {f.alias or name: f.annotation for name, f in alternative.model_fields.items()}
            if part in names:
                return names[part]
            if isinstance(part, str):
                return Any
        if dataclasses.is_dataclass(alternative) and isinstance(part, str):
            return typing.get_type_hints(alternative, include_extras=True).get(part)
        origin, arguments = typing.get_origin(alternative), typing.get_args(alternative)
        if isinstance(part, int) and origin in (tuple, list):
            return arguments[0]
        if isinstance(part, str) and origin in (dict, Mapping) and part != "[key]":
            return arguments[1]
    return None


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The types that a type stands for: itself, or those of a union; without what `Annotated` says besides."""
    origin = typing.get_origin(kind)
    if origin is Annotated:
        return _alternatives(typing.get_args(kind)[0])
    if origin in (typing.Union, types.UnionType):
        return tuple(alternative for member in typing.get_args(kind) for alternative in _alternatives(member))
    return (kind,)


class _Printed(GenerateJsonSchema):
    """A JSON Schema without a title for every key, and with bounds of the keys of objects."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        printed = super().dict_schema(schema)
        for pattern, values in printed.pop("patternProperties", {}).items():
            printed |= {"propertyNames": {"pattern": pattern}, "additionalProperties": values}
        return printed


def json_schema(kind: type[Record]) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a record."""
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        **kind.model_json_schema(mode="validation", schema_generator=_Printed),
    }


def checked(kind: type[T], value: object, where: str = "") -> T:
    """Check and build a value of a type that is no `Record`, such as a dataclass of which there are very many.

    Its leaves say themselves that they are strict (`Text` and the like): other keys than its fields are passed over.

    Raises:
        DataError: as `Record.read`.
    """
    try:
        result: T = _adapter(typing.cast(Any, kind)).validate_python(value)
    except ValidationError as error:
        raise DataError(_with_place(where, fault(kind, error))) from None
    return result


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

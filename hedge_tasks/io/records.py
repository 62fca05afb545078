"""The strict base of what comes from outside: headers, settings, policies, submissions. A file is checked once, here.

A room declares what it reads as a subclass of `Record`; pydantic checks it, and what is wrong is said in this package's
words, in one line with file, line and key: `run.jsonl:1: settings.filters.nli.alpha: expected a number, got 'one'`.
Bulk (draws, scores) is read by plain code or as columns, not value by value through records of its own.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, TypeAdapter, ValidationError, model_validator

from hedge_tasks.errors import ConfigError, DataError, HedgeError, check_names
from hedge_tasks.io.outside import clean, shown

MOST_ITEMS = 1_000_000
"""Of a list, where a record says nothing else."""

LONGEST_TEXT = 1 << 20
"""Characters of a text, where a record says nothing else."""

_MOST_ALTERNATIVES = 20

_WORDS = {
    "a valid string": "a text",
    "a valid integer": "an integer",
    "a valid boolean": "true or false",
    "a valid tuple": "a list",
    "a valid list": "a list",
    "a valid ": "a ",
    "String should have": "a text of",
    "String should match pattern": "a text like",
    "Tuple should have": "a list of",
    "Dictionary should have": "an object of",
    "greater than or equal to": "a number of at least",
    "less than or equal to": "a number of at most",
    "greater than": "a number above",
    "less than": "a number below",
}
"""Of pydantic's messages -> ours."""

_OBJECT = re.compile(r"a (?:valid )?dictionary(?: or .*)?")

T = TypeVar("T")


def _between_0_and_1(value: float) -> float:
    """Refuse what is no share, by both bounds: pydantic names the one that is passed."""
    if not 0 <= value <= 1:
        raise ValueError(f"expected a number between 0 and 1, got {value}")
    return value


Items = Annotated[tuple[T, ...], Strict(False), Field(max_length=MOST_ITEMS)]
"""A list, as a tuple."""

Objects = Annotated[dict[str, T], Field(max_length=MOST_ITEMS)]
"""An object with any keys."""

Text = Annotated[str, Strict()]
CleanText = Annotated[str, Strict(), AfterValidator(clean)]
Share = Annotated[float, Strict(), AfterValidator(_between_0_and_1)]
Count = Annotated[int, Field(ge=0)]
Label = Annotated[int, Strict(), Field(ge=0, le=1)]
"""1 = hallucinated, 0 = supported. (`Literal[0, 1]` would take true and 1.0, too.)"""

AtLeastOne = Annotated[int, Field(ge=1)]
AtLeast0 = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Above0 = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
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

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: Any) -> Any:
        if cls.model_config["extra"] == "forbid" and isinstance(value, Mapping):
            check_names("key", value, [field.alias or name for name, field in cls.model_fields.items()])
        return value

    if not TYPE_CHECKING:  # pydantic's signature is the better one for type checkers

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise type(self).ERROR(_fault(values, error)) from None

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
            raise cls.ERROR(_with_place(where, _fault(value, error))) from None

    def replaced(self, **changes: Any) -> Self:
        """Return the same record with other values, which are checked."""
        return type(self)(**{name: getattr(self, name) for name in type(self).model_fields} | changes)


class OpenRecord(Record):
    """A record that ignores other keys, for settings and verdicts to which other code may add."""

    model_config = ConfigDict(extra="ignore")


class Settings(Record):
    """A record that people write: wrong values are a `ConfigError`."""

    ERROR: ClassVar[type[HedgeError]] = ConfigError


def _fault(value: Any, error: ValidationError) -> str:
    """The first thing that is wrong with a value, in one line, with its place such as `documents[3].label`."""
    placed = [(_place(value, e), e) for e in error.errors(include_url=False)[:_MOST_ALTERNATIVES]]
    # Of a union there is one error for each of its types: what is wrong deeper inside says more.
    inside = tuple(f"{placed[0][0] or chr(0)}{mark}" for mark in ".[")
    own = (placed[0][0], "value_error")
    path, first = max(placed, key=lambda entry: (entry[0].startswith(inside), (entry[0], entry[1]["type"]) == own))
    if first["type"] == "missing":
        return f"{path}: missing"
    if first["type"] == "value_error":
        return _with_place(path, str(first["ctx"]["error"]))
    alternatives = [_expected(e["msg"]) for at, e in placed if at == path and e["input"] is first["input"]]
    expected = " or ".join(dict.fromkeys(alternatives))
    return _with_place(path, f"expected {expected}, got {shown(first['input'])}")


def _place(value: Any, error: Mapping[str, Any]) -> str:
    """Where an error is. Names of alternatives, which pydantic puts in between, lead nowhere in the value."""
    path, n = "", len(error["loc"])
    for i, part in enumerate(error["loc"], start=1):
        try:
            value = value[part]
        except (LookupError, TypeError):
            if error["type"] != "missing" or i < n:
                continue
        # A key may be anything: it is cut, and what cannot be printed is escaped.
        name = f"[{part}]" if isinstance(part, int) else shown(part)[1:-1]
        path += name if isinstance(part, int) or not path else f".{name}"
    return path


def _with_place(where: str, text: str) -> str:
    if not where:
        return text
    return f"{where}{text}" if text.startswith("[") else f"{where}: {text}"


def _expected(message: str) -> str:
    """The demand of pydantic's message, in words of JSON."""
    text = _OBJECT.sub("an object", message.removeprefix("Input should be "))
    for theirs, ours in _WORDS.items():
        text = text.replace(theirs, ours)
    return text


def checked(kind: type[T], value: object, where: str = "", *, error: type[HedgeError] = DataError) -> T:
    """Check and build a value of a type that is no `Record`, such as a dataclass of which there are very many.

    Its leaves say themselves that they are strict (`Text` and the like): other keys than its fields are passed over.

    Raises:
        HedgeError: `error`, as `Record.read`.
    """
    try:
        return typing.cast(T, _adapter(typing.cast(Any, kind)).validate_python(value))
    except ValidationError as wrong:
        raise error(_with_place(where, _fault(value, wrong))) from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)

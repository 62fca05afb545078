"""Checks of option values, which come from YAML, JSON and command lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, FiniteFloat, Strict, StrictBool, StringConstraints

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.records import Above0, AtLeast0, Share, checked

# A model may be called 7, and a command line makes a number of it.
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1), Field(coerce_numbers_to_str=True)]

_checked: Callable[..., Any] = partial(checked, error=ConfigError)


def text(key: str, value: object) -> str:
    """Return a text without surrounding blanks. Raises ConfigError for what is no text, or blank."""
    return _checked(_Text, value, key)


def scalar(text: str) -> bool | int | float | str | None:
    """Return the value of a `key=value` on a command line: true, false, null or none, a number, else the text."""
    words: dict[str, bool | None] = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def named(key: str, value: object) -> dict[str, Any]:
    """Return a name with options, given as `name`, `name:key=value,...` or a mapping with `name`, as such a mapping.

    Raises:
        ConfigError: it is none of these, or an option is given twice.

    Example:
        >>> named("support", "judge:model=m,timeout=8")
        {'model': 'm', 'timeout': 8, 'name': 'judge'}
    """
    if isinstance(value, Mapping):
        return {**value, "name": text(f"{key}.name", value.get("name"))}
    name, _, settings = text(key, value).partition(":")
    return {**pairs(key, settings, "name:key=value,..."), "name": text(key, name)}


def pairs(
    key: str, settings: str, form: str = "key=value,...", *, read: Callable[[str], Any] | None = None
) -> dict[str, Any]:
    """Return the settings in `key=value,key=value`.

    Args:
        key: What errors call them.
        form: How all of it is written, for errors.
        read: Of each value; by default `scalar`.

    Raises:
        ConfigError: A part is no `key=value`, or a key is given twice. Of a part no more is quoted than a few letters:
            a slip of the pen may have put a secret there.
    """
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in settings.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            quoted = part if len(part) <= 12 else f"{part[:4]}…"
            raise ConfigError(f"{key}: expected {form}, got {quoted!r} in it")
        if name in values:
            raise ConfigError(f"{key}: {name!r} is given twice")
        values[name] = (read or scalar)(value)
    return values


def optional_text(key: str, value: object) -> str | None:
    """As `text`, and None for None."""
    return None if value is None else text(key, value)


def count(key: str, value: object, *, at_least: int = 0) -> int:
    """Return an integer of at least `at_least`. Raises ConfigError for anything else."""
    return _checked(Annotated[int, Strict(), Field(ge=at_least)], value, key)


def flag(key: str, value: object) -> bool:
    """Return a truth value. Raises ConfigError for anything else."""
    return _checked(StrictBool, value, key)


def number(key: str, value: object, *, zero: bool = True) -> float:
    """Return a finite number above 0, or 0 where `zero` allows it. Raises ConfigError for anything else."""
    return _checked(AtLeast0 if zero else Above0, value, key)


def share(key: str, value: object) -> float:
    """Return a number from 0 to 1. Raises ConfigError for anything else."""
    return _checked(Share, value, key)


def finite(key: str, value: object) -> float:
    """Return any number that is not infinite, also a negative one. Raises ConfigError for anything else."""
    return _checked(Annotated[FiniteFloat, Strict()], value, key)


def address(key: str, value: object) -> str:
    """Return the base address of a server, without the path of a single call. Raises ConfigError for anything else."""
    url = text(key, value).rstrip("/").removesuffix("/chat/completions")
    if set("@?#") & set(url):  # not quoted: it may hold a password
        raise ConfigError(f"{key}: leave out user, password and query; a key belongs into the environment")
    if url.endswith("/completions"):
        raise ConfigError(f"{key}: leave out the end of {url!r}, from /completions on")
    sound = False
    with suppress(ValueError):
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    if not sound or len(url.split()) > 1:
        raise ConfigError(f"{key}: expected something like http://localhost:8000/v1, got {url!r}")
    return url

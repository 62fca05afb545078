"""The one JSON object of a reply, whatever a model wrote around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from hedge_tasks.data.thoughts import without_thoughts
from hedge_tasks.io.json_objects import Twice, objects_in, whole_object

T = TypeVar("T")


class Unreadable(Exception):
    """A reply is not of the form that was asked for; the text says why."""


def read_object(reply: str, accept: Callable[[dict[str, Any]], T]) -> T:
    """The object that a reply says, as `accept` takes it.

    A reply that is an object as a whole is that object. Otherwise thoughts are left out, and of the objects in the rest
    one alone may be of the form that was asked for: braces in running text lose no reply.

    Args:
        reply: All that the model wrote.
        accept: Checks and converts an object. Raises Unreadable for one that is not of the form.

    Raises:
        Unreadable: No object is of the form, or several that differ are.

    Example:
        >>> read_object('<think>{"a": 1}? {b}</think>So {it is}: {"a": 2}', lambda found: found["a"])
        2
    """
    whole = whole_object(reply.strip())
    if whole is None:
        spoken, unfinished = without_thoughts(reply)
        if unfinished:
            raise Unreadable("a thought that does not end")
        whole = whole_object(spoken.strip())
        if whole is None:
            return _only([fields for _, fields in objects_in(spoken)[0]], accept)
    return _only([whole], accept)


def _only(objects: list[dict[str, Any]], accept: Callable[[dict[str, Any]], T]) -> T:
    fitting: list[tuple[dict[str, Any], T]] = []
    problem = "no JSON object"
    for fields in objects:
        if isinstance(fields, Twice):
            raise Unreadable("a key with two values")
        try:
            fitting.append((fields, accept(fields)))
        except Unreadable as error:
            problem = str(error)
    if not fitting:
        raise Unreadable(problem)
    if any(fields != fitting[0][0] for fields, _ in fitting):
        raise Unreadable(f"{len(fitting)} JSON objects that differ")
    return fitting[0][1]


def by_schema(schema: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Objects of a JSON schema as `read_object` takes them, unchanged."""
    import fastjsonschema

    validate = fastjsonschema.compile(dict(schema))

    def accept(fields: dict[str, Any]) -> dict[str, Any]:
        try:
            checked: dict[str, Any] = validate(fields)
        except fastjsonschema.JsonSchemaValueException as error:
            raise Unreadable(str(error)[:200]) from None
        return checked

    return accept

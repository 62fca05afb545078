"""How a stage asks: prompts as YAML files beside the pipeline that uses them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any

import yaml

from hedge_tasks.data.thoughts import without_thoughts
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.replies.json_objects import Twice, objects_in, whole_object
from hedge_tasks.serving.marks import escaped_json

_KEYS = ("name", "version", "source", "system", "fields", "schema", "max_tokens", "again")


class Unreadable(Exception):
    """A reply is not of the form that was asked for; the text says why."""


@dataclass(frozen=True)
class Prompt:
    """One way to ask.

    Attributes:
        id: `name/version`.
        digest: Of the whole file: part of the key of every reply.
        system: Instructions.
        fields: What the user's turn shows, a JSON object with these keys; one that has nothing is left out.
        schema: JSON schema of a reply.
        max_tokens: Of a reply.
        again: What is added when a reply was not of that form.
    """

    id: str
    digest: str
    system: str
    fields: tuple[str, ...]
    schema: Mapping[str, Any] = field(hash=False)
    max_tokens: int
    again: str

    def messages(
        self, fields: Mapping[str, Any], images: Sequence[Any] = (), *, again: bool = False
    ) -> list[dict[str, Any]]:
        """The conversation, in lmms-eval's form.

        Args:
            fields: By the names of `self.fields`: texts, numbers, lists of texts; None is left out.
            images: PIL images, shown first.
            again: Ask once more after a reply that was not of the form.

        Raises:
            ConfigError: A field is none of the prompt's.
        """
        for name in fields:
            if name not in self.fields:
                raise unknown(f"field of prompt {self.id}", name, self.fields)
        shown = escaped_json({name: fields[name] for name in self.fields if fields.get(name) is not None})
        content: list[dict[str, Any]] = [{"type": "image", "url": image} for image in images]
        content.append({"type": "text", "text": shown})
        if again:
            content.append({"type": "text", "text": self.again})
        return [
            {"role": "system", "content": [{"type": "text", "text": self.system}]},
            {"role": "user", "content": content},
        ]

    def read(self, text: str) -> dict[str, Any]:
        """The reply as an object of the schema.

        Raises:
            Unreadable: There is no such object in it, or there are several.
        """
        said, unfinished = without_thoughts(text)
        if unfinished:
            raise Unreadable("a thought that does not end")
        found = whole_object(said.strip())
        if found is None:
            objects, _ = objects_in(said)
            if len(objects) != 1:
                raise Unreadable("no JSON object" if not objects else f"{len(objects)} JSON objects")
            [(_, found)] = objects
        if isinstance(found, Twice):
            raise Unreadable("a key with two values")
        import fastjsonschema

        try:
            checked: dict[str, Any] = self._validate(found)
        except fastjsonschema.JsonSchemaValueException as error:
            raise Unreadable(str(error)[:200]) from None
        return checked

    @cached_property
    def _validate(self) -> Callable[[Any], Any]:
        import fastjsonschema

        compiled: Callable[[Any], Any] = fastjsonschema.compile(dict(self.schema))
        return compiled


@cache
def load_prompt(package: str, name: str) -> Prompt:
    """The prompt `prompts/NAME.yaml` of a package.

    Raises:
        DataError: The file is not of that form; says what is wrong.
    """
    text = (resources.files(package) / "prompts" / f"{name}.yaml").read_text("utf-8")
    where, data = f"prompt {name}", yaml.safe_load(text)
    if not isinstance(data, dict):
        raise DataError(f"{where}: expected a mapping")
    for key in data:
        if key not in _KEYS:
            raise unknown(f"key of {where}", key, _KEYS)
    if missing := sorted(set(_KEYS) - set(data) - {"source"}):
        raise DataError(f"{where}: {', '.join(missing)} missing")
    return Prompt(
        id=f"{data['name']}/{data['version']}",
        digest=hashlib.sha256(text.encode()).hexdigest(),
        system=data["system"].strip(),
        fields=tuple(data["fields"]),
        schema=data["schema"],
        max_tokens=int(data["max_tokens"]),
        again=data["again"].strip(),
    )

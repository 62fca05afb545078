"""Prompts as data: JSON files in the folder `prompts/` of the room that asks, one form for all of them.

JSON and no YAML, which would read the outcome `no` as false. What is shown to a model is a JSON object with the markers
of chat templates escaped: whatever stands in a text, it cannot close the string that it is in, nor begin a turn of the
conversation.

    name, version   id of the prompt; a change of the wording raises the version
    about, source   for people: what it is for, whose wording it is; `notice` is somebody's licence
    system          instructions, a list of lines
    turns           in place of `system` and the JSON object, for wordings that are another's
    fields          what is shown: `name` in the JSON object, `case` (what the caller calls it; by default the same),
                    `required`
    examples        `case` and `reply`, each a JSON object
    again           added after a reply that could not be read
    schema          JSON schema of the reply; without one, whoever asks brings it
    decoding        `temperature`, `top_p`, `top_k`, `min_p`, `max_tokens`
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any, TypeVar

from hedge_tasks.asking.reading import by_schema, read_object
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.outside import parse_json
from hedge_tasks.serving.marks import escaped_json, harmless

_OPTIONAL = {"about", "source", "notice", "system", "turns", "examples", "again", "schema", "decoding"}
_ROLES = ("system", "user")
_DECODING = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
_NEEDED = (True, False, "without_images")
_PLACE = re.compile(r"\{([a-z_]+)\}")

Kind = TypeVar("Kind", bound="Template")


@dataclass(frozen=True)
class Field:
    """One value that a model is shown: what the caller calls it, and what it is called there."""

    case: str
    name: str
    required: bool | str


@dataclass(frozen=True)
class TurnPart:
    """A piece of a turn that is shown as it is written, with `{question}` and its like filled in.

    Attributes:
        role: "system" or "user"; pieces of one role are put together.
        text: With fields in braces.
        when: The field without which the piece is left out; None for none.
    """

    role: str
    text: str
    when: str | None = None


@dataclass(frozen=True)
class Template:
    """One way to ask.

    Attributes:
        id: `name/version`, recorded with whatever is read; with a digest where the file is not one of ours.
        digest: Of the whole file: part of the key of every reply.
        system: Instructions.
        fields: What the user's turn shows, a JSON object with these names; one that has no value is left out.
        examples: Shown and reply, as they are written.
        again: What is added when a reply could not be read.
        schema: JSON schema of a reply; empty where whoever asks brings it.
        turns: In place of `system` and the JSON object. What stands in a value is then shown as it is, but for the
            marks of chat templates, which lose their meaning.
        decoding: How a model is asked: `temperature`, `top_p`, `top_k`, `min_p`, `max_tokens`, as far as it is said.
    """

    id: str
    digest: str
    system: str
    fields: tuple[Field, ...]
    examples: tuple[tuple[str, str], ...] = ()
    again: str = ""
    schema: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)
    turns: tuple[TurnPart, ...] = ()
    decoding: Mapping[str, float] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raises ValueError where an example shows what is no field."""
        names = {field.name for field in self.fields}
        if extra := {name for shown, _ in self.examples for name in json.loads(shown)} - names:
            raise ValueError(f"examples: {sorted(extra)} are no fields")

    def conversation(
        self, values: Mapping[str, Any], images: Sequence[Any] = (), *, again: bool = False
    ) -> list[dict[str, Any]]:
        """The conversation in lmms-eval's form, whose content is a list of text and image parts.

        Args:
            values: By the `case` of the fields: texts, numbers, lists of texts; None is left out.
            images: Shown first: PIL images, paths or addresses.
            again: Ask once more after a reply that could not be read.

        Raises:
            ConfigError: A value is none of the prompt's.
        """
        system = self._filled("system", values) if self.turns else self.system
        turns = [_turn("system", system)] if system else []
        for shown, reply in self.examples:
            turns += [_turn("user", shown), _turn("assistant", reply)]
        turns.append(_turn("user", self.shown(values)))
        turns[-1]["content"] = [*({"type": "image", "url": image} for image in images), *turns[-1]["content"]]
        if again:
            turns[-1]["content"].append({"type": "text", "text": self.again})
        return turns

    def shown(self, values: Mapping[str, Any]) -> str:
        """The values as the model sees them."""
        for name in values:
            if name not in (known := [field.case for field in self.fields]):
                raise unknown(f"field of prompt {self.id}", name, known)
        if self.turns:
            return self._filled("user", values)
        there = ((field.name, values.get(field.case)) for field in self.fields)
        return escaped_json({name: value for name, value in there if value is not None})

    @cached_property
    def accept(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """What `read_object` takes for a reply of the schema."""
        return by_schema(self.schema)

    def object(self, reply: str) -> dict[str, Any]:
        """A reply as an object of the schema. Raises Unreadable where it is none."""
        return read_object(reply, self.accept)

    def _filled(self, role: str, values: Mapping[str, Any]) -> str:
        texts = {field.case: harmless(values.get(field.case) or "") for field in self.fields}
        pieces = [one.text for one in self.turns if one.role == role and (one.when is None or texts[one.when])]
        # In one go: a name in braces that stands in a value is not filled in.
        return _PLACE.sub(lambda place: texts.get(place[1], place[0]), "".join(pieces))


@cache
def load_template(package: str, name: str) -> Template:
    """The prompt `prompts/NAME.json` of a package.

    Raises:
        DataError, ConfigError: The file is not of that form; says what is wrong.
    """
    text = (resources.files(package) / "prompts" / f"{name}.json").read_text("utf-8")
    return parse_template(text, f"prompt {name}", Template)


def parse_template(
    text: str,
    where: str,
    kind: type[Kind],
    *,
    required: Collection[str] = (),
    optional: Collection[str] = (),
    more: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda data: {},
    foreign: bool = False,
) -> Kind:
    """Check and build from the text of a prompt file.

    Args:
        where: Put in front of every error.
        kind: What is built: a prompt with further attributes.
        required, optional: Further keys of such a file.
        more: Its further attributes, from the file's object.
        foreign: Not one of the package's; its id then tells two files of the same name and version apart.

    Raises:
        DataError, ConfigError: Names what is wrong; an unknown key together with the nearest one.
    """
    data = parse_json(text, where)
    if not isinstance(data, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(data).__name__}")
    needed = {"name", "version", "fields", *required, *([] if "turns" in data else ["system"])}
    for key in data:
        if key not in (valid := needed | _OPTIONAL | set(optional)):
            raise unknown(f"key of {where}", key, valid)
    if missing := sorted(needed - set(data)):
        raise DataError(f"{where}: {', '.join(missing)} missing")
    try:
        return kind(**_attributes(data, text, foreign), **more(data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{where}: {error}") from None


def _attributes(data: Mapping[str, Any], text: str, foreign: bool) -> dict[str, Any]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    fields = tuple(
        Field(f.get("case", f["name"]), f["name"], one_of("required", f.get("required", False), _NEEDED))
        for f in data["fields"]
    )
    examples = data.get("examples", ())
    return {
        "id": f"{data['name']}/{data['version']}" + (f"#{digest[:8]}" if foreign else ""),
        "digest": digest,
        "system": "\n".join(data.get("system", ())),
        "fields": fields,
        "examples": tuple((escaped_json(e["case"]), json.dumps(e["reply"], ensure_ascii=False)) for e in examples),
        "again": data.get("again", ""),
        "schema": data.get("schema", {}),
        "turns": tuple(_piece(piece, [field.case for field in fields]) for piece in data.get("turns", ())),
        "decoding": _decoding(data.get("decoding", {})),
    }


def one_of(key: str, value: Any, valid: Sequence[Any]) -> Any:
    """The value. Raises ValueError where it is none of the valid ones."""
    if value not in valid:
        raise ValueError(f"{key}: expected one of {', '.join(map(str, valid))}, got {value!r}")
    return value


def _piece(data: Mapping[str, Any], cases: Sequence[str]) -> TurnPart:
    if extra := set(data) - {"role", "text", "when"}:
        raise ValueError(f"turns: {sorted(extra)} are no keys of a piece")
    when = data.get("when")
    role = one_of("role", data["role"], _ROLES)
    return TurnPart(role, "\n".join(data["text"]), when if when is None else one_of("when", when, cases))


def _decoding(data: Mapping[str, Any]) -> dict[str, float]:
    for key, value in data.items():
        one_of("decoding", key, _DECODING)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
            raise ValueError(f"decoding: {key} is no number of at least 0: {value!r}")
    return dict(data)


def _turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}

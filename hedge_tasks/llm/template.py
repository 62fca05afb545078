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

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from hedge_tasks.errors import unknown
from hedge_tasks.io.outside import parse_json
from hedge_tasks.io.records import Items, Name, Objects, Record
from hedge_tasks.llm.marks import escaped_json, harmless
from hedge_tasks.llm.reading import by_schema, read_object

Setting = Literal["temperature", "top_p", "top_k", "min_p", "max_tokens"]
"""How a model is asked."""

_PLACE = re.compile(r"\{([a-z_]+)\}")


class ShownField(Record):
    """One value that a model is shown: what it is called there, and what the caller calls it."""

    name: Name
    case: Name
    required: bool | Literal["without_images"] = False

    @model_validator(mode="before")
    @classmethod
    def _of_one_name(cls, data: Any) -> Any:
        return {"case": data.get("name"), **data} if isinstance(data, Mapping) else data


class TurnPart(Record):
    """A piece of a turn that is shown as it is written, with `{question}` and its like filled in.

    Attributes:
        role: Pieces of one role are put together.
        text: Lines, with fields in braces.
        when: The field without which the piece is left out; None for none.
    """

    role: Literal["system", "user"]
    text: Items[str]
    when: str | None = None


class Example(Record):
    """Fields that a model is shown, by name, and the reply it should give."""

    case: Objects[Any]
    reply: Objects[Any]


class Template(Record):
    """A prompt file: one way to ask.

    Attributes:
        name, version: of the prompt; see `id`.
        system_lines: Instructions (`system` in the file).
        fields: What the user's turn shows, a JSON object with these names; one that has no value is left out.
        examples: What is shown and the reply that it should get.
        again: What is added when a reply could not be read.
        reply_schema: JSON schema of a reply (`schema` in the file); empty where whoever asks brings it.
        turns: In place of `system` and the JSON object. What stands in a value is then shown as it is, but for the
            marks of chat templates, which lose their meaning.
        decoding: How a model is asked: `temperature`, `top_p`, `top_k`, `min_p`, `max_tokens`, as far as it is said.
    """

    name: Name
    version: int | Name
    about: Any = None
    source: Any = None
    notice: Any = None
    system_lines: Items[str] = Field(alias="system", default=())
    turns: Items[TurnPart] = ()
    fields: Items[ShownField]
    examples: Items[Example] = ()
    again: str = ""
    reply_schema: Objects[Any] = Field(alias="schema", default_factory=dict)
    decoding: dict[Setting, Annotated[int | float, Field(ge=0, lt=1e6)]] = Field(default_factory=dict)
    _digest: str = PrivateAttr("")
    _foreign: bool = PrivateAttr(False)

    @model_validator(mode="after")
    def _is_of_a_piece(self) -> Self:
        if not self.system_lines and not self.turns:
            raise ValueError("system missing")
        if extra := {name for example in self.examples for name in example.case} - {f.name for f in self.fields}:
            raise ValueError(f"examples: {sorted(extra)} are no fields")
        if strange := {part.when for part in self.turns if part.when} - {f.case for f in self.fields}:
            raise ValueError(f"turns: {sorted(strange)} are no fields")
        return self

    @classmethod
    def parse(cls, text: str, where: str, *, foreign: bool = False) -> Self:
        """Check and build from the text of a prompt file.

        Args:
            where: Put in front of every error.
            foreign: Not one of the package's; its id then tells two files of the same name and version apart.

        Raises:
            DataError: Names what is wrong.
        """
        template = cls.read(parse_json(text, where), where)
        template._digest, template._foreign = hashlib.sha256(text.encode()).hexdigest(), foreign
        return template

    @property
    def digest(self) -> str:
        """Of the whole file: part of the key of every reply."""
        return self._digest

    @property
    def id(self) -> str:
        """`name/version`, recorded with whatever is read; with a digest where the file is not one of ours."""
        return f"{self.name}/{self.version}" + (f"#{self._digest[:8]}" if self._foreign else "")

    @property
    def system(self) -> str:
        """The instructions."""
        return "\n".join(self.system_lines)

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
        for example in self.examples:
            reply = json.dumps(example.reply, ensure_ascii=False)
            turns += [_turn("user", escaped_json(example.case)), _turn("assistant", reply)]
        turns.append(_turn("user", self.shown(values)))
        turns[-1]["content"] = [*({"type": "image", "url": image} for image in images), *turns[-1]["content"]]
        if again:
            turns[-1]["content"].append({"type": "text", "text": self.again})
        return turns

    def shown(self, values: Mapping[str, Any]) -> str:
        """The values as the model sees them."""
        for name in values:
            if name not in (names := [field.case for field in self.fields]):
                raise unknown(f"field of prompt {self.id}", name, names)
        if self.turns:
            return self._filled("user", values)
        present = ((field.name, values.get(field.case)) for field in self.fields)
        return escaped_json({name: value for name, value in present if value is not None})

    @cached_property
    def accept(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        """Read a reply of the schema, as `read_object` does."""
        return by_schema(self.reply_schema)

    def object(self, reply: str) -> dict[str, Any]:
        """A reply as an object of the schema. Raises Unreadable where it is none."""
        return read_object(reply, self.accept)

    def _filled(self, role: str, values: Mapping[str, Any]) -> str:
        texts = {field.case: harmless(values.get(field.case) or "") for field in self.fields}
        parts = [turn for turn in self.turns if turn.role == role and (turn.when is None or texts[turn.when])]
        # In one go: a name in braces that stands in a value is not filled in.
        return _PLACE.sub(lambda place: texts.get(place[1], place[0]), "".join("\n".join(part.text) for part in parts))


@cache
def load_template(package: str, name: str) -> Template:
    """The prompt `prompts/NAME.json` of a package.

    Raises:
        DataError: The file is not of that form; says what is wrong.
    """
    text = (resources.files(package) / "prompts" / f"{name}.json").read_text("utf-8")
    return Template.parse(text, f"prompt {name}")


def _turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}

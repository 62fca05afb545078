"""Prompts of judges as data: JSON files in `prompts/` and in the folders of evaluations.

Each has its instructions, examples, reply form and outcomes.

What is shown to a judge is a JSON object with the markers of chat templates escaped: whatever stands in an answer, it
cannot close the string that it is in, nor begin a turn of the conversation.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.base import Case
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.evaluation import judge_prompt_files
from hedge_tasks.io.outside import parse_json, read_text
from hedge_tasks.replies.judgement import outcome_of, read_judgement
from hedge_tasks.replies.text import normalise
from hedge_tasks.serving.marks import escaped_json, harmless

LONGEST_FIELD = 8000
"""Characters of one text that a judge is shown; an answer that runs on for ever is no reason to fail."""

_KEYS = {"name", "version", "images", "answer_field", "system", "fields", "examples"}
_KEYS |= {"again", "schema", "values"}
_OPTIONAL_KEYS = {"about", "source", "notice", "turns", "decoding", "answers_only"}
_ROLES = ("system", "user")
_DECODING = ("temperature", "top_p", "top_k", "min_p", "max_tokens")
_IMAGES = ("never", "optional", "required")
_REQUIRED = (True, False, "without_images")
_CASE_FIELDS = ("question", "description", "reference", "answer")

_PLACE = re.compile(r"\{(question|description|reference|answer)\}")


@dataclass(frozen=True)
class Outcome:
    """One thing a judge may say: its name, the label it stands for (None for none), and other spellings of it."""

    key: str
    label: int | None
    spellings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Field:
    """One text that a judge is shown: where in the case it comes from, and what it is called there."""

    case: str
    name: str
    required: bool | str


@dataclass(frozen=True)
class Piece:
    """A piece of a turn that is shown as it is written, with `{question}` and its like filled in.

    Attributes:
        role: "system" or "user"; pieces of one role are put together.
        text: with the case's fields in braces.
        when: the field without which the piece is left out; None for none.
    """

    role: str
    text: str
    when: str | None = None


@dataclass(frozen=True)
class JudgePrompt:
    """How a judge is asked and what it may say.

    Attributes:
        id: `name/version`, recorded with every verdict; with a digest where the file is not one of ours.
        digest: of the whole file; labels are stored under it.
        images: whether the judge is shown the pictures: "never", "optional" or "required".
        answer_field: name of the reply's field with the outcome.
        schema: JSON schema of the reply.
        categories: whether the outcomes say more than a label, so that a verdict has a category.
        turns: in place of `system` and the JSON object of `fields`, for wordings that are another's. What stands in a
            case is then shown as it is, but for the marks of chat templates, which lose their meaning.
        decoding: how a model was asked where the wording is from, in place of greedy decoding: `temperature`, `top_p`,
            `top_k`, `min_p`, `max_tokens`.
        answers_only: none of the outcomes is for a reply that is no answer: a refusal, an empty one, an unfinished
            thought, one cut off before it says anything. Nobody is asked about these, and they have no label.
    """

    id: str
    digest: str
    images: str
    answer_field: str
    system: str
    again: str
    fields: tuple[Field, ...]
    examples: tuple[tuple[str, str], ...]
    schema: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]
    turns: tuple[Piece, ...] = ()
    decoding: Mapping[str, float] = dataclasses.field(default_factory=dict)
    answers_only: bool = False

    def messages(self, case: Case, images: Sequence[Any] = (), *, again: bool = False) -> list[dict[str, Any]]:
        """The conversation in lmms-eval's form, whose content is a list of text and image parts.

        Args:
            again: ask once more after a reply that could not be read.
        """
        turns = [_turn("system", self._said("system", case) if self.turns else self.system)]
        for shown, reply in self.examples:
            turns += [_turn("user", shown), _turn("assistant", reply)]
        turns.append(_turn("user", self.show(case)))
        turns[-1]["content"] = [*({"type": "image", "url": image} for image in images), *turns[-1]["content"]]
        if again:
            turns[-1]["content"].append({"type": "text", "text": self.again})
        return turns

    def show(self, case: Case) -> str:
        """The texts of a case as the judge sees them."""
        if self.turns:
            return self._said("user", case)
        texts = ((field, getattr(case, field.case)) for field in self.fields)
        return escaped_json(
            {
                field.name: _cut(text or "")
                for field, text in texts
                # An empty answer must be seen to be empty; other texts that are not there are left out.
                if text or field.case == "answer"
            }
        )

    def _said(self, role: str, case: Case) -> str:
        texts = {name: harmless(_cut(getattr(case, name) or "")) for name in _CASE_FIELDS}
        pieces = [one.text for one in self.turns if one.role == role and (one.when is None or texts[one.when])]
        # In one go: a name in braces that stands in an answer is not filled in.
        return _PLACE.sub(lambda place: texts[place[1]], "".join(pieces))

    def missing(self, case: Case, with_images: bool) -> str | None:
        """The first text that the judge needs and the case has not."""
        for field in self.fields:
            needed = field.required is True or (field.required == "without_images" and not with_images)
            if needed and not (getattr(case, field.case) or "").strip():
                return field.case
        return None

    def outcome(self, said: object) -> Outcome | None:
        """The outcome that a value of the reply's field stands for."""
        return self._keyed(outcome_of(said, self._values()))

    def read(self, reply: str, judged: str = "") -> tuple[Outcome | None, str]:
        """The outcome that a reply names with the judge's reason, or None with what is wrong.

        Args:
            judged: the answer that was judged; see `replies.read_judgement`.
        """
        said = read_judgement(reply, self._values(), self.answer_field, judged)
        return self._keyed(said.reading.value), said.reason

    def _values(self) -> dict[str, str]:
        return {text: outcome.key for text, outcome in self.spelled().items()}

    def _keyed(self, key: str | None) -> Outcome | None:
        return next((outcome for outcome in self.outcomes if outcome.key == key), None)

    def spelled(self) -> dict[str, Outcome]:
        """Every spelling of every outcome, normalised."""
        return {normalise(text): o for o in self.outcomes for text in (o.key, *o.spellings)}

    def category(self, outcome: Outcome) -> str | None:
        """The category that goes into a verdict; none where it would only repeat the label."""
        return None if outcome.key in ("supported", "hallucinated") else outcome.key


def prompt_names() -> list[str]:
    """Names of the prompts that come with this package and with evaluations."""
    return sorted(_files())


def load_judge_prompt(name: str) -> JudgePrompt:
    """Load a prompt of this room or of an evaluation by name, or a file of that form by a path that ends in `.json`.

    Raises:
        ConfigError: no such prompt; names the nearest one.
        DataError: the file is not of that form; says what is wrong.
    """
    if not isinstance(name, str):
        raise ConfigError(f"prompt: expected a name or a path, got {name!r}")
    if name.endswith(".json"):
        return _read(Path(name))
    files = _files()
    if name not in files:
        raise unknown("judge prompt", name, files)
    return _named(name, files[name])


@cache
def _named(name: str, path: Path) -> JudgePrompt:
    return parse_judge_prompt(path.read_text("utf-8"), f"prompt {name}")


def _read(path: Path) -> JudgePrompt:
    try:
        text = read_text(path)
    except DataError as error:
        raise ConfigError(f"prompt: {error}") from None
    return parse_judge_prompt(text, str(path), foreign=True)


def _files() -> dict[str, Path]:
    ours = Path(str(resources.files("hedge_tasks.adjudication"))) / "prompts"
    return {**judge_prompt_files(), **{path.stem: path for path in ours.glob("*.json")}}


def parse_judge_prompt(text: str, where: str, *, foreign: bool = False) -> JudgePrompt:
    """Check and build from the text of a prompt file.

    Args:
        where: put in front of every error.
        foreign: not one of the package's; its id then tells two files of the same name and version apart.

    Raises:
        DataError: names what is wrong.
    """
    data = parse_json(text, where)
    if not isinstance(data, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(data).__name__}")
    for key in data:
        if key not in _KEYS | _OPTIONAL_KEYS:
            raise unknown(f"key of {where}", key, _KEYS | _OPTIONAL_KEYS)
    if missing := sorted(_KEYS - set(data) - ({"system"} if "turns" in data else set())):
        raise DataError(f"{where}: {', '.join(missing)} missing")
    try:
        return _build(data, hashlib.sha256(text.encode()).hexdigest(), foreign)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{where}: {error}") from None


def _build(data: Mapping[str, Any], digest: str, foreign: bool) -> JudgePrompt:
    prompt_id = f"{data['name']}/{data['version']}" + (f"#{digest[:8]}" if foreign else "")
    outcomes = tuple(Outcome(v["key"], v["label"], tuple(v.get("spellings", ()))) for v in data["values"])
    prompt = JudgePrompt(
        id=prompt_id,
        digest=digest,
        images=_one_of("images", data["images"], _IMAGES),
        answer_field=data["answer_field"],
        system="\n".join(data.get("system", ())),
        again=data["again"],
        fields=tuple(
            Field(_one_of("case", f["case"], _CASE_FIELDS), f["name"], _one_of("required", f["required"], _REQUIRED))
            for f in data["fields"]
        ),
        examples=tuple((escaped_json(e["case"]), json.dumps(e["reply"], ensure_ascii=False)) for e in data["examples"]),
        schema=data["schema"],
        outcomes=outcomes,
        turns=tuple(_piece(piece) for piece in data.get("turns", ())),
        decoding=_decoding(data.get("decoding", {})),
        answers_only=_one_of("answers_only", data.get("answers_only", False), (True, False)),
    )
    _check(prompt, data)
    return prompt


def _piece(data: Mapping[str, Any]) -> Piece:
    if extra := set(data) - {"role", "text", "when"}:
        raise ValueError(f"turns: {sorted(extra)} are no keys of a piece")
    when = data.get("when")
    role = _one_of("role", data["role"], _ROLES)
    return Piece(role, "\n".join(data["text"]), when if when is None else _one_of("when", when, _CASE_FIELDS))


def _decoding(data: Mapping[str, Any]) -> dict[str, float]:
    for key, value in data.items():
        _one_of("decoding", key, _DECODING)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e6:
            raise ValueError(f"decoding: {key} is no number of at least 0: {value!r}")
    return dict(data)


def _check(prompt: JudgePrompt, data: Mapping[str, Any]) -> None:
    """A schema, an example or a spelling that contradicts the outcomes would spoil every label."""
    spellings = [normalise(text) for o in prompt.outcomes for text in (o.key, *o.spellings)]
    if twice := {text for text in spellings if spellings.count(text) > 1}:
        raise ValueError(f"values: {sorted(twice)} stand for two outcomes, or are given twice")
    if any(o.label not in (None, 0, 1) or isinstance(o.label, bool) for o in prompt.outcomes):
        raise ValueError("values: a label is 0, 1 or null")
    found = {str(value): prompt.outcome(value) for value in prompt.schema["properties"][prompt.answer_field]["enum"]}
    allowed = [value if of is None else of.key for value, of in found.items()]
    if sorted(allowed) != sorted(o.key for o in prompt.outcomes):
        raise ValueError(f"schema: allows {allowed}, the values are {[o.key for o in prompt.outcomes]}")
    names = {field.name for field in prompt.fields}
    for example in data["examples"]:
        if extra := set(example["case"]) - names:
            raise ValueError(f"examples: {sorted(extra)} are no fields")
        if prompt.outcome(example["reply"].get(prompt.answer_field)) is None:
            raise ValueError(f"examples: {example['reply']} is no reply of the schema")


def _one_of(key: str, value: Any, valid: Sequence[Any]) -> Any:
    if value not in valid:
        raise ValueError(f"{key}: expected one of {', '.join(map(str, valid))}, got {value!r}")
    return value


def _turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD else text[:LONGEST_FIELD] + " [cut off here]"

"""Prompts of judges: files of `hedge_tasks.llm.template` that say besides which outcomes a judge may name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.evaluation import judge_prompt_files
from hedge_tasks.io.outside import read_text
from hedge_tasks.io.records import Items, Label, Name, Objects, Record
from hedge_tasks.judging.base import Case
from hedge_tasks.llm.template import Example, ShownField, Template
from hedge_tasks.replies.labels import outcome_of, read_judgement
from hedge_tasks.replies.text import normalise

LONGEST_FIELD = 8000
"""Characters of one text that a judge is shown; an answer that runs on for ever is no reason to fail."""


class Outcome(Record):
    """One thing a judge may say: its name, the label it stands for (None for none), and other spellings of it."""

    key: Name
    label: Label | None
    spellings: Items[str] = ()


class JudgeField(ShownField):
    """A text of a case that a judge is shown."""

    case: Literal["question", "description", "reference", "answer"]


class JudgePrompt(Template):
    """How a judge is asked and what it may say.

    A schema, an example or a spelling that contradicts the outcomes would spoil every label, and is refused.

    Attributes:
        images: whether the judge is shown the pictures.
        answer_field: name of the reply's field with the outcome.
        outcomes: what it may say (`values` in the file).
        answers_only: none of the outcomes is for a reply that is no answer: a refusal, an empty one, an unfinished
            thought, one cut off before it says anything. Nobody is asked about these, and they have no label.
    """

    images: Literal["never", "optional", "required"]
    answer_field: Name
    fields: Items[JudgeField]
    examples: Items[Example]
    again: str
    reply_schema: Objects[Any] = Field(alias="schema")
    outcomes: Items[Outcome] = Field(alias="values")
    answers_only: bool = False

    @model_validator(mode="after")
    def _fits_its_outcomes(self) -> Self:
        spellings = [normalise(text) for o in self.outcomes for text in (o.key, *o.spellings)]
        if twice := {text for text in spellings if spellings.count(text) > 1}:
            raise ValueError(f"values: {sorted(twice)} stand for two outcomes, or are given twice")
        try:
            allowed = self.reply_schema["properties"][self.answer_field]["enum"]
            keys = [outcome_of(value, self._spelled()) or str(value) for value in allowed]
        except (KeyError, TypeError) as error:
            raise ValueError(f"schema: no enum of {self.answer_field} ({error})") from None
        if sorted(keys) != sorted(o.key for o in self.outcomes):
            raise ValueError(f"schema: allows {keys}, the values are {[o.key for o in self.outcomes]}")
        for example in self.examples:
            if self.outcome(example.reply.get(self.answer_field)) is None:
                raise ValueError(f"examples: {example.reply} is no reply of the schema")
        return self

    def values(self, case: Case) -> dict[str, str | None]:
        """Values that the prompt shows of a case, by the names of the case."""
        texts = {field.case: getattr(case, field.case) or None for field in self.fields}
        # An empty answer must be seen to be empty; other texts that are not there are left out.
        texts |= {"answer": case.answer} if "answer" in texts else {}
        return {name: text if text is None else _cut(text) for name, text in texts.items()}

    def messages(self, case: Case, images: Sequence[Any] = (), *, again: bool = False) -> list[dict[str, Any]]:
        """The conversation about a case; see `conversation`."""
        return self.conversation(self.values(case), images, again=again)

    def missing(self, case: Case, with_images: bool) -> str | None:
        """The first text that the judge needs and the case has not."""
        for field in self.fields:
            needed = field.required is True or (field.required == "without_images" and not with_images)
            if needed and not (getattr(case, field.case) or "").strip():
                return field.case
        return None

    def outcome(self, value: object) -> Outcome | None:
        """The outcome that a value of the reply's field stands for."""
        return self._keyed(outcome_of(value, self._spelled()))

    def outcome_in(self, reply: str, judged: str = "") -> tuple[Outcome | None, str]:
        """The outcome that a reply names with the judge's reason, or None with what is wrong.

        Args:
            judged: the answer that was judged; see `replies.read_judgement`.
        """
        judgement = read_judgement(reply, self._spelled(), self.answer_field, judged)
        return self._keyed(judgement.reading.value), judgement.reason

    def category(self, outcome: Outcome) -> str | None:
        """The category that goes into a verdict; none where it would only repeat the label."""
        return None if outcome.key in ("supported", "hallucinated") else outcome.key

    def _spelled(self) -> dict[str, str]:
        """The outcome of every spelling, normalised."""
        return {normalise(text): o.key for o in self.outcomes for text in (o.key, *o.spellings)}

    def _keyed(self, key: str | None) -> Outcome | None:
        return next((outcome for outcome in self.outcomes if outcome.key == key), None)


def load_judge_prompt(name: str) -> JudgePrompt:
    """Load a prompt of this room or of an evaluation by name, or a file of that form by a path that ends in `.json`.

    Raises:
        ConfigError: no such prompt; names the nearest one.
        DataError: the file is not of that form; says what is wrong.
    """
    if not isinstance(name, str):
        raise ConfigError(f"prompt: expected a name or a path, got {name!r}")
    if name.endswith(".json"):
        try:
            text = read_text(Path(name))
        except DataError as error:
            raise ConfigError(f"prompt: {error}") from None
        return JudgePrompt.parse(text, name, foreign=True)
    files = prompt_files()
    if name not in files:
        raise unknown("judge prompt", name, files)
    return _load_packaged(name, files[name])


@cache
def _load_packaged(name: str, path: Path) -> JudgePrompt:
    return JudgePrompt.parse(path.read_text("utf-8"), f"prompt {name}")


def prompt_files() -> dict[str, Path]:
    """The prompts that come with this package and with evaluations, by name."""
    ours = Path(str(resources.files("hedge_tasks.judging"))) / "prompts"
    return {**judge_prompt_files(), **{path.stem: path for path in ours.glob("*.json")}}


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD else text[:LONGEST_FIELD] + " [cut off here]"

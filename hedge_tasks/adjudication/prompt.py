"""Prompts of judges: files of `hedge_tasks.asking.template` that say besides which outcomes a judge may name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.base import Case
from hedge_tasks.asking.template import Template, one_of, parse_template
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.evaluation import judge_prompt_files
from hedge_tasks.io.outside import read_text
from hedge_tasks.replies.judgement import outcome_of, read_judgement
from hedge_tasks.replies.text import normalise

LONGEST_FIELD = 8000
"""Characters of one text that a judge is shown; an answer that runs on for ever is no reason to fail."""

_REQUIRED = ("images", "answer_field", "examples", "again", "schema", "values")
_OPTIONAL = ("answers_only",)
_IMAGES = ("never", "optional", "required")
_CASE_FIELDS = ("question", "description", "reference", "answer")


@dataclass(frozen=True)
class Outcome:
    """One thing a judge may say: its name, the label it stands for (None for none), and other spellings of it."""

    key: str
    label: int | None
    spellings: tuple[str, ...] = ()


@dataclass(frozen=True)
class JudgePrompt(Template):
    """How a judge is asked and what it may say.

    Attributes:
        images: whether the judge is shown the pictures: "never", "optional" or "required".
        answer_field: name of the reply's field with the outcome.
        outcomes: what it may say.
        answers_only: none of the outcomes is for a reply that is no answer: a refusal, an empty one, an unfinished
            thought, one cut off before it says anything. Nobody is asked about these, and they have no label.
    """

    images: str = "never"
    answer_field: str = ""
    outcomes: tuple[Outcome, ...] = ()
    answers_only: bool = False

    def __post_init__(self) -> None:
        """A schema, an example or a spelling that contradicts the outcomes would spoil every label."""
        for field in self.fields:
            one_of("case", field.case, _CASE_FIELDS)
        super().__post_init__()
        spellings = [normalise(text) for o in self.outcomes for text in (o.key, *o.spellings)]
        if twice := {text for text in spellings if spellings.count(text) > 1}:
            raise ValueError(f"values: {sorted(twice)} stand for two outcomes, or are given twice")
        if any(o.label not in (None, 0, 1) or isinstance(o.label, bool) for o in self.outcomes):
            raise ValueError("values: a label is 0, 1 or null")
        found = {str(value): self.outcome(value) for value in self.schema["properties"][self.answer_field]["enum"]}
        allowed = [value if of is None else of.key for value, of in found.items()]
        if sorted(allowed) != sorted(o.key for o in self.outcomes):
            raise ValueError(f"schema: allows {allowed}, the values are {[o.key for o in self.outcomes]}")
        for _, reply in self.examples:
            if self.outcome(json.loads(reply).get(self.answer_field)) is None:
                raise ValueError(f"examples: {reply} is no reply of the schema")

    def values(self, case: Case) -> dict[str, str | None]:
        """What the prompt shows of a case, by the names of the case."""
        texts = {field.case: getattr(case, field.case) or None for field in self.fields}
        # An empty answer must be seen to be empty; other texts that are not there are left out.
        texts |= {"answer": case.answer} if "answer" in texts else {}
        return {name: text if text is None else _cut(text) for name, text in texts.items()}

    def messages(self, case: Case, images: Sequence[Any] = (), *, again: bool = False) -> list[dict[str, Any]]:
        """The conversation about a case; see `conversation`."""
        return self.conversation(self.values(case), images, again=again)

    def show(self, case: Case) -> str:
        """The texts of a case as the judge sees them."""
        return self.shown(self.values(case))

    def missing(self, case: Case, with_images: bool) -> str | None:
        """The first text that the judge needs and the case has not."""
        for field in self.fields:
            needed = field.required is True or (field.required == "without_images" and not with_images)
            if needed and not (getattr(case, field.case) or "").strip():
                return field.case
        return None

    def outcome(self, said: object) -> Outcome | None:
        """The outcome that a value of the reply's field stands for."""
        return self._keyed(outcome_of(said, self._spelled()))

    def read(self, reply: str, judged: str = "") -> tuple[Outcome | None, str]:
        """The outcome that a reply names with the judge's reason, or None with what is wrong.

        Args:
            judged: the answer that was judged; see `replies.read_judgement`.
        """
        said = read_judgement(reply, self._spelled(), self.answer_field, judged)
        return self._keyed(said.reading.value), said.reason

    def spelled(self) -> dict[str, Outcome]:
        """Every spelling of every outcome, normalised."""
        return {normalise(text): o for o in self.outcomes for text in (o.key, *o.spellings)}

    def category(self, outcome: Outcome) -> str | None:
        """The category that goes into a verdict; none where it would only repeat the label."""
        return None if outcome.key in ("supported", "hallucinated") else outcome.key

    def _spelled(self) -> dict[str, str]:
        return {text: outcome.key for text, outcome in self.spelled().items()}

    def _keyed(self, key: str | None) -> Outcome | None:
        return next((outcome for outcome in self.outcomes if outcome.key == key), None)


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
        try:
            text = read_text(Path(name))
        except DataError as error:
            raise ConfigError(f"prompt: {error}") from None
        return parse_judge_prompt(text, name, foreign=True)
    files = _files()
    if name not in files:
        raise unknown("judge prompt", name, files)
    return _named(name, files[name])


@cache
def _named(name: str, path: Path) -> JudgePrompt:
    return parse_judge_prompt(path.read_text("utf-8"), f"prompt {name}")


def _files() -> dict[str, Path]:
    ours = Path(str(resources.files("hedge_tasks.adjudication"))) / "prompts"
    return {**judge_prompt_files(), **{path.stem: path for path in ours.glob("*.json")}}


def parse_judge_prompt(text: str, where: str, *, foreign: bool = False) -> JudgePrompt:
    """Check and build from the text of a prompt file; see `parse_template`."""
    keys: dict[str, Any] = {"required": _REQUIRED, "optional": _OPTIONAL}
    return parse_template(text, where, JudgePrompt, **keys, more=_of_judges, foreign=foreign)


def _of_judges(data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "images": one_of("images", data["images"], _IMAGES),
        "answer_field": data["answer_field"],
        "outcomes": tuple(Outcome(v["key"], v["label"], tuple(v.get("spellings", ()))) for v in data["values"]),
        "answers_only": one_of("answers_only", data.get("answers_only", False), (True, False)),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_FIELD else text[:LONGEST_FIELD] + " [cut off here]"

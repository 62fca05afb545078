"""Which column of a data set is what, how its documents are asked and who judges: the key `hedge:` of a task's YAML."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from hedge_tasks.data.pictures import picture_of
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.records import Items, Name, Objects, Settings
from hedge_tasks.perturb import Wording
from hedge_tasks.runs.protocols import VARIABLE

TEXT_NOISE = "neutral_wording"
"""Perturbation of tasks that show nothing: the same text behind another introduction."""

_STOCK_KEYS = (
    *("doc_to_text", "doc_to_visual", "doc_to_target", "doc_to_messages", "doc_to_choice", "process_results"),
    *("lmms_eval_specific_kwargs", "model_specific_target_kwargs", "model_specific_generation_kwargs"),
    *("description", "num_fewshot", "fewshot_config"),
)
"""Keys of lmms-eval's own tasks that say what `hedge` and `generation_kwargs` say here."""


def refuse_stock_keys(config: Mapping[str, Any]) -> None:
    """Refuse keys of lmms-eval's own tasks that would be ignored.

    Raises:
        ConfigError: names the first one, and where to say it instead.
    """
    for key in filter(config.get, _STOCK_KEYS):
        raise ConfigError(
            f"{config['task']}: {key!r} belongs to lmms-eval's own tasks and would be ignored: `hedge` names columns, "
            "prompt and judge (tasks/README.md). To score a task that is written in lmms-eval's way, leave out `class` "
            "and `hedge` and call it as hedge:TASK"
        )


JudgeSettings = Annotated[
    Objects[Any] | list[str | Objects[Any]],
    BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value),
]


class DocumentSettings(Settings):
    """The key `hedge:` of a task's YAML: which column is what, how it is asked and who judges.

    Attributes:
        prompt: `evaluation/variant` (or `file/variant` of the prompts that all evaluations share).
        evaluation: whose metrics the task may list besides those that every task has; None for none.
        question, answer: columns with the question and the reference answer; no answer for a task without references
            (`judge: none`).
        context: column with what is given to read with the question; None for none.
        distractor: column with a wrong answer, for perturbations that mislead; None for none.
        images: columns with an image, or a list of images; none for a text task.
        id: column with the document's id; None takes the row number of the split.
        group: column that says which documents belong together. Those with the same pictures do in any case, and those
            without pictures that ask the same.
        question_type: column with the kind of question, for AUROCs within a kind; None for none.
        description: column with what a judge should know of the question besides; None for none.
        judge: name of a judge, a mapping with `name` and its options, or a list of these, which vote; HEDGE_JUDGE
            takes its place.
        revision: revision of the data set on the hub.
        protocol: "reference" or "paper": how sampling and clustering are set where the YAML leaves it open; see
            `hedge_tasks.runs.protocols`. HEDGE_PROTOCOL takes its place. None is ours.
        claims: how the claims of answers are found and supported, for rows about these; see
            `hedge_tasks.runs.task_claims`. None asks nothing.
    """

    prompt: Name
    question: str = "question"
    answer: str | None = "answer"
    images: Items[str] = ("image",)
    id: str | None = None
    group: str | None = None
    question_type: str | None = None
    judge: JudgeSettings = Field(default_factory=lambda: {"name": "rule"})
    revision: str | None = None
    context: str | None = None
    distractor: str | None = None
    description: str | None = None
    evaluation: str | None = None
    protocol: str | None = None
    claims: Objects[Any] | None = None

    @classmethod
    def of_task(cls, config: Mapping[str, Any]) -> DocumentSettings:
        """Read a task's whole YAML: `hedge`, with `hedge_overrides` on top.

        lmms-eval's `include` replaces mappings as a whole, so that a file that includes another could not change a
        single setting of `hedge`.

        Raises:
            ConfigError: a setting is unknown (names the nearest one) or makes no sense.
        """
        task = config["task"]
        merged: dict[str, Any] = {}
        for key, default in (("hedge", None), ("hedge_overrides", {})):
            value = config.get(key, default)
            if not isinstance(value, Mapping):
                raise ConfigError(f"{task}: expected a mapping under {key!r}, got {value!r}")
            merged |= value
        return cls.read({**merged, "protocol": os.environ.get(VARIABLE) or merged.get("protocol")}, f"{task}: hedge")

    def columns(self) -> set[str]:
        """Return every column that is named."""
        others = (self.id, self.group, self.question_type, self.description, *self.images)
        return {column for column in (*self.text_columns(), *others) if column}

    def text_columns(self) -> list[str]:
        """Return the columns whose text shapes what is asked or how it is judged."""
        return [c for c in (self.question, self.answer, self.context, self.distractor) if c]

    def wording(self, document: Mapping[str, Any]) -> Wording:
        columns = (self.question, self.context, self.distractor)
        return Wording(*(str(document[column] or "") if column else "" for column in columns))

    def load_images(self, document: Mapping[str, Any]) -> list[Any]:
        return [picture for column in self.images for picture in _pictures(document, column)]


def _pictures(document: Mapping[str, Any], column: str) -> list[Any]:
    value = document[column]
    try:
        return [picture_of(item) for item in value] if isinstance(value, list) and value else [picture_of(value)]
    except DataError as error:
        raise DataError(f"column {column!r}: {error}") from None

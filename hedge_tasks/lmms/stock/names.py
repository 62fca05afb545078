"""`hedge:TASK[:key=value...]`, as `--tasks` takes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.records import Name, Settings

PREFIX = "hedge:"
NONE = "none"

_written = BeforeValidator(lambda value: yaml.safe_load(value) if isinstance(value, str) else value)


@dataclass(frozen=True)
class StockName:
    """The name of a task behind `hedge:`.

    No character of it means anything to a shell, and none is a comma, which `--tasks` splits at.

    Attributes:
        task: name of a task, group or tag of lmms-eval, or a pattern.
        options: as they stand there; see `StockOptions`.
    """

    task: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, name: str) -> StockName:
        """Read a name that begins with `hedge:`.

        Raises:
            ConfigError: there is no task in it, or an option is not `key=value` or stands there twice.
        """
        task, *parts = name.removeprefix(PREFIX).split(":")
        pairs = [part.partition("=")[::2] for part in parts]
        if not task or not all(key and value for key, value in pairs):
            raise ConfigError(f"{name!r}: expected {PREFIX}TASK or {PREFIX}TASK:key=value:..., such as {PREFIX}pope")
        if len(dict(pairs)) < len(pairs):
            raise ConfigError(f"{name!r}: an option stands there twice")
        return cls(task, dict(pairs))

    def for_task(self, task: str) -> str:
        """Return the name of another task with the same options."""
        return PREFIX + ":".join([task, *(f"{key}={value}" for key, value in self.options.items())])

    @property
    def title(self) -> str:
        """Return what the task is called in tables and files."""
        return PREFIX + self.task


def is_ours(name: object) -> bool:
    return isinstance(name, str) and name.startswith(PREFIX)


class StockOptions(Settings):
    """The options behind `hedge:TASK:`.

    Attributes:
        judge: metric of the task that says which answers are right; None takes the first that tells right from wrong;
            "none" labels nothing.
        record_key: key of that metric's records that holds the number (`field=`); None tries them all.
        threshold: from where on a graded metric means right; up to where, for one of which lower is better.
        question_type: column with the kind of question; None for none.
        group: column that says which documents belong together; None takes their pictures.
        model: name by which the task's model-specific prompts and limits are looked up (`as=`); None takes `--model`.
    """

    model_config = ConfigDict(validate_by_name=False)

    judge: Name | None = None
    record_key: Name | None = Field(default=None, alias="field")
    threshold: Annotated[float, _written] | None = None
    question_type: Name | None = None
    group: Name | None = None
    model: Name | None = Field(default=None, alias="as")

    @classmethod
    def of(cls, name: StockName) -> StockOptions:
        """Check the options of a name.

        Raises:
            ConfigError: one is unknown (names the nearest) or makes no sense.
        """
        return cls.read(dict(name.options), name.title)

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if (self.judge or NONE) == NONE and (self.threshold, self.record_key) != (None, None):
            raise ConfigError("threshold and field need judge=METRIC beside them")
        return self

"""`hedge:TASK[:key=value...]`, as `--tasks` takes it. Free of lmms-eval: the plug-in imports it in every evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hedge_tasks.errors import ConfigError

PREFIX = "hedge:"
MAPPING = "hedge_ize"
"""Key of a YAML that gives a task of lmms-eval another name and settings."""

_WILD = "*?["


@dataclass(frozen=True)
class StockName:
    """The name of a task behind `hedge:`.

    No character of it means anything to a shell, and none is a comma, which `--tasks` splits at.

    Attributes:
        task: name of a task, group or tag of lmms-eval, or a pattern.
        options: as given; see `hedge_tasks.lmms.stock.options.StockOptions`.
    """

    task: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, name: str) -> StockName:
        """Read a name that begins with `hedge:`.

        Raises:
            ConfigError: there is no task in it, or an option is not `key=value` or given twice.
        """
        task, *parts = name.removeprefix(PREFIX).split(":")
        if not task:
            raise ConfigError(f"{name!r}: expected {PREFIX}TASK, such as {PREFIX}pope")
        options: dict[str, str] = {}
        for part in parts:
            key, equals, value = part.partition("=")
            if not (key and equals and value):
                raise ConfigError(f"{name!r}: expected {PREFIX}TASK:key=value:..., got {part!r} in it")
            if key in options:
                raise ConfigError(f"{name!r}: {key!r} is given twice")
            options[key] = value
        return cls(task, options)

    def for_task(self, task: str) -> str:
        """Return the name of another task with the same options."""
        return PREFIX + ":".join([task, *(f"{key}={value}" for key, value in self.options.items())])

    @property
    def title(self) -> str:
        """Return what the task is called in tables and files."""
        return PREFIX + self.task

    @property
    def is_pattern(self) -> bool:
        return any(character in self.task for character in _WILD)


def is_ours(name: object) -> bool:
    return isinstance(name, str) and name.startswith(PREFIX)

"""Names that tasks have, without starting lmms-eval."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from hedge_tasks.errors import ConfigError
from hedge_tasks.lmms.catalogue import task_folder

_NAME = re.compile(r"^(?:task|group|tag|group_alias):[ \t]*[\"']?([\w.-]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)


def task_names(*folders: Path) -> dict[str, Path]:
    """Return the tasks, groups and tags of lmms-eval and of further folders, each with the file that names it."""
    places = getattr(find_spec("lmms_eval"), "submodule_search_locations", ())
    files = [file for folder in (*places, *folders) for file in Path(folder).rglob("*.y*ml")]
    return {name: file for file in files for name in _NAME.findall(file.read_text("utf-8", "replace"))}


def check_free(name: str) -> None:
    """Refuse a name that lmms-eval or this package has a task of: it would be run instead.

    Raises:
        ConfigError: it is taken; says by what.
    """
    if file := task_names(task_folder()).get(name):
        raise ConfigError(f"{name!r} is taken by a task or group of lmms-eval ({file}); choose another")

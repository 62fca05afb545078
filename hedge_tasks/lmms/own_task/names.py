"""Names that lmms-eval's own tasks have, without starting lmms-eval."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from hedge_tasks.errors import ConfigError
from hedge_tasks.lmms.catalogue import task_folder

_NAME = re.compile(r"^(?:task|group|tag|group_alias):[ \t]*[\"']?([\w.-]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)


def check_free(name: str) -> None:
    """Refuse a name that lmms-eval or this package has a task of: it would be run instead.

    Raises:
        ConfigError: it is taken; says by what.
    """
    spec = find_spec("lmms_eval")
    folders = [Path(place) / "tasks" for place in (spec.submodule_search_locations or ())] if spec else []
    for folder in (*folders, task_folder()):
        for file in folder.rglob("*.yaml"):
            text = file.read_text("utf-8", errors="replace")
            if name in text and name in _NAME.findall(text):
                raise ConfigError(
                    f"{name!r} is taken: lmms-eval has a task or group of that name ({file}); choose another"
                )

"""Which tasks this package brings, without importing lmms-eval (12 s) for it."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import yaml


def task_folder() -> Path:
    """Folder of the tasks, as lmms-eval's `--include_path` wants it."""
    return Path(str(files("hedge_tasks.tasks")))


def list_tasks() -> list[dict[str, str]]:
    """Name, title (first line of the folder's README) and YAML of every task and group."""
    tasks = []
    for path in sorted(task_folder().rglob("*.yaml")):
        config = yaml.load(path.read_text("utf-8"), Loader=_Loader)
        name = config.get("task") if isinstance(config.get("task"), str) else config.get("group")
        tasks.append({"task": str(name), "title": _title(path.parent), "yaml": str(path)})
    return tasks


def _title(folder: Path) -> str:
    readme = folder / "README.md"
    if not readme.is_file():
        return ""
    return readme.read_text("utf-8").lstrip().splitlines()[0].lstrip("# ")


class _Loader(yaml.SafeLoader):
    """Reads task YAML without running its !function tags."""


_Loader.add_constructor("!function", lambda loader, node: None)

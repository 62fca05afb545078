"""Which tasks this package and other packages bring, without importing lmms-eval (12 s) for it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import yaml

from hedge_tasks.evaluation import own_folder, task_folders


def task_folder() -> Path:
    """Folder of the tasks, as lmms-eval's `--include_path` wants it."""
    return own_folder("")


def list_tasks() -> list[dict[str, str]]:
    """Name, title (first line of the folder's README) and YAML of every task and group."""
    return [_entry(path) for path in task_files()]


@cache
def titles() -> dict[str, str]:
    """Title of every task and group by its name."""
    return {entry["task"]: entry["title"] for entry in list_tasks()}


def task_files() -> list[Path]:
    """Every YAML of a task or group, ours first."""
    return [path for folder in task_folders() for path in sorted(folder.rglob("*.yaml"))]


def _entry(path: Path) -> dict[str, str]:
    config = yaml.load(path.read_text("utf-8"), Loader=_Loader)
    title = _title(path.parent)
    if isinstance(config.get("task"), list):
        return {"task": str(config["group"]), "title": f"group: {title}", "yaml": str(path)}
    prompt = (config.get("hedge_overrides") or {}).get("prompt")
    return {
        "task": str(config["task"]),
        "title": f"{title} (prompt {prompt})" if prompt else title,
        "yaml": str(path),
    }


def _title(folder: Path) -> str:
    readme = folder / "README.md"
    if not readme.is_file():
        return ""
    return readme.read_text("utf-8").lstrip().splitlines()[0].lstrip("# ")


class _Loader(yaml.SafeLoader):
    """Reads task YAML without running its !function tags."""


_Loader.add_constructor("!function", lambda loader, node: None)

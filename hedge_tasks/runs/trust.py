"""Limits to what a run or results file may make us load: the models and data sets of installed tasks, nothing else.

Such files come from other people, and `hedge report` or `hedge rescore` load the clustering model that they name and
the data set with their pictures. A name that no installed task, no clustering's default and no setting of the user's
own gives is therefore only loaded when the user says so (`--trust-run`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from hedge_tasks.clustering import BACKENDS
from hedge_tasks.data.splits import DATA_FILES, FILE_KINDS
from hedge_tasks.errors import DataError
from hedge_tasks.evaluation import included_file, task_folders
from hedge_tasks.io.sources import MODELS, PACKAGE_SCHEME, chosen_models
from hedge_tasks.runs.run_files import Run

_OURS = f"{PACKAGE_SCHEME}hedge_tasks."


class Untrusted(DataError):
    """A file from outside names something that is not loaded without the user's word."""


@dataclass(frozen=True)
class DocumentSource:
    """Where the documents of a task are.

    Attributes:
        path, name, split: what lmms-eval's YAML calls dataset_path, dataset_name and test_split.
        files: of a data set in files, `dataset_kwargs.data_files`.
    """

    path: str
    name: str | None
    split: str
    files: Any = None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> DocumentSource | None:
        path, split = config.get("dataset_path"), config.get("test_split") or config.get("validation_split")
        if not isinstance(path, str) or not isinstance(split, str):
            return None
        name = config.get("dataset_name")
        files = (config.get("dataset_kwargs") or {}).get(DATA_FILES) if path in FILE_KINDS else None
        return cls(path, name if isinstance(name, str) else None, split, files)

    @property
    def trusted(self) -> bool:
        """Whether it is in this package, or an installed task's: to look into another package is to import it."""
        return self.path.startswith(_OURS) or self in [DocumentSource.of(config) for config in installed_tasks()]


def check_models(run: Run, filters: Mapping[str, Any]) -> None:
    """Refuse settings of a run's clusterings that name a model which neither a task nor the user has chosen.

    Args:
        run: one that was read from a file, and that the user has not said is trusted, or nothing is refused.
        filters: settings by name, as a run records them.

    Raises:
        Untrusted: names the model and how to load it nevertheless.
    """
    for name, settings in filters.items() if run.path is not None and not run.trusted else ():
        for model, revision in named_models(settings):
            if not is_trusted(model, revision):
                at = f" at revision {revision!r}" if revision is not None else ""
                raise Untrusted(
                    f"{run.path}: its filter {name!r} names the model {model!r}{at}, which is none of installed tasks; "
                    "if you know where the file comes from, --trust-run loads it (or choose your own with --clustering "
                    f"and --model, or {MODELS})"
                )


def named_models(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the (model, revision) that a clustering's settings name."""
    if isinstance(model := settings.get("model"), str):
        yield model, settings.get("revision")


def installed_tasks() -> Sequence[Mapping[str, Any]]:
    """The YAML of every installed task, without its functions."""
    return _installed(tuple(task_folders()))


def read_task(file: Path) -> dict[str, Any]:
    """A task's YAML with what it includes, its functions left out."""
    config = yaml.load(file.read_text("utf-8"), Loader=_PlainLoader) or {}
    included = config.pop("include", None) or []
    merged: dict[str, Any] = {}
    for name in reversed([included] if isinstance(included, str) else included):  # as lmms-eval does: the first wins
        # Not Path: it would make one slash of the two in package://.
        merged |= read_task(Path(included_file(os.path.join(file.parent, name))))
    return {**merged, **config}


# libyaml's parser where there is one: ten times as fast.
class _PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads task YAML without running its !function tags."""


_PlainLoader.add_constructor("!function", lambda loader, node: None)


def is_trusted(model: str, revision: object) -> bool:
    """Whether an installed task, a clustering's default or the user has chosen a model at a revision."""
    # What a function did in another process is loaded from nowhere; building it fails with a reason of its own.
    if model.startswith((_OURS, "custom:")):
        return True
    if model in chosen_models().values():
        return revision is None
    pipelines = chain.from_iterable(config.get("filter_list") or () for config in installed_tasks())
    steps = chain.from_iterable(pipeline.get("filter") or () for pipeline in pipelines)
    # Tasks last: to know theirs takes reading all of them.
    return (model, revision) in chain(default_models(), chain.from_iterable(map(named_models, steps)))


@cache
def _installed(folders: tuple[Path, ...]) -> tuple[Mapping[str, Any], ...]:
    return tuple(read_task(file) for folder in folders for file in sorted(folder.rglob("*.yaml")))


def default_models() -> Iterator[tuple[str, object]]:
    """Yield the (model, revision) that clusterings use by default."""
    for _, backend in BACKENDS.each():
        defaults = {name: option.default for name, option in inspect.signature(backend).parameters.items()}
        if isinstance(model := defaults.get("model"), str):
            yield model, defaults.get("revision")

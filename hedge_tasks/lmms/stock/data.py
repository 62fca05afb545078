"""Data of a stock task: a local copy where there is one, one quick error where there is neither copy nor hub, and what
its columns tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hedge_tasks.data.repositories import tables_in
from hedge_tasks.data.roles import IDS, MOST_TYPES, QUESTION_TYPES
from hedge_tasks.data.splits import DATA_FILES, FILE_KINDS, how_to_provide, local_copy
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.sources import hub_or_cache, why_hub_unreachable
from hedge_tasks.lmms.stock.names import NONE

_SPLITS = ("test_split", "validation_split", "training_split", "fewshot_split")
_MORE_THAN_ROWS = ("video", "From_YouTube", "builder_script", "load_from_disk", DATA_FILES)
"""Keys of `dataset_kwargs` with which a task takes more of a repository than its rows, or takes them from elsewhere."""

_KINDS = {".parquet": "parquet", ".jsonl": "json"}


def with_local_copy(config: Mapping[str, Any], task: str) -> dict[str, Any]:
    """The configuration of a stock task, its rows from below HEDGE_DATA_DIR where there is a copy of its data set.

    Args:
        task: its name, for errors.

    Raises:
        DataError: the copy has no file of the split that is asked.
    """
    path, name, options = config.get("dataset_path"), config.get("dataset_name"), config.get("dataset_kwargs") or {}
    elsewhere = path in FILE_KINDS or any(options.get(key) for key in _MORE_THAN_ROWS)
    folder = local_copy(path) if isinstance(path, str) and not elsewhere else None
    if folder is None:
        return dict(config)
    splits = [config[key] for key in _SPLITS if config.get(key)] or ["test"]
    tables = {split: tables_in(folder, name, split).get(split) for split in splits}
    files = {split: paths for split, paths in tables.items() if paths}
    if splits[0] not in files:
        part, pattern = (f"config {name!r}, ", f"{name}/") if name else ("", "")
        raise DataError(
            f"{task}: no file of {part}split {splits[0]!r} of {path} in {folder}; expected "
            f"{pattern}{splits[0]}*.parquet or the layout of the hub"
        )
    kind = _KINDS[files[splits[0]][0].suffix]
    listed = {split: [str(file) for file in paths] for split, paths in files.items()}
    return {**config, "dataset_path": kind, "dataset_name": None, "dataset_kwargs": {DATA_FILES: listed}}


def built(kind: type, config: dict[str, Any], model_name: str | None, source: tuple[str, str | None]) -> Any:
    """Return a stock task, whose data is asked for once where no hub can answer.

    Args:
        kind: lmms-eval's class.
        source: data set and config that the task means, for errors.

    Raises:
        DataError: its data cannot be had; says how to provide it.
    """
    original: Any = kind.download  # type: ignore[attr-defined]

    def download(self: Any, dataset_kwargs: Mapping[str, Any] | None = None) -> None:
        in_files = self.DATASET_PATH in FILE_KINDS
        offline = None if in_files else why_hub_unreachable()
        if offline is None and not in_files:
            original(self, dataset_kwargs)  # it tries again, for the sake of a busy hub
            return
        try:
            with hub_or_cache():
                original.__wrapped__(self, dataset_kwargs)
        except Exception as error:  # network, authorisation, damaged files: told apart by the text, helped alike
            first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            why = f"the hub cannot be reached ({offline}), and its cache does not hold it" if offline else first
            split = self.config.test_split or self.config.validation_split or "test"
            raise DataError(
                f"{self.config.task}: data set {source[0]} cannot be loaded: {why}. {how_to_provide(*source, split)}"
            ) from error

    return type(kind.__name__, (kind,), {"download": download})(config=config, model_name=model_name)


def id_column(docs: Any, named: str | None, task: str) -> str | None:
    """Return the column with ids, None where the row is the id.

    Args:
        docs: the split (`datasets.Dataset`).
        named: a column, "none", or None to look for one.
        task: for the error.

    Raises:
        ConfigError: there is no such column, or documents share a value of it.
    """
    column = _column(docs, named, task, IDS, lambda values: len(set(map(str, values))) == len(values))
    if named not in (None, NONE) and len(set(map(str, docs[column]))) < len(docs):
        raise unknown(f"{task}: column of ids (documents share values of {named!r})", str(named), [NONE])
    return column


def type_column(docs: Any, named: str | None, task: str) -> str | None:
    """Return the column with the kind of question, None for none.

    Raises:
        ConfigError: there is no such column.
    """

    def few(values: Sequence[Any]) -> bool:
        return 2 <= len(set(values)) <= min(MOST_TYPES, max(2, len(values) // 2))

    return _column(docs, named, task, QUESTION_TYPES, few)


def group_column(docs: Any, named: str | None, task: str) -> str | None:
    """Return the column that says which documents belong together, None for their pictures.

    Raises:
        ConfigError: there is no such column.
    """
    return _column(docs, named, task, (), bool)


def _column(
    docs: Any, named: str | None, task: str, usual: Sequence[str], fits: Callable[[Sequence[Any]], bool]
) -> str | None:
    """Return the column that is named, or the first usual one of plain values that fit."""
    if named == NONE:
        return None
    if named is not None:
        if named not in docs.column_names:
            raise unknown(f"column of {task}", named, docs.column_names)
        return named
    for name in usual:
        dtype = str(getattr(docs.features.get(name), "dtype", None))
        if dtype in ("string", "large_string") or dtype.startswith(("int", "uint")):
            values = docs[name][:]
            if None not in values and fits(values):
                return name
    return None

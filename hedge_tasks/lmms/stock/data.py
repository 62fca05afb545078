"""Data of a stock task: a local copy where there is one, and one quick error where there is neither copy nor hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hedge_tasks.data.repositories import tables_in
from hedge_tasks.data.splits import DATA_FILES, FILE_KINDS, how_to_provide, local_copy
from hedge_tasks.errors import DataError
from hedge_tasks.io.sources import hub_or_cache, why_hub_unreachable

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
    path, options = config.get("dataset_path"), config.get("dataset_kwargs") or {}
    if not isinstance(path, str) or path in FILE_KINDS or any(options.get(key) for key in _MORE_THAN_ROWS):
        return dict(config)
    if (folder := local_copy(path)) is None:
        return dict(config)
    name = config.get("dataset_name")
    splits = list(dict.fromkeys(split for key in _SPLITS if (split := config.get(key))))
    files = {split: paths for split in splits if (paths := tables_in(folder, name, split).get(split))}
    if not splits or splits[0] not in files:
        part = f"config {name!r}, " if name else ""
        raise DataError(
            f"{task}: no file of {part}split {splits[0] if splits else 'test'!r} of {path} in {folder}; expected "
            f"{name + '/' if name else ''}{splits[0] if splits else 'test'}*.parquet or the layout of the hub"
        )
    kind = _KINDS[next(iter(files.values()))[0].suffix]
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
        offline = None if self.DATASET_PATH in FILE_KINDS else why_hub_unreachable()
        if offline is None and self.DATASET_PATH not in FILE_KINDS:
            original(self, dataset_kwargs)  # it tries again, for the sake of a busy hub
            return
        split = self.config.test_split or self.config.validation_split or "test"
        try:
            with hub_or_cache():
                original.__wrapped__(self, dataset_kwargs)
        except Exception as error:  # network, authorisation, damaged files: told apart by the text, helped alike
            first = (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
            why = f"the hub cannot be reached ({offline}), and its cache does not hold it" if offline else first
            raise DataError(
                f"{self.config.task}: data set {source[0]} cannot be loaded: {why}. {how_to_provide(*source, split)}"
            ) from error

    return type(kind.__name__, (kind,), {"download": download})(config=config, model_name=model_name)

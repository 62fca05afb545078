"""Folders with tables: one a split, as the Hugging Face hub lays them out, or a single one with its pictures.

What `hf download` writes (`data/test-00000-of-00001.parquet`, `CONFIG/test/0000.parquet`), what somebody puts together
by hand (`test.parquet`), and folders of pictures with a table in each split.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

SPLITS = ("train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval", "evaluation")
"""Words that name a split where a folder says nothing else."""

_SHARD = re.compile(r"-\d{5}-of-\d{5}(?:-[0-9a-f]+)?$")
_NUMBER = re.compile(r"[-_.]?\d+$")
_ABOUT = ("dataset_infos", "dataset_info", "state", "dataset_dict", "package", "config")


def tables_in(
    folder: Path,
    config: str | None = None,
    split: str | None = None,
    endings: Sequence[str] = (".parquet", ".jsonl"),
) -> dict[str, list[Path]]:
    """The tables of a folder by their names without the numbers of shards; those of folders of splits by the folder's.

    Where no table has the split's name, those whose names begin with it are it: "closed-mcq" is a part of "closed".

    Args:
        config: of the data set, whose folder is looked into first.
        split: that is looked for; None takes the first place that has tables.
        endings: of tables. Of two tables of one name the kind that stands first there counts.
    """
    for name in (config, f"data/{config}", ".", "data") if config else (".", "data"):
        tables = _by_name(folder / name, split, endings)
        if split in tables or (split is None and tables):
            return tables
        if begun := [file for name, files in tables.items() if name.startswith(f"{split}-") for file in files]:
            return {str(split): begun}
    return {}


def _by_name(place: Path, split: str | None, endings: Sequence[str]) -> dict[str, list[Path]]:
    """The tables right in a folder and in its folders of splits; of each the files of one kind."""
    splits = {*SPLITS, split}
    tables: dict[str, list[Path]] = defaultdict(list)
    for file in sorted((*place.glob("*.*"), *place.glob("*/*.*"))):
        inner = file.parent.name if file.parent != place else None
        if not _is_table(file, endings) or (inner is not None and inner.lower() not in splits):
            continue
        stem = _SHARD.sub("", file.stem)
        short = _NUMBER.sub("", stem)  # a number belongs to a name, unless a split's name is before it
        tables[inner or (short if short.lower() in splits else stem)].append(file)
    kinds = {name: min((file.suffix for file in files), key=endings.index) for name, files in tables.items()}
    return {name: [file for file in files if file.suffix == kinds[name]] for name, files in tables.items()}


def _is_table(file: Path, endings: Sequence[str]) -> bool:
    return file.suffix in endings and file.is_file() and not file.name.startswith(".") and file.stem not in _ABOUT


def repository(root: Path, name: str) -> Path | None:
    """The folder of a data set of the hub below another one: `org__name`, `org/name`, or a cache of the hub's client.

    Args:
        name: id of the data set, `org/name`.
    """
    for folder in (root / name.replace("/", "__"), root / name):
        if folder.is_dir():
            return folder
    cached = root / f"datasets--{name.replace('/', '--')}" / "snapshots"
    return max(cached.iterdir(), key=lambda path: path.stat().st_mtime, default=None) if cached.is_dir() else None

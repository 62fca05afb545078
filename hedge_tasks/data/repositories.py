"""A data set's folder as the Hugging Face hub lays it out: which files hold which split.

What `hf download` writes (`data/test-00000-of-00001.parquet`, `CONFIG/test/0000.parquet`, configs in the README), what
somebody puts together by hand (`test.parquet`), and folders of pictures with a table in each split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from hedge_tasks.errors import ConfigError, lookup

DEFAULT = "default"

SPLITS = ("train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval", "evaluation")
"""Words that name a split where a folder says nothing else."""

TABLES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")
"""Endings of files that may hold a split, those that are looked for first in front."""

_SHARD = r"(?:-\d{5}-of-\d{5}(?:-[0-9a-f]+)?|[-_.]?\d*)"
_NAMED = re.compile(rf"({'|'.join(SPLITS)})(?:$|[-_.]?\d*$|-\d{{5}}-of-\d{{5}}(?:-[0-9a-f]+)?$)")
_ABOUT = ("dataset_infos", "dataset_info", "state", "dataset_dict", "package", "config")


def split_files(folder: Path, config: str | None, split: str) -> list[Path]:
    """The files of a split whose name is known; empty where there are none.

    Args:
        config: of the data set. A folder of one config needs no folder for it.
    """
    declared = configs(folder)
    chosen = declared.get(config or DEFAULT) or (next(iter(declared.values())) if len(declared) == 1 else None)
    if chosen and (matching := chosen.get(split)):
        return matching
    own = re.compile(re.escape(split) + _SHARD)
    for place in _places(folder, config):
        for ending in (".parquet", ".jsonl"):
            files = sorted(place.glob(f"*{ending}"))
            within = [file for file in files if own.fullmatch(file.stem)] or sorted(place.glob(f"{split}/*{ending}"))
            if matching := within or [file for file in files if file.name.startswith(split)]:
                return matching
    return []


def splits_of(folder: Path, config: str | None = None) -> dict[str, list[Path]]:
    """The splits of a folder by the names of its files or folders; one without a name is "".

    Raises:
        ConfigError: its README declares several configs and none is asked for, or there is no such config.
    """
    declared = configs(folder)
    if declared and config is None and DEFAULT not in declared and len(declared) > 1:
        raise ConfigError(f"{folder}: which of its configs, {', '.join(declared)}? Say --config NAME")
    if declared:
        name = config or (DEFAULT if DEFAULT in declared else next(iter(declared)))
        return lookup(f"config of {folder}", name, declared)
    for place in _places(folder, config):
        files = [file for file in sorted(place.iterdir()) if file.suffix.lower() in TABLES and _is_table(file)]
        if by_split := _by_split(files):
            return by_split
        if by_split := {
            inner.name: tables
            for inner in sorted(place.iterdir())
            if inner.is_dir() and inner.name.lower() in SPLITS and (tables := _tables_in(inner))
        }:
            return by_split
    return {}


def configs(folder: Path) -> dict[str, dict[str, list[Path]]]:
    """The configs that a README declares, with the files of their splits; those without files are left out."""
    by_config = {}
    for entry in _front_matter(folder).get("configs") or ():
        if isinstance(entry, Mapping) and (splits := _declared(folder, entry.get("data_files"))):
            by_config[str(entry.get("config_name", DEFAULT))] = splits
    return by_config


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


def _places(folder: Path, config: str | None) -> list[Path]:
    names = [config, f"data/{config}"] if config else []
    return [place for name in (*names, ".", "data") if (place := folder / name).is_dir()]


def _tables_in(folder: Path) -> list[Path]:
    for ending in TABLES:
        if files := [file for file in sorted(folder.glob(f"*{ending}")) if _is_table(file)]:
            return files
    return []


def _is_table(file: Path) -> bool:
    return file.is_file() and not file.name.startswith(".") and file.stem not in _ABOUT


def _by_split(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Files of one kind by split; all under "" where one of them names none."""
    kinds = list(dict.fromkeys(file.suffix.lower() for file in files))
    named = [(_NAMED.fullmatch(file.stem.lower()), file) for file in files]
    if len(kinds) != 1 or not all(match for match, _ in named):
        return {"": list(files)} if files else {}
    by_split: dict[str, list[Path]] = {}
    for match, file in named:
        by_split.setdefault(match[1] if match else "", []).append(file)
    return by_split


def _declared(folder: Path, files: Any) -> dict[str, list[Path]]:
    if isinstance(files, (str, list)) and not (isinstance(files, list) and files and isinstance(files[0], Mapping)):
        files = [{"split": "train", "path": files}]
    splits = {}
    for entry in files or ():
        patterns = entry.get("path") if isinstance(entry, Mapping) else None
        patterns = [patterns] if isinstance(patterns, str) else patterns or []
        inside = [str(p) for p in patterns if not str(p).startswith("/") and ".." not in Path(str(p)).parts]
        matching = sorted(
            {file for pattern in inside for file in folder.glob(pattern) if file.suffix.lower() in TABLES}
        )
        if matching:
            splits[str(entry.get("split", "train"))] = matching
    return splits


def _front_matter(folder: Path) -> Mapping[str, Any]:
    readme = folder / "README.md"
    if not readme.is_file():
        return {}
    text = readme.read_text("utf-8", errors="replace")
    if not text.startswith("---\n") or (end := text.find("\n---", 4)) < 0:
        return {}
    try:
        fields = yaml.safe_load(text[4:end])
    except yaml.YAMLError:
        return {}
    return fields if isinstance(fields, Mapping) else {}

"""Manifests of a task's documents: ids with digests of question, reference and pictures, without any of the texts.

Whoever holds a manifest can tell whether a run's documents are the task's, and whether all of them are there, without
the data set. A manifest is a JSON file in the folder `manifests` beside a task's YAML:

    {"hedge_manifest": 1, "tasks": ["hedge_demo"], "data": {"path", "name", "split", "revision"},
     "documents": [["id", "question", "reference", "grouping", "pictures" or null], ...]}

One file serves all tasks that ask about the same documents; a task may have several, one a revision of its data set.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Strict

from hedge_tasks.errors import DataError
from hedge_tasks.evaluation import task_folders
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.outside import clean, read_json
from hedge_tasks.io.records import Items, Record, Text

FORMAT = 1
FOLDER = "manifests"
_KEY = "hedge_manifest"
_LARGEST = 64 << 20
_DIGITS = 16


@dataclass(frozen=True)
class Digests:
    """Digests of a document in hexadecimal digits, None where there is nothing or it is not known.

    Attributes:
        question, reference: of the texts.
        grouping: of group and question type, on which standard errors rest; see `grouping_digest`.
        pictures: of the files, as `hedge_tasks.data.splits.image_keys` makes it.
    """

    question: str | None = None
    reference: str | None = None
    grouping: str | None = None
    pictures: str | None = None

    def agrees_with(self, other: Digests) -> bool:
        """Whether all digests that both have are equal."""
        pairs = zip(asdict(self).values(), asdict(other).values(), strict=True)
        return all(a is None or b is None or a == b for a, b in pairs)


@dataclass(frozen=True)
class Data:
    """Where the documents come from: as lmms-eval's YAML names it; no revision for a local copy."""

    path: Text
    name: Text | None = None
    split: Text | None = None
    revision: Text | None = None

    __pydantic_config__ = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Manifest:
    """All documents of one or several tasks, by id."""

    tasks: tuple[str, ...]
    data: Data
    documents: Mapping[str, Digests]


class _File(Record):
    """A manifest as its file has it."""

    hedge_manifest: Literal[1]
    tasks: Items[str]
    data: Data
    documents: Items[Annotated[tuple[str, str | None, str | None, str | None, str | None], Strict(False)]]


def text_digest(text: str | None) -> str | None:
    """Digest of a text as answer files hold it (`hedge_tasks.io.outside.clean`).

    Example:
        >>> text_digest("left lung"), text_digest(None)
        ('8f2539160aab1d7d', None)
    """
    return None if text is None else hashlib.sha256(clean(text).encode()).hexdigest()[:_DIGITS]


def grouping_digest(group: str | None, question_type: str | None) -> str | None:
    """Digest of a document's group and question type together."""
    return text_digest(json.dumps([group and clean(group), question_type and clean(question_type)]))


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a manifest, one document a line.

    Raises:
        DataError: the file cannot be written.
    """
    head = {_KEY: FORMAT, "tasks": list(manifest.tasks), "data": asdict(manifest.data)}
    rows = ",\n".join(json.dumps([id, *asdict(digests).values()]) for id, digests in manifest.documents.items())
    write_whole(path, f'{json.dumps(head)[:-1]}, "documents": [\n{rows}\n]}}\n')


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        DataError: it is none; names the file and the place.
    """
    file = _File.read(read_json(path, largest=_LARGEST, constants=False), str(path))
    documents = {id: Digests(*digests) for id, *digests in file.documents}
    if len(documents) < len(file.documents):
        raise DataError(f"{path}: two documents have one id")
    return Manifest(file.tasks, file.data, documents)


def manifests_of(task: str, folders: Iterable[Path] | None = None) -> list[Manifest]:
    """The manifests of a task: those that ship with installed tasks, or those in the folders given.

    Raises:
        DataError: a file in one of the folders is damaged.
    """
    files = sorted(_shipped() if folders is None else (file for folder in folders for file in folder.glob("*.json")))
    return [manifest for manifest in map(read_manifest, files) if task in manifest.tasks]


def _shipped() -> list[Path]:
    return [file for folder in task_folders() for file in folder.rglob(f"{FOLDER}/*.json")]


def same_documents(manifests: Sequence[Manifest]) -> list[Manifest]:
    """Manifests with the same data and documents as one, for all their tasks together."""
    merged: dict[tuple[Data, tuple[tuple[str, Digests], ...]], Manifest] = {}
    for manifest in manifests:
        key = (manifest.data, tuple(manifest.documents.items()))
        tasks = (*merged[key].tasks, *manifest.tasks) if key in merged else manifest.tasks
        merged[key] = Manifest(tuple(sorted(set(tasks))), manifest.data, manifest.documents)
    return list(merged.values())

"""Editions: how a task is run, fixed before anybody runs it.

Numbers can be compared where they were made alike. An edition holds all that decides them besides the model: draws and
their settings, seeds, perturbation, prompt, columns, judge, refusals, every clustering with every setting, the digest
of the documents. Its hash names it, and two runs are of one edition where the hash of what they record is the same. An
edition is a JSON file in the folder `editions` beside a task's YAML, written by `hedge edition TASK`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from hedge_tasks.data.manifests import Manifest
from hedge_tasks.errors import DataError
from hedge_tasks.evaluation import task_folders
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.outside import clean, read_json
from hedge_tasks.io.records import Items, Objects, Record

FORMAT = 1
FOLDER = "editions"

SEEDS = (0, 1, 2)
"""Base seeds of an edition: the first is the one that counts; whoever runs the others shows how far numbers spread."""

_DIGITS = 12
_LARGEST = 1 << 20

_NOT_OF_DRAWS = frozenset({"seed", "max_failed", "image_check", "hidden_states", "alternatives"})
"""Settings of the sampling that change neither an answer nor a label; the seed is one of the edition's."""

_COLUMNS = ("question", "answer", "context", "distractor", "description", "images", "question_type", "options")
_OF_DOCUMENTS = (*_COLUMNS, "evaluation", "claims")

_WHEREABOUTS = frozenset({"source", "embedding_source", "normalisation", "chosen", "detectors"})
"""Settings of a clustering that do not decide its clusters: the model's origin, results, and further detectors."""

Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, strict=False)]


class Edition(Record):
    """How a task is run.

    Attributes:
        task, version: of the YAML.
        documents: digest of the manifest; None where no manifest was at hand when it was written.
        seeds: base seeds, the one that counts first.
        prompt: system and user text.
        sampling: settings of the draws.
        columns: which column of the data is what.
        judge: who labels, with every option.
        refusals: what a filtered reply is, and what a declined answer counts as.
        clusterings: by name, every setting, the rule for the threshold among them.
    """

    hedge_edition: Literal[1]
    task: str
    version: Any = None
    documents: str | None = None
    seeds: Seeds = SEEDS
    prompt: Objects[str | None]
    sampling: Objects[Any]
    columns: Objects[Any]
    judge: Objects[Any] | Items[Any] | None
    refusals: Objects[Any]
    clusterings: Objects[Objects[Any]]

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that name the edition."""
        return _hash({"task": self.task, "documents": self.documents, "seeds": list(self.seeds), **self.rules})

    @property
    def rules(self) -> dict[str, Any]:
        """All that a run records of it, in the form of `rules_of`."""
        names = ("version", "prompt", "sampling", "columns", "judge", "refusals", "clusterings")
        return {name: json.loads(json.dumps(getattr(self, name))) for name in names}


def edition_of(
    task: str, settings: Mapping[str, Any], documents: str | None = None, seeds: Sequence[int] = SEEDS
) -> Edition:
    """Return the edition of a run with these settings.

    Args:
        settings: as a run file records them.
        documents: digest of the manifest; see `manifest_digest`.
        seeds: base seeds.
    """
    fields = {"documents": documents, "seeds": tuple(seeds), **rules_of(settings, settings.get("filters") or {})}
    return Edition.read({"hedge_edition": FORMAT, "task": task, **fields}, f"edition of {task}")


def rules_of(settings: Mapping[str, Any], clusterings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the part of a run's records that says how it was made, as far as an edition fixes it.

    Args:
        settings: of the run.
        clusterings: by name, the settings.
    """

    def section(name: str) -> Mapping[str, Any]:
        value = settings.get(name)
        return value if isinstance(value, Mapping) else {}

    documents, sampling, prompt = section("documents"), section("sampling"), section("prompt")
    rules = {
        "version": section("metadata").get("version"),
        "prompt": {key: prompt.get(key) for key in ("system", "user")},
        "sampling": {key: value for key, value in sampling.items() if key not in _NOT_OF_DRAWS},
        "columns": {key: documents.get(key) for key in _OF_DOCUMENTS if documents.get(key) not in (None, {}, [], ())},
        "judge": documents.get("judge"),
        "refusals": {"filtered": sampling.get("on_filtered"), "declined": "not supported"},
        "clusterings": {name: clustering_rules(clustering) for name, clustering in clusterings.items()},
    }
    plain: dict[str, Any] = json.loads(json.dumps(rules, default=str))
    return plain


def clustering_rules(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a clustering that decide its clusters."""
    return {key: value for key, value in settings.items() if key not in _WHEREABOUTS}


def hash_of(edition: Edition, rules: Mapping[str, Any]) -> str:
    """Return the hash of an edition of the same task, documents and seeds with other rules.

    A clustering that was left out is no other rule: its columns are empty.
    """
    left_out = {k: v for k, v in edition.rules["clusterings"].items() if k not in rules["clusterings"]}
    clusterings = {**left_out, **rules["clusterings"]}
    identity = {"task": edition.task, "documents": edition.documents, "seeds": list(edition.seeds)}
    return _hash({**identity, **rules, "clusterings": clusterings})


def differences(edition: Edition, rules: Mapping[str, Any]) -> list[str]:
    """Return in words how the rules of a run differ from those of an edition; nothing where they are equal."""
    return list(_differences(edition.rules, rules))


def _differences(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for name in ("version", "prompt", "sampling", "columns", "judge", "refusals"):
        yield from _changes(ours[name], theirs[name], name)
    for name, settings in theirs["clusterings"].items():
        if name not in ours["clusterings"]:
            yield f"clustering {name!r} is none of the edition's"
            continue
        yield from _changes(ours["clusterings"][name], settings, f"clustering {name}:")


def _changes(ours: Any, theirs: Any, place: str) -> Iterator[str]:
    edition_leaves, run_leaves = (dict(_leaves(rules, place)) for rules in (ours, theirs))
    for place in dict.fromkeys((*edition_leaves, *run_leaves)):
        edition_value, run_value = edition_leaves.get(place), run_leaves.get(place)
        if not _equal(edition_value, run_value):
            yield f"{place} {_short(run_value)}, where the edition has {_short(edition_value)}"


def _equal(a: Any, b: Any) -> bool:
    """1 and 1.0 are one number; True and 1 are not."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            named = f"{place} {clean(str(key))[:40]}".removeprefix("sampling ")
            yield from _leaves(inner, {"judge judge": "judge"}.get(named, named))
    else:
        yield place, value


def _short(value: Any) -> str:
    return "nothing" if value is None else clean(value if isinstance(value, str) else json.dumps(value))[:80]


def _hash(content: Any) -> str:
    text = json.dumps(_whole_numbers(content), sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _whole_numbers(value: Any) -> Any:
    """The value with 1.0 as 1: YAML, JSON and command lines do not agree on which it is."""
    if isinstance(value, Mapping):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def manifest_digest(manifest: Manifest) -> str:
    """A name for the documents of a manifest."""
    rows = sorted([id, *asdict(document).values()] for id, document in manifest.documents.items())
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def write_edition(path: Path, edition: Edition) -> None:
    """Write an edition.

    Raises:
        DataError: the file cannot be written.
    """
    write_whole(path, json.dumps({**edition.model_dump(mode="json"), "hash": edition.hash}, indent=1) + "\n")


def read_edition(path: Path) -> Edition:
    """Read an edition.

    Raises:
        DataError: it is none, or its hash is another one's: names the file.
    """
    content = read_json(path, largest=_LARGEST, constants=False)
    stated_hash = content.pop("hash", None) if isinstance(content, dict) else None
    edition = Edition.read(content, str(path))
    if stated_hash != edition.hash:
        raise DataError(
            f"{path}: its hash is {edition.hash}, and not {stated_hash!r:.40}: it was changed after it was written"
        )
    return edition


def edition_for(task: str, folders: Iterable[Path] | None = None) -> Edition | None:
    """The edition of a task: the one that ships with it, or that in one of the folders given; None where there is none.

    Raises:
        DataError: a file is damaged.
    """
    if folders is None:
        return _shipped(tuple(task_folders())).get(task)
    files = sorted(file for folder in folders for file in folder.glob("*.json"))
    return next((edition for edition in map(read_edition, files) if edition.task == task), None)


@cache
def _shipped(folders: tuple[Path, ...]) -> Mapping[str, Edition]:
    files = [file for folder in folders for file in sorted(folder.rglob(f"{FOLDER}/*.json"))]
    return {edition.task: edition for edition in map(read_edition, files)}

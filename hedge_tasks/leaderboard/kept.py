"""Findings on a submission, kept in a folder, so that a site of many is not computed again for every new one."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache as cache_of_function
from importlib import metadata, resources
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from pydantic import ConfigDict

from hedge_tasks import __version__
from hedge_tasks.detectors.registry import names
from hedge_tasks.errors import DataError
from hedge_tasks.io.records import Record
from hedge_tasks.io.signatures import can_check, signature_of
from hedge_tasks.judging.designed import ExpertLabels
from hedge_tasks.leaderboard.attestation import place_of_statement
from hedge_tasks.leaderboard.columns import EntryColumns
from hedge_tasks.leaderboard.detector_ranks import Priced
from hedge_tasks.leaderboard.entry import Entry, EntryFinding
from hedge_tasks.leaderboard.private_records import place_of_scores
from hedge_tasks.leaderboard.submission import installed_versions, sha256_of
from hedge_tasks.leaderboard.validation import LARGEST, FindEdition, FindManifests, ValidationFindings
from hedge_tasks.numbers import Number

_PACKAGES = ("hedge_tasks", "hedge_tasks.tasks")
_GROUPS = "hedge_tasks."
"""How the names of entry points begin by which packages bring detectors, clusterings and their like."""

_DISTRIBUTIONS = ("numpy", "scipy", "scikit-learn", "torch", "transformers", "sentence-transformers")


Circumstances = Callable[[str], Sequence[Any]]
"""From a task to all besides the file that findings depend on; see `circumstances_of`."""


def circumstances_of(
    manifests: FindManifests, editions: FindEdition, thorough: bool, signers: Path | None = None
) -> Circumstances:
    """Return what findings depend on besides the file: this package, installed detectors and versions, a task's
    manifests and edition, whether NLI models are asked, and whose statements count."""
    versions = _versions()
    signers_digest = (
        None if signers is None or not signers.is_file() else hashlib.sha256(signers.read_bytes()).hexdigest()
    )

    @cache_of_function
    def circumstances(task: str) -> list[Any]:
        manifest_digests = sha256_of([asdict(manifest) for manifest in manifests(task)])
        edition = editions(task)
        rules = [manifest_digests, edition and edition.hash, signers_digest, can_check()]
        return [__version__, _code(), versions, sorted(names()), thorough, *rules]

    return circumstances


class _Kept(Record):
    """Findings on a file, without its arrays."""

    model_config = ConfigDict(str_max_length=None)  # pages are long

    circumstances: list[Any]
    content: dict[str, Any]
    findings: ValidationFindings
    columns: dict[str, Any]
    detectors: dict[str, dict[str, dict[str, Priced]]]
    rate: Number | None
    supported: Number
    answers: tuple[str, ...]
    html: str
    summary: EntryFinding | None = None


_AS_IN_ENTRY = ("content", "findings", "detectors", "rate", "supported", "answers", "html", "summary")


def load(cache: Path, file: Path, circumstances: Circumstances) -> Entry | None:
    """Return what was kept of a file; None where nothing was, or it was found under other circumstances."""
    try:
        with np.load(_place(cache, file), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        kept = _Kept.model_validate_json(arrays.pop("about").tobytes())
        if kept.circumstances != circumstances(kept.content["entry"]["task"]):
            return None
        columns = _columns(kept.columns, arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
        return None  # nothing kept, or written by another version
    return Entry(file.name, columns=columns, **{name: getattr(kept, name) for name in _AS_IN_ENTRY})


def save(cache: Path, file: Path, entry: Entry, circumstances: Circumstances) -> None:
    """Keep what was found of a file.

    Raises:
        DataError: the folder cannot be written.
    """
    description, arrays = _arrays(entry.columns)
    record = _Kept.model_construct(
        circumstances=list(circumstances(entry.content["entry"]["task"])),
        columns=description,
        **{name: getattr(entry, name) for name in _AS_IN_ENTRY},
    )
    arrays["about"] = np.frombuffer(record.model_dump_json().encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    place = _place(cache, file)
    part = place.with_suffix(".part")
    try:
        part.write_bytes(buffer.getvalue())
        part.replace(place)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise DataError(f"cannot write {place}: {error.strerror}") from error


def _place(cache: Path, file: Path) -> Path:
    """By content and name, which the page tells, and by the statement, private scores and signatures beside it."""
    if file.stat().st_size > LARGEST:
        raise DataError(f"{file}: larger than {LARGEST >> 20} MiB")
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256")
    statement, scores = place_of_statement(file), place_of_scores(file)
    for beside in (statement, signature_of(statement), scores, signature_of(scores), signature_of(file)):
        if beside.is_file() and not beside.is_symlink() and beside.stat().st_size <= LARGEST:
            digest.update(beside.name.encode("utf-8", "surrogateescape"))
            digest.update(hashlib.sha256(beside.read_bytes()).digest())
    digest.update(file.name.encode("utf-8", "surrogateescape"))
    return cache / f"{digest.hexdigest()}.npz"


@cache_of_function
def _code() -> str:
    """Digest of this package as it is installed."""
    return "".join(_digest(Path(str(resources.files(package)))) for package in _PACKAGES)


def _digest(folder: Path) -> str:
    """Of all files in it but bytecode: templates, tables and weights decide findings and pages as code does."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if "__pycache__" not in path.parts and path.suffix not in (".pyc", ".pyo"):
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _versions() -> dict[str, str]:
    """Of the libraries that compute, and of every package that brings an entry point."""
    versions = installed_versions(_DISTRIBUTIONS)
    for group in metadata.entry_points().groups:
        if group.startswith(_GROUPS):
            brought = (point.dist for point in metadata.entry_points(group=group))
            versions |= {dist.name: dist.version for dist in brought if dist is not None}
    return dict(sorted(versions.items()))


def _arrays(columns: EntryColumns) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split columns into a description and arrays by name."""
    arrays: dict[str, Any] = {name: getattr(columns, name) for name in ("ids", "keys", "labels", "groups")}
    scores, suite = list(columns.scores.items()), list(columns.suite.items())
    arrays["scores"] = np.stack([values for _, values in scores]) if scores else np.zeros((0, len(columns.ids)))
    for i, (_, (parts, groups)) in enumerate(suite):
        arrays |= {f"parts{i}": parts, f"groups{i}": groups}
    held_out = {name: np.flatnonzero(mask).tolist() for name, mask in columns.held_out.items()}
    description = {"grouped": columns.grouped, "held_out": held_out, "scores": [list(key) for key, _ in scores]}
    experts = None if columns.experts is None else [columns.experts.strata, columns.experts.said, columns.experts.units]
    return {**description, "suite": [name for name, _ in suite], "experts": experts}, arrays


def _columns(description: Mapping[str, Any], arrays: Mapping[str, Any]) -> EntryColumns:
    n = len(arrays["ids"])
    held_out = {name: np.isin(np.arange(n), some) for name, some in description["held_out"].items()}
    scores = {(key[0], key[1]): arrays["scores"][i] for i, key in enumerate(description["scores"])}
    suite = {name: (arrays[f"parts{i}"], arrays[f"groups{i}"]) for i, name in enumerate(description["suite"])}
    first = (arrays["ids"], arrays["keys"], arrays["labels"], arrays["groups"])
    experts = None
    if description["experts"] is not None:
        strata, opinions, units = description["experts"]
        experts = ExpertLabels(
            tuple(strata), tuple(tuple(labels) for labels in opinions), None if units is None else tuple(units)
        )
    return EntryColumns(*first, description["grouped"], held_out, scores, suite, experts)

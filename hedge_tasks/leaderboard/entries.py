"""The valid submissions of a folder."""

from __future__ import annotations

import math
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache as cache_of_function
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hedge_tasks.data.manifests import manifests_of
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.leaderboard.attestation import with_statement
from hedge_tasks.leaderboard.columns import columns_of, number_of
from hedge_tasks.leaderboard.detector_ranks import priced
from hedge_tasks.leaderboard.entry import PARTIAL, Entry
from hedge_tasks.leaderboard.entry_page import entry_page
from hedge_tasks.leaderboard.kept import Circumstances, circumstances_of, load, save
from hedge_tasks.leaderboard.submission import answer_set_of, sha256_of
from hedge_tasks.leaderboard.validation import FindManifests, check, read_submission
from hedge_tasks.measures.curves import rate_of, supported_of
from hedge_tasks.report.texts import clean

_TELLING = 3
"""Different texts, or log-probabilities, with which answers to a question say whose they are."""

_FEWEST_SHARED = 5
"""Documents with telling answers that two entries have to have for one to be called the other's copy."""


@dataclass(frozen=True)
class ReadEntries:
    """Files that were read: entries, and what was refused with the reason."""

    entries: Sequence[Entry]
    refused: Mapping[Path, str] = field(default_factory=dict)


def read_entries(
    folder: Path,
    *,
    thorough: bool = False,
    manifests: FindManifests = manifests_of,
    cache: Path | None = None,
    signers: Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> ReadEntries:
    """Read and validate the submissions in a folder (`*.json`); options as for `check`.

    Args:
        cache: folder where what was found of each file is kept, so that it is looked at again only after it, its
            manifests, this package, plug-ins or the libraries that compute have changed.
        signers: whose statements count; see `hedge_tasks.leaderboard.attestation.with_statement`.
        progress: is told the name of each file before it is looked at.

    Raises:
        DataError: there is no such folder, or the cache cannot be made.
    """
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    try:
        if cache is not None:
            cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make {cache}: {error.strerror}") from error
    entries: list[Entry] = []
    refused: dict[Path, str] = {}
    of_task = cache_of_function(manifests)
    circumstances = circumstances_of(of_task, thorough, signers)
    for file in _in_order(folder):
        progress(file.name)
        try:
            look_at = partial(_looked_at, _plain(file), thorough=thorough, manifests=of_task, signers=signers)
            entry = look_at() if cache is None else _kept(cache, file, circumstances, look_at)
        except HedgeError as error:
            refused[file] = str(error)
            continue
        if (why := _twin(entry, entries)) is not None:
            refused[file] = why
            continue
        entries.append(entry)
    return ReadEntries(_without_strays(entries), refused)


def _plain(file: Path) -> Path:
    if file.is_symlink() or not file.is_file():
        raise DataError(f"{file}: no plain file")  # a link may lead out of the folder
    return file


def _kept(cache: Path, file: Path, circumstances: Circumstances, look_at: Callable[[], Entry]) -> Entry:
    if (found := load(cache, file, circumstances)) is not None:
        return found
    entry = look_at()
    save(cache, file, entry, circumstances)
    return entry


def _looked_at(file: Path, *, thorough: bool, manifests: FindManifests, signers: Path | None) -> Entry:
    content = read_submission(file)
    findings = with_statement(check(content, manifests=manifests, thorough=thorough), content, file, signers)
    if findings.problems:
        raise DataError("; ".join(findings.problems))
    sets = [answer_set_of(document) for document in content["documents"]]
    rate = rate_of(sets)
    return Entry(
        file=file.name,
        content={key: value for key, value in content.items() if key != "documents"},
        findings=findings,
        columns=columns_of(content),
        detectors=priced(content),
        rate=rate,
        supported=supported_of(sets),
        answers=_answer_digests(content),
        html=entry_page(content, findings, file.name, rate),
    )


def _answer_digests(content: Mapping[str, Any]) -> tuple[str, ...]:
    """A digest of each document's answers that survives another name, other cluster ids and noise in the last digits.

    Of log-probabilities and what is clustered with what, and of texts where they are there and not nearly all the same:
    two models may well say "yes" eleven times.
    """
    whole = sorted(
        [d["id"], d["label"], d["logprobs"], d.get("texts", {}).get("answers")] for d in content["documents"]
    )
    found = [f"w:{sha256_of(whole)[7:23]}"]
    for d in content["documents"]:
        known = [round(value, 3) for value in d["logprobs"] if isinstance(value, (int, float))]
        if len(set(known)) >= _TELLING:
            clusters = {name: _partition(of["clusters"]) for name, of in d["clusterings"].items()}
            found.append(f"n:{sha256_of([d['id'], known, clusters])[7:23]}")
        said = [" ".join(text.casefold().split()) for text in (d.get("texts") or {}).get("answers") or ()]
        if len(set(said)) >= _TELLING:
            found.append(f"t:{sha256_of([d['id'], said])[7:23]}")
    return tuple(sorted(found))


def _partition(clusters: Sequence[int]) -> list[int]:
    """Cluster ids in the order of their first appearance: their names say nothing."""
    first: dict[int, int] = {}
    return [first.setdefault(one, len(first)) for one in clusters]


def _twin(entry: Entry, entries: Sequence[Entry]) -> str | None:
    """Why an entry cannot stand beside an earlier one of the same task: half of its answers are the other's."""
    for other in entries:
        if other.task != entry.task:
            continue
        for kind, least in (("w:", 1), ("n:", _FEWEST_SHARED), ("t:", _FEWEST_SHARED)):
            mine, theirs = ({one for one in of.answers if one.startswith(kind)} for of in (entry, other))
            fewer, shared = min(len(mine), len(theirs)), len(mine & theirs)
            if fewer >= least and shared >= fewer / 2:
                what = "" if kind == "w:" else f" in {shared} of the {fewer} documents whose answers tell"
                if other.model == entry.model:
                    return f"the same answers as {other.file}{what}: a replication, of which the first one stands"
                return f"the same answers as {other.file}{what}, there of {clean(other.model, 100)}"
    return None


def _in_order(folder: Path) -> list[Path]:
    """The files, the earliest committed first where the folder is in a git repository; names decide among equals."""
    files = sorted(folder.glob("*.json"))
    log = [
        "git",
        "log",
        "--no-renames",
        "--diff-filter=A",
        "--format=%x00%ct",
        "--name-only",
        "-z",
        "--relative",
        "--",
        ".",
    ]
    try:
        done = subprocess.run([*log, "--", "."], cwd=folder, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return files  # no git, or no repository: then nobody can say who was first
    added: dict[str, int] = {}
    when = 0
    for part in (piece.strip() for piece in done.stdout.split("\0")):
        if part.isdecimal():
            when = int(part)
        elif part:
            added[part] = when  # the log goes backwards, so the first time counts
    # What is not committed comes after all that is.
    return sorted(files, key=lambda file: (added.get(file.name, math.inf), file.name))


def _without_strays(entries: Sequence[Entry]) -> list[Entry]:
    """Where no manifest says which documents a task has, those count that most entries have; others are set aside."""
    by_task: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.findings.ranked and (entry.findings.coverage is None or entry.findings.coverage.of is None):
            by_task.setdefault(entry.task, []).append(entry)
    usual = {task: _usual_documents(some) for task, some in by_task.items()}
    found = []
    for entry in entries:
        asked = entry.task in usual and entry in by_task[entry.task]
        reason = _other_documents(entry, usual[entry.task]) if asked else None
        aside = replace(entry.findings, set_aside=(reason,)) if reason else entry.findings
        found.append(replace(entry, findings=aside))
    return found


def _usual_documents(entries: Sequence[Entry]) -> Any:
    """Keys of the documents that most entries have; of sets that as many have, the largest."""
    sets = {number_of(np.sort(entry.columns.keys).tolist()): np.sort(entry.columns.keys) for entry in entries}
    times = Counter(number_of(np.sort(entry.columns.keys).tolist()) for entry in entries)
    return sets[max(times, key=lambda key: (times[key], len(sets[key]), key))]


def _other_documents(entry: Entry, usual: Any) -> str | None:
    keys = entry.columns.keys
    matched = len(np.intersect1d(keys, usual))
    if matched == len(usual) == len(keys):
        return None
    others = f", and {len(keys) - matched} others" if len(keys) > matched else ""
    return f"{PARTIAL}: {matched} of the {len(usual)} documents that most entries have{others}"

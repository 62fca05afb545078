"""The valid submissions of a folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache as cache_of_function
from functools import partial
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data.manifests import manifests_of
from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.leaderboard.attestation import with_signed_audit, with_statement
from hedge_tasks.leaderboard.columns import columns_of
from hedge_tasks.leaderboard.detector_ranks import priced
from hedge_tasks.leaderboard.entry import Entry, EntryFinding
from hedge_tasks.leaderboard.entry_finding import finding_in
from hedge_tasks.leaderboard.entry_page import entry_page
from hedge_tasks.leaderboard.kept import Circumstances, circumstances_of, load, save
from hedge_tasks.leaderboard.likeness import another_model, answer_digests, model_key, namesake, place_key, twin_of
from hedge_tasks.leaderboard.owners import ANNOUNCEMENT, read_announcement
from hedge_tasks.leaderboard.precedence import Precedence
from hedge_tasks.leaderboard.private_records import with_private
from hedge_tasks.leaderboard.repository import merged_in
from hedge_tasks.leaderboard.submission import answer_set_of
from hedge_tasks.leaderboard.validation import FindEdition, FindManifests, check, read_submission
from hedge_tasks.measures.curves import hallucination_rate, supported_share
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.editions import edition_for
from hedge_tasks.runs.signed_runs import SignedRun


@dataclass(frozen=True)
class ReadEntries:
    """Files that were read.

    Attributes:
        entries: the valid ones.
        refused: files that are none, or copies of others, with the reason.
        copies: those of them that are copies; each is valid by itself.
    """

    entries: Sequence[Entry]
    refused: Mapping[Path, str] = field(default_factory=dict)
    copies: frozenset[Path] = frozenset()

    @property
    def faulty(self) -> Mapping[Path, str]:
        """Refused files but for copies: two that were merged side by side are nobody's fault, and no site waits."""
        return {path: reason for path, reason in self.refused.items() if path not in self.copies}


def read_entries(
    folder: Path,
    *,
    thorough: bool = False,
    manifests: FindManifests = manifests_of,
    editions: FindEdition = edition_for,
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
    valid: list[Entry] = []
    refused: dict[Path, str] = {}
    of_task, edition_of = cache_of_function(manifests), cache_of_function(editions)
    circumstances = circumstances_of(of_task, edition_of, thorough, signers)
    options: dict[str, Any] = {"thorough": thorough, "manifests": of_task, "editions": edition_of}
    merged = merged_in(folder)
    for file in _in_order(folder, merged):
        progress(file.name)
        try:
            read = partial(_read_entry, _plain(file), signers, **options)
            valid.append(read() if cache is None else _cached(cache, file, circumstances, read))
        except HedgeError as error:
            refused[file] = str(error)
        except Exception as error:  # of a stranger's file: it must not keep others' entries from the board
            logger.exception("{} could not be looked at", file)
            refused[file] = f"it could not be looked at ({type(error).__name__})"
    announced = _announced(folder, merged, refused)
    order = Precedence(merged, announced, signers is not None)
    copies: dict[Path, str] = {}
    originals = _without_copies(folder, valid, order, copies)
    entries = _one_place_each(_under_own_names(sorted(originals, key=order.of_models)))
    entries.sort(key=lambda entry: _place_in_order(folder / entry.file, merged))
    return ReadEntries(entries, {**refused, **copies}, frozenset(copies))


def _announced(folder: Path, merged: Mapping[str, float], refused: dict[Path, str]) -> list[tuple[float, SignedRun]]:
    """Return the announcements of a folder, each with its place in the history; those with a fault are refused."""
    announcements = []
    for file in sorted(folder.glob(f"*{ANNOUNCEMENT}")):
        try:
            announcements.append((merged.get(file.name, math.inf), read_announcement(file)))
        except HedgeError as error:
            refused[file] = str(error)
    return announcements


def _without_copies(folder: Path, entries: Iterable[Entry], order: Precedence, copies: dict[Path, str]) -> list[Entry]:
    """Return the entries but for copies of others, which are left out, or set aside where the model is the same.

    Args:
        folder: of their files.
        order: which of two entries stands.
        copies: files with reasons, to which those of copies are added.
    """
    originals: list[Entry] = []
    for entry in sorted(entries, key=order.of_copies):
        digest = entry.content["digest"]
        if same := next((first for first in originals if first.content["digest"] == digest), None):
            copies[folder / entry.file] = f"the same file as {same.file}"
            continue
        # What has no place of its own displaces nothing, a part of the task's documents least of all; nor is it a copy
        # of what came later.
        leads = [first for first in originals if first.findings.ranked]
        twin = twin_of(entry, [first for first in leads if entry.findings.ranked or order.came_first(first, entry)])
        if twin is None:
            originals.append(entry)
            continue
        first, extent = twin
        owner = "" if first.signed is None else f", which was {first.signed.in_words}"
        if first.signed is None and entry.signed is not None:
            owner = f", which came first and is not signed; this one was {entry.signed.in_words}"
        if model_key(first.model) == model_key(entry.model):
            reason = f"the same answers as {first.file}{extent}: a replication, of which the first one stands{owner}"
            originals.append(_aside(entry, reason))
        else:
            named = clean(first.model)[:100]
            copies[folder / entry.file] = f"the same answers as {first.file}{extent}, there of {named}{owner}"
    return originals


def _plain(file: Path) -> Path:
    if file.is_symlink() or not file.is_file():
        raise DataError(f"{file}: no plain file")  # a link may lead out of the folder
    return file


def _cached(cache: Path, file: Path, circumstances: Circumstances, read: Callable[[], Entry]) -> Entry:
    if (cached_entry := load(cache, file, circumstances)) is not None:
        return cached_entry
    entry = read()
    save(cache, file, entry, circumstances)
    return entry


def _read_entry(file: Path, signers: Path | None, **options: Any) -> Entry:
    content = read_submission(file)
    findings = with_statement(check(content, **options), content, file, signers)
    findings = with_private(with_signed_audit(findings, file, signers), content, file, signers)
    if findings.problems:
        raise DataError("; ".join(findings.problems))
    sets = [answer_set_of(document) for document in content["documents"]]
    rate, detectors = hallucination_rate(sets), priced(content)
    finding, why_none = finding_in(content, sets, findings)
    return Entry(
        file=file.name,
        content={key: value for key, value in content.items() if key != "documents"},
        findings=findings,
        columns=columns_of(content),
        detectors=detectors,
        rate=rate,
        supported=supported_share(sets),
        answers=answer_digests(content),
        html=entry_page(content, findings, file.name, rate, detectors["all"], finding, why_none),
        summary=None if finding is None else EntryFinding(finding.trust.level, finding.trust.short, finding.text),
    )


def _one_place_each(entries: Sequence[Entry]) -> list[Entry]:
    """A model has one place in a task: that of its first run with the edition's first seed.

    Runs with the edition's other seeds stand beside it and show how far its numbers spread; further runs with the same
    seed, and the same model under another name, are set aside.

    Args:
        order: which of two entries stands.
    """
    leads: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if entry.findings.ranked and entry.seed_number == 0 and namesake(entry, leads.values()) is None:
            leads.setdefault(place_key(entry), entry)
    beside: dict[tuple[str, str], dict[int, Entry]] = {key: {} for key in leads}
    changed: dict[int, Entry] = {}
    for entry in entries:
        key = place_key(entry)
        lead = leads.get(key)
        if not entry.findings.ranked or entry is lead:
            continue
        if lead is None:
            named = namesake(entry, leads.values())
            reason = (
                named or f"seed {entry.seed} counts only beside the edition's first, which this model has no run of"
            )
        elif entry.seed_number == 0:
            reason = f"another run of this model with the same seed; {lead.file} was the first"
        elif entry.seed_number in beside[key]:
            reason = f"another run of this model with this seed; {beside[key][entry.seed_number].file} was the first"
        elif (reason_against := another_model(entry, lead)) is not None:
            reason = reason_against
        else:
            reason = f"seed {entry.seed} of a model that has its place by {lead.file}: shown there as the spread"
            beside[key][entry.seed_number or 0] = entry
        changed[id(entry)] = _aside(entry, reason)
    for key, lead in leads.items():
        changed[id(lead)] = replace(lead, runs=tuple(beside[key].values()))
    return [changed.get(id(entry), entry) for entry in entries]


def _under_own_names(entries: Sequence[Entry]) -> list[Entry]:
    """Set aside what is named as the model of a ranked entry before it. What comes later takes no name from anybody.

    Args:
        order: which of two entries stands.
    """
    models: set[str] = set()
    checked: list[Entry] = []
    for entry in entries:
        named, model = model_key(entry.name), model_key(entry.model)
        foreign = named != model and named in models
        checked.append(_aside(entry, "its name is another entry's model") if foreign else entry)
        models |= {model} if checked[-1].findings.ranked else set()
    return checked


def _aside(entry: Entry, reason: str) -> Entry:
    aside = (*entry.findings.set_aside, reason)
    return replace(entry, findings=replace(entry.findings, set_aside=aside))


def _in_order(folder: Path, merged: Mapping[str, float]) -> list[Path]:
    """Return the files of entries, the earliest merged first where the folder is in a git repository.

    The order is that of the main line of the history. Times of commits are their authors' to write.
    """
    return sorted(folder.glob("*.json"), key=lambda file: _place_in_order(file, merged))


def _place_in_order(file: Path, merged: Mapping[str, float]) -> tuple[float, str]:
    """Sorting key of a file; what is not committed comes after all that is, and names decide among equals."""
    return merged.get(file.name, math.inf), file.name

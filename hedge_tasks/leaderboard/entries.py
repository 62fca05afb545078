"""The valid submissions of a folder."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from hedge_tasks.leaderboard.owners import ANNOUNCEMENT, read_announcement
from hedge_tasks.leaderboard.private_records import with_private
from hedge_tasks.leaderboard.repository import merged_in
from hedge_tasks.leaderboard.submission import answer_set_of, sha256_of
from hedge_tasks.leaderboard.validation import FindEdition, FindManifests, check, read_submission
from hedge_tasks.measures.curves import hallucination_rate, supported_share
from hedge_tasks.report.texts import clean
from hedge_tasks.runs.editions import edition_for
from hedge_tasks.runs.signed_runs import SignedRun

_TELLING = 3
"""Different texts, or log-probabilities, with which answers to a question say whose they are."""

_FEWEST_SHARED = 5
"""Documents with telling answers that two entries have to have for one to be called the other's copy."""

_KINDS_OF_MARKS = {"w:": 1, "n:": _FEWEST_SHARED, "t:": _FEWEST_SHARED, "s:": 20}
"""Marks of answers, and how many of a kind have to be there: all of them; log-probabilities of a document in any order,
which are other ones with another seed; its texts; and its texts in any order, where a few may be equal by chance."""

_FEWEST_LOGPROBS = 20
_SAME_MODEL = 0.2
"""Share of an entry's log-probabilities, to three decimals, that another one has of the same questions, from which on
one model wrote both: of different ones some hundredths are equal by chance."""

_SAME_TEXTS = 0.6
_CLOSE = 0.02
"""Nats a token by which log-probabilities of one text differ in two runs of one model, and seldom in two models."""
_FEWEST_PAIRS = 10
_TOLD_APART = -0.2
"""Above it, texts are about as likely whoever answers."""

_WORDS = re.compile(r"\w+")
_OF_FEW_ANSWERS = 200
_CERTAIN = -0.02
"""Above it, log-probabilities are near 0 whoever answers."""


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
    originals = _without_copies(folder, sorted(valid, key=partial(_precedence, merged, announced)), refused)
    entries = sorted(originals, key=lambda entry: _place_in_order(folder / entry.file, merged))
    return ReadEntries(_one_place_each(_under_own_names(entries)), refused)


def _announced(folder: Path, merged: Mapping[str, float], refused: dict[Path, str]) -> list[tuple[float, SignedRun]]:
    """Return the announcements of a folder, each with its place in the history; those with a fault are refused."""
    announcements = []
    for file in sorted(folder.glob(f"*{ANNOUNCEMENT}")):
        try:
            announcements.append((merged.get(file.name, math.inf), read_announcement(file)))
        except HedgeError as error:
            refused[file] = str(error)
    return announcements


def _precedence(
    merged: Mapping[str, float], announced: Sequence[tuple[float, SignedRun]], entry: Entry
) -> tuple[float, bool, str]:
    """Sorting key by which the first of entries with equal answers is found.

    The history of the repository decides: when the entry came into it, or before that an announcement that the same key
    has signed for these very answers. Times that are signed are their signers' to write, and decide only where the
    history has no order; there, too, a signed entry goes before an unsigned one.
    """
    place, signed = merged.get(entry.file, math.inf), entry.signed
    if signed is None:
        return place, True, ""
    # Answers without texts and log-probabilities can be guessed, and so can what is signed of them.
    if any(mark.startswith(("n:", "t:")) for mark in entry.answers):
        place = min([place, *(earlier for earlier, announcement in announced if announcement == signed)])
    return place, False, signed.start.created


def _without_copies(folder: Path, entries: Iterable[Entry], refused: dict[Path, str]) -> list[Entry]:
    """Return the entries but for copies of earlier ones, which are refused, or set aside where the model is the same.

    Args:
        folder: of their files.
        entries: those that have precedence first.
        refused: files with reasons, to which those of copies are added.
    """
    originals: list[Entry] = []
    for entry in entries:
        # A few documents that were merged first, and are not ranked, displace no entry that is.
        earlier = [first for first in originals if first.findings.ranked or not entry.findings.ranked]
        same_file = [first for first in originals if first.content["digest"] == entry.content["digest"]]
        if (twin := (same_file[0], "") if same_file else _twin(entry, earlier)) is None:
            originals.append(entry)
            continue
        first, extent = twin
        owner = "" if first.signed is None else f", which was {first.signed.in_words}"
        if first.signed is None and entry.signed is not None:
            owner = f", which came first and is not signed; this one was {entry.signed.in_words}"
        if same_file:
            refused[folder / entry.file] = f"the same file as {first.file}"
        elif _model_key(first.model) == _model_key(entry.model):
            reason = f"the same answers as {first.file}{extent}: a replication, of which the first one stands{owner}"
            originals.append(_aside(entry, reason))
        else:
            named = clean(first.model)[:100]
            refused[folder / entry.file] = f"the same answers as {first.file}{extent}, there of {named}{owner}"
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
        answers=_answer_digests(content),
        html=entry_page(content, findings, file.name, rate, detectors["all"], finding, why_none),
        summary=None if finding is None else EntryFinding(finding.trust.level, finding.trust.short, finding.text),
    )


def _answer_digests(content: Mapping[str, Any]) -> tuple[str, ...]:
    """Digests of each document's answers that survive another name, another order and noise in the last digits.

    Of log-probabilities, and of texts where they are there and not nearly all the same: two models may well say "yes"
    eleven times.
    """
    whole = sorted(
        [d["id"], d["label"], d["logprobs"], d.get("texts", {}).get("answers")] for d in content["documents"]
    )
    marks = [f"w:{sha256_of(whole)[7:23]}"]
    for d in content["documents"]:
        logprobs = [round(value, 3) for value in d["logprobs"] if isinstance(value, (int, float))]
        if len(set(logprobs)) >= _TELLING:
            # Noisy pictures are others with another seed. Without any, few clean draws may be equal by chance.
            noisy = len(d["logprobs"]) > 1 + d["n_clean"]
            marks.append(f"n:{sha256_of([d['id'], sorted(logprobs) if noisy else logprobs])[7:23]}")
        texts = [" ".join(text.casefold().split()) for text in (d.get("texts") or {}).get("answers") or ()]
        if len(set(texts)) >= _TELLING:
            marks.append(f"t:{sha256_of([d['id'], texts])[7:23]}")
            marks.append(f"s:{sha256_of([d['id'], sorted(texts)])[7:23]}")
    return tuple(sorted({*marks, *_fingerprint(content)}))


def _fingerprint(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield marks of the model: log-probabilities of answers on the clean picture, which are the same wherever it is
    asked."""
    documents = {sha256_of(d["id"]): d for d in content["documents"]}
    for key in sorted(documents)[:_OF_FEW_ANSWERS]:
        d = documents[key]
        clean = d["logprobs"][: 1 + d["n_clean"]]
        logprobs = {round(v, 3) for v in clean if isinstance(v, (int, float)) and v < _CERTAIN}
        if len(logprobs) >= _TELLING:
            yield from (f"l:{sha256_of([d['id'], value])[7:23]}" for value in logprobs)
        texts = (d.get("texts") or {}).get("answers") or ()
        by_text: dict[str, float] = {}
        for text, value in zip(texts, d["logprobs"][: 1 + d["n_clean"]], strict=False):
            words = " ".join(_WORDS.findall(text.casefold()))
            if isinstance(value, (int, float)) and value < _TOLD_APART and words:
                by_text.setdefault(sha256_of([d["id"], words])[7:23], value)
        yield from (f"p:{key}:{round(value, 4)}" for key, value in by_text.items())


def _twin(entry: Entry, entries: Sequence[Entry]) -> tuple[Entry, str] | None:
    """The earlier entry of the same task that half of an entry's answers are of, and how many in words."""
    for earlier in entries:
        if earlier.task != entry.task:
            continue
        for kind, least in _KINDS_OF_MARKS.items():
            fewer, shared = _shared(entry, earlier, kind)
            if fewer >= least and shared >= fewer / 2:
                return earlier, "" if kind == "w:" else f" in {shared} of the {fewer} documents whose answers tell"
    return None


def _shared(entry: Entry, second: Entry, kind: str) -> tuple[int, int]:
    """Return how many marks of a kind the entry with fewer has, and how many both have."""
    mine, theirs = ({mark for mark in side.answers if mark.startswith(kind)} for side in (entry, second))
    return min(len(mine), len(theirs)), len(mine & theirs)


def _one_place_each(entries: Sequence[Entry]) -> list[Entry]:
    """A model has one place in a task: that of its first run with the edition's first seed.

    Runs with the edition's other seeds stand beside it and show how far its numbers spread; further runs with the same
    seed, and the same model under another name, are set aside.
    """
    leads: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        if entry.findings.ranked and entry.seed_number == 0 and _namesake(entry, leads.values()) is None:
            leads.setdefault(_place_key(entry), entry)
    beside: dict[tuple[str, str], dict[int, Entry]] = {key: {} for key in leads}
    changed: dict[int, Entry] = {}
    for entry in entries:
        key = _place_key(entry)
        lead = leads.get(key)
        if not entry.findings.ranked or entry is lead:
            continue
        if lead is None:
            named = _namesake(entry, leads.values())
            reason = (
                named or f"seed {entry.seed} counts only beside the edition's first, which this model has no run of"
            )
        elif entry.seed_number == 0:
            reason = f"another run of this model with the same seed; {lead.file} was the first"
        elif entry.seed_number in beside[key]:
            reason = f"another run of this model with this seed; {beside[key][entry.seed_number].file} was the first"
        elif (reason_against := _another_model(entry, lead)) is not None:
            reason = reason_against
        else:
            reason = f"seed {entry.seed} of a model that has its place by {lead.file}: shown there as the spread"
            beside[key][entry.seed_number or 0] = entry
        changed[id(entry)] = _aside(entry, reason)
    for key, lead in leads.items():
        changed[id(lead)] = replace(lead, runs=tuple(beside[key].values()))
    return [changed.get(id(entry), entry) for entry in entries]


def _under_own_names(entries: Sequence[Entry]) -> list[Entry]:
    """Set aside what is named as a ranked entry's model. Who is named as its own model keeps that name."""
    models = {_model_key(entry.model) for entry in entries if entry.findings.ranked}

    def checked(entry: Entry) -> Entry:
        named = _model_key(entry.name)
        if named == _model_key(entry.model) or named not in models:
            return entry
        return _aside(entry, "its name is another entry's model")

    return [checked(entry) for entry in entries]


def _namesake(entry: Entry, leads: Iterable[Entry]) -> str | None:
    """Why an entry is of a model that has a place under another name: log-probabilities are a model's fingerprint."""
    for lead in leads:
        if lead.task != entry.task or _place_key(lead) == _place_key(entry):
            continue
        tests = ((_SAME_MODEL, _shared(entry, lead, "l:")), (_SAME_TEXTS, _close_pairs(entry, lead)))
        for least, (fewer, shared) in tests:
            if fewer >= _FEWEST_LOGPROBS and shared >= least * fewer:
                return (
                    f"{shared} of {fewer} log-probabilities are those of {lead.file}, there of "
                    f"{clean(lead.model)[:100]}: one model has one place, whatever it is called"
                )
    return None


def _another_model(entry: Entry, lead: Entry) -> str | None:
    """Why a run with another seed is not one of the model that has the place: it would speak for that."""
    n, close = _close_pairs(entry, lead)
    if not n and not any(_logprobs(candidate) for candidate in (entry, lead)):
        return None
    if n >= _FEWEST_PAIRS and close >= _SAME_TEXTS * n:
        return None
    return (
        f"seed {entry.seed} of a model that has its place by {lead.file}, but {close} of {n} answers that both gave "
        "are about as likely in both: no run of that model, or too few answers to tell"
    )


def _logprobs(entry: Entry) -> bool:
    return any(mark.startswith("p:") for mark in entry.answers)


def _close_pairs(entry: Entry, second: Entry) -> tuple[int, int]:
    """Return how many texts on the same picture both have, and how many of these are about as likely in both. Noise on
    log-probabilities, or a full stop more, hides no model."""
    mine, theirs = (dict(mark[2:].split(":") for mark in e.answers if mark.startswith("p:")) for e in (entry, second))
    both = mine.keys() & theirs.keys()
    return len(both), sum(abs(float(mine[key]) - float(theirs[key])) <= _CLOSE for key in both)


def _place_key(entry: Entry) -> tuple[str, str]:
    return entry.task, _model_key(entry.model)


def _model_key(model: str) -> str:
    """A declared model, however its name is written."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", model).casefold() if unicodedata.category(c) != "Mn")
    return "".join(c for c in bare if c.isalnum())


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

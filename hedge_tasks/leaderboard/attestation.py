"""Statements that an entry's answers are its model's: documents drawn by a public beacon, read again by the model.

A statement is a JSON file beside its entry. It carries what the model was found to say of the entry's own answers and
some answers drawn anew, as numbers and digests; the tests of `hedge_tasks.leaderboard.attestation_tests` and the
verdict follow from these, and whoever reads a statement computes them again.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from hedge_tasks.data.manifests import text_digest
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.signatures import signer_of
from hedge_tasks.leaderboard.attestation_records import (
    FORMAT,
    Attestation,
    AttestedDocument,
    Beacon,
    Engine,
    ReplayTest,
)
from hedge_tasks.leaderboard.attestation_tests import outcomes_of, verdict_of
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.repository import committed_at
from hedge_tasks.leaderboard.stated import MOST_FAULTS
from hedge_tasks.leaderboard.submission import sha256_of
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.numbers import PERCENT, format_value

NAMESPACE = "hedge-attestation"
"""Of its signature, so that a signature of something else is none of it."""

AUDIT = "hedge-audit"
"""Of the signature of an entry whose experts somebody vouches for."""

FEWEST_READ = 12
"""Documents, fewer than which are no replay, but where an entry has no more."""

ENDING = ".attestation"
"""Of a statement's file, in place of the entry's `.json`."""

_LARGEST = 64 << 20
_CLOSE = 1e-6
_RANDOMNESS = re.compile(r"(?:(?P<round>[1-9]\d{0,15}):)?(?P<value>[0-9a-f]{64})")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


def beacon_of(value: str) -> Beacon:
    """Parse a beacon from the command line.

    Args:
        value: ROUND:RANDOMNESS of drand's network quicknet, or the randomness alone.

    Raises:
        ConfigError: it is none; a commit's hash can be ground by whoever writes the commit.

    Example:
        >>> beacon_of("1000:" + "ab" * 32).time
        1692806364
    """
    match = _RANDOMNESS.fullmatch(value.strip().lower())
    if match is not None:
        return Beacon(value=match["value"], round=int(match["round"]) if match["round"] else None)
    if _COMMIT.fullmatch(value.strip().lower()):
        raise ConfigError(
            f"beacon: {value!r} looks like a commit's hash, which whoever writes the commit can choose; give "
            "ROUND:RANDOMNESS of a drand round after the merge (https://api.drand.sh/v2/beacons/quicknet/rounds/latest)"
        )
    raise ConfigError("beacon: expected ROUND:RANDOMNESS of a drand round, the randomness as 64 hexadecimal digits")


def check_beacon(beacon: Beacon, committed: int | None) -> None:
    """Check that nobody could know the beacon before the entry was committed.

    Args:
        beacon: public randomness.
        committed: second since 1970 at which the entry was committed; None where nobody can tell.

    Raises:
        ConfigError: its round is an earlier one.
    """
    if committed is not None and beacon.time is not None and beacon.time <= committed:
        raise ConfigError(
            f"beacon: round {beacon.round} was public {committed - beacon.time} s before the entry was committed; give "
            "a later one"
        )


def picked(beacon: Beacon, digest: str, ids: Sequence[str], k: int) -> list[str]:
    """Return the ids of the `k` documents that a beacon picks, by hash of (beacon, submission, document).

    Args:
        beacon: public randomness.
        digest: of the submission.
        ids: of all its documents.
        k: how many.
    """
    return sorted(ids, key=lambda id: (_hash_with_beacon(beacon, digest, id), id))[:k]


def _hash_with_beacon(beacon: Beacon, digest: str, id: str) -> str:
    text = json.dumps(["hedge attest", beacon.value, digest, id], ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def detects(documents: int, forged: int, k: int) -> float:
    """Chance that some forged document is among `k` of `documents` (hypergeometric).

    Example:
        >>> round(detects(120, 12, 24), 3), detects(120, 0, 24)
        (0.941, 0.0)
    """
    return 1.0 - math.comb(documents - forged, k) / math.comb(documents, k)


def statement_of(
    submission: Mapping[str, Any],
    beacon: Beacon,
    engine: Engine,
    documents: Sequence[AttestedDocument],
    *,
    created: str,
) -> Attestation:
    """The statement on an entry, with tests and verdict.

    Args:
        submission: the entry.
        beacon: that picked the documents.
        engine: who read them again.
        documents: what was found, in the order in which they were picked.
        created: time, ISO 8601.
    """
    tests = _tests(submission, documents, beacon, engine)
    fields = {
        "hedge_attestation": FORMAT,
        "beacon": beacon.model_dump(),
        "documents_of_entry": len(submission["documents"]),
        "documents": [document.model_dump() for document in documents],
        "tests": {name: test.model_dump() for name, test in tests.items()},
        "verdict": verdict_of(tests),
    }
    return Attestation.sealed(submission, engine, created, fields)


def read_statement(path: Path) -> Attestation:
    """Read a statement.

    Raises:
        DataError: it is none.
    """
    return Attestation.read(read_json(path, largest=_LARGEST, constants=False), str(path))


def place_of_statement(entry: Path) -> Path:
    """Where the statement on an entry is: beside it."""
    return entry.with_suffix(ENDING)


def statement_faults(statement: Attestation, submission: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with a statement on this entry: digests, documents, and numbers that do not follow."""
    return list(islice(_faults(statement, submission), MOST_FAULTS))


def with_statement(
    findings: ValidationFindings, submission: Mapping[str, Any], entry: Path, signers: Path | None = None
) -> ValidationFindings:
    """Return an entry's findings with what the statement beside it says of its answers.

    Args:
        findings: of its validation.
        submission: the entry.
        entry: its file.
        signers: the keys whose statements count (`allowed_signers` of ssh-keygen); None takes whoever's is there, as
            nobody but a maintainer can put one there.
    """
    path = place_of_statement(entry)
    if not path.is_file() or path.is_symlink() or findings.problems:
        return findings
    try:
        statement = read_statement(path)
        faults = statement_faults(statement, submission)
        signer = signer_of(path, NAMESPACE, signers) if signers is not None else None
    except HedgeError as error:
        faults, signer, statement = [str(error)], None, None
    if statement is not None and not faults and statement.verdict == "replayed":
        faults = _doubts(statement, submission, entry)
    if faults or statement is None:
        return replace(findings, answers=PartStatus(False, f"the statement beside it is refused: {faults[0]}"[:500]))
    if signers is not None and signer is None:
        return replace(findings, answers=PartStatus(False, "nobody known here has signed the statement beside it"))
    by = f"signed by {signer}" if signer else "unsigned"
    summary = f"{in_words(statement)}; {by}"
    if statement.verdict == "contradicted":
        return replace(
            findings,
            answers=PartStatus(False, f"contradicted: {summary}"),
            set_aside=(*findings.set_aside, f"its answers are not its model's by the attestation: {summary}"),
        )
    return replace(findings, answers=PartStatus(statement.verdict == "replayed", summary))


def with_signed_audit(findings: ValidationFindings, entry: Path, signers: Path | None) -> ValidationFindings:
    """Return an entry's findings with whether a known key vouches for the experts of its audit.

    The signature is of the entry's file, in the namespace `AUDIT`: `ssh-keygen -Y sign -n hedge-audit -f KEY ENTRY`.
    Without it the numbers against experts are shown, and rank nobody.
    """
    if findings.audit is None or signers is None:
        return findings
    by = signer_of(entry, AUDIT, signers)
    if by is None:
        return findings
    return replace(
        findings, audit=PartStatus(True, f"{findings.audit.reason.partition(';')[0]}; {by} vouches for them")
    )


def in_words(statement: Attestation) -> str:
    """The outcome of a statement in a line: the test that contradicts, or how much was read again."""
    wrong = [f"{name}: {test.reason}" for name, test in statement.tests.items() if test.state == "contradicted"]
    k, n_documents = len(statement.documents), statement.documents_of_entry
    engine = statement.engine
    how = f"{k} of {n_documents} documents read again by {engine.adapter}, {engine.dtype or 'dtype unknown'}"
    if wrong:
        return f"{how}; {wrong[0]}"[:400]
    met = format_value(detects(n_documents, max(n_documents // 10, 1), k), PERCENT)
    chance = f" ({max(n_documents // 10, 1)} forged ones would be among them with {met})"
    return how + chance + ("" if statement.verdict == "replayed" else "; that is too little to tell")


def _faults(statement: Attestation, submission: Mapping[str, Any]) -> Iterator[str]:
    content = statement.model_dump(mode="json")
    ours = sha256_of({key: value for key, value in content.items() if key != "digest"})
    if statement.digest != ours:
        yield f"digest: the content's is {ours}, so it was changed after it was written"
    if statement.submission != submission["digest"]:
        yield f"submission: the statement is on {statement.submission}, and this entry is {submission['digest']}"
        return
    if statement.task != submission["entry"]["task"]:
        yield f"task: {statement.task!r}, but the entry is of {submission['entry']['task']!r}"
    by_id = {document["id"]: document for document in submission["documents"]}
    if statement.documents_of_entry != len(by_id):
        yield f"documents_of_entry: {statement.documents_of_entry}, but the entry has {len(by_id)}"
    picked_ids = picked(statement.beacon, submission["digest"], list(by_id), len(statement.documents))
    if [document.id for document in statement.documents] != picked_ids:
        yield "documents: not those that the beacon picks"
        return
    wrong = [fault for document in statement.documents for fault in _document_faults(document, by_id[document.id])]
    yield from wrong
    if wrong:
        return
    tests = _tests(submission, statement.documents, statement.beacon, statement.engine)
    for name in tests.keys() | statement.tests.keys():
        if name not in tests or name not in statement.tests:
            yield f"tests.{name[:80]}: {'is missing' if name in tests else 'no such test'}"
        elif not _is_same_test(tests[name], statement.tests[name]):
            stated_state, computed = statement.tests[name].state, tests[name].state
            yield f"tests.{name}: its numbers do not follow (stated {stated_state}, computed {computed})"
    if (verdict := verdict_of(tests)) != statement.verdict:
        yield f"verdict: stated {statement.verdict!r}, computed {verdict!r}"


def _doubts(statement: Attestation, submission: Mapping[str, Any], entry: Path) -> list[str]:
    """Why a statement that holds in itself says nothing of this entry."""
    doubts = []
    k, n_documents = len(statement.documents), statement.documents_of_entry
    if k < min(FEWEST_READ, n_documents):
        doubts.append(
            f"{k} of {n_documents} documents were read again, and at least {min(FEWEST_READ, n_documents)} have to be"
        )
    if any(not sum(map(len, document.fresh.values())) for document in statement.documents):
        doubts.append(
            "no answer was drawn beside those that were read again, so that nothing tells the engine's rounding"
        )
    merged = committed_at(entry)
    if statement.beacon.time is not None and merged is not None and statement.beacon.time <= merged:
        doubts.append("its beacon was public before the entry came in, which could choose the documents")
    replayed_by, stated_model = (_bare(text) for text in (statement.engine.model, str(submission["entry"]["model"])))
    if replayed_by and stated_model and replayed_by not in stated_model and stated_model not in replayed_by:
        doubts.append(f"another model read the answers: {statement.engine.model[:100]}")
    return doubts


def _bare(model: str) -> str:
    """Last part of a model's name or path, as letters and digits."""
    return "".join(c for c in model.split(" (")[0].rstrip("/").rpartition("/")[2].casefold() if c.isalnum())


def _document_faults(attested: AttestedDocument, document: Mapping[str, Any]) -> Iterator[str]:
    place, n = f"documents: {attested.id[:80]!r}", len(document["logprobs"])
    for name in ("texts", "logprobs", "n_tokens", "end_logprobs", "margins", "equal"):
        if len(getattr(attested, name)) != n:
            yield f"{place}.{name}: {len(getattr(attested, name))} for {n} answers"
    if "texts" in document and list(attested.texts) != [text_digest(text) for text in document["texts"]["answers"]]:
        yield f"{place}.texts: not the answers of the entry"


def _is_same_test(ours: ReplayTest, theirs: ReplayTest) -> bool:
    """Whether two tests agree, apart from rounding on other machines."""
    numbers = [(getattr(ours, name), getattr(theirs, name)) for name in ("statistic", "allowed", "p_value")]
    close = all(
        a is b or (a is not None and b is not None and abs(a - b) <= _CLOSE * max(1, abs(a))) for a, b in numbers
    )
    return close and (ours.state, ours.n) == (theirs.state, theirs.n)


def _tests(
    submission: Mapping[str, Any], documents: Sequence[AttestedDocument], beacon: Beacon, engine: Engine
) -> dict[str, ReplayTest]:
    seed = int(_hash_with_beacon(beacon, submission["digest"], "permutations")[:16], 16)
    return outcomes_of(submission, documents, dtype=engine.dtype, seed=seed)

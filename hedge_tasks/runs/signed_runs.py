"""Runs with an owner: signed by an SSH key at their start, and again when the last answer is there.

At its start a run signs what it is about to do, before anybody can know how it ends. At its end the same key signs
digests of the answers, so that the first signature cannot be put on others. Both digests hold the run's random id and
the key: who has not seen the answers cannot make them for another key.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from loguru import logger
from pydantic import Field

from hedge_tasks import __version__
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.json_lines import canonical
from hedge_tasks.io.records import Record
from hedge_tasks.io.signatures import can_check, fingerprint_of, is_signed_text, sign_text

VARIABLE = "HEDGE_SIGN_KEY"
"""Environment variable with the file of an SSH key: a private one, or a public one whose other half an agent has."""

SETTING = "signed"
"""Of a run file's settings: its `SignedRun`."""

UNSIGNED = "not signed at its start (HEDGE_SIGN_KEY)"
_NAMESPACE = "hedge-run"

_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Signature = Annotated[
    str,
    Field(max_length=4000, pattern=r"^-----BEGIN SSH SIGNATURE-----\n[A-Za-z0-9+/=\n]+-----END SSH SIGNATURE-----\n$"),
]


class RunStart(Record):
    """Statement that a run signs before its first draw.

    Attributes:
        run_id: 128 random bits in hexadecimal digits.
        task, model: as in the run file.
        definition: digest of task, prompt and settings of the sampling, seed included.
        created: time by the clock of the machine, UTC, as ISO 8601.
        version: of this package.
    """

    hedge_start: Literal[1]
    run_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    task: Annotated[str, Field(max_length=500)]
    model: Annotated[str, Field(max_length=500)]
    definition: _Sha256
    created: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$")]
    version: Annotated[str, Field(max_length=40)]


class SignedRun(Record):
    """Statements of a finished run with their signatures.

    Attributes:
        start: signed before the first draw.
        key: public key, without its comment.
        signature: of `start`.
        numbers: digest of log-probabilities and numbers of tokens of all answers.
        texts: digest of their texts.
        end_signature: of all these, by the same key.
    """

    start: RunStart
    key: Annotated[str, Field(max_length=4000, pattern=r"^[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}$")]
    signature: _Signature
    numbers: _Sha256
    texts: _Sha256
    end_signature: _Signature

    @property
    def fingerprint(self) -> str:
        """Of the key, as ssh-keygen shows it."""
        return fingerprint_of(self.key)

    @property
    def in_words(self) -> str:
        return f"signed at its start by {self.fingerprint} at {self.start.created[:19]}Z"


@dataclass(frozen=True)
class StartedRun:
    """A run that has signed its start, and will sign its end with the same key."""

    start: RunStart
    key: str
    signature: str
    key_file: Path


def sign_start(task: str, model: str, settings: Mapping[str, Any]) -> StartedRun | None:
    """Sign what a run is about to do with the key that the environment names; None where it names none.

    Args:
        task, model: as the run file will have them.
        settings: of the run, with `prompt` and `sampling`.

    Raises:
        ConfigError: there is no such key, it cannot sign, or ssh-keygen is missing.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    file = Path(named).expanduser()
    start = RunStart(
        hedge_start=1,
        run_id=secrets.token_hex(16),
        task=task,
        model=model,
        definition=definition_digest(task, settings),
        created=datetime.now(timezone.utc).isoformat(timespec="microseconds"),
        version=__version__,
    )
    try:
        signature, key = sign_text(canonical(start.model_dump()), file, _NAMESPACE)
    except HedgeError as error:
        raise ConfigError(f"{VARIABLE}: {error}") from None
    logger.info("{}: signed at its start by {}", task, fingerprint_of(key))
    return StartedRun(start, key, signature, file)


def sign_end(started: StartedRun | None, answer_sets: Sequence[AnswerSet]) -> dict[str, Any]:
    """Return a finished run's signed statements as settings of its run file; nothing where it cannot be signed."""
    if started is None:
        return {}
    start, key = started.start, started.key
    digests = {"numbers": _digest(start, key, _numbers(answer_sets)), "texts": _digest(start, key, _texts(answer_sets))}
    try:
        end_signature, end_key = sign_text(_closing(start, key, digests), started.key_file, _NAMESPACE)
    except HedgeError as error:
        logger.warning("{}: the run is not signed, as its end cannot be: {}", start.task, error)
        return {}
    if end_key != key:
        logger.warning("{}: the run is not signed: its start was signed by another key", start.task)
        return {}
    signed = SignedRun(start=start, key=key, signature=started.signature, **digests, end_signature=end_signature)
    return {SETTING: signed.model_dump()}


def signed_run_of(settings: Mapping[str, Any]) -> SignedRun | None:
    """The signed statements among a run's settings; None where there are none.

    Raises:
        DataError: they are damaged.
    """
    signed = settings.get(SETTING)
    return None if signed is None else SignedRun.read(signed, f"settings.{SETTING}")


def signature_faults(signed: SignedRun) -> list[str]:
    """Signatures of a run that are not its key's; nobody can tell where ssh-keygen is missing (`can_check`)."""
    if not can_check():
        return []
    digests = {"numbers": signed.numbers, "texts": signed.texts}
    signatures = {
        "signature": (canonical(signed.start.model_dump()), signed.signature),
        "end_signature": (_closing(signed.start, signed.key, digests), signed.end_signature),
    }
    return [
        f"{SETTING}.{name}: not a signature of this statement by the key beside it"
        for name, (text, signature) in signatures.items()
        if not is_signed_text(text, signature, signed.key, _NAMESPACE)
    ]


def statement_faults(
    signed: SignedRun,
    task: str,
    model: str,
    created: str,
    settings: Mapping[str, Any],
    answer_sets: Sequence[AnswerSet],
    *,
    texts: bool = True,
) -> Iterator[str]:
    """Yield what in a run's signed statements is another run's.

    Args:
        created: when the run was finished, ISO 8601.
        texts: whether the answers' texts are there.
    """
    start, key = signed.start, signed.key
    for name, stated, actual in (("task", start.task, task), ("model", start.model, model)):
        if stated != actual:
            yield f"{SETTING}.start.{name}: {stated!r:.80} was signed, but this is {actual!r:.80}"
    if start.definition != definition_digest(task, settings):
        yield f"{SETTING}.start.definition: the run that was signed has another prompt, or samples otherwise"
    if not _is_before(start.created, created):
        yield f"{SETTING}.start.created: {start.created}, which is not before the run's end, {created!r:.40}"
    if signed.numbers != _digest(start, key, _numbers(answer_sets)):
        yield f"{SETTING}.numbers: the log-probabilities are not those of the answers that were signed"
    if texts and signed.texts != _digest(start, key, _texts(answer_sets)):
        yield f"{SETTING}.texts: the texts are not those of the answers that were signed"


def definition_digest(task: str, settings: Mapping[str, Any]) -> str:
    """Digest of what all draws of a run have in common besides the model."""
    parts = {"task": task, "prompt": settings.get("prompt"), "sampling": settings.get("sampling")}
    return hashlib.sha256(canonical(json.loads(json.dumps(parts, default=str)))).hexdigest()


def _closing(start: RunStart, key: str, digests: Mapping[str, str]) -> bytes:
    return canonical({"start": start.model_dump(), "key": key, **digests})


def _digest(start: RunStart, key: str, rows: list[Any]) -> str:
    return hashlib.sha256(canonical([start.run_id, key, rows])).hexdigest()


def _numbers(answer_sets: Sequence[AnswerSet]) -> list[Any]:
    rows = [[a.id, len(a.clean), [_number(answer) for answer in a.answers]] for a in answer_sets]
    return sorted(rows, key=itemgetter(0))


def _number(answer: Answer) -> list[Any]:
    impossible = answer.mean_logprob == -math.inf
    return ["-inf" if impossible else answer.mean_logprob, answer.n_tokens]


def _texts(answer_sets: Sequence[AnswerSet]) -> list[Any]:
    return sorted(([a.id, list(a.texts)] for a in answer_sets), key=itemgetter(0))


def _is_before(start: str, end: str) -> bool:
    try:
        first, last = (datetime.fromisoformat(text) for text in (start, end))
    except ValueError:
        return False
    return first < (last if last.tzinfo is not None else last.replace(tzinfo=timezone.utc))

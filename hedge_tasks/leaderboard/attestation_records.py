"""The records of a statement (`hedge attest`): what its file must look like before anything in it is looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from hedge_tasks import __version__
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.records import AtLeastOne, Count, Items, Name, Objects, Record, Share
from hedge_tasks.leaderboard.schema import Digest, LogProbability, NamedSha256, ShortText
from hedge_tasks.leaderboard.submission import sha256_of

FORMAT = 1
_QUICKNET = (1_692_803_367, 3)
"""First second and period of drand's network `quicknet`."""

State = Literal["holds", "contradicted", "not met", "not verifiable"]
"""Of a test: what is not met may be another machine's as well as a forger's."""

Verdict = Literal["replayed", "contradicted", "not verifiable"]


class Beacon(Record):
    """Public randomness that nobody could know before the entry was merged.

    Attributes:
        value: 64 hexadecimal digits: the `randomness` of a drand round.
        round: its number in the network `quicknet`; None where it was not told.
    """

    value: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    round: AtLeastOne | None = None

    @property
    def time(self) -> int | None:
        """Second since 1970 before which nobody knew it; None without a round."""
        first, period = _QUICKNET
        return None if self.round is None else first + (self.round - 1) * period


class Engine(Record):
    """Who read the answers again.

    Attributes:
        adapter: name of the adapter.
        model: as people are shown it.
        identity: all that shapes its answers, with a fingerprint of the weights.
        dtype: of the weights; None where it is not known.
        versions: of the libraries that compute.
    """

    adapter: Name
    model: ShortText
    identity: Annotated[str, Field(max_length=2000)]
    dtype: Annotated[str, Field(max_length=40)] | None
    versions: Objects[Annotated[str, Field(max_length=200)]]


class FreshDraw(Record):
    """An answer that was drawn for the statement: digest of its text, and the numbers that a submission has.

    Attributes:
        text: digest of the text.
        logprob, n_tokens, end_logprob: as it was drawn.
        reread, reread_n_tokens, reread_end: the same as the model finds it when it reads it again. They tell the
            engine's rounding, which no answer of an entry can be held against.
        margin: as in `AttestedDocument`.
        equal: whether drawing it once more, among others, gave the same text.
    """

    text: Digest
    logprob: LogProbability
    n_tokens: Count | None
    end_logprob: LogProbability
    reread: LogProbability = None
    reread_n_tokens: Count | None = None
    reread_end: LogProbability = None
    equal: bool | None = None
    margin: Annotated[float, Field(ge=0)] | None = None


class AttestedDocument(Record):
    """Numbers that the model was found to say of a document's answers, in the order baseline, clean, noisy.

    Attributes:
        id: of the document.
        texts: digests of the entry's answers.
        logprobs, n_tokens, end_logprobs: as the model finds them; null where it cannot tell.
        margins: by how much the token that the draw's seed chooses was ahead; null where the engine does not tell.
        equal: whether drawing again gave the same text, where that was tried.
        fresh: answers drawn again from the baseline's prompt, the clean one's, and each noisy picture's.
    """

    id: Name
    texts: Annotated[Items[Digest], Field(min_length=1)]
    logprobs: Items[LogProbability]
    n_tokens: Items[Count | None]
    end_logprobs: Items[LogProbability]
    margins: Items[Annotated[float, Field(ge=0)] | None]
    equal: Items[bool | None]
    fresh: dict[Literal["baseline", "clean", "noisy"], Items[FreshDraw]]


class ReplayTest(Record):
    """Of one test: what it says, its statistic, what is allowed, and its p-value where it has one."""

    state: State
    reason: Annotated[str, Field(max_length=500)]
    statistic: float | None
    allowed: float | None
    p_value: Share | None
    n: Count


class EntryStatement(Record):
    """A statement on an entry that `hedge attest` writes into a file beside it.

    Attributes:
        digest: of everything else.
        submission: digest of the entry.
        task: of the entry.
        created: time, ISO 8601.
        version: of this package.
        engine: the model as it was loaded.
    """

    digest: NamedSha256
    submission: NamedSha256
    task: Name
    created: Annotated[str, Field(max_length=40)]
    version: Annotated[str, Field(max_length=40)]
    engine: Engine

    @classmethod
    def sealed(cls, submission: Mapping[str, Any], engine: Engine, created: str, fields: Mapping[str, Any]) -> Self:
        """The statement on an entry with these further fields, and its digest."""
        about = {"submission": submission["digest"], "task": submission["entry"]["task"], "created": created}
        content = {**about, "version": __version__, "engine": engine.model_dump(), **fields}
        content = json.loads(json.dumps(content, allow_nan=False))
        return cls.read({**content, "digest": sha256_of(content)})

    def write(self, path: Path) -> None:
        """Write the statement as a whole or not at all."""
        content = self.model_dump(mode="json")
        write_whole(path, json.dumps(content, ensure_ascii=True, allow_nan=False, indent=1) + "\n")


class Attestation(EntryStatement):
    """That an entry's answers are its model's, or not. Read by the leaderboard."""

    hedge_attestation: Literal[1]
    beacon: Beacon
    documents_of_entry: AtLeastOne
    documents: Annotated[Items[AttestedDocument], Field(min_length=1)]
    tests: Objects[ReplayTest]
    verdict: Verdict

"""One valid submission, as far as tables of many need it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hedge_tasks.leaderboard.audits import whose
from hedge_tasks.leaderboard.columns import EntryColumns
from hedge_tasks.leaderboard.detector_ranks import Priced
from hedge_tasks.leaderboard.protocol import judge_of
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.validation import NO_MANIFEST, ValidationFindings
from hedge_tasks.numbers import Number
from hedge_tasks.runs.signed_runs import SignedRun, signed_run_of

PARTIAL = "partial"
"""How the reason begins why an entry that lacks documents is not ranked."""


class EntryFinding(NamedTuple):
    """Finding and state of trust of an entry, as its page opens with them.

    Attributes:
        level: green, yellow or red.
        trust: the state of trust in a few words.
        finding: the finding.
    """

    level: str
    trust: str
    finding: str


@dataclass(frozen=True, eq=False)
class Entry:
    """A valid submission.

    Attributes:
        file: name of the file that it was read from.
        content: the submission without its documents.
        findings: what its validation found.
        columns: its documents.
        detectors: by price and clustering, ROC-AUC of each detector; see `detector_ranks.priced`.
        rate: share of hallucinated answers among the labelled ones.
        supported: share of supported answers among all.
        answers: digests of its answers by document, much the same for a submission under another name.
        html: its page.
        summary: its finding and state of trust; None where what could be computed again makes none.
        runs: of the same model with the edition's other seeds, which have no place of their own.
    """

    file: str
    content: Mapping[str, Any]
    findings: ValidationFindings
    columns: EntryColumns
    detectors: Mapping[str, Mapping[str, Mapping[str, Priced]]]
    rate: Number | None
    supported: Number
    answers: tuple[str, ...]
    html: str
    summary: EntryFinding | None = None
    runs: tuple[Entry, ...] = ()

    @property
    def name(self) -> str:
        return str(self.content["entry"]["name"])

    @property
    def task(self) -> str:
        return str(self.content["entry"]["task"])

    @property
    def model(self) -> str:
        return str(self.content["entry"]["model"])

    @property
    def signed(self) -> SignedRun | None:
        """The signed statements of its run; None without a signature that was checked."""
        return signed_run_of(self.content["settings"]) if self.findings.owner.verified else None

    @property
    def seed(self) -> int | None:
        """Base seed of its draws."""
        return None if self.findings.standing is None else self.findings.standing.seed

    @property
    def seed_number(self) -> int | None:
        """Place of its seed among the edition's, 0 is the one that counts; None where it is none of them."""
        standing = self.findings.standing
        seeds = () if standing is None else standing.seeds
        return seeds.index(self.seed) if self.seed is not None and self.seed in seeds else None

    @property
    def recomputed(self) -> bool:
        """Whether its labels, or clusters of some kind, were computed again."""
        parts = (self.findings.labels, *self.findings.clusterings.values())
        return any(part.verified for part in parts)

    @property
    def judge(self) -> str:
        """Name of the judge, for people."""
        return judge_of(self.content)

    @property
    def experts(self) -> str | None:
        """Which experts labelled how many of its documents, in a few words; None without an audit."""
        return whose(self.content)

    @property
    def contradicted(self) -> list[Mapping[str, Any]]:
        """Settings of the sampling that were not as they were asked for."""
        return [setting for setting in self.content["health"]["settings"] if setting["state"] == "contradicted"]

    @property
    def partial(self) -> bool:
        """Whether it lacks documents that others have, or the task's manifest names."""
        return any(reason.startswith(PARTIAL) for reason in self.findings.set_aside)

    def detector_record(self, clustering: str, detector: str) -> Mapping[str, Any] | None:
        """Title and price of a detector; None where the entry does not have it."""
        clustering_record = self.content["clusterings"].get(clustering)
        record: Mapping[str, Any] | None = clustering_record["detectors"].get(detector) if clustering_record else None
        return record


def documents_part(findings: ValidationFindings) -> PartStatus:
    """Whether all documents of the task are there."""
    coverage = findings.coverage
    if coverage is None or coverage.of is None:
        return PartStatus(False, NO_MANIFEST)
    return PartStatus(bool(coverage.whole), f"{coverage.matched} of {coverage.of} documents of the task")

"""Scores of an entry's model on documents that a board's maintainers keep to themselves: a file beside the entry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.records import AtLeastOne, Objects
from hedge_tasks.io.signatures import signer_of
from hedge_tasks.leaderboard.attestation_records import EntryStatement
from hedge_tasks.leaderboard.recomputation import PartStatus
from hedge_tasks.leaderboard.schema import NamedSha256, SubmittedAuroc, Summary
from hedge_tasks.leaderboard.stated import number_in
from hedge_tasks.leaderboard.submission import answer_set_of, sha256_of
from hedge_tasks.leaderboard.validation import PrivateFindings, ValidationFindings
from hedge_tasks.measures.curves import hallucination_rate
from hedge_tasks.numbers import PERCENT, Number, format_number, format_value
from hedge_tasks.statistics.base import two_sided_p

ENDING = ".private"
"""Of the file of scores, in place of the entry's `.json`."""

NAMESPACE = "hedge-private"
"""Of its signature."""

ALPHA = 0.01
"""Of the tests whether an entry's numbers are other there, all together."""

FEWEST_EXPECTED = 5
"""Answers of each class, on each side, from which on two hallucination rates are compared."""

_LARGEST = 16 << 20


class PrivateScores(EntryStatement):
    """An entry's model on documents that its makers have not seen. Written by `hedge attest --private`.

    Attributes:
        split: SHA-256 of the ids of the private documents, so that scores of one split can be told from another's.
        summary: counts and the hallucination rate there.
        clusterings: by clustering and detector, ROC-AUC there.
    """

    hedge_private: Literal[1]
    split: NamedSha256
    documents: AtLeastOne
    summary: Summary
    clusterings: Objects[Objects[SubmittedAuroc]]


def place_of_scores(entry: Path) -> Path:
    """Where the private scores of an entry are: beside it."""
    return entry.with_suffix(ENDING)


def read_scores(path: Path, submission: Mapping[str, Any]) -> PrivateScores:
    """Read the private scores of an entry.

    Raises:
        DataError: they are none, were changed, or are of another entry.
    """
    raw = read_json(path, largest=_LARGEST, constants=False)
    scores = PrivateScores.read(raw, str(path))
    if scores.digest != sha256_of({key: value for key, value in raw.items() if key != "digest"}):
        raise DataError(f"{path}: digest: not the content's, so it was changed after it was written")
    if scores.submission != submission["digest"] or scores.task != submission["entry"]["task"]:
        raise DataError(f"{path}: submission: of another entry")
    return scores


def with_private(
    findings: ValidationFindings, submission: Mapping[str, Any], entry: Path, signers: Path | None = None
) -> ValidationFindings:
    """Return an entry's findings with its model's scores on private documents, where such scores are beside it.

    Args:
        findings: of its validation.
        submission: the entry.
        entry: its file.
        signers: as for `hedge_tasks.leaderboard.attestation.with_statement`.
    """
    path = place_of_scores(entry)
    if not path.is_file() or path.is_symlink() or findings.problems:
        return findings
    try:
        scores = read_scores(path, submission)
        signer = signer_of(path, NAMESPACE, signers) if signers is not None else None
    except HedgeError as error:
        refused = PartStatus(False, f"the scores beside it are refused: {error}"[:500])
        return replace(findings, private=PrivateFindings(refused))
    if signers is not None and signer is None:
        unknown = PartStatus(False, "nobody known here has signed the scores beside it")
        return replace(findings, private=PrivateFindings(unknown))
    aurocs = {
        name: {detector: number_in(auroc.model_dump(), "auroc") for detector, auroc in by_detector.items()}
        for name, by_detector in scores.clusterings.items()
    }
    better = tuple(_better_numbers(submission, scores, aurocs))
    by = f"signed by {signer}" if signer else "unsigned"
    summary = f"{scores.documents} documents that its makers have not seen, by {scores.engine.adapter}; {by}"
    return replace(findings, private=PrivateFindings(PartStatus(True, summary), aurocs, better))


def _better_numbers(
    submission: Mapping[str, Any], scores: PrivateScores, private_aurocs: Mapping[str, Mapping[str, Number]]
) -> Iterator[str]:
    """Yield the numbers of an entry that are better than on private documents by more than chance (Bonferroni)."""
    pairs = []
    for clustering, aurocs in private_aurocs.items():
        stated = submission["clusterings"].get(clustering, {}).get("aggregates", {})
        for detector, private in aurocs.items():
            own = number_in(stated[detector], "auroc") if detector in stated else Number(None)
            if own.stderr is not None and private.stderr:
                pairs.append((f"{detector} ({clustering})", own, private))
    alpha = ALPHA / (len(pairs) + 1)
    for title, own, private in pairs:
        gap = (own.value or 0) - (private.value or 0)
        error = math.hypot(own.stderr or 0, private.stderr or 0)
        if gap > 0 and error and two_sided_p(gap / error) < alpha:
            yield (
                f"ROC-AUC of {title}: {format_number(own)} in the entry, "
                f"on private documents {format_number(private, interval=True)}"
            )
    if _is_lower_rate(submission, scores.summary, alpha):
        rates = (submission["summary"]["hallucination_rate"], scores.summary.hallucination_rate)
        yield "hallucination rate: {} in the entry, on private documents {}".format(
            *(format_value(rate, PERCENT) for rate in rates)
        )


def _is_lower_rate(submission: Mapping[str, Any], private: Summary, alpha: float) -> bool:
    """Whether an entry's hallucination rate is lower than on private documents by more than chance.

    A test of two shares, for as many independent documents as the groups of the entry leave. With fewer than
    `FEWEST_EXPECTED` hallucinated and supported answers to be expected on each side, its p value means nothing, and
    nothing is said.
    """
    own = submission["summary"]
    rate, private_rate = own["hallucination_rate"], private.hallucination_rate
    if rate is None or private_rate is None or rate >= private_rate:
        return False
    estimate = hallucination_rate([answer_set_of(document) for document in submission["documents"]])
    independent = rate * (1 - rate) / own["labelled"]
    by_group = 0.0 if estimate is None or estimate.stderr is None else estimate.stderr**2
    effect = max(1.0, by_group / independent) if independent else 1.0
    n, n_private = own["labelled"] / effect, private.labelled / effect
    pooled = (rate * n + private_rate * n_private) / (n + n_private)
    if min(n, n_private) * min(pooled, 1 - pooled) < FEWEST_EXPECTED:
        return False
    error = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / n_private))
    return two_sided_p((private_rate - rate) / error) < alpha

"""The claims that are kept with a run, scored and measured without a model."""

from __future__ import annotations

from dataclasses import dataclass

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.measures.unit_table import UnitTable, unit_table
from hedge_tasks.runs.claim_files import label_options, support_of_run
from hedge_tasks.runs.claims import ScoredClaims, score_claims
from hedge_tasks.runs.run_files import Run


def score_kept_claims(run: Run) -> ScoredClaims | None:
    """Score the claims that are kept with a run; None where nothing is kept, or it cannot be used.

    The support that counts is that of `support_of_run`.

    Raises:
        DataError: labels in the run are none of its answers.
    """
    kept = support_of_run(run)
    return None if kept is None else score_claims(run, kept.supported, kept, kept.price, kept.settings)


def measured_claims(claims: ScoredClaims, run: Run) -> tuple[UnitTable | None, str]:
    """Measure claims, with labels counted as in their run's settings; None with the reason where there are none."""
    if not has_labels(claims):
        return None, "no claim is labelled"
    try:
        return unit_table(claims, **label_options(run)), ""
    except DataError as error:
        return None, str(error)


@dataclass(frozen=True)
class KeptNumbers:
    """The scores and numbers of the claims that are kept with a run.

    Attributes:
        scored: with all their scores; None where they cannot be.
        table: their numbers; None where there are none.
        why: there are no numbers.
    """

    scored: ScoredClaims | None
    table: UnitTable | None
    why: str = ""


def kept_numbers(run: Run) -> KeptNumbers | None:
    """Score and measure the claims kept with a run; None where nothing is kept. Faults are given as `why`."""
    try:
        claims = score_kept_claims(run)
    except HedgeError as error:  # no reason to have no numbers of the answers
        return KeptNumbers(None, None, str(error))
    return None if claims is None else KeptNumbers(claims, *measured_claims(claims, run))


def has_labels(claims: ScoredClaims) -> bool:
    """Return whether any claim has a label, or a reference that is silent on it."""
    labels = (label for answer in claims.answers for label in answer.labels.labels)
    return any(label is not None and (label.label is not None or label.silent) for label in labels)

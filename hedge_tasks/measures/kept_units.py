"""The claims that are kept with a run, scored and measured: no model is asked."""

from __future__ import annotations

from dataclasses import dataclass

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.measures.unit_table import UnitTable, unit_table
from hedge_tasks.runs.run_files import Run
from hedge_tasks.scoring.claim_files import KeptSupport, label_options, support_of_run
from hedge_tasks.scoring.claims import ScoredClaims, score_claims


def scored_kept(run: Run) -> ScoredClaims | None:
    """The claims of a run with all their scores, of the support that counts (`support_of_run`); or None.

    Raises:
        DataError: labels in the run are none of its answers.
    """
    support = support_of_run(run)
    return None if support is None else scored(run, support)


def scored(run: Run, support: KeptSupport) -> ScoredClaims:
    """The claims of a run with all their scores."""
    return score_claims(run, support.supported, support, support.price, support.settings)


def measured_claims(claims: ScoredClaims, run: Run) -> tuple[UnitTable | None, str]:
    """The numbers of a run's claims, with labels counted as its task says; or None, and why there are none.

    Args:
        run: whose settings say so.
    """
    if not has_labels(claims):
        return None, "no claim is labelled"
    try:
        return unit_table(claims, **label_options(run)), ""
    except DataError as error:
        return None, str(error)


@dataclass(frozen=True)
class KeptNumbers:
    """The claims that are kept with a run in numbers.

    Attributes:
        scored: with all their scores; None where they cannot be.
        table: their numbers; None where there are none.
        why: there are no numbers.
    """

    scored: ScoredClaims | None
    table: UnitTable | None
    why: str = ""


def kept_numbers(run: Run) -> KeptNumbers | None:
    """The claims that are kept with a run in numbers; None where nothing is kept. What is wrong with them is told."""
    try:
        claims = scored_kept(run)
    except HedgeError as error:  # no reason to have no numbers of the answers
        return KeptNumbers(None, None, str(error))
    return None if claims is None else KeptNumbers(claims, *measured_claims(claims, run))


def has_labels(claims: ScoredClaims) -> bool:
    """Whether anything is said of any claim."""
    labels = (label for answer in claims.answers for label in answer.labels.labels if label is not None)
    return any(label.label is not None or label.silent for label in labels)

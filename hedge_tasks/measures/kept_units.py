"""The claims that are kept with a run, scored and measured: no model is asked."""

from __future__ import annotations

from dataclasses import dataclass

from hedge_tasks.errors import DataError, HedgeError
from hedge_tasks.measures.unit_table import UnitTable, unit_table
from hedge_tasks.runs.run_files import Run
from hedge_tasks.scoring.claim_files import KeptSupport, kept_of, label_options
from hedge_tasks.scoring.claims import ScoredClaims, score_claims


def scored_kept(run: Run) -> ScoredClaims | None:
    """The claims of a run with all their scores, of the support that counts (`kept_of`); or None.

    Raises:
        DataError: labels in the run are none of its answers.
    """
    kept = kept_of(run)
    return None if kept is None else scored(run, kept)


def scored(run: Run, kept: KeptSupport) -> ScoredClaims:
    """The claims of a run with all their scores."""
    return score_claims(run, kept.supported, kept, kept.price, kept.settings)


def measured_claims(found: ScoredClaims, run: Run) -> tuple[UnitTable | None, str]:
    """The numbers of a run's claims, with labels counted as its task says; or None, and why there are none.

    Args:
        run: whose settings say so.
    """
    if not has_labels(found):
        return None, "no claim is labelled"
    try:
        return unit_table(found, **label_options(run)), ""
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
        found = scored_kept(run)
    except HedgeError as error:  # no reason to have no numbers of the answers
        return KeptNumbers(None, None, str(error))
    return None if found is None else KeptNumbers(found, *measured_claims(found, run))


def has_labels(found: ScoredClaims) -> bool:
    """Whether anything is said of any claim."""
    told = (label for one in found.answers for label in one.labels.labels if label is not None)
    return any(label.label is not None or label.silent for label in told)

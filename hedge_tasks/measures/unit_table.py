"""Detectors of parts of answers side by side: how well each finds the hallucinated ones, and blind baselines.

Two AUROCs: over all units, and within the answer, where only units of one answer are compared. What merely knows
which answers are bad, or where in an answer errors stand, is good at one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from hedge_tasks.detectors.units import Labelled, columns_of
from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.measures.blind import CLAIM_TEXT
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.measures.detector_table import ComparedDetectors, detector_rows, facts_of
from hedge_tasks.measures.unit_numbers import detectors_in, with_text
from hedge_tasks.runs.claim_files import label_options
from hedge_tasks.runs.claims import ClaimUnits, ScoredClaims, claim_units, score_claims
from hedge_tasks.runs.run_files import Run

FLAGGED = 0.2
"""Share of the units that is flagged by default."""


@dataclass(frozen=True)
class UnitTable(ComparedDetectors):
    """Detectors on the claims of one run, compared with the best blind baseline.

    Attributes:
        scored: the run.
        counted: its units.
        settings: how labels were counted, and the share that is flagged.
    """

    scored: ScoredClaims
    counted: ClaimUnits
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def n_labelled(self) -> int:
        return len(self.counted.labelled)

    @property
    def coverage(self) -> Coverage:
        """How many claims have a label that counts; those of unknown support have failed."""
        labelled, unknown = self.n_labelled, self.counted.n_unknown
        return Coverage(labelled=labelled, undecided=len(self.counted.units) - labelled - unknown, failed=unknown)


def unit_table(
    scored: ScoredClaims,
    *,
    probes: Mapping[str, Labelled] = MappingProxyType({}),
    silent: str = "unlabelled",
    errors: str = "all",
    flag: float = FLAGGED,
    seed: int = 0,
) -> UnitTable:
    """Measure every detector of claims against the labels, and compare it with the best blind baseline.

    Args:
        probes: columns of fitted detectors.
        silent, errors: see `hedge_tasks.claims.labels.label_of`.
        flag: share of the units that is flagged, in (0, 1).
        seed: of the folds of the text classifier.

    Raises:
        ConfigError: a value makes no sense.
        DataError: no unit has a label.
    """
    if not 0 < flag < 1:
        raise ConfigError(f"flag: expected a share between 0 and 1, got {flag}")
    counted = claim_units(scored, silent=silent, errors=errors)
    if not (units := counted.labelled):
        raise DataError(
            f"{scored.title}: none of {len(counted.units)} claims has a label that counts and known support"
        )
    units, why_no_text = with_text(units, seed)
    columns, left_out = columns_of(units, detectors_in(units))
    columns |= probes
    left_out = {**scored.left_out, **left_out, **({CLAIM_TEXT: why_no_text} if why_no_text else {})}
    evidence = [answer.evidence for answer in scored.answers]
    draws = [min((getattr(e, name) for e in evidence), default=0) for name in ("n_clean", "n_noisy")]
    facts = {name: facts_of(name, "claim", column, *draws) for name, column in columns.items()}
    settings = {"silent": silent, "errors": errors, "flag": flag}
    return UnitTable(*detector_rows(columns, facts, left_out, flag=flag), scored, counted, settings)


def score_kept_claims(run: Run) -> ScoredClaims | None:
    """Score the claims that are kept with a run; None where nothing is kept.

    Raises:
        DataError: labels in the run, or the support, are none of its answers.
    """
    return None if run.support is None else score_claims(run, run.support)


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
    labels = (label for answer in claims.answers for label in answer.labels)
    return any(label is not None and (label.label is not None or label.silent) for label in labels)

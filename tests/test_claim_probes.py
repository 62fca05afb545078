"""Detectors fitted on the states of sentences: they find what the states tell, and say where these tell nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_claim_table import scored_run, scripted

from hedge_tasks.data.inside import SENTENCE_PLACES
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.measures.fitted import ProbeData, inside_of_claims
from hedge_tasks.measures.unit_table import unit_table
from hedge_tasks.runs.claims import ScoredClaims, claim_units

PROBE = fitted_detectors("claim")["claim_linear_probe"]


@pytest.fixture(scope="module")
def scored() -> ScoredClaims:
    return scored_run(scripted(3, images=24, k=4, n=2))


def kept(scored: ScoredClaims, shift: float, width: int = 4) -> dict[str, Any]:
    """States of every sentence; the last token of a wrong one is elsewhere by `shift`."""
    rng, found = np.random.default_rng(0), {}
    for one in scored.answers:
        labels = [label or 0 for label in one.counted_labels()]
        states = rng.normal(size=(len(labels), 1, len(SENTENCE_PLACES), width))
        states[:, 0, 0, 0] += shift * np.array(labels)
        spans = np.array([(claim.start, claim.end) for claim in one.claims], dtype=np.float32)
        # In another order: a sentence is found by its place in the answer.
        found[one.answers.id] = {"sentence_states": states[::-1].astype(np.float16), "sentence_spans": spans[::-1]}
    return found


def data(scored: ScoredClaims, states: dict[str, Any]) -> ProbeData:
    inside = inside_of_claims(scored.answers, states)
    return ProbeData.of(claim_units(scored).units, inside, frozenset({"sentence_states"}))


def test_a_probe_finds_what_states_tell_and_stands_in_the_table_of_claims(scored: ScoredClaims) -> None:
    found = data(scored, kept(scored, 5.0))
    probes, left_out = found.columns([PROBE, fitted_detectors("claim")["claim_mean_probe"]])
    assert (found.missing, left_out) == (0, {})
    rows = {row.detector: row for row in unit_table(scored, probes=probes).rows}
    told, silent = rows["claim_linear_probe"], rows["claim_mean_probe"]
    assert told.estimate.value is not None
    assert told.estimate.value > 0.95
    assert told.within.value is not None
    assert told.within.value > 0.95
    assert (told.draws, told.passes, told.labels, told.fitted, told.blind) == (0, 1, round(96 * 0.8), True, False)
    assert silent.estimate.interval is not None
    assert silent.estimate.interval[0] < 0.5 < silent.estimate.interval[1]
    assert not rows["claim_radflag"].fitted

"""Detectors fitted on the states of sentences: they find what the states tell, and say where these tell nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_claim_table import scored_run, scripted

from hedge_tasks.cli.claim_text import probe_controls
from hedge_tasks.data.inside import SENTENCE_PLACES
from hedge_tasks.errors import DataError
from hedge_tasks.measures.claim_probes import with_probes
from hedge_tasks.measures.unit_table import unit_table
from hedge_tasks.probes.registry import FITTED_CLAIMS
from hedge_tasks.scoring.claims import ScoredClaims

PROBE = FITTED_CLAIMS["claim_linear_probe"]


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


def test_a_probe_finds_what_states_tell_and_stands_in_the_table_of_claims(scored: ScoredClaims) -> None:
    found = with_probes(scored, kept(scored, 5.0), [PROBE, FITTED_CLAIMS["claim_mean_probe"]])
    assert (found.missing, found.left_out) == (0, {})
    rows = {row.detector: row for row in unit_table(found.scored).rows}
    told, silent = rows["claim_linear_probe"], rows["claim_mean_probe"]
    assert told.estimate.value is not None
    assert told.estimate.value > 0.95
    assert told.within.value is not None
    assert told.within.value > 0.95
    assert (told.draws, told.passes, told.labels, told.fitted, told.blind) == (0, 1, round(96 * 0.8), True, False)
    assert silent.estimate.interval is not None
    assert silent.estimate.interval[0] < 0.5 < silent.estimate.interval[1]
    assert not rows["claim_radflag"].fitted
    assert found.shuffled["claim_linear_probe"].mean == pytest.approx(0.5, abs=0.1)
    facts, lines = probe_controls(found)
    assert facts["claim_linear_probe"]["foreign"] == pytest.approx(0.5, abs=0.15)
    assert "claim_mean_probe" in "\n".join(lines)


def test_the_error_of_fitting_is_in_the_interval(scored: ScoredClaims) -> None:
    found = with_probes(scored, kept(scored, 0.0), [PROBE])
    error = found.shuffled[PROBE.name].error
    assert error > 0.005
    [row] = [row for row in unit_table(found.scored).rows if row.detector == PROBE.name]
    plain = ScoredClaims(**{**vars(found.scored), "fitting_errors": {}})
    [without] = [row for row in unit_table(plain).rows if row.detector == PROBE.name]
    assert row.estimate.stderr == pytest.approx(np.hypot(without.estimate.stderr or 0.0, error))


def test_sentences_without_states_are_left_out_and_counted(scored: ScoredClaims) -> None:
    states = kept(scored, 5.0)
    first = scored.answers[0].answers.id
    found = with_probes(scored, {id: of for id, of in states.items() if id != first}, [PROBE])
    assert found.missing == 4
    assert np.isnan(found.scored.answers[0].scores[PROBE.name]).all()
    with pytest.raises(DataError, match="inside=sentences"):
        with_probes(scored, {}, [PROBE])
    with pytest.raises(DataError, match="not all of them are of one model"):
        with_probes(scored, {**states, first: kept(scored, 5.0, width=5)[first]}, [PROBE])

"""Detectors fitted on the states of sentences: they find what the states tell, and say where these tell nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_claim_table import scored_run, scripted

from hedge_tasks.cli.claim_text import probe_controls
from hedge_tasks.data.inside import SENTENCE_PLACES
from hedge_tasks.detectors.probes.base import settled
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.detectors.units import NOT_FITTED
from hedge_tasks.errors import DataError
from hedge_tasks.measures.claim_probes import SentenceData, with_probes
from hedge_tasks.measures.unit_table import unit_table
from hedge_tasks.runs.claims import ScoredClaims

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


@pytest.mark.slow
def test_a_probe_finds_what_states_tell_and_stands_in_the_table_of_claims(scored: ScoredClaims) -> None:
    found = with_probes(
        scored, SentenceData.of(scored, kept(scored, 5.0)), [PROBE, fitted_detectors("claim")["claim_mean_probe"]]
    )
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


@pytest.mark.slow
def test_the_error_of_fitting_is_in_both_intervals(scored: ScoredClaims) -> None:
    found = with_probes(scored, SentenceData.of(scored, kept(scored, 0.0)), [PROBE])
    control = found.shuffled[PROBE.name]
    assert control.inflation > 1.2
    assert control.within > 1.0
    [row] = [row for row in unit_table(found.scored).rows if row.detector == PROBE.name]
    plain = ScoredClaims(**{**vars(found.scored), "fitted": {}})
    [without] = [row for row in unit_table(plain).rows if row.detector == PROBE.name]
    pairs = [
        (row.estimate, without.estimate, control.inflation),
        (row.within, without.within, control.within),
    ]
    for number, bare, factor in pairs:
        assert number.stderr == pytest.approx((bare.stderr or 0.0) * factor**0.5)
        assert number.interval is not None
        assert bare.interval is not None
        assert np.ptp(number.interval) > np.ptp(bare.interval)
    assert row.difference is not None
    assert without.difference is not None
    added = (control.inflation - 1) * (without.estimate.stderr or 0.0) ** 2
    assert row.difference.stderr == pytest.approx(((without.difference.stderr or 0.0) ** 2 + added) ** 0.5)


@pytest.mark.slow
def test_sentences_without_states_are_left_out_and_counted(scored: ScoredClaims) -> None:
    states = kept(scored, 5.0)
    first = scored.answers[0].answers.id
    some = SentenceData.of(scored, {id: of for id, of in states.items() if id != first})
    found = with_probes(scored, some, [PROBE])
    assert found.missing == 4
    assert np.isnan(found.scored.answers[0].scores[PROBE.name]).all()
    with pytest.raises(DataError, match="inside=sentences"):
        SentenceData.of(scored, {})
    with pytest.raises(DataError, match="not all of them are of one model"):
        SentenceData.of(scored, {**states, first: kept(scored, 5.0, width=5)[first]})


def test_a_probe_of_other_sentences_has_no_control_and_its_interval_no_fitting(scored: ScoredClaims) -> None:
    there, here = SentenceData.of(scored, kept(scored, 5.0)), SentenceData.of(scored, kept(scored, 5.0))
    found = with_probes(scored, here, [PROBE], fit_on=there, fitted_on="there")
    arrays = PROBE.fit(there.states[:, :, 0], there.labels, there.group_numbers)
    scores = np.concatenate([one.scores[PROBE.name] for one in found.scored.answers])
    np.testing.assert_allclose(scores[here.chosen], settled(PROBE.score(arrays, here.states[:, :, 0])))
    assert found.scored.fitted == {PROBE.name: NOT_FITTED}
    assert found.scored.fitted_on == len(there.labels)
    assert not found.shuffled
    assert probe_controls(found)[1][1] == "fitted detectors: on there"
    narrow = SentenceData.of(scored, kept(scored, 5.0, width=5))
    with pytest.raises(DataError, match="cannot read another's sentence_states"):
        with_probes(scored, here, [PROBE], fit_on=narrow)


@pytest.mark.slow
def test_fewer_labels_have_a_price(scored: ScoredClaims) -> None:
    found = with_probes(scored, SentenceData.of(scored, kept(scored, 5.0)), [PROBE], prices=True)
    assert set(found.prices[PROBE.name]) == {25, 50}
    assert found.prices[PROBE.name][50] > 0.9
    assert "50 labels" in "\n".join(probe_controls(found)[1])

"""Numbers of claims against loops over pairs."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from hedge_tasks.claims.decomposition import build_decomposition
from hedge_tasks.claims.entailment import build_entailment
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.spans import LabelledSpan
from hedge_tasks.detectors.units import Labelled
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.measures.unit_numbers import flagged, top_unit
from hedge_tasks.measures.unit_table import FLAGGED, has_labels, unit_table
from hedge_tasks.runs.claims import ScoredClaims, claim_units, inquiry, score_claims
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import stratified_auroc

FINDINGS = [f"{a}{b}" for a, b in itertools.product(("cyst", "mass", "edema", "clip", "rib"), "abcdefgh")]
SUPPORTED, UNSUPPORTED = 0.7, 0.35
"""How probably a draw mentions a finding that is in the image, and one that is not."""


def scripted(
    seed: int, images: int = 60, k: int = 6, n: int = 8, m: int = 0, answers_per_image: int = 1
) -> tuple[AnswerSet, ...]:
    """Answers of k findings each, half of them in the image; draws mention each finding by chance."""
    dice = random.Random(seed)
    sets = []
    for image in range(images):
        there = {finding: dice.random() < 0.5 for finding in FINDINGS}

        def draw(said: Sequence[str] = (), there: dict[str, bool] = there) -> Answer:
            probability = {True: SUPPORTED, False: UNSUPPORTED}
            words = said or [f for f in FINDINGS if dice.random() < probability[there[f]]]
            return Answer(" ".join(f"{word.capitalize()}." for word in words))

        for i in range(answers_per_image):
            said = dice.sample(FINDINGS, k)
            baseline, spans, at = draw(said), [], 0
            for word in said:
                spans.append(LabelledSpan(at, at + len(word) + 1, int(not there[word])))
                at += len(word) + 2
            clean, noisy = (tuple(draw() for _ in range(size)) for size in (n, m))
            sets.append(AnswerSet(f"{image}-{i}", baseline, clean, noisy, group=f"{image}", claims=tuple(spans)))
    return tuple(sets)


def scored_run(sets: tuple[AnswerSet, ...], **options: bool) -> ScoredClaims:
    engine, run = build_entailment("words"), Run("scripted", "script", sets)
    asked = inquiry(sets, build_decomposition("sentence"), **options)
    return score_claims(run, asked.ask(engine))


# --- against loops ----------------------------------------------------------------------------------------------------


def made_up(seed: int, answers: int = 12) -> tuple[Labelled, np.ndarray, np.ndarray]:
    """Columns of units, their scores, and the number of each unit's answer."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(answers), rng.integers(1, 7, answers))
    labels = (rng.random(len(of)) < 0.45).astype(np.int64)
    groups = tuple(f"image {i // 2}" for i in of)
    values = rng.integers(0, 5, len(of)) / 4
    return Labelled(values, labels, groups, tuple(of.tolist())), values, of


@pytest.mark.parametrize("seed", range(6))
def test_within_and_top_and_flagged_by_loops(seed: int) -> None:
    data, values, answers = made_up(seed)
    wins, pairs, tops, chances = 0.0, 0, [], []
    for answer in sorted(set(answers)):
        mine = [(values[i], data.labels[i]) for i in np.flatnonzero(answers == answer)]
        wrong, right = ([v for v, label in mine if label == y] for y in (1, 0))
        wins += sum((a > b) + (a == b) / 2 for a in wrong for b in right)
        pairs += len(wrong) * len(right)
        if wrong and right:
            best = [label for v, label in mine if v == max(v for v, _ in mine)]
            tops.append(sum(best) / len(best))
            chances.append(len(wrong) / len(mine))
    found = stratified_auroc(values, data.labels, answers.tolist(), groups=data.groups)
    assert (found.value, found.n_pairs) == (pytest.approx(wins / pairs), pairs)
    top = top_unit(data)
    assert top is not None
    assert top.rate.value == pytest.approx(np.mean(tops))
    assert top.chance.value == pytest.approx(np.mean(chances))
    assert top.above.value == pytest.approx(np.mean(tops) - np.mean(chances))
    for share in (0.01, 0.3, 0.6):
        flag = flagged(data, share)
        assert flag is not None
        chosen = [i for i in range(len(values)) if values[i] >= flag.threshold]
        assert flag.share == pytest.approx(len(chosen) / len(values))
        assert flag.share >= share
        assert sum(values > flag.threshold) / len(values) < share  # one level less would be too few
        assert flag.precision.value == pytest.approx(np.mean(data.labels[chosen]))
        assert flag.recall.value == pytest.approx(data.labels[chosen].sum() / data.labels.sum())


# --- the table --------------------------------------------------------------------------------------------------------


def test_a_table_says_what_detectors_cost_and_flags_a_share() -> None:
    scored = scored_run(scripted(0, images=12, n=4, m=3))
    found = unit_table(scored)
    costs = {"claim_radflag": 4, "claim_luq_noisy": 3, "claim_contrast": 7}
    assert {row.detector: row.draws for row in found.rows if row.detector in costs} == costs
    assert found.settings == {"silent": "unlabelled", "errors": "all", "flag": FLAGGED}
    assert (found.n_labelled, found.coverage) == (72, Coverage(labelled=72))
    for flag in (0.0, 1.0, float("nan")):
        with pytest.raises(ConfigError, match="flag: expected a share"):
            unit_table(scored, flag=flag)
    bare = replace(scored, answers=tuple(replace(a, labels=(None,) * 6) for a in scored.answers))
    assert (has_labels(scored), has_labels(bare)) == (True, False)
    with pytest.raises(DataError, match="none of 72 claims"):
        unit_table(bare)


@pytest.mark.slow
def test_claims_of_unknown_support_are_left_out_for_everybody() -> None:
    scored = scored_run(scripted(1, images=10))
    scored.answers[0].evidence.clean[0, 0] = np.nan
    data = claim_units(scored)
    assert (data.n_unknown, len(data.labelled)) == (1, 59)
    found = unit_table(scored)
    assert {row.estimate.n for row in found.rows} == {59}

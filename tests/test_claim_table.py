"""Numbers of claims: against loops over pairs, and against a closed form."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from hedge_tasks.claims.decomposition import build_decomposition
from hedge_tasks.claims.entailment import build_entailment
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.spans import LabelledSpan
from hedge_tasks.detectors.units import Labelled, labelled
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.measures.blind import CLAIM_TEXT
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.measures.detector_table import DetectorNumbers
from hedge_tasks.measures.unit_numbers import flagged, top_unit
from hedge_tasks.measures.unit_table import FLAGGED, UnitTable, has_labels, unit_table
from hedge_tasks.runs.claims import ScoredClaims, claim_units, inquiry, score_claims
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import compare_within, estimate_auroc, stratified_auroc

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


def row_of(table: UnitTable, name: str) -> DetectorNumbers:
    return next(row for row in table.rows if row.detector == name)


def closed_form(n: int) -> float:
    """P(a wrong claim has fewer supporting draws than a right one), ties by half."""
    x = np.arange(n + 1)
    wrong, right = binom(n, UNSUPPORTED).pmf(x), binom(n, SUPPORTED).pmf(x)
    return float(sum(wrong[i] * (right[i + 1 :].sum() + right[i] / 2) for i in x))


# --- a closed form ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 8])
def test_aurocs_are_the_closed_form_and_intervals_hold_it(n: int) -> None:
    truth, pooled, within, covered = closed_form(n), [], [], [0, 0]
    for seed in range(20):
        scored = scored_run(scripted(seed, n=n), elsewhere=False)
        data = labelled(claim_units(scored).labelled, "claim_radflag")
        assert data.strata is not None
        estimate = estimate_auroc(data.values, data.labels, groups=data.groups)
        inside = stratified_auroc(data.values, data.labels, data.strata, groups=data.groups)
        assert estimate.interval is not None
        assert inside.value is not None
        assert inside.interval is not None
        for i, (low, high) in enumerate((estimate.interval, inside.interval)):
            covered[i] += low <= truth <= high
        pooled.append(estimate.value)
        within.append(inside.value)
    for values in (pooled, within):
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        assert abs(np.mean(values) - truth) < 3 * error
        assert error < 0.01
    assert min(covered) >= 16  # 19 expected; fewer than 16 happen three times in 1000


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


def test_the_errors_within_answers_are_those_of_jackknifed_images() -> None:
    """Claims of an answer are all of one image: the delete-one-image jackknife of a ratio of sums over images."""
    data, values, answers = made_up(3, answers=160)
    assert data.groups is not None
    rng = np.random.default_rng(0)
    other = np.where(rng.random(len(values)) < 0.6, values, rng.random(len(values)))
    better = values + 0.5 * data.labels

    groups = data.groups

    def of_image(x: np.ndarray, image: str) -> tuple[float, int]:
        """Wins and pairs."""
        mine = [i for i, group in enumerate(groups) if group == image]
        pairs = [(a, b) for a in mine for b in mine if answers[a] == answers[b]]
        pairs = [(x[a], x[b]) for a, b in pairs if data.labels[a] == 1 and data.labels[b] == 0]
        return sum((a > b) + (a == b) / 2 for a, b in pairs), len(pairs)

    images = sorted(set(map(str, data.groups)))
    sums = {name: np.array([of_image(x, image) for image in images]) for name, x in (("a", better), ("b", other))}

    def jackknife(left_out: np.ndarray) -> float:
        return math.sqrt((len(images) - 1) / len(images) * ((left_out - left_out.mean()) ** 2).sum())

    ratios = {name: (of.sum(axis=0) - of)[:, 0] / (of.sum(axis=0) - of)[:, 1] for name, of in sums.items()}
    within = stratified_auroc(better, data.labels, answers.tolist(), groups=data.groups)
    assert within.stderr == pytest.approx(jackknife(ratios["a"]), rel=0.05)
    found = compare_within(better, other, data.labels, answers.tolist(), groups=data.groups)
    value = {name: of.sum(axis=0)[0] / of.sum(axis=0)[1] for name, of in sums.items()}
    assert found.difference == pytest.approx(value["a"] - value["b"])
    assert found.stderr == pytest.approx(jackknife(ratios["a"] - ratios["b"]), rel=0.05)
    assert found.p_value is not None
    assert found.p_value < 0.001


# --- the table --------------------------------------------------------------------------------------------------------


def test_a_table_says_what_detectors_cost_and_flags_a_share() -> None:
    scored = scored_run(scripted(0, images=12, n=4, m=3))
    found = unit_table(scored)
    costs = {"claim_radflag": 4, "claim_luq_noisy": 3, "claim_contrast": 7}
    assert {name: row_of(found, name).draws for name in costs} == costs
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
def test_the_text_classifier_never_sees_the_labels_of_its_image() -> None:
    """Every image has a wording of its own, wrong or right as a whole: seen, it would tell; unseen, nothing can."""
    sets = []
    for i in range(20):
        spans = (LabelledSpan(0, 6, i % 2), LabelledSpan(7, 13, i % 2))
        text = f"ab{i:02d}c. ab{i:02d}d."
        sets.append(AnswerSet(str(i), Answer(text), (Answer("x"),), group=f"g{i // 2 * 2 + i % 2}", claims=spans))
    found = unit_table(scored_run(tuple(sets)))
    value = row_of(found, CLAIM_TEXT).estimate.value if CLAIM_TEXT not in found.left_out else 0.5
    assert value is not None
    assert value < 0.8


@pytest.mark.slow
def test_claims_of_unknown_support_are_left_out_for_everybody() -> None:
    scored = scored_run(scripted(1, images=10))
    scored.answers[0].evidence.clean[0, 0] = np.nan
    data = claim_units(scored)
    assert (data.n_unknown, len(data.labelled)) == (1, 59)
    found = unit_table(scored)
    assert {row.estimate.n for row in found.rows} == {59}

"""The threshold of embedding clustering: every score at every threshold, and a choice that does not flatter itself."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from hedge_tasks.clustering import build_backend
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.detectors.pipeline import Scores, cluster_answer_sets, score_clustered
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.thresholds import cluster_by_choice
from hedge_tasks.detectors.thresholds.choice import METHODS, ThresholdChoice, choose
from hedge_tasks.detectors.thresholds.plateau import Grid, plateau, weighted_areas
from hedge_tasks.detectors.thresholds.profile import DocumentProfile, profile_documents
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError
from hedge_tasks.measures.standard_measures import known_measures
from hedge_tasks.measures.threshold_report import threshold_table
from hedge_tasks.sampling import Answer, AnswerSet

LOW, HIGH = 0.8, 0.99


def encoder(texts: list[str]) -> Any:
    """Points near four directions, by the text alone, so that cosines fill the range that is searched."""
    rows = []
    for text in texts:
        dice = random.Random(text)
        centre = np.eye(8)[dice.randrange(4)]
        rows.append(centre + 0.16 * np.array([dice.gauss(0, 1) for _ in range(8)]))
    return np.array(rows)


def backend(threshold: float = 0.9) -> EmbeddingClustering:
    return EmbeddingClustering(threshold=threshold, encoder=encoder)


def answer_sets(seed: int, documents: int = 40, *, logprobs: bool = True, noisy: bool = True) -> list[AnswerSet]:
    dice = random.Random(seed)

    def answer(spread: int) -> Answer:
        text = "" if dice.random() < 0.05 else f"text {dice.randrange(spread)}"
        return Answer(text, -dice.expovariate(1) if logprobs else None)

    sets = []
    for i in range(documents):
        label = dice.randrange(2)
        n, m = dice.choice([(3, 3), (4, 2), (5, 5)])
        spread = 4 + 8 * label
        clean, perturbed = (tuple(answer(spread) for _ in range(k)) for k in (n, m))
        fields = {"question": "what?", "label": label, "group": f"image {i // 3}"}
        sets.append(AnswerSet(f"q{i}", answer(spread), clean, perturbed if noisy else (), **fields))
    return sets


def profiles_of(sets: list[AnswerSet], alpha: float = 1.0) -> list[DocumentProfile]:
    trees = backend().dendrograms([a.texts for a in sets])
    return profile_documents(sets, trees, low=LOW, high=HIGH, alpha=alpha)


def scored_at(sets: list[AnswerSet], threshold: float, alpha: float = 1.0) -> list[Scores]:
    return [score_clustered(a, alpha=alpha) for a in cluster_answer_sets(sets, backend(threshold))]


@settings(deadline=None, max_examples=6)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0.0, 1.0, 2.5]), st.floats(LOW, HIGH))
def test_the_profile_has_the_scores_of_every_threshold(
    seed: int, logprobs: bool, alpha: float, threshold: float
) -> None:
    sets = answer_sets(seed, 6, logprobs=logprobs)
    profiles = profiles_of(sets, alpha)
    steps = sorted({t for profile in profiles for t in profile.thresholds})
    between = [(a + b) / 2 for a, b in pairwise(steps)]
    for tau in (threshold, LOW, HIGH, *between[:20]):
        for profile, scores in zip(profiles, scored_at(sets, tau, alpha), strict=True):
            for name in ("se", "radflag", "vase"):
                assert profile.at(name, tau) == pytest.approx(scores[name], abs=1e-11)


def sides(sets: list[AnswerSet], choice: ThresholdChoice) -> tuple[set[str], set[str]]:
    chosen = choose(profiles_of(sets), choice)
    out = {a.group or a.id for a in sets if a.id in chosen.held_out}
    rest = {a.group or a.id for a in sets if a.id not in chosen.held_out}
    return out, rest


@pytest.mark.parametrize("seed", range(3))
def test_questions_of_one_image_stay_on_one_side(seed: int) -> None:
    out, rest = sides(answer_sets(0, 60), ThresholdChoice(method="tuned", per_class=1, seed=seed))
    assert out
    assert not out & rest
    assert sum(a.group in out for a in answer_sets(0, 60)) in range(12, 15)  # a fifth, rounded up to whole images


@pytest.mark.slow
def test_cross_fit_never_asks_the_document_itself() -> None:
    """Turning a document's own label, and those of its image, changes thresholds of others, never its own."""
    sets = answer_sets(4, 60)
    choice = ThresholdChoice(method="cross-fit", per_class=1, repeats=2)
    before = choose(profiles_of(sets), choice)
    changed_others = 0
    for group in {a.group for a in sets}:
        turned = [a.with_label(1 - (a.label or 0)) if a.group == group else a for a in sets]
        after = choose(profiles_of(turned), choice)
        mine = [a.id for a in sets if a.group == group]
        assert [after.thresholds[i] for i in mine] == [before.thresholds[i] for i in mine]
        changed_others += after.thresholds != before.thresholds
    assert changed_others > 0
    assert before.held_out == frozenset()
    assert len(before.parts) == 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "search"), [*((method, "plateau") for method in METHODS), ("cross-fit", "optuna"), ("tuned", "optuna")]
)
def test_neither_order_nor_processes_change_the_choice(method: str, search: str) -> None:
    sets = answer_sets(5)
    choice = ThresholdChoice(method=method, search=search, per_class=4, repeats=2)
    whole, outcome = cluster_by_choice(sets, backend(), choice)
    shuffled = random.Random(0).sample(sets, len(sets))
    parts = [shuffled[:13], shuffled[13:]]
    gathered = [pickle.loads(pickle.dumps(profiles_of(part))) for part in parts]
    together = [profile for part in gathered for profile in part]
    found = {}
    for part in parts:
        clustered, again = cluster_by_choice(part, backend(), choice, gather=lambda _: together)
        assert again.settings() == outcome.settings()
        found |= {a.id: a for a in clustered}
    assert found == {a.id: a for a in whole}


@pytest.mark.parametrize(
    ("label", "reason"), [(None, "no document has a label"), (1, "all 9 documents that may choose are labelled halluc")]
)
def test_without_usable_labels_a_stated_threshold_is_used(label: int | None, reason: str) -> None:
    sets = [a.with_label(label) for a in answer_sets(0)]
    clustered, chosen = cluster_by_choice(sets, backend(), ThresholdChoice(method="tuned", share=0.2, fallback=0.85))
    reasons = [part["reason"] for part in chosen.settings()["parts"]]
    assert [text[:50] for text in reasons] == [reason[:50]]
    assert not chosen.held_out
    assert clustered == cluster_answer_sets(sets, backend(0.85))


def test_the_table_has_the_roc_auc_of_every_way() -> None:
    sets, choice = answer_sets(7), ThresholdChoice(per_class=1, fallback=0.87)
    rows = {row["way"]: row for row in threshold_table(sets, Scorer("embed", backend()), choice).rows}
    assert list(rows) == ["fixed", *METHODS]
    fixed = {"way": "fixed", "lowest": 0.87, "highest": 0.87, "auroc": detection_auroc(scored_at(sets, 0.87), "se")}
    assert rows["fixed"] == fixed
    assert {row["auroc"].n for name, row in rows.items() if name != "tuned"} == {40}
    with pytest.raises(ConfigError, match="only the clustering 'embed' has a threshold"):
        threshold_table(sets, Scorer("exact", build_backend("exact")), choice)


def test_documents_that_chose_are_in_no_auroc_but_in_the_hallucination_rate() -> None:
    scorer = Scorer("embed", backend(), choice=ThresholdChoice(method="tuned", per_class=1))
    sets = answer_sets(6)
    scores = scorer.score(sets)
    out = [s for s in scores if s.held_out]
    assert len(out) in range(8, 12)
    assert all(s.label is not None and s.reported_label is None for s in out)
    assert detection_auroc(scores, "se").n == len(sets) - len(out)


def test_a_plateau_wins_over_a_spike() -> None:
    areas = np.full((1, 96), 0.6)
    areas[0, 20:61], areas[0, 80] = 0.7, 0.8
    assert plateau(areas).tolist() == [40]


@pytest.mark.parametrize("seed", range(3))
def test_the_weighted_areas_are_sklearns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, positive = rng.integers(0, 6, (5, 50)).astype(float), (rng.random(50) < 0.4).astype(float)
    weights = rng.integers(0, 4, (5, 50)).astype(float)
    weights[4, positive == 1] = 0
    expected = [[roc_auc_score(positive, x, sample_weight=w) for x in scores] for w in weights[:4]]
    found = weighted_areas(scores[0], positive, weights)
    assert found[:4] == pytest.approx([row[0] for row in expected], abs=1e-12)
    assert np.isnan(found[4])
    # Of all scores under each weighting.
    assert Grid(np.arange(5.0), scores, positive).areas(weights[:4]) == pytest.approx(np.array(expected), abs=1e-12)


def test_too_few_of_a_class_choose_nothing_and_say_so() -> None:
    sets = [a.with_label(int(i < 11)) for i, a in enumerate(answer_sets(0, 60))]
    chosen = choose(profiles_of(sets), ThresholdChoice())
    assert set(chosen.thresholds.values()) == {0.9}
    assert any("are labelled hallucinated, not 10" in (part.reason or "") for part in chosen.parts)
    assert "stderr" not in str(chosen.settings()["errors"])


def test_a_label_free_threshold_asks_no_label() -> None:
    sets = answer_sets(3)
    choice = ThresholdChoice(method="label-free", quantile=0.5)
    chosen = choose(profiles_of(sets), choice)
    turned = [a.with_label(None) for a in sets]
    assert choose(profiles_of(turned), choice).thresholds == chosen.thresholds
    [threshold] = set(chosen.thresholds.values())
    heights = np.concatenate([tree.heights for tree in backend().dendrograms([a.texts for a in sets])])
    assert threshold == pytest.approx(np.clip(np.median(heights), LOW, HIGH), abs=1e-6)


def test_the_choice_is_in_the_error_of_the_auroc() -> None:
    sets = answer_sets(8, 80)
    clustered, chosen = cluster_by_choice(sets, backend(), ThresholdChoice())
    assert set(chosen.errors) == {"se", "radflag", "vase"}
    scores = [score_clustered(a) for a in clustered]
    with_choice = detection_auroc(scores, "se")
    without = detection_auroc([replace(s, choice_errors={}) for s in scores], "se")
    assert with_choice.value == without.value
    assert chosen.errors["se"] > 0
    assert with_choice.stderr == pytest.approx(np.hypot(without.stderr or 0, chosen.errors["se"]))
    auroc, counted = (
        measure.estimate([measure.record(s, {}, {}) for s in scores])
        for measure in map(known_measures().__getitem__, ("se_auroc", "auroc_documents"))
    )
    assert auroc.stderr == pytest.approx(with_choice.stderr)
    assert counted.value == with_choice.n

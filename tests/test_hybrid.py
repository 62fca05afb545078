"""Hybrid clustering: entailment and cosine edges in one graph, with contradictions that keep clusters apart."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.clustering import (
    HybridClustering,
    Relation,
    cluster_by_embedding,
)
from hedge_tasks.clustering.base import number_by_first_appearance
from hedge_tasks.clustering.embedding import COSINE_TOLERANCE

CONTRADICTION, NEUTRAL, ENTAILMENT = Relation.CONTRADICTION, Relation.NEUTRAL, Relation.ENTAILMENT
TEXTS = [f"text {i}" for i in range(9)]


def cluster_by_hybrid(texts, **options):
    return HybridClustering(**options).cluster([texts])[0]


def random_relation(seed, weights=(1, 2, 2)):
    return lambda a, b: random.Random(f"{seed}|{a}|{b}").choices([CONTRADICTION, NEUTRAL, ENTAILMENT], weights)[0]


def random_vectors(seed):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, 4))
    return {text: (centres[i % 3] + rng.normal(scale=0.5, size=4)).tolist() for i, text in enumerate(TEXTS)}


def classifier(relation, asked=None):
    def classify(pairs):
        if asked is not None:
            assert not set(pairs) & set(asked)
            asked.extend(pairs)
        return [relation(a, b) for a, b in pairs]

    return classify


def encoder(vectors):
    return lambda texts: [vectors[text] for text in texts]


def cosines(texts, vectors):
    rows = np.array([vectors[text] for text in texts], dtype=np.float64).reshape(len(texts), -1)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def all_relations_known(texts, relation, vectors, *, threshold, rule, veto):
    """Sets of texts, merged one pair after the other, the most similar pair first."""
    cosine = cosines(texts, vectors)
    pairs = sorted(
        itertools.combinations(range(len(texts)), 2), key=lambda p: (-cosine[p], sorted((texts[p[0]], texts[p[1]])))
    )
    clusters = [{text} for text in texts]
    for i, j in pairs:
        a, b = texts[i], texts[j]
        one, other = (next(c for c in clusters if text in c) for text in (a, b))
        labels = (relation(a, b), relation(b, a))
        entailed = (
            labels == (ENTAILMENT, ENTAILMENT)
            if rule == "strict"
            else CONTRADICTION not in labels and ENTAILMENT in labels
        )
        vetoed = veto and any(CONTRADICTION in (relation(x, y), relation(y, x)) for x in one for y in other)
        if one is not other and (entailed or cosine[i, j] >= threshold) and not vetoed:
            clusters.remove(other)
            one |= other
    return number_by_first_appearance(next(i for i, c in enumerate(clusters) if text in c) for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["relaxed", "strict"])
@pytest.mark.parametrize("veto", [True, False])
@pytest.mark.parametrize("weights", [(1, 2, 2), (4, 2, 1), (0, 5, 1)], ids=["mixed", "contrary", "neutral"])
def test_clusters_are_those_of_merging_with_all_relations_known(rule, veto, weights):
    rng = random.Random(0)
    seen = set()
    for seed in range(150):
        texts = rng.sample(TEXTS, rng.randint(1, len(TEXTS)))
        relation, vectors, threshold = (
            random_relation(seed, weights),
            random_vectors(seed),
            rng.choice([0.5, 0.8, 0.95]),
        )
        got = cluster_by_hybrid(
            texts,
            threshold=threshold,
            rule=rule,
            veto=veto,
            classifier=classifier(relation, []),
            encoder=encoder(vectors),
        )
        assert got == all_relations_known(texts, relation, vectors, threshold=threshold, rule=rule, veto=veto)
        seen.add(tuple(got))
    assert len(seen) > 15


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_changes_neither_the_clusters_nor_the_questions(seed, rng):
    shuffled, asked = rng.sample(TEXTS, len(TEXTS)), ([], [])
    one, other = (
        cluster_by_hybrid(
            texts,
            threshold=0.8,
            classifier=classifier(random_relation(seed), log),
            encoder=encoder(random_vectors(seed)),
        )
        for texts, log in ((TEXTS, asked[0]), (shuffled, asked[1]))
    )
    ids = dict(zip(TEXTS, one, strict=True))
    assert other == number_by_first_appearance(ids[text] for text in shuffled)
    assert asked[0] == asked[1]


def test_answers_that_the_embeddings_connect_are_not_shown_to_the_nli_model_without_veto():
    asked = []
    HybridClustering(
        veto=False, classifier=classifier(lambda a, b: NEUTRAL, asked), encoder=lambda texts: [[1.0, 0.0]] * len(texts)
    ).cluster([TEXTS, TEXTS[:3]])
    assert asked == []


@pytest.mark.parametrize("veto", [True, False])
def test_a_cosine_that_rounding_left_just_below_the_threshold_is_an_edge(veto):
    """As in embedding clustering: what the padding of a batch does to the last digits joins or parts no answers."""

    def clusters(threshold):
        options = {"veto": veto, "classifier": classifier(lambda a, b: NEUTRAL), "encoder": encoder(vectors)}
        hybrid = cluster_by_hybrid(TEXTS[:2], threshold=threshold, **options)
        assert hybrid == cluster_by_embedding(TEXTS[:2], threshold=threshold, encoder=encoder(vectors))
        return hybrid

    vectors = {TEXTS[0]: [1.0, 0.0], TEXTS[1]: [0.6, 0.8]}
    cosine = float(np.dot(np.float32([0.6, 0.8]), np.float32([1.0, 0.0])))
    assert clusters(cosine + COSINE_TOLERANCE / 2) == [0, 0]
    assert clusters(cosine + 2 * COSINE_TOLERANCE) == [0, 1]

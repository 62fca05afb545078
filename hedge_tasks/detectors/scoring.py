"""The functions behind the detectors of the HEDGE paper and their simple baselines: arrays in, floats out."""

from __future__ import annotations

from hedge_tasks.detectors.builtin.baseline_likelihood import negative_baseline_logprob
from hedge_tasks.detectors.builtin.lexical import lexical_disagreement
from hedge_tasks.detectors.builtin.n_clusters import number_of_clusters
from hedge_tasks.detectors.builtin.predictive_entropy import negative_mean_clean_logprob
from hedge_tasks.detectors.builtin.radflag import radflag
from hedge_tasks.detectors.builtin.semantic_entropy import discrete_semantic_entropy, semantic_entropy
from hedge_tasks.detectors.builtin.vase import vase
from hedge_tasks.detectors.distribution import relative_weights, semantic_distribution

__all__ = [
    "discrete_semantic_entropy",
    "lexical_disagreement",
    "negative_baseline_logprob",
    "negative_mean_clean_logprob",
    "number_of_clusters",
    "radflag",
    "relative_weights",
    "semantic_distribution",
    "semantic_entropy",
    "vase",
]

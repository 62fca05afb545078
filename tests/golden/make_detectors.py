"""Make `detectors.json`: what lm-polygraph and uqlm say of 36 random questions, by their own code.

    pip install --no-deps lm-polygraph==0.7.0 uqlm==0.6.7     # in an environment of its own
    pip install langchain-core rich rouge-score nltk absl-py sentence-transformers
    python tests/golden/make_detectors.py

The files of both libraries are imported one by one, without what their packages import besides. NLI probabilities,
embeddings and token log-probabilities are drawn, so that no model is needed; equal answers have equal ones and entail
each other. Words are such that neither stemming nor splitting at punctuation matters, and no cosine is negative.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import math
import random
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
QUESTIONS = 36
WORDS = ["lung", "left", "clear", "heart", "rib", "no", "small", "cyst"]
Question = dict[str, Any]


def bare(library: str, *folders: str) -> None:
    """Make a library's packages importable whose own imports are left out."""
    if library in sys.modules:
        return
    found = importlib.util.find_spec(library)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"{library} is not installed")
    for folder in ("", *folders):
        module = types.ModuleType(f"{library}.{folder}".rstrip("."))
        module.__path__ = [str(Path(found.submodule_search_locations[0], *folder.split(".")))]
        sys.modules[module.__name__] = module


def lm_polygraph(file: str, estimator: str, **options: Any) -> Any:
    bare("lm_polygraph", "estimators", "utils")
    return getattr(importlib.import_module(f"lm_polygraph.estimators.{file}"), estimator)(**options)


def uqlm(file: str) -> Any:
    bare("uqlm", "black_box", "black_box.baseclass", "nli", "utils")
    return importlib.import_module(f"uqlm.{file}")


def question(seed: int) -> Question:
    """A baseline answer and n clean ones, some of them equal, with everything that a detector may need."""
    dice = random.Random(seed)
    n = 1 + seed % 12
    pool = [" ".join(dice.choices(WORDS, k=dice.randint(1, 4))) for _ in range(dice.randint(1, 2 + n))]
    texts = [dice.choice(pool) for _ in range(1 + n)]
    meanings = {text: dice.randrange(1 + len(pool) // 2) for text in pool}
    tokens = {text: [round(-dice.expovariate(2), 6) for _ in range(dice.randint(1, 6))] for text in pool}
    vectors = {text: [round(abs(dice.gauss(0.3, 1)), 6) for _ in range(4)] for text in pool}
    relations = {}
    for pair in ((a, b) for a in pool for b in pool):
        shares = [dice.expovariate(1) ** 2 + 1e-3 for _ in range(3)]
        relations[pair] = [round(share / sum(shares), 6) for share in shares[:2]] if pair[0] != pair[1] else [0.0, 1.0]
    return {
        "texts": texts,
        "cluster_ids": [meanings[text] for text in texts],
        "token_logprobs": [tokens[text] for text in texts],
        "vectors": [vectors[text] for text in texts],
        "contradiction": [[relations[a, b][0] for b in texts] for a in texts],
        "entailment": [[relations[a, b][1] for b in texts] for a in texts],
    }


def matrices(q: Question) -> tuple[Any, Any, Any, Any]:
    """Contradiction, neutral, entailment, cosines: shape (1 + n, 1 + n)."""
    contradiction, entailment = np.array(q["contradiction"]), np.array(q["entailment"])
    unit = np.array(q["vectors"]) / np.linalg.norm(q["vectors"], axis=1, keepdims=True)
    cosines = np.minimum(1.0, unit @ unit.T)
    cosines[np.equal.outer(np.array(q["texts"]), np.array(q["texts"]))] = 1.0
    return contradiction, 1 - contradiction - entailment, entailment, cosines


def lm_polygraph_stats(q: Question) -> dict[str, Any]:
    """One question as lm-polygraph's estimators take a batch of them."""
    contradiction, neutral, entailment, _ = matrices(q)
    clean = slice(1, None)
    ids = q["cluster_ids"][1:]
    classes = list(dict.fromkeys(ids))
    with np.errstate(divide="ignore"):
        logits = {"entail": np.log(entailment[clean, clean]), "contra": np.log(contradiction[clean, clean])}
    return {
        "sample_texts": [q["texts"][1:]],
        "sample_log_probs": [[math.fsum(tokens) for tokens in q["token_logprobs"][1:]]],
        "sample_tokens": [[list(range(len(tokens))) for tokens in q["token_logprobs"][1:]]],
        "greedy_log_likelihoods": [q["token_logprobs"][0]],
        "semantic_matrix_entail": entailment[clean, clean][None],
        "semantic_matrix_contra": contradiction[clean, clean][None],
        "semantic_matrix_entail_logits": logits["entail"][None],
        "semantic_matrix_contra_logits": logits["contra"][None],
        "greedy_semantic_matrix_contra_forward": contradiction[:1, clean],
        "greedy_semantic_matrix_neutral_forward": neutral[:1, clean],
        "semantic_classes_entail": {
            "class_to_sample": [[[i for i, other in enumerate(ids) if other == one] for one in classes]],
            "sample_to_class": [[classes.index(one) for one in ids]],
        },
    }


def with_cosines(q: Question) -> dict[str, Any]:
    """The same with cosines where lm-polygraph has entailment, and the similarities of a cross-encoder."""
    cosines = matrices(q)[3]
    clean = cosines[1:, 1:]
    return {
        **lm_polygraph_stats(q),
        "semantic_matrix_entail": clean[None],
        "semantic_matrix_contra": (1 - clean)[None],
        "sample_sentence_similarity": clean[None],
        "greedy_sentence_similarity": cosines[:1, 1:],
    }


def with_entailment(q: Question) -> dict[str, Any]:
    """The same with the mean entailment of both directions as the similarities of a cross-encoder."""
    entailment = matrices(q)[2][1:, 1:]
    return {**lm_polygraph_stats(q), "sample_sentence_similarity": ((entailment + entailment.T) / 2)[None]}


def estimators() -> dict[str, Callable[[Question], float]]:
    """By our detector's name: what lm-polygraph says in its place."""

    def of(stats: Callable[[Question], Any], file: str, name: str, **options: Any) -> Callable[[Question], float]:
        estimator = lm_polygraph(file, name, **options)
        return lambda q: float(estimator(stats(q))[0])

    plain, nli, words = lm_polygraph_stats, {"similarity_score": "NLI_score"}, {"similarity_score": "Jaccard_score"}
    graphs = [("nli", plain, nli), ("cosine", with_cosines, nli), ("jaccard", plain, words)]
    found = {
        "msp": of(plain, "max_probability", "MaximumSequenceProbability"),
        "baseline_nll": of(plain, "perplexity", "Perplexity"),
        "predictive_entropy": of(plain, "monte_carlo_sequence_entropy", "MonteCarloSequenceEntropy"),
        "clean_nll": of(plain, "monte_carlo_normalized_sequence_entropy", "MonteCarloNormalizedSequenceEntropy"),
        "discrete_se": of(
            plain,
            "semantic_entropy",
            "SemanticEntropy",
            class_probability_estimation="frequency",
            entropy_estimation="mean",
        ),
        "lexical": of(plain, "lexical_similarity", "LexicalSimilarity", metric="rougeL"),
        "kle": of(plain, "kernel_language_entropy", "KernelLanguageEntropy", scale=False),
        "kle_cosine": of(with_cosines, "kernel_language_entropy", "KernelLanguageEntropy", scale=False),
        "luq": of(plain, "luq", "LUQ"),
        "semantic_density": of(plain, "semantic_density", "SemanticDensity", concat_input=False),
        "sentence_sar": of(with_cosines, "sentence_sar", "SentenceSAR"),
        "sentence_sar_nli": of(with_entailment, "sentence_sar", "SentenceSAR"),
        "cocoa": of(with_cosines, "cocoa", "CocoaMSP"),
        "cocoa_nll": of(with_cosines, "cocoa", "CocoaPPL"),
    }
    for kind, stats, options in graphs:
        found[f"degree_{kind}"] = of(stats, "deg_mat", "DegMat", **options)
        found[f"eigv_{kind}"] = of(stats, "eig_val_laplacian", "EigValLaplacian", **options)
        found[f"eccentricity_{kind}"] = of(stats, "eccentricity", "Eccentricity", **options)
    return found


def uqlm_nli(q: Question) -> Any:
    """uqlm's NLI with its cache of probabilities full, so that it needs no model."""
    nli_class = uqlm("nli.nli").NLI
    nli = nli_class.__new__(nli_class)
    nli.label_mapping = ["contradiction", "neutral", "entailment"]
    rows = np.stack(matrices(q)[:3], axis=-1)
    texts = q["texts"]
    nli.probabilities = {(a, b): rows[i, j][None] for i, a in enumerate(texts) for j, b in enumerate(texts)}
    return nli


def uqlm_consistency(name: str) -> Callable[[Question], float]:
    """uqlm's noncontradiction or entailment score: a confidence."""
    scorer_class = uqlm("black_box.consistency").ConsistencyScorer

    def score(q: Question) -> float:
        scorer = scorer_class(nli=uqlm_nli(q), scorers=[name])
        scorer.available_nli_scores = {}
        return float(scorer._observed_consistency_i(q["texts"][0], q["texts"][1:])[name])

    return score


def uqlm_cosine(q: Question) -> float:
    """uqlm's cosine score: a confidence."""
    scorer_class = uqlm("black_box.cosine").CosineScorer
    scorer = scorer_class.__new__(scorer_class)
    scorer.max_length = 2000
    vectors = dict(zip(q["texts"], np.array(q["vectors"]), strict=True))
    scorer.model = types.SimpleNamespace(encode=lambda texts: [vectors[text] for text in texts])
    return float(np.mean(scorer._compute_score(q["texts"][0], q["texts"][1:])))


def uqlm_entropy(length_normalize: bool) -> Callable[[Question], float]:
    """uqlm's semantic entropy of given clusters."""
    functions = uqlm("nli.entropy_utils")

    def score(q: Question) -> float:
        logprobs = [[{"logprob": value} for value in tokens] for tokens in q["token_logprobs"][1:]]
        ids = q["cluster_ids"][1:]
        probabilities, _ = functions.compute_response_probabilities(logprobs, len(ids), length_normalize)
        clusters = [[i for i, other in enumerate(ids) if other == one] for one in dict.fromkeys(ids)]
        return float(
            functions.compute_semantic_entropy(functions.compute_cluster_probabilities(probabilities, clusters))
        )

    return score


def uqlm_scorers() -> dict[str, Callable[[Question], float]]:
    """By our detector's name: what uqlm says in its place."""
    return {
        "se": uqlm_entropy(True),
        "se_sum": uqlm_entropy(False),
        "contradiction": uqlm_consistency("noncontradiction"),
        "baseline_entailment": uqlm_consistency("entailment"),
        "baseline_cosine": uqlm_cosine,
    }


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    questions = [question(seed) for seed in range(QUESTIONS)]
    libraries = {"lm_polygraph": estimators(), "uqlm": uqlm_scorers()}
    golden = {
        "versions": {name: importlib.metadata.version(name) for name in ("lm-polygraph", "uqlm")},
        "questions": questions,
        "values": {
            library: {
                name: [value if math.isfinite(value := score(q)) else None for q in questions]
                for name, score in scores.items()
            }
            for library, scores in libraries.items()
        },
    }
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items())
    (HERE / "detectors.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Make `detectors.json`: what lm-polygraph and uqlm say of 60 random questions, by their own code.

    pip install --no-deps lm-polygraph==0.7.0 uqlm==0.6.7     # in an environment of its own
    pip install langchain-core rich rouge-score nltk absl-py sentence-transformers
    python tests/golden/make_detectors.py

The files of both libraries are imported one by one, without what their packages import besides. NLI probabilities,
embeddings and token log-probabilities are drawn, so that no model is needed; equal answers have equal ones. Words are
such that stemming does not matter. In the first 36 questions answers entail themselves, have no punctuation, and no
cosine is negative. The last 24 are wild: an answer entails itself with any probability, has punctuation and capitals,
and cosines have both signs. There lm-polygraph is asked what we define: of cosines below zero as zero, and, where it
splits at spaces, of the words in lower case. uqlm's cosines keep their sign.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import math
import random
import re
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
QUESTIONS, WILD = 36, 24
WORDS = ["lung", "left", "clear", "heart", "rib", "no", "small", "cyst"]
MARKS = ("", "", "", ",", ".", ";", "?", ")", " -")
Question = dict[str, Any]

# Questions -> what is to be timed: the library's own code on them, which gives a number a question.
Prepare = Callable[[list[Question]], Callable[[], Any]]


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


def question(seed: int, n: int, *, wild: bool = False) -> Question:
    """A baseline answer and n clean ones, some of them equal, with everything that a detector may need."""
    dice = random.Random(seed)
    pool = [" ".join(dice.choices(WORDS, k=dice.randint(1, 4))) for _ in range(dice.randint(1, 2 + n))]
    if wild:
        pool = [" ".join(dice.choice((str, str.title))(word) + dice.choice(MARKS) for word in t.split()) for t in pool]
    texts = [dice.choice(pool) for _ in range(1 + n)]
    meanings = {text: dice.randrange(1 + len(pool) // 2) for text in pool}
    tokens = {text: [round(-dice.expovariate(2), 6) for _ in range(dice.randint(1, 6))] for text in pool}
    sign: Callable[[float], float] = float if wild else abs
    vectors = {text: [round(sign(dice.gauss(0.3, 1)), 6) for _ in range(4)] for text in pool}
    relations = {}
    for pair in ((a, b) for a in pool for b in pool):
        shares = [dice.expovariate(1) ** 2 + 1e-3 for _ in range(3)]
        drawn = [round(share / sum(shares), 6) for share in shares[:2]]
        relations[pair] = drawn if wild or pair[0] != pair[1] else [0.0, 1.0]
    return {
        "texts": texts,
        "cluster_ids": [meanings[text] for text in texts],
        "token_logprobs": [tokens[text] for text in texts],
        "vectors": [vectors[text] for text in texts],
        "contradiction": [[relations[a, b][0] for b in texts] for a in texts],
        "entailment": [[relations[a, b][1] for b in texts] for a in texts],
    }


def matrices(q: Question) -> tuple[Any, Any, Any, Any]:
    """Contradiction, neutral, entailment, cosines that are not negative: shape (1 + n, 1 + n)."""
    contradiction, entailment = np.array(q["contradiction"]), np.array(q["entailment"])
    unit = np.array(q["vectors"]) / np.linalg.norm(q["vectors"], axis=1, keepdims=True)
    cosines = np.clip(unit @ unit.T, 0.0, 1.0)
    cosines[np.equal.outer(np.array(q["texts"]), np.array(q["texts"]))] = 1.0
    return contradiction, 1 - contradiction - entailment, entailment, cosines


def lm_polygraph_stats(questions: list[Question]) -> dict[str, Any]:
    """The questions, all with as many answers, as lm-polygraph's estimators take them."""
    contradiction, neutral, entailment, _ = (np.stack(each) for each in zip(*map(matrices, questions), strict=True))
    clean = slice(1, None)
    tokens = [q["token_logprobs"] for q in questions]
    with np.errstate(divide="ignore"):
        logits = {"entail": np.log(entailment), "contra": np.log(contradiction)}
    ids = [q["cluster_ids"][1:] for q in questions]
    return {
        "sample_texts": [q["texts"][1:] for q in questions],
        "sample_log_probs": [[math.fsum(one) for one in each[1:]] for each in tokens],
        "sample_tokens": [[list(range(len(one))) for one in each[1:]] for each in tokens],
        "greedy_log_likelihoods": [each[0] for each in tokens],
        "semantic_matrix_entail": entailment[:, clean, clean],
        "semantic_matrix_contra": contradiction[:, clean, clean],
        "semantic_matrix_entail_logits": logits["entail"][:, clean, clean],
        "semantic_matrix_contra_logits": logits["contra"][:, clean, clean],
        "greedy_semantic_matrix_contra_forward": contradiction[:, 0, clean],
        "greedy_semantic_matrix_neutral_forward": neutral[:, 0, clean],
        "semantic_classes_entail": {
            "class_to_sample": [members(each) for each in ids],
            "sample_to_class": [[list(dict.fromkeys(each)).index(one) for one in each] for each in ids],
        },
    }


def members(ids: list[int]) -> list[list[int]]:
    """The places of each cluster's answers."""
    return [[i for i, other in enumerate(ids) if other == one] for one in dict.fromkeys(ids)]


def with_cosines(questions: list[Question]) -> dict[str, Any]:
    """The same with cosines where lm-polygraph has entailment, and the similarities of a cross-encoder."""
    cosines = np.stack([matrices(q)[3] for q in questions])
    clean = cosines[:, 1:, 1:]
    return {
        **lm_polygraph_stats(questions),
        "semantic_matrix_entail": clean,
        "semantic_matrix_contra": 1 - clean,
        "sample_sentence_similarity": clean,
        "greedy_sentence_similarity": cosines[:, 0, 1:],
    }


def with_bare_words(questions: list[Question]) -> dict[str, Any]:
    """The same with the words of the answers alone, for what splits texts at spaces."""
    bare = [[" ".join(re.findall("[a-z]+", text.lower())) for text in q["texts"][1:]] for q in questions]
    return {**lm_polygraph_stats(questions), "sample_texts": bare}


def with_entailment(questions: list[Question]) -> dict[str, Any]:
    """The same with the mean entailment of both directions as the similarities of a cross-encoder."""
    entailment = np.stack([matrices(q)[2][1:, 1:] for q in questions])
    both = (entailment + entailment.transpose(0, 2, 1)) / 2
    return {**lm_polygraph_stats(questions), "sample_sentence_similarity": both}


def lm_polygraph_scores() -> dict[str, Prepare]:
    """By our detector's name: what lm-polygraph says in its place."""

    def of(stats: Callable[[list[Question]], Any], file: str, name: str, **options: Any) -> Prepare:
        estimator = lm_polygraph(file, name, **options)

        def prepare(questions: list[Question]) -> Callable[[], Any]:
            given = stats(questions)
            return lambda: estimator(given)

        return prepare

    plain, nli, words = lm_polygraph_stats, {"similarity_score": "NLI_score"}, {"similarity_score": "Jaccard_score"}
    graphs = [("nli", plain, nli), ("cosine", with_cosines, nli), ("jaccard", with_bare_words, words)]
    discrete = {"class_probability_estimation": "frequency", "entropy_estimation": "mean"}
    found = {
        "msp": of(plain, "max_probability", "MaximumSequenceProbability"),
        "baseline_nll": of(plain, "perplexity", "Perplexity"),
        "predictive_entropy": of(plain, "monte_carlo_sequence_entropy", "MonteCarloSequenceEntropy"),
        "clean_nll": of(plain, "monte_carlo_normalized_sequence_entropy", "MonteCarloNormalizedSequenceEntropy"),
        "discrete_se": of(plain, "semantic_entropy", "SemanticEntropy", **discrete),
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


def numbered(q: Question) -> list[str]:
    """Answers of which no two are equal: of equal ones uqlm does not ask, and we do."""
    return [f"{i} {text}" for i, text in enumerate(q["texts"])]


def uqlm_nli(q: Question) -> Any:
    """uqlm's NLI with its cache of probabilities full, so that it needs no model."""
    nli_class = uqlm("nli.nli").NLI
    nli = nli_class.__new__(nli_class)
    nli.label_mapping = ["contradiction", "neutral", "entailment"]
    rows = np.stack(matrices(q)[:3], axis=-1)
    texts = numbered(q)
    nli.probabilities = {(a, b): rows[i, j][None] for i, a in enumerate(texts) for j, b in enumerate(texts)}
    return nli


def uqlm_consistency(name: str) -> Prepare:
    """uqlm's noncontradiction or entailment score: a confidence."""
    scorer_class = uqlm("black_box.consistency").ConsistencyScorer

    def prepare(questions: list[Question]) -> Callable[[], Any]:
        scorers = [scorer_class(nli=uqlm_nli(q), scorers=[name]) for q in questions]
        for scorer in scorers:
            scorer.available_nli_scores = {}
        texts = map(numbered, questions)
        asked = [(scorer, each[0], each[1:]) for scorer, each in zip(scorers, texts, strict=True)]
        return lambda: [scorer._observed_consistency_i(base, clean)[name] for scorer, base, clean in asked]

    return prepare


def uqlm_cosine(questions: list[Question]) -> Callable[[], Any]:
    """uqlm's cosine score: a confidence."""
    scorer_class = uqlm("black_box.cosine").CosineScorer

    def scorer_of(q: Question) -> Any:
        scorer = scorer_class.__new__(scorer_class)
        scorer.max_length = 2000
        vectors = dict(zip(q["texts"], np.array(q["vectors"]), strict=True))
        scorer.model = types.SimpleNamespace(encode=lambda texts: [vectors[text] for text in texts])
        return scorer

    asked = [(scorer_of(q), q["texts"][0], q["texts"][1:]) for q in questions]
    return lambda: [np.mean(scorer._compute_score(base, clean)) for scorer, base, clean in asked]


def uqlm_entropy(length_normalize: bool) -> Prepare:
    """uqlm's semantic entropy of given clusters."""
    functions = uqlm("nli.entropy_utils")

    def entropy(logprobs: list[Any], clusters: list[list[int]]) -> float:
        probabilities, _ = functions.compute_response_probabilities(logprobs, len(logprobs), length_normalize)
        shares = functions.compute_cluster_probabilities(probabilities, clusters)
        return float(functions.compute_semantic_entropy(shares))

    def prepare(questions: list[Question]) -> Callable[[], Any]:
        asked = [
            ([[{"logprob": x} for x in tokens] for tokens in q["token_logprobs"][1:]], members(q["cluster_ids"][1:]))
            for q in questions
        ]
        return lambda: [entropy(logprobs, clusters) for logprobs, clusters in asked]

    return prepare


def uqlm_scores() -> dict[str, Prepare]:
    """By our detector's name: what uqlm says in its place."""
    return {
        "se": uqlm_entropy(True),
        "se_sum": uqlm_entropy(False),
        "contradiction": uqlm_consistency("noncontradiction"),
        "baseline_entailment": uqlm_consistency("entailment"),
        "baseline_cosine": uqlm_cosine,
    }


def value_of(prepare: Prepare, q: Question) -> float | None:
    [value] = prepare([q])()
    return float(value) if math.isfinite(value) else None


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    questions = [question(seed, 1 + seed % 12) for seed in range(QUESTIONS)]
    questions += [question(QUESTIONS + seed, 1 + seed % 12, wild=True) for seed in range(WILD)]
    libraries = {"lm_polygraph": lm_polygraph_scores(), "uqlm": uqlm_scores()}
    golden = {
        "versions": {name: importlib.metadata.version(name) for name in ("lm-polygraph", "uqlm")},
        "questions": questions,
        "values": {
            library: {name: [value_of(prepare, q) for q in questions] for name, prepare in scores.items()}
            for library, scores in libraries.items()
        },
    }
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items())
    (HERE / "detectors.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

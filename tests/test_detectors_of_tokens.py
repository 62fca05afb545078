"""Detectors on tokens and embeddings against sums written out."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors import get
from hedge_tasks.detectors.evidence import evidence_of
from hedge_tasks.detectors.scorer import evidence_for


def made(seed: int) -> tuple[AnswerSet, np.ndarray, list[list[float]]]:
    """An answer set, unit vectors of its answers, and the probabilities of the likeliest tokens."""
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    tokens, alternatives, told = [], [], []
    for t in range(dice.randint(1, 6)):
        p = rng.dirichlet([0.5] * 4) * dice.uniform(0.6, 1)
        names = [f"w{t}{i}" for i in range(4)]
        pairs = [(name, math.log(x)) for name, x in zip(names, p.tolist(), strict=True)]
        chosen = dice.randrange(4)
        tokens.append(pairs[chosen])
        # Some servers name the chosen token among the likeliest, and some do not.
        alternatives.append(tuple(pairs if dice.random() < 0.5 else pairs[:chosen] + pairs[chosen + 1 :]))
        told.append(p.tolist())
    mean = sum(p for _, p in tokens) / len(tokens)
    clean = tuple(Answer(f"a{i}", math.log(rng.uniform(0.1, 0.9)), 3) for i in range(5))
    baseline = Answer("b", mean, len(tokens), tokens=tuple(tokens), alternatives=tuple(alternatives))
    vectors = rng.normal(size=(6, 4))
    return AnswerSet("q", baseline, clean), vectors / np.linalg.norm(vectors, axis=1, keepdims=True), told


@pytest.mark.parametrize("seed", range(8))
def test_against_sums_written_out(seed: int) -> None:
    answers, vectors, told = made(seed)
    evidence = evidence_of(answers, cosines=vectors @ vectors.T)
    entropies = [-sum(x / sum(p) * math.log(x / sum(p)) for x in p) for p in told]
    logprobs = [p for _, p in answers.baseline.tokens or ()]
    apart = [1 - max(0.0, sum(a * b for a, b in zip(vectors[0], v, strict=True))) for v in vectors[1:]]
    covariance = np.cov(vectors[1:], bias=True) * 0.0
    for i in range(5):
        for j in range(5):
            centre = vectors[1:].mean(axis=0)
            covariance[i, j] = (vectors[1 + i] - centre) @ (vectors[1 + j] - centre)
    wanted = {
        "min_token_probability": max(-p for p in logprobs),
        "mean_token_entropy": sum(entropies) / len(entropies),
        "max_token_entropy": max(entropies),
        "cocoa_mte": sum(entropies) / len(entropies) * sum(apart) / 5,
        "mc_probability": 1 - sum(math.exp(a.mean_logprob or 0.0) for a in answers.clean) / 5,
        "eigenscore": math.log(np.linalg.det(covariance + 1e-3 * np.eye(5))) / 5,
    }
    for name, value in wanted.items():
        assert get(name).score(evidence) == pytest.approx(value, abs=1e-6), name


class Letters:
    """Embeds a text as the numbers of its letters, which `alike` below counts anew."""

    def cosines(self, texts):
        return [np.array([[alike(a, b) for b in one] for a in one]) for one in texts]


def alike(a: str, b: str) -> float:
    """Cosine of two texts' numbers of letters, blanks left out."""
    one, other = Counter(a.replace(" ", "")), Counter(b.replace(" ", ""))
    norms = [math.sqrt(sum(n * n for n in of.values())) for of in (one, other)]
    return sum(n * other[letter] for letter, n in one.items()) / math.prod(norms)


def spoken(text: str, dice: random.Random) -> Answer:
    """An answer of a token a word."""
    words = [word if i == 0 else f" {word}" for i, word in enumerate(text.split(" "))]
    tokens = tuple((word, -dice.expovariate(1)) for word in words)
    return Answer(text, sum(p for _, p in tokens) / len(tokens), len(tokens), tokens=tokens)


@pytest.mark.parametrize("seed", range(5))
def test_token_sar_and_sar_are_their_formulas_written_out(seed: int) -> None:
    dice = random.Random(seed)
    texts = [" ".join(dice.sample(["a", "cyst", "in", "the", "left", "lung"], dice.randint(2, 5))) for _ in range(5)]
    answers = [spoken(text, dice) for text in texts]
    asked = AnswerSet("q", answers[0], tuple(answers[1:4]), (answers[4],), question="what is it")
    [evidence] = evidence_for([asked], Letters(), ["token_sar", "sar"])  # type: ignore[arg-type]

    def token_sar(text: str, answer: Answer) -> float:
        words, relevances = text.split(" "), []
        for t in range(len(words)):
            shorter = " ".join(words[:t] + words[t + 1 :])
            relevances.append(1 - alike(f"what is it {text}", f"what is it {shorter}"))
        told = [p for _, p in answer.tokens or ()]
        return -sum(r * p for r, p in zip(relevances, told, strict=True)) / sum(relevances)

    of_tokens = [token_sar(text, answer) for text, answer in zip(texts, answers, strict=True)]
    assert get("token_sar").score(evidence) == pytest.approx(of_tokens[0], abs=1e-5)
    terms = []
    for i in range(1, 4):
        near = sum(alike(texts[i], texts[j]) * math.exp(-of_tokens[j]) for j in range(1, 4) if j != i)
        terms.append(-math.log(math.exp(-of_tokens[i]) + near / 0.001))
    assert get("sar").score(evidence) == pytest.approx(sum(terms) / 3, abs=1e-5)

"""Make `inside.json`: what lm-polygraph says of drawn attention, logits and hidden states, by its own code.

    pip install --no-deps lm-polygraph==0.7.0     # in an environment of its own, with numpy, scipy and torch
    python tests/golden/make_inside.py

The files of the library are imported one by one, without what its packages import besides; no model is needed.
"""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from make_detectors import lm_polygraph

QUESTIONS, LAYERS, HEADS, VOCABULARY, WIDTH = 12, 5, 3, 7, 6


def question(seed: int) -> dict[str, Any]:
    """Attention on the tokens of an answer, next-token log-probabilities, and states of five draws."""
    rng = np.random.default_rng(seed)
    tokens = int(rng.integers(2, 7))
    attention = np.tril(rng.dirichlet(np.ones(tokens + 2), size=(LAYERS, HEADS, tokens))[..., :tokens], -1)
    logits = rng.normal(size=(tokens, VOCABULARY)) * 2
    logprobs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    said = rng.integers(0, VOCABULARY, tokens)
    of = {"attention": attention, "logprobs": logprobs, "said": said, "states": rng.normal(size=(5, WIDTH))}
    return {name: np.round(value, 6).tolist() for name, value in of.items()}


def distances(questions: list[dict[str, Any]]) -> tuple[list[float], list[float]]:
    """Distances of the first draw of each question from those of even questions, and less those from all."""
    states = np.array([q["states"][0] for q in questions])
    stats: dict[str, Any] = {
        "embeddings_decoder": states.astype(np.float32),
        "train_embeddings_decoder": np.concatenate([q["states"] for q in questions[::2]]).astype(np.float32),
        "background_train_embeddings_decoder": np.concatenate([q["states"] for q in questions]).astype(np.float32),
    }
    alone = lm_polygraph("mahalanobis_distance", "MahalanobisDistanceSeq")(stats)
    relative = lm_polygraph("relative_mahalanobis_distance", "RelativeMahalanobisDistanceSeq")(stats)
    return [float(x) for x in alone], [float(x) for x in relative]


def main() -> None:
    questions = [question(seed) for seed in range(QUESTIONS)]
    model = SimpleNamespace(model=SimpleNamespace(config=SimpleNamespace()))
    stats: dict[str, Any] = {
        "model": model,
        "attention_all": [
            np.array(q["attention"]).reshape(LAYERS * HEADS, *np.shape(q["attention"])[2:]) for q in questions
        ],
        "greedy_log_likelihoods": [
            [row[i] for row, i in zip(q["logprobs"], q["said"], strict=True)] for q in questions
        ],
        "greedy_log_probs": [[np.array(row) for row in q["logprobs"]] for q in questions],
        "sample_embeddings": [q["states"] for q in questions],
        "entropy": [[-float(np.exp(row) @ np.array(row)) for row in q["logprobs"]] for q in questions],
    }
    estimators = {
        "rauq": lm_polygraph("rauq", "RAUQ", n_layers=LAYERS, n_heads=HEADS),
        "self_certainty": lm_polygraph("self_certainty", "SelfCertainty"),
        "inside": lm_polygraph("eigenscore", "EigenScore"),
        "mean_token_entropy": lm_polygraph("token_entropy", "MeanTokenEntropy"),
    }
    values = {name: [float(x) for x in estimator(stats)] for name, estimator in estimators.items()}
    values["mahalanobis"], values["relative_mahalanobis"] = distances(questions)
    about = {"lm-polygraph": importlib.metadata.version("lm-polygraph"), "questions": questions, "values": values}
    path = Path(__file__).parent / "inside.json"
    path.write_text(json.dumps(about) + "\n", "utf-8")


if __name__ == "__main__":
    main()

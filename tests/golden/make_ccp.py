"""Make `ccp.json`: claim-conditioned probabilities of random claims by lm-polygraph's own code.

    pip install --no-deps lm-polygraph==0.7.0     # in an environment of its own
    python tests/golden/make_ccp.py

As in `make_claims.py` no model is asked: the labels of NLI are drawn. Token t of an answer is the word "t", its
alternative j the word "t.j"; the word "the" is the one function word. A claim is some tokens in a row. NLI labels of
the pairs (claim up to the token, claim up to the alternative), forward and backward, are listed in the order of
answers, claims, tokens and alternatives.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from make_detectors import bare

HERE = Path(__file__).parent
ANSWERS = 12
NLI = ("contra", "neutral", "entail")


def answer(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 12)), int(rng.integers(1, 6))
    words = ["the" if rng.random() < 0.2 else f"{t}" for t in range(n)]
    shares = rng.dirichlet([1.0] * (k + 2), size=n)[:, : k + 1]
    cuts = [0, *sorted(rng.choice(np.arange(1, n), size=min(2, n - 1), replace=False).tolist()), n]
    claims = [[start, end] for start, end in itertools.pairwise(cuts)]
    return {
        "words": words,
        "alternatives": [[f"{t}.{j}" for j in range(k)] for t in range(n)],
        "logprobs": np.log(shares).round(6).tolist(),
        "claims": claims,
        "nli": rng.integers(0, 3, size=(n, k, 2)).tolist(),
    }


def scores(one: dict[str, Any]) -> list[float]:
    bare("lm_polygraph", "estimators", "estimators.claim", "stat_calculators", "utils")
    claims = types.ModuleType("lm_polygraph.stat_calculators.extract_claims")
    claims.Claim = object  # type: ignore[attr-defined]
    corpus = types.ModuleType("nltk.corpus")
    corpus.stopwords = None  # type: ignore[attr-defined]
    sys.modules |= {claims.__name__: claims, "nltk": types.ModuleType("nltk"), "nltk.corpus": corpus}
    module = importlib.import_module("lm_polygraph.estimators.claim.claim_conditioned_probability")
    estimator = module.ClaimConditionedProbabilityClaim("fact_pref", lambda word: word == "the")
    alternatives = [
        list(zip([word, *others], logprobs, strict=True))
        for word, others, logprobs in zip(one["words"], one["alternatives"], one["logprobs"], strict=True)
    ]

    def matrix(t: int) -> list[list[str | None]]:
        labels = one["nli"][t]
        size = len(labels) + 1
        found: list[list[str | None]] = [[None] * size for _ in range(size)]
        found[0][0] = "entail"
        for j, (forward, backward) in enumerate(labels, start=1):
            found[0][j], found[j][0] = NLI[forward], NLI[backward]
        return found

    spans = [range(start, end) for start, end in one["claims"]]
    stats = {
        "greedy_tokens_alternatives": [alternatives],
        "greedy_tokens_alternatives_fact_pref_nli": [[[matrix(t) for t in span] for span in spans]],
        "claims": [[types.SimpleNamespace(aligned_token_ids=list(span)) for span in spans]],
    }
    [found] = estimator(stats)
    return [float(value) for value in found]


def main() -> None:
    answers = [answer(seed) for seed in range(ANSWERS)]
    golden = {
        "versions": {"lm-polygraph": importlib.metadata.version("lm-polygraph")},
        "answers": answers,
        "lm_polygraph": [scores(one) for one in answers],
    }
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items())
    (HERE / "ccp.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Make `claims.json`: what uqlm and lm-polygraph say of the claims of 12 random answers, by their own code.

    pip install --no-deps lm-polygraph==0.7.0 uqlm==0.6.7     # in an environment of its own
    pip install langchain-core rich networkx scipy pydantic
    python tests/golden/make_claims.py

As in `make_detectors.py`, whose helpers it uses, files are imported one by one and NLI probabilities are drawn: no
model is asked. Claim k of an answer is the text "k", draw j the text "draw j". There are two claims and two draws at
least: uqlm's graph of a single claim divides by zero. Its graph scores are taken before it rounds them to five digits.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from make_detectors import bare

HERE = Path(__file__).parent
ANSWERS = 12


class Nli:
    """Stands for uqlm's NLI model: probabilities of contradiction, neutral and entailment by (draw, claim)."""

    def __init__(self, table: dict[tuple[str, str], list[float]]) -> None:
        self.table = table

    def predict_batch(self, pairs: list[tuple[str, str]]) -> Any:
        return np.array([self.table[pair] for pair in pairs])


def answer(seed: int) -> dict[str, Any]:
    """Support of the claims of all answers (the baseline's `claims` first) by all answers (the baseline first)."""
    rng = np.random.default_rng(seed)
    claims, others, draws = int(rng.integers(2, 6)), int(rng.integers(0, 6)), 2 + seed
    support = rng.dirichlet([0.4, 0.4, 0.5], size=(claims + others, 1 + draws)).round(6)
    support[..., 1] = 1 - support[..., 0] - support[..., 2]
    return {"claims": claims, "support": support.round(6).tolist()}


def uqlm_class(module: str, name: str) -> Any:
    bare("uqlm", "nli", "longform", "longform.luq", "longform.luq.baseclass", "utils")
    # What the scorers name besides: models and judges, none of which is made here.
    nli = types.ModuleType("uqlm.nli")
    nli.NLI = nli.EntailmentClassifier = object  # type: ignore[attr-defined]
    sys.modules["uqlm.nli"] = nli
    return getattr(importlib.import_module(f"uqlm.longform.{module}"), name)


def uqlm_scores(one: dict[str, Any]) -> dict[str, list[float]]:
    """Confidences of the baseline answer's claims."""
    support = np.array(one["support"])
    claims = [str(k) for k in range(len(support))]
    draws = ["baseline", *(f"draw {j}" for j in range(support.shape[1] - 1))]
    table = {(d, c): support[k, j].tolist() for k, c in enumerate(claims) for j, d in enumerate(draws)}
    own = claims[: one["claims"]]
    unit_class = uqlm_class("luq.unit_response", "UnitResponseScorer")
    unit = unit_class.__new__(unit_class)
    unit.nli, unit.progress_bar, unit.matched_claim = Nli(table), None, False
    said = unit.evaluate([own], [draws[1:]]).to_dict()
    return {name: [float(x) for x in values[0]] for name, values in said.items()}


def lm_polygraph_frequency(one: dict[str, Any]) -> list[float]:
    bare("lm_polygraph", "estimators", "estimators.claim", "stat_calculators", "utils")
    claims = types.ModuleType("lm_polygraph.stat_calculators.extract_claims")
    claims.Claim = object  # type: ignore[attr-defined]
    sys.modules[claims.__name__] = claims
    module = importlib.import_module("lm_polygraph.estimators.claim.frequency_scoring")
    names = ("contra", "neutral", "entail")
    support = np.array(one["support"])[: one["claims"], 1:]
    labels = [[dict(zip(names, row, strict=True)) for row in of] for of in support.tolist()]
    [found] = module.FrequencyScoringClaim()({"claims": [[None] * one["claims"]], "nli_to_sample_texts": [labels]})
    return list(found)


def main() -> None:
    answers = [answer(seed) for seed in range(ANSWERS)]
    golden = {
        "versions": {name: importlib.metadata.version(name) for name in ("lm-polygraph", "uqlm")},
        "answers": answers,
        "uqlm": [uqlm_scores(one) for one in answers],
        "lm_polygraph": [lm_polygraph_frequency(one) for one in answers],
    }
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items())
    (HERE / "claims.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

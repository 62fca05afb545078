"""Detectors of claims against loops written from their formulas."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from hedge_tasks.claims.base import CONTRADICTION, ENTAILMENT, NEUTRAL, Claim, ClaimEvidence
from hedge_tasks.detectors import get, names


def support(rng: np.random.Generator, k: int, n: int) -> np.ndarray:
    """By chance, with ties and certainties among it."""
    shares, even = (
        rng.dirichlet([0.4] * 3, size=(k, n)),
        np.array([[0.2, 0.4, 0.4], [0.4, 0.2, 0.4], [0, 0, 1], [1, 0, 0]]),
    )
    return np.where(rng.random((k, n, 1)) < 0.4, even[rng.integers(0, 4, (k, n))], shares)


def evidence_of(seed: int = 0, k: int = 5, n: int = 7, m: int = 4) -> ClaimEvidence:
    rng = np.random.default_rng(seed)
    claims = tuple(Claim(f"a#{i}", "a", f"{'No' if i % 2 else 'A'} mass {i}.", i, i + 1, "sentence") for i in range(k))
    return ClaimEvidence(
        claims,
        "text",
        support(rng, k, n),
        support(rng, k, m),
        True,
        support(rng, k, n),
        rng.random(k),
        tuple(-rng.exponential(size=i) for i in range(1, k + 1)),
        "nli",
    )


def entropy_of(shares: list[float]) -> float:
    return -sum(p * math.log(p) for p in shares if p > 0)


def loops(evidence: ClaimEvidence, i: int) -> dict[str, float]:
    """Every detector of claims by its formula, of one claim."""
    clean, noisy, other = (getattr(evidence, name)[i].tolist() for name in ("clean", "noisy", "elsewhere"))

    def radflag(draws: list[list[float]]) -> float:
        return sum(row[ENTAILMENT] <= max(row[NEUTRAL], row[CONTRADICTION]) for row in draws) / len(draws)

    def mean(draws: list[list[float]], column: int) -> float:
        return sum(row[column] for row in draws) / len(draws)

    def softmax(values: list[float]) -> list[float]:
        weights = [math.exp(value) for value in values]
        return [weight / sum(weights) for weight in weights]

    def alone(column: int) -> int:
        """Draws of which this is likelier than both others."""
        return sum(row[column] > max(x for k, x in enumerate(row) if k != column) for row in clean)

    p, q = ([mean(draws, column) for column in range(3)] for draws in (clean, noisy))
    logprobs = evidence.logprobs[i].tolist()
    return {
        "claim_radflag": radflag(clean),
        "claim_luq": 1 - mean(clean, ENTAILMENT),
        "claim_luq_contrasted": 1
        - sum(row[ENTAILMENT] / (row[ENTAILMENT] + row[CONTRADICTION]) for row in clean) / len(clean),
        "claim_contradiction": mean(clean, CONTRADICTION),
        "claim_frequency": (alone(CONTRADICTION) - alone(ENTAILMENT)) / len(clean),
        "claim_entropy": entropy_of(p),
        "claim_radflag_noisy": radflag(noisy),
        "claim_luq_noisy": 1 - mean(noisy, ENTAILMENT),
        "claim_contrast": 1 - p[ENTAILMENT] - (p[ENTAILMENT] - q[ENTAILMENT]),
        "claim_vase": entropy_of(softmax([a + (a - b) for a, b in zip(p, q, strict=True)])),
        "claim_nll": -sum(logprobs) / len(logprobs),
        "claim_nll_max": -min(logprobs),
        "claim_position": i,
        "claim_length": 3,
        "claim_affirmed": 1 - i % 2,
        "claim_rarity": evidence.rarity[i],
        "claim_elsewhere": 1 - mean(other, ENTAILMENT),
    }


@pytest.mark.parametrize("seed", range(8))
def test_every_detector_of_claims_is_its_formula(seed: int) -> None:
    evidence = evidence_of(seed, k=1 + seed % 5, n=1 + seed, m=1 + seed % 4)
    wanted = [loops(evidence, i) for i in range(len(evidence.claims))]
    assert set(names("claim")) == set(wanted[0])
    for name in names("claim"):
        found = get(name).claim_scores(evidence)
        assert found is not None, name
        assert found == pytest.approx(np.array([one[name] for one in wanted]), abs=1e-11), name


def test_support_that_is_not_known_gives_no_score() -> None:
    clean = np.full((2, 3, 3), 1 / 3)
    clean[1, 2] = np.nan
    claims = tuple(Claim(f"a#{i}", "a", "x", i, i + 1, "x") for i in range(2))
    evidence = ClaimEvidence(claims, "", clean)
    for name in names("claim"):
        if get(name).needs <= evidence.offers and not get(name).blind:
            values = get(name).claim_scores(evidence)
            assert values is not None
            assert np.isnan(values).tolist() == [False, True], name


# --- the libraries of the field ---------------------------------------------------------------------------------------

GOLDEN = json.loads((Path(__file__).parent / "golden" / "claims.json").read_text("utf-8"))
"""What uqlm and lm-polygraph say; made by `golden/make_claims.py`."""

UQLM = {
    "claim_luq": "entailment",
    "claim_contradiction": "noncontradiction",
    "claim_luq_contrasted": "contrasted_entailment",
}


@pytest.mark.parametrize("number", range(len(GOLDEN["answers"])))
def test_equal_to_uqlm_and_lm_polygraph(number: int) -> None:
    one, confidences = GOLDEN["answers"][number], GOLDEN["uqlm"][number]
    whole, k = np.array(one["support"]), one["claims"]
    claims = tuple(Claim(f"a#{i}", "a", str(i), i, i + 1, "x") for i in range(k))
    evidence = ClaimEvidence(claims, "", whole[:k, 1:])
    for name, theirs in UQLM.items():
        found = get(name).claim_scores(evidence)
        assert found is not None
        assert 1 - found == pytest.approx(np.array(confidences[theirs]), abs=1e-6), name
    frequency = get("claim_frequency").claim_scores(evidence)
    assert frequency is not None
    assert frequency * evidence.n_clean == pytest.approx(np.array(GOLDEN["lm_polygraph"][number]), abs=1e-6)

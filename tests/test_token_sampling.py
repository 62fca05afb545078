"""Tokens are chosen by a formula written out here: penalty, temperature, masks, top-k, top-p, min-p, noise."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from hedge_tasks.models.token_sampling import Continuations, TokenSampler, gumbel_noise
from hedge_tasks.sampling import Draw

VOCABULARY, STEP, FORBIDDEN = 30, 2, {3, 4}
Row = np.ndarray[Any, Any]


def splitmix64(seed: int, position: int) -> int:
    """Independent reference in plain integers, from the published algorithm."""
    mask = 2**64 - 1
    z = (seed + position * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def noise(seed: int, step: int, size: int) -> Row:
    uniform = [((splitmix64(seed, step * 2**24 + token + 1) >> 11) + 0.5) * 2.0**-53 for token in range(size)]
    return -np.log(-np.log(np.array(uniform)))


def test_noise_equals_splitmix64_in_plain_integers() -> None:
    seeds, steps = [0, 1, 2**63 - 1, 123456789], [0, 1, 511, 7]
    found = gumbel_noise(torch.tensor(seeds), torch.tensor(steps), 5)
    for row, pair in zip(found, zip(seeds, steps, strict=True), strict=True):
        assert row.numpy() == pytest.approx(noise(*pair, 5), rel=1e-12)


def scores_of(raw: Row, seen: list[int], draw: Draw, limits: dict[str, float], penalty: float, free: Any) -> Row:
    scores = raw.astype(float)
    for token in set(seen):
        scores[token] *= penalty if scores[token] < 0 else 1 / penalty
    scores /= draw.temperature or 1.0
    scores[[token for token in range(VOCABULARY) if token in FORBIDDEN or (free and token not in free)]] = -math.inf
    if k := limits["top_k"]:
        scores[scores < np.sort(scores)[-int(k)]] = -math.inf
    for name in ("top_p", "min_p"):
        order = np.argsort(-scores)
        p = np.exp(scores[order] - scores.max()) / np.exp(scores - scores.max()).sum()
        out = np.cumsum(p) - p >= limits["top_p"] if name == "top_p" else p < limits["min_p"] * p[0]
        scores[order[out]] = -math.inf
    return scores + (noise(draw.seed, STEP, VOCABULARY) if draw.temperature else 0.0)


@pytest.mark.parametrize("seed", range(30))
def test_a_choice_is_that_of_the_formula(seed: int) -> None:
    chance, dice = random.Random(seed), np.random.default_rng(seed)
    limits = {"top_k": chance.choice((0, 5)), "top_p": chance.choice((1.0, 0.7)), "min_p": chance.choice((0.0, 0.2))}
    penalty = chance.choice((1.0, 1.5))
    draws = [Draw("clean", i, chance.choice((0.0, 0.5, 2.0)), chance.randrange(2**40)) for i in range(4)]
    raw, rows = dice.normal(0, 2, (3, VOCABULARY)).astype(np.float32), [3, 0, 2]
    ids = dice.integers(5, VOCABULARY, (3, 6))
    choices = {"a": [*ids[0, -STEP:], 7], "b": [*ids[0, -STEP:], 9]}
    tokenizer = SimpleNamespace(encode=lambda text, add_special_tokens: [int(token) for token in choices[text]])
    allowed = [None, None, None, Continuations(tokenizer, list(choices), {1}) if seed % 2 else None]
    defaults: Any = SimpleNamespace(repetition_penalty=penalty, top_k=1, top_p=0.1, min_p=0.9)
    kept = [2, None, 0, None]
    sampler = TokenSampler(draws, limits, defaults, FORBIDDEN, torch.device("cpu"), allowed, kept)
    given = (torch.tensor(raw), torch.tensor(ids), torch.tensor(rows), STEP)
    tokens, logprobs = sampler.choose(*given)
    margins, of_closest = sampler.margins(*given, torch.tensor([[10, 11]] * 3))
    for i, row in enumerate(rows):
        free = {7, 9} if allowed[row] else None
        scores = scores_of(raw[i], ids[i].tolist(), draws[row], limits, penalty, free)
        known = raw[i] - np.log(np.exp(raw[i].astype(float)).sum())
        assert tokens[i] == scores.argmax()
        assert logprobs[i].item() == pytest.approx(known[scores.argmax()], abs=1e-5)
        assert margins[i].item() == pytest.approx(scores.max() - scores[[10, 11]].max(), abs=1e-5)
        closest = 10 + int(scores[[10, 11]].argmax())
        assert math.isinf(margins[i]) or of_closest[i].item() == pytest.approx(known[closest], abs=1e-5)
    assert sampler.likeliest[1:] == [None, [[]], None]
    assert [token for token, _ in sampler.likeliest[0][0]] == np.argsort(-raw[1])[:2].tolist()  # type: ignore[index]


def test_where_no_token_is_left_there_is_an_error() -> None:
    from hedge_tasks.errors import HedgeError

    defaults: Any = SimpleNamespace(repetition_penalty=None)
    sampler = TokenSampler([Draw("clean", 0, 1.0, 0)], {}, defaults, {0, 1}, torch.device("cpu"))
    with pytest.raises(HedgeError, match="no token is left"):
        sampler.choose(torch.zeros(1, 2), torch.zeros(1, 0, dtype=torch.long), torch.tensor([0]), 0)

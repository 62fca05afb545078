"""A model with known distributions behind OpenAI's API, which may do something else with a request than it says."""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from openai_server import Response, completion, texts_of

WORDS = ("left", "right", "upper", "lower", "middle", "none", "both", "outer", "inner", "front", "back", "side")


@dataclass
class DeviatingServer:
    """Obeys temperature, top_k, top_p, min_p, seed and n, as far as its fields do not say otherwise.

    Attributes:
        ignores: fields of the request that are passed over.
        hottest: cap of the temperature.
        logprobs: whether it tells any.
        cached: makes of a request what its answers are kept under; None keeps none.
        share_of_other: of the replies that come from another model, which says so with `other_name`.
        scale: factor on the log-probabilities that it tells.
    """

    ignores: tuple[str, ...] = ()
    hottest: float = math.inf
    logprobs: bool = True
    cached: Callable[[dict[str, Any]], Any] | None = None
    share_of_other: float = 0.0
    other_name: str = "other"
    scale: float = 1.0
    kept: dict[Any, Any] = field(default_factory=dict)
    asked: int = 0

    def __call__(self, body: dict[str, Any]) -> Response:
        self.asked += 1
        if self.cached is not None:
            key = self.cached(body)
            if key not in self.kept:
                self.kept[key] = self._reply(body)
            return Response(self.kept[key])
        return Response(self._reply(body))

    def _reply(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = {key: value for key, value in body.items() if key not in self.ignores}
        n, seed = asked.get("n", 1), asked.get("seed")
        # Without a seed every request is another one, and the same one in the next run of a test.
        replies = [self._one(body, asked, f"{self.asked} {i}" if seed is None else f"{seed + i}") for i in range(n)]
        choices = [{**one["choices"][0], "index": i} for i, one in enumerate(replies)]
        return {**replies[0], "choices": choices}

    def _one(self, body: dict[str, Any], asked: dict[str, Any], seed: str) -> dict[str, Any]:
        text = " ".join(texts_of(body))[:200]
        chance = random.Random(f"{seed} {text}")
        other = chance.random() < self.share_of_other
        p = distribution(text, "other" if other else "tiny")
        q = p ** (1 / max(min(asked.get("temperature", 1.0), self.hottest), 1e-3))
        q /= q.max()
        order = np.argsort(-q)
        if (top_k := asked.get("top_k", -1)) > 0:
            q[order[top_k:]] = 0
        q[q < asked.get("min_p", 0)] = 0
        q /= q.sum()
        before = np.cumsum(q[order]) - q[order]
        q[order[before >= asked.get("top_p", 1.0)]] = 0
        i = chance.choices(range(len(q)), q.tolist())[0]
        tokens = [(WORDS[i], self.scale * math.log(p[i])), ("<|im_end|>", 0.0)] if self.logprobs else None
        return {**completion(WORDS[i], tokens), "model": self.other_name if other else "tiny"}


def distribution(text: str, model: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Of a model's answers to a prompt."""
    chance = np.random.default_rng(zlib.crc32(f"{model} {text}".encode()))
    p = np.maximum(chance.dirichlet(np.full(len(WORDS), 0.6)), 1e-9)
    return np.asarray(p / p.sum())

"""Prompt tokens that a vLLM server takes from its prefix cache, for the draws of one question.

    python benchmarks/engines.py http://localhost:8000/v1 MODEL

Only whole blocks are cached (16 tokens on a GPU, 128 on a CPU), so the question is longer than one. The draws are those
of `hedge_openai`, one at a time: 11 clean ones on one picture, 10 noisy ones on as many pictures, 11 without a picture.
"""

from __future__ import annotations

import argparse
import re
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from hedge_tasks.models.hedge_openai import HedgeOpenAI
from hedge_tasks.sampling import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest

N = 10
QUESTION = "Is there a lesion in the upper left of the picture, or is it in the lower right? " * 12

_COUNTERS = {"read": "vllm:prefix_cache_queries_total", "cached": "vllm:prefix_cache_hits_total"}


@dataclass(frozen=True)
class Hits:
    """Prompt tokens of some requests.

    Attributes:
        read: of all their prompts.
        cached: those taken from the cache.
    """

    read: int
    cached: int

    @classmethod
    def of(cls, model: HedgeOpenAI, draws: Sequence[DrawRequest]) -> Hits:
        """What the draws add to the server's counters; nobody else may use it meanwhile."""
        before = _counters(model.base_url)
        for batch in model.generate_draws(draws):
            for _, answer in batch:
                if isinstance(answer, str):
                    raise SystemExit(f"a draw failed: {answer}")
        after = _counters(model.base_url)
        return cls(**{name: round(after[name] - before[name]) for name in _COUNTERS})


def question_draws(key: str, *, picture: bool = True) -> list[DrawRequest]:
    """1 + 2 N draws of a long question nobody has asked before: `key` begins it, and chooses the picture."""
    pixels = np.random.default_rng(list(key.encode())).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    plan = SamplingPlan(n=N, n_noisy=N, max_new_tokens=4)
    request = SampleRequest(
        id=key,
        key=key,
        question=f"{key} {QUESTION}",
        prompt=Prompt("benchmark", "<image>{question}" if picture else "{question}", None),
        plan=plan,
        load_images=lambda document: [image] if picture else [],
    )
    return [DrawRequest(request, draw, dict, ("benchmark", "test", 0)) for draw in plan.draws(key)]


def clean(draws: Sequence[DrawRequest]) -> list[DrawRequest]:
    """The baseline and the clean draws, which share prompt and picture."""
    return [draw for draw in draws if draw.draw.condition != "noisy"]


def noisy(draws: Sequence[DrawRequest]) -> list[DrawRequest]:
    """The noisy draws, each with a picture of its own."""
    return [draw for draw in draws if draw.draw.condition == "noisy"]


def _counters(base_url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{base_url.removesuffix('/v1')}/metrics", timeout=60) as reply:
        text = reply.read().decode()
    return {
        name: sum(float(value) for value in re.findall(rf"^{counter}(?:{{[^}}]*}})? (\S+)", text, re.MULTILINE))
        for name, counter in _COUNTERS.items()
    }


def main() -> None:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base_url")
    parser.add_argument("model")
    parser.add_argument("--key", default="1", help="begins the questions; another one for another measurement")
    options = parser.parse_args()
    model = HedgeOpenAI(model=options.model, base_url=options.base_url, num_concurrent=1)
    shown, unseen = question_draws(f"{options.key} a"), question_draws(f"{options.key} b", picture=False)
    for name, draws in {
        f"{1 + N} clean draws, one picture": clean(shown),
        f"{N} noisy draws, {N} pictures": noisy(shown),
        f"{1 + N} clean draws, no picture": clean(unseen),
    }.items():
        hits = Hits.of(model, draws)
        print(f"{name}: {hits.cached:,} of {hits.read:,} prompt tokens from the cache")


if __name__ == "__main__":
    main()

"""vLLM reads the prompt of a question's clean draws once; every perturbed picture is read for itself."""

from __future__ import annotations

import re
import urllib.request

import numpy as np
import pytest
from PIL import Image

from engines.servers import Server, on
from hedge_tasks.models.hedge_openai import HedgeOpenAI
from hedge_tasks.sampling import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest

BLOCK = 128  # tokens, on a CPU; only whole ones are cached, so the question is longer
QUESTION = "Is there a lesion in the upper left of the picture, or is it in the lower right? " * 12
PLAN = SamplingPlan(n=10, n_noisy=10, max_new_tokens=4)


def counted(server: Server, name: str) -> float:
    with urllib.request.urlopen(f"{server.url.removesuffix('/v1')}/metrics", timeout=60) as reply:
        text = reply.read().decode()
    counter = f"vllm:prefix_cache_{name}_total"
    return sum(float(value) for value in re.findall(rf"^{counter}(?:{{[^}}]*}})? (\S+)", text, re.MULTILINE))


def read_and_cached(server: Server, key: str, *, noisy: bool) -> tuple[int, int]:
    """Prompt tokens of the clean or noisy draws of a question nobody has asked before, and those from the cache."""
    pixels = np.random.default_rng(list(key.encode())).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    images = [Image.fromarray(pixels)]
    prompt = Prompt("cache", "<image>{question}", None)
    request = SampleRequest(key, key, f"{key} {QUESTION}", prompt, PLAN, load_images=lambda document: images)
    draws = [d for d in PLAN.draws(key) if (d.condition == "noisy") is noisy]
    before = [counted(server, name) for name in ("queries", "hits")]
    model = HedgeOpenAI(model=server.model, base_url=server.url, num_concurrent=1)
    for batch in model.generate_draws([DrawRequest(request, draw, dict, ("cache", "test", 0)) for draw in draws]):
        assert not [answer for _, answer in batch if isinstance(answer, str)]
    after = [counted(server, name) for name in ("queries", "hits")]
    read, cached = (round(late - early) for late, early in zip(after, before, strict=True))
    return read, cached


@on("vllm")
def test_clean_draws_take_whole_blocks_of_their_prompt_from_the_cache(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    read, cached = read_and_cached(server, "clean", noisy=False)
    with capsys.disabled():
        print(f"\nprefix cache: {cached:,} of {read:,} prompt tokens of 11 clean draws")
    prompt = read // 11
    assert prompt > 2 * BLOCK
    assert read == 11 * prompt
    assert cached == 10 * (prompt // BLOCK) * BLOCK


@on("vllm")
def test_another_picture_takes_nothing_from_the_cache(server: Server) -> None:
    read, cached = read_and_cached(server, "noisy", noisy=True)
    assert read > 20 * BLOCK
    assert cached == 0

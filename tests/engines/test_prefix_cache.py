"""vLLM reads the prompt of a question's clean draws once; every perturbed picture is read for itself."""

from __future__ import annotations

import runpy
from types import SimpleNamespace

import pytest

from engines.environments import REPOSITORY
from engines.servers import Server, on
from hedge_tasks.models.hedge_openai import HedgeOpenAI

BLOCK = 128  # tokens, on a CPU
measuring = SimpleNamespace(**runpy.run_path(str(REPOSITORY / "benchmarks" / "engines.py")))


@on("vllm")
def test_clean_draws_take_whole_blocks_of_their_prompt_from_the_cache(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    model = HedgeOpenAI(model=server.model, base_url=server.url, num_concurrent=1)
    draws = measuring.question_draws("clean")
    hits = measuring.Hits.of(model, measuring.clean(draws))
    with capsys.disabled():
        print(f"\nprefix cache: {hits.cached:,} of {hits.read:,} prompt tokens of 11 clean draws")
    prompt = hits.read // 11
    assert prompt > 2 * BLOCK
    assert hits.read == 11 * prompt
    assert hits.cached == 10 * (prompt // BLOCK) * BLOCK


@on("vllm")
def test_another_picture_takes_nothing_from_the_cache(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    model = HedgeOpenAI(model=server.model, base_url=server.url, num_concurrent=1)
    draws = measuring.question_draws("noisy")
    hits = measuring.Hits.of(model, measuring.noisy(draws))
    with capsys.disabled():
        print(f"\nprefix cache: {hits.cached:,} of {hits.read:,} prompt tokens of 10 noisy draws")
    assert hits.cached == 0

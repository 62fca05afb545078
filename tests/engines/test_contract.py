"""The sampling contract on real engines: nobody's defaults apply unless asked for, and the probe tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from evaluation import evaluate

from engines.draws import demo_draws, sample
from engines.servers import Server, on
from hedge_tasks.models.hedge_openai import HedgeOpenAI
from hedge_tasks.runs.health import health_of
from hedge_tasks.runs.run_files import load_run

pytestmark = pytest.mark.framework

# A server whose generation_config has top_k 1 and top_p 0.001, as Qwen2-VL ships it; one with defaults of its own; one
# that is greedy unless a configuration says otherwise.
TRAPS = ("vllm_greedy", "llama_cpp", "transformers_serve")


def adapter(server: Server) -> HedgeOpenAI:
    return HedgeOpenAI(model=server.model, base_url=server.url, num_concurrent=1)


@on(*TRAPS)
def test_pure_sampling_is_in_force_whatever_the_servers_defaults(server: Server) -> None:
    draws = [draw for draw in demo_draws(documents=4, n=6) if draw.draw.condition == "clean"]
    texts = [answer.text for answer in sample(adapter(server), draws)]
    of_document = [set(texts[i : i + 6]) for i in range(0, len(texts), 6)]
    assert sum(len(found) > 1 for found in of_document) >= 2  # the demo's questions are not all uncertain


@on("transformers_serve")
def test_what_transformers_serve_refuses_is_recorded(server: Server) -> None:
    model = adapter(server)
    draws = demo_draws(documents=1, n=2)
    sample(model, draws)
    assert {"top_k", "min_p"} <= set(model.sampling_facts()["refused"])
    assert model.effective_decoding(draws[0].request.plan.limits())["refused"]


def run_of(server: Server, folder: Path, *settings: str) -> Any:
    evaluate(
        folder,
        *("--model", "hedge_openai", "--model_args", f"model={server.model},base_url={server.url}"),
        *("--tasks", "hedge_demo", "--limit", "12", "--gen_kwargs", ",".join(["n=3", *settings])),
    )
    return load_run(next(folder.rglob("hedge_runs")))


@on("vllm_greedy")
def test_the_models_own_decoding_is_called_unreliable_where_it_is_greedy(server: Server, tmp_path: Path) -> None:
    greedy = health_of(run_of(server, tmp_path / "model", "decoding=model"))
    assert greedy.probe["varied"] is False
    assert greedy.same_clean == 1.0
    assert greedy.unreliable is not None
    assert "decode greedily" in greedy.unreliable
    pure = health_of(run_of(server, tmp_path / "pure"))
    assert pure.probe["varied"] is pure.probe["raw_logprobs"] is pure.probe["seeds_repeat"] is True
    assert pure.unreliable is None
    assert pure.same_clean is not None
    assert pure.same_clean < 1

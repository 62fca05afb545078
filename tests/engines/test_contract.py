"""The sampling contract on real engines: nobody's defaults apply unless asked for, and a greedy server is told."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from evaluation import evaluate

from engines.draws import clean_texts, demo_draws, sample
from engines.same_answers import p_value
from engines.servers import Server, on
from hedge_tasks.measures.comparisons import compare_two_runs
from hedge_tasks.measures.run_measures import documents_of, scored_documents
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc
from hedge_tasks.models.hedge_openai import HedgeOpenAI
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.runs.health import SAME, health_of
from hedge_tasks.runs.run_files import Run, load_run
from hedge_tasks.runs.scorers import scorers_of

pytestmark = pytest.mark.framework

# A model whose generation_config has top_k 1 and top_p 0.001, as Qwen2-VL ships it; a server started with --top-k 1;
# one that is greedy unless a configuration says otherwise, which is not sent: health tells.
PURE = ("vllm_greedy", "llama_cpp_greedy")
GREEDY = ("vllm_greedy", "llama_cpp_greedy", "transformers_serve")

# llama.cpp has another order of tokens in a picture than vLLM (its log-probabilities differ by .25 nats, and its
# answers are worse), so it can be compared on the text alone.
SAME_PICTURES = ("vllm_greedy",)

# What was drawn is fixed by seeds on all engines asked like this, so that these tests say the same every time. Engines
# draw other noise from a seed than hedge_hf does, and its runs have another seed as well: they are independent samples.
CONCURRENT = {"vllm_greedy": 16, "llama_cpp_greedy": 8, "transformers_serve": 1}
DOCUMENTS, N, REFERENCE_SEED = 12, 8, 1

LEVEL = 0.01
"""Of the tests that find no difference. What is different is below 0.001."""


def adapter(server: Server) -> HedgeOpenAI:
    return HedgeOpenAI(model=server.model, base_url=server.url, num_concurrent=CONCURRENT[server.engine])


def texts(model: Any, *, picture: bool, **settings: Any) -> list[list[str]]:
    """The clean answers of some documents."""
    draws = demo_draws(DOCUMENTS, N, picture=picture, **settings)
    clean = [draw for draw in draws if draw.draw.condition == "clean"]
    return clean_texts(clean, sample(model, clean))


@cache
def own_texts(picture: bool) -> list[list[str]]:
    """The answers of `hedge_hf`."""
    return texts(HedgeTiny(batch_size=8), picture=picture, seed=REFERENCE_SEED)


@on(*PURE)
def test_pure_answers_have_the_distribution_of_hedge_hf(server: Server) -> None:
    picture = server.engine in SAME_PICTURES
    model = adapter(server)
    assert p_value(own_texts(picture), texts(model, picture=picture)) > LEVEL
    greedy = texts(model, picture=picture, decoding="model")
    assert {len(set(of_document)) for of_document in greedy} == {1}
    assert p_value(own_texts(picture), greedy) <= 0.001  # the test can tell


@on("transformers_serve")
def test_what_transformers_serve_refuses_is_recorded(server: Server) -> None:
    model = adapter(server)
    draws = demo_draws(documents=1, n=2)
    sample(model, draws)
    assert {"top_k", "min_p"} <= set(model.sampling_facts()["refused"])
    sent = model.sent_decoding(draws[0].request.plan.limits())
    assert (sent["refused"], sent["rest"]) == (["min_p", "top_k"], "the server's defaults")


def run_of(folder: Path, model: str, arguments: str, documents: int, settings: str) -> Run:
    command = ("--model", model, *(("--model_args", arguments) if arguments else ()), "--tasks", "hedge_demo")
    evaluate(folder, *command, "--limit", str(documents), "--gen_kwargs", settings)
    return load_run(next(folder.rglob("hedge_runs")))


def served_run(server: Server, folder: Path, documents: int, settings: str) -> Run:
    arguments = f"model={server.model},base_url={server.url},num_concurrent={CONCURRENT[server.engine]}"
    return run_of(folder, "hedge_openai", arguments, documents, settings)


@pytest.fixture(scope="module")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The evaluation by `hedge_hf`."""
    settings = f"n=3,n_noisy=1,seed={REFERENCE_SEED}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEDGE_FILTERS", "nli")
        return run_of(tmp_path_factory.mktemp("own"), "hedge_tiny", "", 60, settings)


def check_sound(run: Run) -> None:
    assert health_of(run).unreliable is None
    probe, server = run.settings["sampled"]["probe"], run.settings["sampled"]["server"]
    assert probe["varied"] is probe["seeds_repeat"] is True
    assert probe.get("raw_logprobs", True) is True
    assert server["answers_of_other_tokens"] == 0
    assert server["other_models"] == []


@on("llama_cpp_greedy")
def test_a_pure_run_is_sound(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_FILTERS", "nli")
    check_sound(served_run(server, tmp_path, 12, "n=3,n_noisy=1"))


@on(*SAME_PICTURES)
def test_a_pure_run_has_the_numbers_of_hedge_hf(
    server: Server, own_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paired by document, by the tests of `hedge compare`."""
    monkeypatch.setenv("HEDGE_FILTERS", "nli")
    run = served_run(server, tmp_path, 60, "n=3,n_noisy=1")
    check_sound(run)
    runs = (run, own_run)
    scores = [scorers_of(of)["nli"].score(of.answer_sets) for of in runs]
    detectors = [detector_auroc(name) for name in ("se", "radflag", "vase")]
    found = {m.name: compare_two_runs(m, [scored_documents(s, m) for s in scores], [None, None]) for m in detectors}
    rates = [documents_of(of, HALLUCINATION_RATE) for of in runs]
    found["hallucination rate"] = compare_two_runs(HALLUCINATION_RATE, rates, [None, None])
    for name, comparison in found.items():
        assert comparison is not None, name
        assert comparison.p_value is not None, (name, comparison)
        assert comparison.p_value > LEVEL, (name, comparison)


@on(*GREEDY)
def test_the_models_own_decoding_is_called_unreliable_where_it_is_greedy(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGE_FILTERS", "nli")
    run = served_run(server, tmp_path, 12, "n=3,n_noisy=1,decoding=model")
    assert run.settings["sampled"]["probe"]["varied"] is False
    assert run.settings["sampled"]["probe"]["documents"] == 2
    health = health_of(run)
    assert [test.share for test in health.tests if test.name == SAME] == [1.0]
    assert health.unreliable is not None
    assert "greedy decoding" in health.unreliable

"""The adapters on real engines: log-probabilities against the model's own, and whole evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run, evaluate

from engines.draws import demo_draws, deviations, sample
from engines.servers import Server, on
from hedge_tasks.models.hedge_openai import HedgeOpenAI
from hedge_tasks.sampling import AnswerSet

pytestmark = pytest.mark.framework

THREE = ("vllm", "llama_cpp", "transformers_serve")


def adapter(server: Server, **arguments: Any) -> HedgeOpenAI:
    return HedgeOpenAI(model=server.model, base_url=server.url, **arguments)


@on("vllm")
def test_log_probabilities_through_vllm_equal_the_models_own(server: Server) -> None:
    draws = demo_draws()
    answers = sample(adapter(server), draws)
    assert max(deviations(draws, answers)) < 5e-6
    assert len({answer.text for answer in answers}) > 6


@on("vllm")
def test_forced_log_probabilities_through_vllm_are_those_of_the_draws(server: Server) -> None:
    draws = demo_draws(documents=3)
    answers = sample(adapter(server), draws)
    forced = adapter(server).forced_logprobs([draw.messages() for draw in draws], [answer.text for answer in answers])
    pairs = [(a, f) for a, f in zip(answers, forced, strict=True) if a.n_tokens == getattr(f, "n_tokens", None)]
    same = [abs(a.mean_logprob - f.mean_logprob) < 5e-6 for a, f in pairs]
    # The template may put no blank before a text that the model began with one.
    assert sum(same) > len(draws) / 2, forced


@on("llama_cpp")
def test_the_end_token_of_llama_cpp_counts_nowhere(server: Server) -> None:
    draws = demo_draws(documents=3)
    answers = sample(adapter(server), draws)
    # Its picture differs a little from the other engines', so the numbers do; how many tokens an answer has does not.
    lengths = [len(_tokens(answer.text)) for answer in answers]
    assert sum(answer.n_tokens == length for answer, length in zip(answers, lengths, strict=True)) > 0.8 * len(draws)


def _tokens(text: str) -> list[int]:
    from transformers import AutoTokenizer

    from hedge_tasks.models.tiny import vlm_path

    return AutoTokenizer.from_pretrained(vlm_path())(text, add_special_tokens=False).input_ids


@on(*THREE)
def test_an_evaluation_ends_with_plausible_numbers(server: Server, tmp_path: Path) -> None:
    run = evaluate(
        tmp_path,
        *("--model", "hedge_openai", "--model_args", f"model={server.model},base_url={server.url}"),
        *("--tasks", "hedge_demo", "--limit", "6", "--gen_kwargs", "n=3"),
    )
    check_evaluation(run, logprobs=server.engine != "transformers_serve")


def check_evaluation(run: Run, *, logprobs: bool) -> None:
    """Six documents with seven answers each, no failed draw, scores within their range."""
    lines = run.samples("hedge_demo")
    sets = {s.id: s for s in (AnswerSet.read(json.loads(line["filtered_resps"])) for line in lines)}
    assert len(sets) == 6
    assert all(len(s.answers) == 7 and s.has_logprobs == logprobs for s in sets.values())
    assert len({answer.text for s in sets.values() for answer in s.answers}) > 2
    if logprobs:
        assert all(-20 < answer.mean_logprob < 0 for s in sets.values() for answer in s.answers)
    values = run.values("hedge_demo")
    assert {name.partition(",")[2] for name in values} == {"nli", "embed", "nli_qa", "embed_qa"}
    documents = {name: values.pop(name) for name in list(values) if name.startswith("auroc_documents,")}
    assert set(documents.values()) == {6}
    assert all(0 <= value <= 1 for name, value in values.items() if isinstance(value, float) and "stderr" not in name)
    assert isinstance(values["hallucination_rate,nli"], float)

"""What hedge_openai sends so that nobody's defaults apply, and what it takes for an answer, on scripted servers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openai_server import Response, Script, completion, error, serve
from test_hedge_openai import LEFT, LEFT_ANSWER, PICTURE, adapter, ask, draws, sample

from hedge_tasks.data.answers import Answer, Refused
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.models.hedge_openai import NEUTRAL
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.plan import SamplingPlan

pytestmark = pytest.mark.framework

STOPPED = LEFT_ANSWER


def sent(script: Script) -> dict[str, Any]:
    return {name: script.bodies[-1][name] for name in NEUTRAL if name in script.bodies[-1]}


def test_pure_sampling_is_sent_in_so_many_words() -> None:
    script = Script(LEFT)
    ask(script)
    assert sent(script) == NEUTRAL
    assert "repetition_penalty" not in script.bodies[-1]  # one that the model documents is part of the model


def test_the_models_own_decoding_is_the_servers_defaults() -> None:
    script = Script(LEFT)
    ask(script, plan={"decoding": "model", "top_k": 7})
    assert sent(script) == {"top_k": 7}


@pytest.mark.parametrize(
    "refusal",
    [
        lambda names: Response({"detail": f"Unexpected fields in the request: {set(names)}"}, 422),
        lambda names: error(400, f"Unrecognized request argument supplied: {sorted(names)[0]}"),
        lambda names: Response({"detail": [{"loc": ["body", sorted(names)[0]], "msg": "extra fields"}]}, 422),
    ],
    ids=["transformers serve", "OpenAI", "FastAPI"],
)
def test_fields_that_a_server_refuses_are_left_out_one_by_one_and_said(refusal: Any, said: list[str]) -> None:
    foreign = {"top_k", "min_p"}
    script = Script(lambda body: refusal(foreign & body.keys()) if foreign & body.keys() else LEFT)
    with serve(script) as url:
        model = adapter(url)
        assert sample(model, draws(2)) == [STOPPED] * 3
    assert sent(script) == {name: value for name, value in NEUTRAL.items() if name not in foreign}
    decoding = model.sent_decoding(SamplingPlan().limits())
    assert decoding["refused"] == ["min_p", "top_k"]
    # A server that takes a configuration has that in force, and no defaults.
    assert ("rest" in decoding) == ("generation_config" not in script.bodies[-1])
    assert sorted(model.sampling_facts()["refused"]) == ["min_p", "top_k"]
    assert len([line for line in said if "its own top_k applies" in line]) == 1


def test_what_the_plan_sets_itself_is_not_left_out() -> None:
    script = Script(lambda body: error(400, "top_k is not supported") if "top_k" in body else LEFT)
    [outcome] = ask(script, plan={"top_k": 5})
    assert isinstance(outcome, Refused)
    assert "top_k is not supported" in outcome


# --- the repetition penalty -------------------------------------------------------------------------------------------


def _documented(folder: Path) -> Path:
    (folder / "generation_config.json").write_text(json.dumps({"repetition_penalty": 1.05, "top_k": 1}), "utf-8")
    return folder


@pytest.mark.parametrize("by", ["name", "root", "argument"])
def test_a_repetition_penalty_of_the_model_is_sent_recorded_and_part_of_the_identity(by: str, tmp_path: Path) -> None:
    folder, script = _documented(tmp_path), Script(LEFT)
    name = str(folder) if by == "name" else "tiny"
    listed = {"models": [name], "root": str(folder)} if by == "root" else {}
    with serve(script, **listed) as url:
        model = adapter(url, model=name, **({"repetition_penalty": 1.05} if by == "argument" else {}))
        sample(model, draws(1))
        assert model.answer_identity.endswith("|repetition_penalty=1.05")
    assert script.bodies[-1]["repetition_penalty"] == 1.05
    assert model.sent_decoding(SamplingPlan().limits()) == {**NEUTRAL, "repetition_penalty": 1.05}


# --- servers that are away, or answer nothing -------------------------------------------------------------------------

SSE = Response(b'data: {"choices": []}\n\ndata: [DONE]\n\n', headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize("reply", [SSE, RuntimeError("on fire")], ids=["SSE", "500"])
def test_a_probe_that_failed_wholly_stops_the_run(reply: Any) -> None:
    script = Script(reply)
    requests = [replace(draws(3, probe=True)[0].request, key=f"document {i}") for i in range(40)]
    rows = [SimpleNamespace(args=("text", {}, request, 0, "task", "test")) for request in requests]
    with serve(script) as url:
        model = adapter(url, max_retries=0)
        model.task_dict = {"task": {"test": [{"image": PICTURE}]}}
        with pytest.raises(
            DrawsFailed, match=r"all 16 draws of the probe failed, so nothing is sampled\. First reason: "
        ):
            generate_samples(model, rows)
    assert len(script.bodies) == 16


def test_a_server_that_loads_its_model_is_waited_for_longer_than_the_retries_last() -> None:
    loading = Response({"error": {"message": "Loading model", "code": 503}}, 503)
    for wait, answered in ((60, True), (0, False)):
        script = Script(*[loading] * 8, LEFT)
        [outcome] = ask(script, max_retries=2, wait_for_server=wait)
        assert isinstance(outcome, Answer) is answered
        assert len(script.bodies) == (9 if answered else 3)


# --- one model? -------------------------------------------------------------------------------------------------------


def test_transformers_serve_is_told_to_sample() -> None:
    def reply(body: dict[str, Any]) -> Any:
        names = {"top_k", "min_p", "presence_penalty"} & body.keys()
        if names:
            return Response({"detail": f"Unexpected fields in the request: {names}"}, 422)
        sampled = "generation_config" in body and json.loads(body["generation_config"])["do_sample"]
        return completion(f"seed {body['seed']}" if sampled else "greedy")

    with serve(Script(reply)) as url:
        model = adapter(url, num_concurrent=1)
        answers = [answer.text for answer in sample(model, draws(3))]
        # A task that wants the model's own decoding gets it, although the server is known by now.
        own = [answer.text for answer in sample(model, draws(3, decoding="model"))]
    assert len(set(answers)) == 4
    assert "greedy" not in answers
    assert own == ["greedy"] * 4
    pure, greedy = SamplingPlan(), SamplingPlan(decoding="model")
    assert model.sent_decoding(pure.limits()) == {
        "top_p": 1.0,
        "frequency_penalty": 0.0,
        "generation_config": {"do_sample": True, "top_p": 1.0, "top_k": 0},
        "repetition_penalty": 1.0,  # the configuration that is sent replaces the model's own
        "refused": ["min_p", "presence_penalty", "top_k"],
    }
    assert model.sent_decoding(greedy.limits()) == {
        "rest": "the server's defaults",
        "repetition_penalty": "unknown",
    }


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("stop", STOPPED),
        ("eos_token", STOPPED),
        ("length", replace(LEFT_ANSWER, finish="length", end_logprob=None)),
        (None, replace(LEFT_ANSWER, finish=None)),
        ("error", "the server ended the answer early (finish_reason 'error')"),
        ("bored", "the server ended the answer early (finish_reason 'bored')"),
        ({"a": 1}, "the server ended the answer early"),
    ],
)
def test_why_an_answer_ended_counts(reason: Any, outcome: Any) -> None:
    body = {**LEFT, "choices": [{**LEFT["choices"][0], "finish_reason": reason}]}
    [found] = ask(Script(body), max_retries=0)
    assert found == outcome or (isinstance(outcome, str) and isinstance(found, str) and found.startswith(outcome))


def test_log_probabilities_above_zero_are_none() -> None:
    [answer] = ask(Script(completion("left", [("left", 0.7)])))
    assert isinstance(answer, Answer)
    assert answer.mean_logprob is None


# --- the border -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [b"[" * 200_000, b"[" * 41 + b"]" * 41, b'{"a": %s}' % (b"1" * 400), b'{"a": 1, "a": 2}', b"\xff"],
    ids=["deep", "deeper than ours", "400 digits", "a key twice", "no UTF-8"],
)
def test_answers_that_are_no_sound_json_are_a_failed_draw(body: bytes) -> None:
    [outcome] = ask(Script(Response(body)), max_retries=0)
    assert outcome.startswith("the answer: not ")

"""What hedge_openai sends so that nobody's defaults apply, and what it takes for an answer, on scripted servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from openai_server import Response, Script, completion, error, serve
from test_hedge_openai import LEFT, LEFT_ANSWER, adapter, ask, draws, sample

from hedge_tasks.data.answers import Answer, Refused
from hedge_tasks.models.hedge_openai import NEUTRAL
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


def test_fields_that_a_server_refuses_are_left_out_one_by_one_and_said(said: list[str]) -> None:
    foreign = {"top_k", "min_p"}
    script = Script(lambda body: error(400, f"unknown {min(foreign & body.keys())}") if foreign & body.keys() else LEFT)
    with serve(script) as url:
        model = adapter(url)
        assert sample(model, draws(2)) == [STOPPED] * 3
    assert sent(script) == {name: value for name, value in NEUTRAL.items() if name not in foreign}
    decoding = model.sent_decoding(SamplingPlan().limits())
    assert decoding["refused"] == ["min_p", "top_k"]
    assert (decoding["rest"], decoding["repetition_penalty"]) == ("the server's defaults", "the server's")
    assert sorted(model.sampling_facts()["refused"]) == ["min_p", "top_k"]
    assert len([line for line in said if "its own top_k applies" in line]) == 1


def test_what_the_plan_sets_itself_is_not_left_out() -> None:
    script = Script(lambda body: error(400, "top_k is not supported") if "top_k" in body else LEFT)
    [outcome] = ask(script, plan={"top_k": 5})
    assert isinstance(outcome, Refused)
    assert "top_k is not supported" in outcome


# --- servers that are away, or answer nothing -------------------------------------------------------------------------


# --- one model? -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("eos_token", STOPPED),
        (None, replace(LEFT_ANSWER, finish=None)),
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


def test_answers_that_are_no_sound_json_are_a_failed_draw() -> None:
    [outcome] = ask(Script(Response(b'{"a": 1, "a": 2}')), max_retries=0)
    assert outcome.startswith("the answer: not ")

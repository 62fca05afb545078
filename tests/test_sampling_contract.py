"""What hedge_openai sends so that nobody's defaults apply, and what it takes for an answer, on scripted servers."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openai_server import Response, Script, completion, error, serve
from test_hedge_openai import LEFT, LEFT_ANSWER, PICTURE, adapter, ask, draws, sample

from hedge_tasks.data.answers import Answer, AnswerSet, Refused, Served
from hedge_tasks.errors import DrawsFailed, HedgeError
from hedge_tasks.llm import border
from hedge_tasks.models.hedge_openai import NEUTRAL
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.probe import server_lines
from hedge_tasks.sampling.series import request_seed
from hedge_tasks.sampling.store import AnswerStore

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
    assert (decoding["rest"], decoding["repetition_penalty"]) == ("the server's defaults", "the server's")
    assert sorted(model.sampling_facts()["refused"]) == ["min_p", "top_k"]
    assert len([line for line in said if "its own top_k applies" in line]) == 1


def test_what_the_plan_sets_itself_is_not_left_out_because_its_neutral_value_was() -> None:
    script = Script(lambda body: error(400, "top_p is not supported") if "top_p" in body else LEFT)
    with serve(script) as url:
        model = adapter(url)
        assert sample(model, draws(1)) == [STOPPED] * 2
        [refused, _] = sample(model, draws(1, top_p=0.9))
    assert isinstance(refused, Refused)
    assert script.bodies[-1]["top_p"] == 0.9


def _xai(body: dict[str, Any]) -> Any:
    names = [name for name in ("presence_penalty", "frequency_penalty") if name in body]
    spelled = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty"}
    said = {"code": "Client specified an invalid argument"}
    return (
        Response({**said, "error": f"Argument not supported on this model: {spelled[names[0]]}"}, 400)
        if names
        else LEFT
    )


def _gemini(body: dict[str, Any]) -> Any:
    penalised = {"presence_penalty", "frequency_penalty"} & body.keys()
    return error(400, "Penalty is not enabled for models/gemini-2.5-flash") if penalised else LEFT


@pytest.mark.parametrize("reply", [_xai, _gemini])
def test_penalties_that_a_server_refuses_even_at_0_are_left_out_and_said(reply: Any, said: list[str]) -> None:
    script = Script(reply)
    with serve(script) as url:
        model = adapter(url, num_concurrent=1)
        assert sample(model, draws(1)) == [STOPPED] * 2
    assert len(script.bodies) == 2 + 2
    sent = model.sent_decoding(SamplingPlan().limits())
    assert sent["refused"] == ["frequency_penalty", "presence_penalty"]
    assert sum("its own presence_penalty applies" in line for line in said) == 1


def test_no_top_k_is_0_for_a_server_to_which_it_must_not_be_negative(said: list[str]) -> None:
    script = Script(lambda body: error(400, "top_k must be non-negative, got -1") if body.get("top_k", 0) < 0 else LEFT)
    with serve(script) as url:
        model = adapter(url, num_concurrent=1)
        assert sample(model, draws(1)) == [STOPPED] * 2
        assert isinstance(sample(model, draws(1, top_k=5))[0], Answer)
    assert [body["top_k"] for body in script.bodies] == [-1, 0, 0, 5, 5]
    assert "refused" not in model.sent_decoding(SamplingPlan().limits())
    assert not any("its own top_k applies" in line for line in said)


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


def test_a_probe_of_refused_documents_stops_nothing() -> None:
    script = Script(lambda body: error(400, "cannot read the image"))
    requests = [replace(draws(1, probe=True, max_failed=2)[0].request, key=f"document {i}") for i in range(2)]
    rows = [SimpleNamespace(args=("text", {}, request, 0, "task", "test")) for request in requests]
    with serve(script) as url:
        model = adapter(url, max_retries=0)
        model.task_dict = {"task": {"test": [{"image": PICTURE}]}}
        assert all("failed" in json.loads(line) for line in generate_samples(model, rows))


def test_a_server_that_loads_its_model_is_waited_for_longer_than_the_retries_last() -> None:
    loading = Response({"error": {"message": "Loading model", "code": 503}}, 503)
    for wait, answered in ((60, True), (0, False)):
        script = Script(*[loading] * 8, LEFT)
        [outcome] = ask(script, max_retries=2, wait_for_server=wait)
        assert isinstance(outcome, Answer) is answered
        assert len(script.bodies) == (9 if answered else 3)


def test_only_a_server_that_answers_nobody_is_waited_for() -> None:
    # Others are answered after the busy draw has found nobody for the first time, or it would wait as for a server.
    all_draws = draws(30)
    bad = request_seed(all_draws[1])
    script = Script(lambda body: Response(b"busy", 503) if body["seed"] == bad else LEFT)
    with serve(script) as url:
        outcomes = sample(adapter(url, max_retries=3, wait_for_server=60, num_concurrent=2), all_draws)
    assert [isinstance(outcome, Answer) for outcome in outcomes] == [i != 1 for i in range(len(all_draws))]


def test_waiting_has_an_end_and_is_said_once(said: list[str]) -> None:
    with serve(Script(LEFT)) as url:
        pass
    with pytest.raises(HedgeError, match=r"nobody answered for 0\.5 s \(wait_for_server\)"):
        _ = adapter(url, wait_for_server=0.5).answer_identity
    assert sum("is away: waiting for at most 0.5 s (wait_for_server)" in line for line in said) == 1


def test_a_server_that_comes_late_is_asked_who_it_is_once_it_is_there(tmp_path: Path) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    ready, done = threading.Event(), threading.Event()

    def later() -> None:
        ready.wait(10)
        with serve(Script(LEFT), models=["tiny"], root="org/real", port=port):
            done.wait(30)

    thread = threading.Thread(target=later)
    thread.start()
    try:
        model = adapter(f"http://127.0.0.1:{port}/v1", wait_for_server=30)
        threading.Timer(0.3, ready.set).start()
        assert model.answer_identity == "hedge_openai:tiny|real"
        assert sample(model, draws(1)) == [STOPPED] * 2
    finally:
        ready.set()
        done.set()
        thread.join()


# --- one model? -------------------------------------------------------------------------------------------------------


def test_every_draw_keeps_who_answered_it(tmp_path: Path) -> None:
    def reply(body: dict[str, Any]) -> Any:
        odd = body["seed"] % 2
        return {**LEFT, "model": f"tiny-{odd}", "provider": f"host {odd}", "system_fingerprint": f"fp_{odd}"}

    drawn = draws(5)
    request = replace(drawn[0].request, store=tmp_path)
    rows = [SimpleNamespace(args=("text", {}, request, 0, "task", "test"))]
    with serve(Script(reply)) as url:
        model = adapter(url)
        model.task_dict = {"task": {"test": [{"image": PICTURE}]}}
        [line] = generate_samples(model, rows)
    expected = [request_seed(draw) % 2 for draw in drawn]
    assert len(set(expected)) == 2
    for answers in (AnswerSet.from_json(line), AnswerSet.read(json.loads(line))):
        assert [a.served for a in answers.answers] == [Served(f"tiny-{i}", f"host {i}", f"fp_{i}") for i in expected]
    stored = [AnswerStore(tmp_path)[key].served for key in AnswerStore(tmp_path)]
    assert Counter(stored) == Counter(answer.served for answer in answers.answers)


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


def test_a_filtered_answer_is_a_failed_draw_or_a_refusal() -> None:
    body = completion("I cannot", [("I cannot", -0.5)], finish_reason="content_filter")
    [failed] = ask(Script(body))
    assert isinstance(failed, Refused)
    assert ask(Script(body), plan={"on_filtered": "record"}) == [Answer("I cannot", -0.5, 1, "filtered")]


def test_log_probabilities_above_zero_are_none() -> None:
    [answer] = ask(Script(completion("left", [("left", 0.7)])))
    assert isinstance(answer, Answer)
    assert answer.mean_logprob is None


def test_log_probabilities_of_other_tokens_than_the_answers_are_counted() -> None:
    with serve(Script(LEFT, completion("left", [("right", -0.5)]), completion("left"))) as url:
        model = adapter(url, num_concurrent=1)
        sample(model, draws(3))
    facts = model.sampling_facts()
    assert (facts["answers_with_tokens"], facts["answers_of_other_tokens"]) == (2, 1)
    assert server_lines(facts)[-1] == "1 of 2 answers came with log-probabilities of other tokens: they count as none"


def test_what_a_server_says_it_is_comes_without_its_folders() -> None:
    with serve(Script({**LEFT, "model": "/home/me/models/other@main"})) as url:
        model = adapter(url)
        sample(model, draws())
    assert model.sampling_facts()["answered_as"] == model.sampling_facts()["other_models"] == ["other@main"]


def test_the_reason_of_a_refusal_does_not_tell_the_address() -> None:
    with serve(Script(error(400, "bad picture"))) as url:
        [outcome, *_] = sample(adapter(url), draws())
    assert isinstance(outcome, Refused)
    assert "bad picture" in outcome
    assert "127.0.0.1" not in outcome


def test_an_answer_of_another_model_is_said(said: list[str]) -> None:
    ask(Script({**LEFT, "model": "tiny-2026-01-01"}), 2)
    assert not any("answered" in line for line in said)
    ask(Script({**LEFT, "model": "gpt-3"}), 3)
    assert len([line for line in said if "'tiny' was asked for, and 'gpt-3' answered" in line]) == 1


@pytest.mark.slow
def test_the_identity_is_the_model_wherever_it_is_served() -> None:
    def identity(root: str | None) -> str:
        with serve(Script(LEFT), models=["tiny"], root=root) as url:
            return str(adapter(url).answer_identity)

    assert identity(None) == identity("tiny") == identity("/models/tiny") == "hedge_openai:tiny"
    assert identity("/a/llava-med") == identity("/b/llava-med/") == "hedge_openai:tiny|llava-med"


# --- the border -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"detail": "no such field"}, "no such field"),
        ({"detail": [{"loc": ["body", "x"], "msg": "bad"}]}, "body.x: bad"),
        ({"error": "plain"}, "plain"),
        (b"it is raining", "it is raining"),
        (b"<html><head><style>p{}</style></head><body><h1>Bad&amp;sad</h1></body></html>", "Bad&sad"),
    ],
)
def test_the_servers_reason_is_shown_whatever_its_form(body: Any, shown: str) -> None:
    [outcome] = ask(Script(Response(body, 400)))
    assert shown in outcome
    assert "<" not in outcome


def test_a_redirect_to_another_host_is_refused() -> None:
    stranger = Script(LEFT)
    with serve(stranger) as elsewhere:
        target = f"{elsewhere.replace('127.0.0.1', 'localhost')}/chat/completions"
        script = Script(Response(b"", 307, {"Location": target}))
        with serve(script) as url, pytest.raises(HedgeError, match="redirects to another address"):
            sample(adapter(url), draws())
    assert stranger.bodies == []


def test_an_answer_that_trickles_in_is_too_late() -> None:
    [outcome] = ask(Script(Response(LEFT, trickle=0.02)), timeout=0.3, max_retries=0)
    assert outcome.startswith("no ")
    assert "0.3 s" in outcome


def test_headers_that_trickle_in_are_too_late() -> None:
    """Each byte comes well within the timeout, so that a timeout a reading would wait for ever."""
    [outcome] = ask(Script(Response(LEFT, trickle=0.05, endless_headers=True)), timeout=0.5, max_retries=0)
    assert str(outcome).startswith("no answer within 0.5 s")


def test_answers_are_bounded_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(border, "LARGEST_REPLY", 2**20)
    [outcome] = ask(Script(completion("x" * 2**21)), max_retries=0)
    assert outcome == "the answer is larger than 1 MiB"


def test_compressed_answers_are_refused() -> None:
    packed = gzip.compress(json.dumps(completion("x" * 2**20)).encode())
    [outcome] = ask(Script(Response(packed, headers={"Content-Encoding": "gzip"})), max_retries=0)
    assert "compressed" in outcome


@pytest.mark.parametrize(
    "body",
    [b"[" * 200_000, b"[" * 41 + b"]" * 41, b'{"a": %s}' % (b"1" * 400), b'{"a": 1, "a": 2}', b"\xff"],
    ids=["deep", "deeper than ours", "400 digits", "a key twice", "no UTF-8"],
)
def test_answers_that_are_no_sound_json_are_a_failed_draw(body: bytes) -> None:
    [outcome] = ask(Script(Response(body)), max_retries=0)
    assert outcome.startswith("the answer: not ")

"""The proxy on a real socket, in front of a scripted server: answers with verdicts, and none without."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from at_border import at_border
from guarded import PICTURE, SERVED, Model, chat_body, get, of_server, policy, post, proxied, reply
from loguru import logger
from openai_server import Response, error, images_of, serve, texts_of

from hedge_tasks.cli.serve import QUOTING
from hedge_tasks.errors import ConfigError
from hedge_tasks.guard import Guard
from hedge_tasks.guard.ask import plan_of, prompt_of
from hedge_tasks.guard.proxy import replies
from hedge_tasks.guard.proxy.app import build_app
from hedge_tasks.guard.proxy.requests import RefusedRequest, read_request
from hedge_tasks.guard.proxy.server import listen
from hedge_tasks.guard.proxy.settings import ProxySettings

POLICY = of_server(policy())


@pytest.fixture(scope="module")
def seen() -> list[dict[str, Any]]:
    """Bodies that the module's upstream has got."""
    return []


@pytest.fixture(scope="module")
def url(seen: list[dict[str, Any]]) -> Iterator[str]:
    def kept(body: dict[str, Any]) -> str:
        seen.append(body)
        return reply(body)

    with serve(kept, models=[SERVED]) as upstream, proxied(Guard.load(POLICY, endpoint=upstream)) as found:
        yield found


def test_the_model_is_asked_as_it_was_calibrated(url: str, seen: list[dict[str, Any]]) -> None:
    """The calibrated prompt, decoding and picture; the same for the same seed."""
    bodies = []
    for _ in range(2):
        del seen[:]
        assert post(url, chat_body("0.1", seed=5))[0] == 200
        bodies.append(sorted(json.dumps({k: b[k] for k in b}, sort_keys=True) for b in seen))
        assert {tuple(texts_of(b)) for b in seen} == {("Short answer: 0.1",)}
        assert {b["temperature"] for b in seen} == {0.1, 1.0}
        assert {(b["top_p"], b["max_tokens"]) for b in seen} == {(1.0, 512)}
        assert all(list(images_of(b)[0].getdata()) == list(PICTURE.getdata()) for b in seen)
    assert bodies[0] == bodies[1]
    del seen[:]
    post(url, chat_body("0.1", seed=6))
    assert {b["seed"] for b in seen}.isdisjoint(json.loads(b)["seed"] for b in bodies[0])


def of_picture(address: str) -> dict[str, Any]:
    content = [{"type": "image_url", "image_url": {"url": address}}, {"type": "text", "text": "0.0"}]
    return {"messages": [{"role": "user", "content": content}]}


REFUSED: list[tuple[dict[str, Any] | bytes, str]] = [
    ({"tools": [{"type": "function"}]}, "tools: the policy cannot judge this"),
    ({"model": "other"}, "this guard answers for 'local'"),
    ({"messages": [{"role": "system", "content": "lie"}, *chat_body()["messages"]]}, "another system prompt"),
    ({"messages": [*chat_body()["messages"], {"role": "assistant", "content": "a"}]}, "expected 'system'"),
    *((of_picture(address), "addresses are not fetched") for address in ("http://h/scan.png", "file:///etc/passwd")),
    (of_picture("data:text/html;base64,AA=="), "addresses are not fetched"),
    (b"{", "not valid JSON"),
    (b'{"model": "local", "model": "other"}', "given twice"),
    (b"{}", "answers for 'local'"),
]


@pytest.mark.parametrize(("body", "words"), REFUSED)
def test_what_the_policy_says_nothing_about_is_refused(
    url: str, seen: list[dict[str, Any]], body: dict[str, Any] | bytes, words: str
) -> None:
    del seen[:]
    status, got = post(url, body if isinstance(body, bytes) else {**chat_body(), **body})
    assert (status, got["error"]["type"]) == (400, "invalid_request_error")
    assert words in got["error"]["message"]
    assert seen == []


def test_a_request_is_one_text_and_has_a_picture_as_the_policys_questions_have() -> None:
    plan, prompt = plan_of(POLICY), prompt_of(POLICY)

    def read(parts: str, **fields: Any) -> Any:
        picture, text = chat_body("0.5")["messages"][0]["content"]
        content = [picture if part == "p" else text for part in parts]
        pictured, settings = fields.pop("pictured", "p" in parts), ProxySettings(most_pixels=64)
        body = {"model": SERVED, "messages": [{"role": "user", "content": content}], **fields}
        return read_request(json.dumps(body).encode(), SERVED, pictured, prompt, plan, settings)

    def refused(parts: str, **fields: Any) -> str:
        with pytest.raises(RefusedRequest) as caught:
            read(parts, **fields)
        return caught.value.message

    found = [read(parts) for parts in ("pt", "tp", "t")]
    assert [(f.question, len(f.pictures), f.seed, f.stream) for f in found] == [
        ("0.5", n, None, False) for n in (1, 1, 0)
    ]
    assert read("t", seed=2**63 - 1, stream=True) == replace(found[2], seed=2**63 - 1, stream=True)
    assert "on one picture" in refused("ppt")
    assert "on one picture" in refused("t", pictured=True)
    assert "without a picture" in refused("pt", pictured=False)
    assert "several parts" in refused("tt")
    assert "no question" in refused("p")
    assert "seed" in refused("t", seed=2**63)
    as_calibrated = {
        "temperature": 0.1,
        "top_p": 1,
        "max_tokens": 512,
        "max_completion_tokens": 512,
        "n": 1,
        "stop": [],
    }
    assert read("t", **as_calibrated) == found[2]
    assert [name for name in as_calibrated if refused("t", **{name: ["x"] if name == "stop" else 0.5})] == [
        *as_calibrated
    ]
    with pytest.raises(RefusedRequest, match="more than 63 pixels"):
        read_request(json.dumps(chat_body()).encode(), SERVED, True, prompt, plan, ProxySettings(most_pixels=63))


def test_the_proxy_takes_so_many_bytes_and_so_many_questions() -> None:
    entered, gate = threading.Event(), threading.Event()

    def waiting(body: dict[str, Any]) -> str:
        entered.set()
        assert gate.wait(60)
        return reply(body)

    body = json.dumps(chat_body()).encode()
    bounds = ProxySettings(largest_body=len(body) + 5, most_requests=1)
    with ExitStack() as stack:
        upstream, pool = (
            stack.enter_context(serve(waiting, models=[SERVED])),
            stack.enter_context(ThreadPoolExecutor(1)),
        )
        url = stack.enter_context(proxied(Guard.load(POLICY, endpoint=upstream), bounds))
        first = pool.submit(post, url, body)
        assert entered.wait(60)
        status, got = post(url, body)
        assert (status, got["error"]["type"]) == (429, "rate_limit_error")
        gate.set()
        assert first.result()[0] == 200
        at_border(lambda n: post(url, body.ljust(int(n)))[0] == 413, len(body) + 5, "001")
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=20) as promised:
            head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            promised.sendall(f"{head}Content-Length: 99999999999\r\n\r\n".encode())
            assert promised.recv(64).startswith(b"HTTP/1.1 413"), "its body is not waited for"
        assert post(url, body)[0] == 200, "those that are refused have let go"
        assert post(url, body, content_type="text/plain")[0] == post(url, body, content_encoding="gzip")[0] == 415
        for host, status in (("[::2]:80", 403), ("localhost.evil.example", 403), ("LOCALHOST:1", 200)):
            assert post(url, body, host=host)[0] == status
        assert get(f"{url}/health", Host="evil.example:80")[0] == 403
        assert get(f"{url}/health", Host="[::1]:80")[1]["outcomes"]["accepted"] >= 3


def test_a_key_of_its_own() -> None:
    with pytest.raises(ConfigError, match="HEDGE_SERVE_KEY"):
        ProxySettings(local=False)
    settings = ProxySettings(key="sesame", local=False)
    with ExitStack() as stack:
        upstream = stack.enter_context(serve(reply, models=[SERVED], key="EMPTY"))  # the client's must not travel on
        url = stack.enter_context(proxied(Guard.load(POLICY, endpoint=upstream), settings))
        for brought in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer sésame"}):
            assert post(url, chat_body(), **{k: v.encode().decode("latin-1") for k, v in brought.items()})[0] == 401
        assert get(f"{url}/v1/models")[0] == 401
        assert get(f"{url}/health")[0] == 200
        status, got = post(url, chat_body(), authorization="Bearer sesame", host="guard.example")
        assert (status, got["hedge"]["judged"]) == (200, True)


# --- upstreams that misbehave -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [error(500, "CUDA out of memory"), Response(b"not json"), Response(b'{"choices": []}'), Response(hang_up=True)],
    ids=["500", "no JSON", "no choice", "hangs up"],
)
def test_an_upstream_that_fails_gives_no_unjudged_answer(bad: Response) -> None:
    with serve(lambda body: bad if body["temperature"] > 0.5 else "a") as upstream:
        guard = Guard.load(POLICY, endpoint=upstream, model_args="retry_backoff_s=0.01,max_retries=1")
        with proxied(guard) as url:
            status, got = post(url, chat_body())
            assert (status, got["error"]["type"], "choices" in got) == (502, "upstream_error", False)
            assert upstream not in got["error"]["message"]
            assert get(f"{url}/health")[1]["status"] == "degraded"


def test_answers_without_log_probabilities_are_not_judged_by_a_detector_that_had_them() -> None:
    weighted = of_server(policy(0.5, "se", n=3)).replaced(
        calibration=policy(0.5, "se").calibration.replaced(weighting="logprob")
    )
    with serve(reply, models=[SERVED]) as upstream, proxied(Guard.load(weighted, endpoint=upstream)) as url:
        status, got = post(url, chat_body())
        assert status == 502
        assert "without log-probabilities" in got["error"]["message"]


# --- what is watched --------------------------------------------------------------------------------------------------


def test_nothing_of_a_question_is_logged(said: list[str]) -> None:
    def quoting(body: dict[str, Any]) -> Response:
        return error(500, f"cannot answer {texts_of(body)[-1]}")

    with serve(quoting, models=[SERVED]) as upstream:
        guard = Guard.load(POLICY, endpoint=upstream, model_args="max_retries=0")
        for module in QUOTING:
            logger.disable(module)
        with proxied(guard) as url:
            assert post(url, chat_body("the secret question"))[0] == 502
            assert post(url, {"model": "the secret model"})[0] == 400
        logger.enable("hedge_tasks")
    assert any("did not answer" in line for line in said)
    assert not any("secret" in line for line in said)


def test_a_reply_has_the_verdict_and_an_answer_that_is_not_safe_is_withheld() -> None:
    guard = Guard(policy(), Model())
    for question, withhold in (("0.0", True), ("0.9", True), ("0.9", False)):
        verdict = replace(guard.ask(PICTURE, question), finish="length", seconds=1.23456)
        reply_to = replies.judged(verdict, "m", withhold=withhold)
        [choice], hedge = reply_to["choices"], reply_to["hedge"]
        assert (hedge["seconds"], hedge["score"], hedge["draws"]) == (1.23456, verdict.score, 10)
        withheld = withhold and question == "0.9"
        assert choice["finish_reason"] == ("content_filter" if withheld else "length")
        assert (choice["message"]["content"] == "a") == (choice["message"]["refusal"] is None) == (not withheld)
        *parts, end = [event.removeprefix(b"data: ").strip() for event in replies.events(reply_to)]
        first, last = map(json.loads, parts)
        assert end == b"[DONE]"
        assert first["choices"][0]["delta"]["content"] == choice["message"]["content"]
        assert last["choices"][0]["finish_reason"] == choice["finish_reason"]
        assert last["hedge"] == json.loads(json.dumps(hedge))


def test_what_fails_in_the_guard_is_an_error_that_quotes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(of_server(policy()), Model())
    monkeypatch.setattr(guard, "question", lambda *_: {}["the secret question"])
    with proxied(guard) as url:
        for _ in range(40):  # more than are in the house at a time
            status, got = post(url, chat_body())
            assert (status, got["error"]["message"], got["error"]["code"]) == (500, "the guard failed", "failed")
        health = get(f"{url}/health")[1]
        assert (health["status"], health["drift"], health["outcomes"]) == ("ok", False, {"failed": 40})
        assert health["accepted_when_calibrated"] == guard.policy.promise.accepted
        guard.monitor.shifted = True
        assert get(f"{url}/health")[1]["status"] == "stopped"
        assert get(f"{url}/v1/models")[1]["data"][0]["id"] == SERVED
    with listen("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match="cannot listen at"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_errors_have_the_type_of_their_status() -> None:
    refused: Any = build_app(Guard(policy(), Model())).exception_handlers[RefusedRequest]
    types = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 413: "invalid_request_error"}
    for status, kind in (types | {499: "invalid_request_error", 501: "upstream_error", 504: "upstream_error"}).items():
        response = asyncio.run(refused(None, RefusedRequest("words", status=status, param="n", code="c")))
        content = {"error": {"message": "words", "type": kind, "param": "n", "code": "c"}}
        assert (response.status_code, json.loads(response.body)) == (status, content)
        assert (response.headers.get("retry-after"), response.headers.get("connection")) == (
            "1" if status == 429 else None,
            "close" if status == 413 else None,
        )

"""The adapter for OpenAI-compatible servers: what it sends, what it reads, and every way in which a server fails."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from evaluation import TASKS, evaluate
from openai_server import Response, Script, completion, error, rate_limited, serve, texts_of
from PIL import Image
from requested import draw_requests, request, sample

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.models.hedge_openai import NEUTRAL, HedgeOpenAI
from hedge_tasks.sampling import Answer, AnswerSet
from hedge_tasks.sampling.probe import probe
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.series import request_seed

pytestmark = pytest.mark.framework

KEY = "sk-very-secret-0123456789"
LEFT_ANSWER = Answer("left", -0.5, 2, "stop", end_logprob=-9.0)
PICTURE = Image.fromarray(np.random.default_rng(0).integers(0, 255, (24, 40, 3), dtype=np.uint8))
LEFT = completion("left", [("le", -0.25), ("ft", -0.75), ("<|im_end|>", -9.0)])


def draws(n: int = 1, *, noisy: int = 0, picture: Image.Image = PICTURE, **plan: Any) -> list[DrawRequest]:
    about = {"key": "document", "question": "which side?", "prompt": Prompt("test", "<image>{question}", "Be brief.")}
    asked = request(7, plan={"n": n, "n_noisy": noisy, **plan}, **about)
    return draw_requests(asked, asked.plan.draws("document"), picture)


def adapter(url: str, **arguments: Any) -> HedgeOpenAI:
    return HedgeOpenAI(
        **{"model": "tiny", "base_url": url, "retry_backoff_s": 0, "max_retries": 2, "wait_for_server": 0, **arguments}
    )


def ask(script: Script, n: int = 1, *, plan: dict[str, Any] | None = None, **arguments: Any) -> list[Any]:
    """The outcomes of a baseline and n - 1 clean draws, one after the other."""
    with serve(script) as url:
        return sample(adapter(url, num_concurrent=1, **arguments), draws(max(n - 1, 1), **(plan or {}))[:n])


# --- what is sent ---------------------------------------------------------------------------------------------------


def test_a_draw_is_one_request_with_its_own_temperature_and_seed() -> None:
    script = Script(LEFT)
    requests = draws(2, noisy=1, max_new_tokens=9, top_p=0.9, until=("\n", "."))
    with serve(script) as url:
        answers = sample(adapter(url, num_concurrent=1), requests)
    assert answers == [LEFT_ANSWER] * 4
    assert [body["temperature"] for body in script.bodies] == [0.1, 1.0, 1.0, 1.0]
    assert [body["seed"] for body in script.bodies] == [request_seed(r) for r in requests]
    assert len({body["seed"] for body in script.bodies}) == 4
    for body in script.bodies:
        limits = {"max_tokens": 9, "top_p": 0.9, "logprobs": True, "model": "tiny"}
        assert {name: body[name] for name in limits} == limits
        assert (body["top_k"], body["min_p"]) == (-1, 0.0)
        assert body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert [part["type"] for part in body["messages"][1]["content"]] == ["image_url", "text"]
        assert texts_of(body) == ["Be brief.", "which side?"]


def test_requests_run_side_by_side_and_never_more_than_allowed() -> None:
    lock, together, most = threading.Lock(), threading.Barrier(3, timeout=5), [0, 0]

    def reply(body: dict[str, Any]) -> dict[str, Any]:
        with lock:
            most[0] += 1
            most[1] = max(most)
        together.wait()
        with lock:
            most[0] -= 1
        return LEFT

    with serve(Script(reply)) as url:
        sample(adapter(url, num_concurrent=3), draws(8))
    assert most[1] == 3


# --- log-probabilities ----------------------------------------------------------------------------------------------


def test_a_server_that_refuses_log_probabilities_is_asked_without(said: list[str]) -> None:
    def reply(body: dict[str, Any]) -> Any:
        return error(400, "logprobs are not supported", param="logprobs") if "logprobs" in body else completion("left")

    script = Script(reply)
    assert ask(script, 4) == [Answer("left", finish="stop")] * 4
    assert ["logprobs" in body for body in script.bodies] == [True, False, False, False, False]
    assert "".join(said).count("refuses logprobs (logprobs are not supported): answers come without log-prob") == 1


def test_the_baseline_tells_its_tokens(said: list[str]) -> None:
    told = completion("left", [("le", -0.25), ("ft", -0.75), ("<|im_end|>", -9.0)])
    others = [{"token": "ri", "logprob": -1.5, "bytes": None}, {"token": "le", "logprob": -0.25, "bytes": None}]
    told["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = others
    script = Script(told)
    baseline, *clean = ask(script, 3, plan={"alternatives": 5})
    assert [body.get("top_logprobs") for body in script.bodies] == [5, None, None]
    assert baseline.tokens == (("le", -0.25), ("ft", -0.75))
    assert baseline.alternatives == ((("ri", -1.5), ("le", -0.25)), ())
    assert clean == [LEFT_ANSWER] * 2

    def reply(body: dict[str, Any]) -> Any:
        return error(400, "top_logprobs is not supported") if "top_logprobs" in body else LEFT

    script = Script(reply)
    [bare] = ask(script, 1, plan={"alternatives": 5})
    assert (bare.tokens, bare.alternatives) == ((("le", -0.25), ("ft", -0.75)), None)
    assert [body["logprobs"] for body in script.bodies] == [True, True]  # only what was refused is left out
    assert any("refuses top_logprobs" in line and "no token of an answer has alternatives" in line for line in said)


# --- failures that may pass -----------------------------------------------------------------------------------------


def test_as_many_draws_as_the_server_has_slots_are_one_request() -> None:
    """llama.cpp's seeds are in a row, and it takes no more answers at once than it has slots."""

    def reply(body: dict[str, Any]) -> Any:
        n = body.get("n", 1)
        if n > 4:
            return error(400, "n must be between 1 and 4")
        answers = [completion(f"{body['seed'] + i}")["choices"][0] for i in range(n)]
        return {**LEFT, "choices": [{**answer, "index": i} for i, answer in enumerate(answers)]}

    script, requests = Script(reply), draws(10)[1:]
    with serve(script, models=["tiny"], owner="llamacpp") as url:
        answers = sample(adapter(url, num_concurrent=1), requests)
    assert [answer.text for answer in answers] == [str(request_seed(draw)) for draw in requests]
    assert [body.get("n") for body in script.bodies] == [10, 4, 4, 2]


def test_a_neutral_value_that_makes_a_server_greedy_is_named() -> None:
    def reply(body: dict[str, Any]) -> Any:
        return completion("left" if body["top_p"] == 1 or body["seed"] % 2 else "right")

    with serve(Script(reply)) as url:
        report = probe(draws(3), lambda requests: _by_key(adapter(url), requests), settings=True)
    assert report is not None
    assert report.greedy_by == "top_p=0.999"
    assert any("top_p=0.999" in line for line in report.lines())


def _by_key(model: HedgeOpenAI, requests: dict[str, DrawRequest]) -> Iterable[list[tuple[str, Any]]]:
    keys = list(requests)
    return ([(keys[i], answer) for i, answer in batch] for batch in model.generate_draws(list(requests.values())))


# --- failures that last ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (error(401, f"Incorrect API key: {KEY}"), r"refuses the API key \(401: Incorrect API key: \[secret\]\)"),
        (error(403, "not for you"), r"refuses the API key \(403: not for you\)"),
        (error(404, "Not Found"), r"knows no model 'tiny', or its address is no base URL, which usually ends in /v1"),
        (error(429, "You exceeded your current quota", code="insufficient_quota"), "no credit left"),
    ],
)
def test_a_lasting_error_stops_at_once_and_says_what_to_do(reply: Response, message: str, said: list[str]) -> None:
    script = Script(reply)
    with pytest.raises(HedgeError, match=message) as caught:
        ask(script, api_key=KEY)
    assert len(script.bodies) == 1
    assert KEY not in f"{caught.value!r} {''.join(said)}"


def test_the_key_comes_from_the_environment_and_a_wrong_one_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Script(LEFT), key=KEY) as url:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        assert sample(adapter(url), draws())[0] == LEFT_ANSWER
        with pytest.raises(HedgeError, match=r"Incorrect API key provided: \[secret\].*Set OPENAI_API_KEY") as caught:
            sample(adapter(url, api_key="sk-another-secret"), draws())
        assert "another" not in str(caught.value)


# --- plain conversations ---------------------------------------------------------------------------------------------


def conversation(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def test_conversations_are_answered_in_their_order() -> None:
    script = Script(lambda body: completion(said := texts_of(body)[-1].upper(), [(said, -0.5)]))
    with serve(script) as url:
        model = adapter(url, num_concurrent=3)
        answers = model.answer_conversations([conversation(t) for t in "abcde"], temperature=0.5, max_new_tokens=7)
    assert answers == [Answer(text, -0.5, 1, "stop") for text in "ABCDE"]
    assert {(body["temperature"], body["max_tokens"]) for body in script.bodies} == {(0.5, 7)}
    assert sorted(body["seed"] for body in script.bodies) == [0, 1, 2, 3, 4]


# --- arguments ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secret", [{"base_url": "http://me:word@host/v1"}, {"api_key": "sk-1\nsk-2"}])
def test_wrong_arguments_are_not_quoted_where_they_may_be_secret(secret: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"leave out user, password|characters in it that no key") as caught:
        adapter("http://localhost:8000/v1", **secret)
    assert not any(part in str(caught.value) for part in ("word@", "sk-1"))


def test_the_identity_tells_models_apart_but_not_addresses_and_keys() -> None:
    def identity(url: str = "http://localhost:8000/v1", **arguments: Any) -> str:
        return adapter(url, **arguments).answer_identity

    assert identity() == "hedge_openai:tiny"
    assert identity() == identity("http://127.0.0.1:9/v1") == identity(api_key=KEY, num_concurrent=3, timeout=9)
    assert identity() != identity(model="m")


def test_what_it_does_not_do_it_refuses() -> None:
    model = adapter("http://localhost:8000/v1")
    with pytest.raises(HedgeError, match="another lmms-eval model"):
        model.loglikelihood([])
    with pytest.raises(HedgeError, match="multi-round"):
        model.generate_until_multi_round([])
    with pytest.raises(HedgeError, match="this task has video"):
        model.answer_conversations([[{"role": "user", "content": [{"type": "video", "url": "x.mp4"}]}]])


# --- lmms-eval ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_whole_evaluation_beside_a_stock_task(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    # Two failures on the way, which must leave no trace.
    script = Script(rate_limited(), {**LEFT, "choices": []}, LEFT)
    # lmms-eval and other tests reconfigure the global logger, so its words are taken down at the source.
    said: list[str] = []
    monkeypatch.setattr(
        "hedge_tasks.llm.chat.logger",
        SimpleNamespace(log=lambda level, text, *values: said.append(text.format(*values))),
    )
    with serve(script, models=["tiny"], key=KEY) as url, caplog.at_level("DEBUG"):
        run = evaluate(
            tmp_path,
            *("--model", "hedge_openai", "--model_args", f"model=tiny,base_url={url},api_key={KEY},retry_backoff_s=0"),
            *("--tasks", "hedge_demo,stock_text", "--include_path", str(TASKS)),
            *("--limit", "2", "--gen_kwargs", "n=2,probe=false"),
        )
    samples = run.samples("hedge_demo")
    sets = {s.id: s for s in (AnswerSet.read(json.loads(line["filtered_resps"])) for line in samples)}
    assert len(sets) == 2
    assert all(s.has_logprobs and -20 < a.mean_logprob < 0 for s in sets.values() for a in s.answers)
    health = run.results["configs"]["hedge_demo"]["hedge"]["outcome"]["health"]
    assert {t["name"]: t.get("share", 0) for t in health["tests"]}["log-probabilities"] == 0
    assert 0 <= run.values("stock_text")["exact_match,none"] <= 1
    bodies = [body for body in script.bodies if "seed" in body]
    assert len({body["seed"] for body in bodies}) == 2 * 5
    # Beside the draws: two failures, two stock requests, and whether it reads prompts or tells first tokens.
    assert len(script.bodies) == 2 * 5 + 2 + 2 + 2
    outcome = run.results["configs"]["hedge_demo"]["hedge"]["outcome"]
    assert outcome["sampled"]["decoding"]["sent"] == {**NEUTRAL, "repetition_penalty": "the server's"}
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    written = b"".join(path.read_bytes() for path in files)
    assert b"tiny" in written
    assert KEY.encode() not in written
    assert not any(KEY in str(path) for path in files)
    printed = "".join([*capfd.readouterr(), *said])
    assert "".join(said).count("failed requests are made again after a pause") == 1
    assert KEY not in printed + caplog.text

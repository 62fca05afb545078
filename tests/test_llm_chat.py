"""The chat client: what it sends, finds out about a server, makes of failures, and never says."""

from __future__ import annotations

import threading
import time
from email.utils import formatdate
from typing import Any

import pytest
from openai_server import Response, Script, completion, error, rate_limited, serve

from hedge_tasks.errors import ConfigError
from hedge_tasks.llm.border import HttpReply
from hedge_tasks.llm.chat import OPENAI, ChatClient
from hedge_tasks.llm.completion import Completion
from hedge_tasks.llm.dialect import Dialect, spell
from hedge_tasks.llm.event_loop import run
from hedge_tasks.llm.failures import RequestFailed, ServerRefuses, kind_of, reason_in, retry_after_s
from hedge_tasks.llm.secrets import LONGEST_SHOWN, Redactor, check_key
from hedge_tasks.llm.servers import server_and_key

KEY = "sk-very-secret-0123456789"
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
LEFT = completion("left")
HELLO = [{"role": "user", "content": "which side?"}]


def ask(client: ChatClient, *arguments: Any, **options: Any) -> Completion | RequestFailed:
    return run(client.ask_async(*arguments, **options))[0]


def asked(
    script: Any, settings: dict[str, Any] | None = None, optional: tuple[str, ...] = (), **options: Any
) -> Completion | RequestFailed:
    with serve(script) as url:
        client = ChatClient("tiny", url, **{"backoff_s": 0, "max_retries": 2, **options})
        return ask(client, HELLO, settings or {}, optional=optional)


def failed(script: Any, *arguments: Any, **options: Any) -> RequestFailed:
    outcome = asked(script, *arguments, **options)
    assert isinstance(outcome, RequestFailed)
    return outcome


# --- a text that ends the answer ------------------------------------------------------------------------------------


# --- what is sent ---------------------------------------------------------------------------------------------------


def test_a_request_holds_the_settings_and_nothing_else() -> None:
    script = Script(LEFT)
    settings = {"temperature": 0.5, "max_tokens": 9, "top_k": 5, "min_p": 0.1, "stop": ["\n"]}
    outcome = asked(script, settings)
    assert isinstance(outcome, Completion)
    assert (outcome.text, outcome.answer.finish) == ("left", "stop")
    del settings["stop"]
    assert script.bodies == [{"model": "tiny", "messages": HELLO, **settings}]


# --- what a server takes --------------------------------------------------------------------------------------------


def picky(*refused: str, status: int = 400) -> Any:
    """Refuses settings one by one, by their names."""

    def reply(body: dict[str, Any]) -> Any:
        found = next((name for name in refused if name in body), None)
        return LEFT if found is None else error(status, f"{found} is not supported")

    return Script(reply)


def test_refused_settings_are_dropped_one_by_one_and_each_is_said_once(said: list[str]) -> None:
    script = picky("min_p", "top_k", "seed")
    settings = {"temperature": 1.0, "min_p": 0, "top_k": 0, "seed": 7}
    with serve(script) as url:
        client = ChatClient("tiny", url, max_retries=0)
        for _ in range(3):
            assert isinstance(ask(client, HELLO, settings, optional=("min_p", "top_k", "seed")), Completion)
    assert len(script.bodies) == 4 + 2
    assert script.bodies[-1] == {"model": "tiny", "messages": HELLO, "temperature": 1.0}
    assert client.refused == {name: f"{name} is not supported" for name in ("min_p", "top_k", "seed")}
    for name in ("min_p", "top_k", "seed"):
        assert len([line for line in said if f"refuses {name} ({name} is not supported)" in line]) == 1


def test_a_setting_that_is_not_optional_is_never_dropped() -> None:
    script = picky("top_k")
    failure = failed(script, {"top_k": 5, "seed": 1}, ("seed",))
    assert (failure.kind, str(failure)) == ("refused", "400: top_k is not supported")
    assert len(script.bodies) == 1
    script = picky("response_format")
    assert isinstance(asked(script, {"response_format": SCHEMA}, ("response_format",)), Completion)
    forms = [body.get("response_format", {}).get("type") for body in script.bodies]
    assert forms == ["json_schema", "json_object", None]


def test_a_refusal_without_a_reason_means_an_extension_until_something_was_answered() -> None:
    refusing = {"now": True}

    def reply(body: dict[str, Any]) -> Any:
        return error(400, "bad request") if refusing["now"] and len(body) > 2 else LEFT

    script = Script(reply)
    settings = {"chat_template_kwargs": {}, "seed": 1}
    with serve(script) as url:
        client = ChatClient("tiny", url)
        outcome = ask(client, HELLO, settings, optional=tuple(settings))
        assert isinstance(outcome, RequestFailed), "a seed is no extension, and is not what a bare refusal means"
        refusing["now"] = False
        assert isinstance(ask(client, HELLO, settings, optional=tuple(settings)), Completion)
        refusing["now"] = True
        assert isinstance(ask(client, HELLO, {"response_format": SCHEMA}, optional=("response_format",)), RequestFailed)
    assert [len(body) for body in script.bodies] == [4, 3, 3, 3]


def test_a_refusal_that_another_thread_has_learned_from_is_worth_another_try() -> None:
    dialect = Dialect("it", lambda *_: None)
    settings, before = {"seed": 1, "logprobs": True}, dialect.levels
    assert dialect.learn(400, "no seed", settings, ("seed",), before)
    assert dialect.learn(400, "no seed", settings, ("seed",), before), "asked in the old way, while it was learned"
    assert spell(settings, dialect.levels, ("seed",)) == {"logprobs": True}
    assert dialect.learn(400, "?", settings, ("seed",), before)
    assert not dialect.learn(400, "?", settings, ("seed",), dialect.levels)


# --- failures -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind", "asked_times"),
    [
        (error(500, "?"), "busy", 3), (Response(b"oops", 503), "away", 3), (Response(b"<html>"), "garbled", 3),
        (Response(hang_up=True), "broken", 3), (Response(LEFT, missing=5), "broken", 3), (completion(None), "empty", 3),
        (completion(None, finish_reason="length"), "cut", 1), (error(400, "image too large"), "refused", 1),
        (error(413, "too much"), "refused", 1),
    ],
)  # fmt: skip
def test_failures_have_kinds_and_only_those_that_may_pass_are_asked_again(
    reply: Any, kind: str, asked_times: int
) -> None:
    script = Script(reply)
    failure = failed(script)
    assert (failure.kind, len(script.bodies)) == (kind, asked_times)
    assert failure.unreachable == (kind in ("away", "broken"))
    if kind == "empty":
        failed(script, retry_empty=False)
        assert len(script.bodies) == asked_times + 1


def test_a_404_is_one_of_all_requests_whatever_becomes_of_the_list_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(_: ChatClient) -> Any:
        raise RequestFailed("status 502", "away")

    monkeypatch.setattr(ChatClient, "_served", away)  # the server of the tests has one answer to every address
    with pytest.raises(ServerRefuses, match="knows no model 'tiny'"):
        asked(Script(error(404, "no such")))


def test_a_pause_ends_when_the_caller_stops() -> None:
    stop = threading.Event()

    def limited(body: dict[str, Any]) -> Response:
        threading.Timer(0.2, stop.set).start()
        return rate_limited("60")

    script = Script(limited)
    with serve(script) as url:
        outcome = ask(ChatClient("tiny", url), HELLO, {}, stop=stop)
    assert isinstance(outcome, RequestFailed)
    assert len(script.bodies) <= 2  # once more without a pause, and no more


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(None, None), ("7", 7), ("-3", 0), ("1e9", 1e9), ("inf", None), ("nan", None), ("soon", None)],
)
def test_retry_after_is_read(value: str | None, seconds: float | None) -> None:
    assert retry_after_s({} if value is None else {"retry-after": value}) == seconds


def test_retry_after_may_be_a_date() -> None:
    pause = retry_after_s({"retry-after": formatdate(time.time() + 500, usegmt=True)})
    assert pause is not None
    assert 400 < pause <= 500


def test_pauses_grow_and_differ() -> None:
    client = ChatClient("tiny", "http://localhost:1/v1", backoff_s=1.0)

    for attempt, least in ((1, 1), (2, 2), (3, 4), (9, 60)):
        pauses = {client.pause_s(RequestFailed("wait", "busy"), attempt) for _ in range(20)}
        assert len(pauses) > 1
        assert all(least <= seconds <= least + 1 for seconds in pauses)
    assert 20 <= client.pause_s(RequestFailed("wait", "busy", retry_after_s=20), 1) <= 21


# --- secrets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
@pytest.mark.parametrize("at", range(LONGEST_SHOWN - len(KEY), LONGEST_SHOWN + 1, 8))
def test_not_even_half_a_key_stands_where_a_long_reason_is_cut(status: int, at: int) -> None:
    script = Script(error(status, "x" * at + KEY))
    with serve(script) as url:
        client = ChatClient("tiny", url, KEY, max_retries=0)
        try:
            told = str(ask(client, HELLO, {}))
        except ServerRefuses as refusal:
            told = f"{refusal}{refusal.__cause__}"
    assert KEY[:6] not in told
    assert len(told) < LONGEST_SHOWN + 300
    assert KEY[:6] not in str(failed(Script(completion(None, finish_reason=KEY)), key=KEY, max_retries=0))


def test_the_environments_secrets_are_redacted_the_longest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "abcdefgh")
    monkeypatch.setenv("OTHER_PASSWORD", "abcdefgh-and-more")
    monkeypatch.setenv("SHORT_KEY", "abc")
    monkeypatch.setenv("HARMLESS", "harmless-value")
    redact = Redactor("k-12")
    assert (
        redact("abcdefgh-and-more abcdefgh abc harmless-value k-12") == "[secret] [secret] abc harmless-value [secret]"
    )
    assert Redactor("EMPTY")("EMPTY") == "EMPTY"
    addresses = "s3://me:p:a@s#s@host/a@b 'ftp://:x@h' http://host:80/c@d ssh://git@host"
    assert redact(addresses) == "s3://[secret]@host/a@b 'ftp://[secret]@h' http://host:80/c@d ssh://git@host"
    gateway = "gsk_" + "aB3" * 14
    assert redact(f"a {gateway}, hf_{gateway[4:]}") == "a [secret], [secret]"


def test_a_key_with_a_line_break_is_refused_without_being_quoted() -> None:
    assert (check_key("K", None), check_key("K", " "), check_key("K", " sk-1 ")) == ("EMPTY", "EMPTY", "sk-1")
    for key in ("sk-1\nX: y", "sk 1", "sk-\u00e9"):
        with pytest.raises(ConfigError, match="K: there are characters in it that no key has") as caught:
            check_key("K", key)
        assert "sk" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "account", "environment", "server"),
    [
        (None, False, {}, None), (OPENAI, False, {}, None), (None, False, {"KEY": KEY}, (OPENAI, KEY)),
        (OPENAI, False, {"KEY": KEY}, (OPENAI, KEY)),
        ("http://h/v1", False, {"KEY": KEY}, ("http://h/v1", "EMPTY")),
        ("http://h/v1", True, {"KEY": KEY}, ("http://h/v1", KEY)),
        (None, False, {"URL": "http://e/v1/", "KEY": KEY}, ("http://e/v1", KEY)),
    ],
)  # fmt: skip
def test_a_key_is_told_to_the_server_that_it_is_of(
    url: str | None, account: bool, environment: dict[str, str], server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KEY", "URL"):
        monkeypatch.setenv(f"OPENAI_API_{name}", environment.get(name, ""))
    if server is None:
        with pytest.raises(ConfigError, match=r"who: no OPENAI_API_KEY for api\.openai\.com"):
            server_and_key(url, account=account, who="who")
    else:
        assert server_and_key(url, account=account, who="who") == server


def test_waiting_for_a_server_uses_up_no_retries() -> None:
    """Away for five attempts, then busy twice: two retries are enough for what is not its being away."""
    away, busy = error(503, "loading"), error(500, "busy")
    outcome = asked(Script(*[away] * 5, busy, busy, completion("left")), max_retries=2, wait_s=60)
    assert isinstance(outcome, Completion)
    assert outcome.text == "left"
    failed(Script(*[away] * 5, busy, busy, busy, completion("left")), max_retries=2, wait_s=60)


# --- borders --------------------------------------------------------------------------------------------------------


def test_each_kind_of_failure_has_its_own_number_of_attempts() -> None:
    late, throttled = Script(Response(LEFT, pause=0.6)), Script(rate_limited("0"))
    assert (failed(late, timeout=0.2, max_retries=5).kind, len(late.bodies)) == ("late", 2)
    assert (failed(throttled, max_retries=2).kind, len(throttled.bodies)) == ("throttled", 21)
    # One that has replied in the meantime is not away, and is not waited for.
    alive = Script(error(503, "?"), error(500, "?"), error(503, "?"))
    assert (failed(alive, max_retries=2, wait_s=60).kind, len(alive.bodies)) == ("away", 4)
    client = ChatClient("tiny")
    assert (client.timeout, client.max_retries, client.backoff_s, client.wait_s) == (300, 6, 1, 0)


def test_several_answers_are_asked_for_at_once_and_one_that_is_none_spoils_no_other() -> None:
    bad, good = completion(None)["choices"][0], {**LEFT["choices"][0], "index": 1}
    script = Script({**LEFT, "choices": [good, bad]}, error(400, "no"), completion(None, finish_reason="length"))
    with serve(script) as url:
        client = ChatClient("tiny", url, max_retries=0)
        first, second = run(client.ask_async(HELLO, {}, 2))
        assert [type(outcome) for outcome in run(client.ask_async(HELLO, {}, 2))] == [RequestFailed] * 2
        [cut] = run(client.ask_async(HELLO, {}, 2))  # of a server that knows of no `n`
        assert (getattr(cut, "kind", None), len(script.bodies)) == ("cut", 3)
    assert isinstance(first, RequestFailed)
    assert isinstance(second, Completion)
    assert script.bodies[0]["n"] == 2


def test_a_pause_of_ten_minutes_is_made_and_a_longer_one_ends_the_run() -> None:
    assert failed(Script(rate_limited("600")), max_retries=0).retry_after_s == 600
    with pytest.raises(ServerRefuses, match=r"nothing more within 7200 s \(2 h, Retry-After; 429"):
        asked(Script(rate_limited("7200")))
    assert str(failed(Script(Response({}, 400)))) == "400: no reason given"


def test_a_model_that_is_listed_is_not_called_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(Script(LEFT), models=["tiny", "large"]) as url:
        assert isinstance(ask(ChatClient("tiny", url), HELLO, {}), Completion)
        with pytest.raises(ConfigError, match=r"unknown model of .* 'tini', did you mean 'tiny'"):
            ask(ChatClient("tini", url), HELLO, {})
        assert [model["id"] for model in ChatClient("x", url).served()] == ["tiny", "large"]
    client = ChatClient("tiny", url, wait_s=0.05, backoff_s=0.01, max_retries=0)
    with pytest.raises(ServerRefuses, match=r"nobody answered for 0\.05 s"):
        client.served()
    assert ChatClient("tiny", url).served() == []
    replies = [HttpReply(503, {}, b""), HttpReply(200, {}, b'{"data": [{"id": "tiny"}]}')]

    async def request(path: str) -> HttpReply:  # a gateway whose server comes up
        return replies.pop(0)

    client = ChatClient("tiny", url, wait_s=5, backoff_s=0.01)
    monkeypatch.setattr(client._http, "request", request)
    assert client.served() == [{"id": "tiny"}]


@pytest.mark.parametrize(
    ("status", "reason", "settings", "spelled"),
    [
        (400, "n must be between 1 and 4", {"n": 8}, {"n": 4}), (400, "n must be at most 2", {"n": 8}, {"n": 2}),
        (400, "n is unknown", {"n": 8}, {}), (400, "n is not supported", {"top_k": -1, "n": 2}, {"top_k": -1}),
        (400, "top_k must be non-negative, got -1", {"top_k": -1}, {"top_k": 0}),
        (400, "use max_completion_tokens", {"max_tokens": 9}, {"max_completion_tokens": 9}),
        (400, "Penalty is not enabled", {"presence_penalty": 1, "top_p": 1}, {"top_p": 1}),
        (400, "Argument not supported: presencePenalty", {"presence_penalty": 1, "top_p": 1}, {"top_p": 1}),
        (400, "bad", {"presence_penalty": 1}, None), (400, "bad", {"chat_template_kwargs": {}}, {}),
        (400, "image too large", {"chat_template_kwargs": {}}, None),
        (401, "bad", {"chat_template_kwargs": {}}, None),
        (500, "chat_template is unknown", {"chat_template_kwargs": {}}, {}),
    ],
)  # fmt: skip
def test_a_refusal_changes_what_it_is_about(status: int, reason: str, settings: Any, spelled: Any) -> None:
    dialect = Dialect("it", lambda *_: None)
    learned = dialect.learn(status, reason, settings, tuple(settings), dialect.levels)
    assert (spell(settings, dialect.levels, tuple(settings)) if learned else None) == spelled
    assert spell({"seed": 1}, {"seed": 1}, ()) == {"seed": 1}, "others are sent all the same"
    if spelled in ({"max_completion_tokens": 9}, {"n": 4}):
        again = reason.replace("4", "2")
        assert not dialect.learn(status, again, settings, tuple(settings), dialect.levels), "each form is tried once"


def test_a_reason_is_found_in_whatever_form_and_is_bounded() -> None:
    details = [{"loc": ["body", i], "msg": f"m{i}"} for i in range(7)]
    assert reason_in({"detail": details}) == "; ".join(f"body.{i}: m{i}" for i in range(5))
    assert reason_in({"loc": list(range(9)), "msg": "x"}) == "0.1.2.3.4: x"
    assert reason_in("<html><style>a</style><body>out&nbsp;of &lt;memory</body>") == "out of <memory"
    assert [reason_in(nothing) for nothing in (None, 3, [], " ", {}, [{}])] == [None] * 6
    assert reason_in("x" * 20_001) == "x" * 20_000
    assert [kind_of(status) for status in (400, 408, 429, 499, 500, 502)] == [
        *("refused", "busy", "throttled", "refused", "busy", "away")
    ]


def test_in_an_answer_only_what_no_word_could_be_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, secret in (("A_KEY", "abcdefghijklmno1"), ("B_KEY", "zyxwvutsrqponm1"), ("C_KEY", "a" * 16)):
        monkeypatch.setenv(name, secret)
    redact = Redactor("k12")
    assert redact(f"abcdefghijklmno1 zyxwvutsrqponm1 {'a' * 16}", answer=True) == f"[secret] zyxwvutsrqponm1 {'a' * 16}"
    assert redact(f"zyxwvutsrqponm1 {'a' * 16} k12") == "[secret] [secret] k12"
    assert (redact.shown("x" * 400), LONGEST_SHOWN) == ("x" * 300, 300)

"""What stands between us and a server: proxies, certificates, connections, forks, and the end of the process."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from openai_server import Response, Script, completion, serve

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.downloads import certificates
from hedge_tasks.llm import border
from hedge_tasks.llm.chat import ChatClient
from hedge_tasks.llm.completion import Completion
from hedge_tasks.llm.event_loop import run
from hedge_tasks.llm.failures import RequestFailed

HELLO = [{"role": "user", "content": "which side?"}]
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    certificates.cache_clear()
    yield
    certificates.cache_clear()


def ask(client: ChatClient, *arguments: Any, **options: Any) -> Completion | RequestFailed:
    return run(client.ask_async(*arguments, **options))[0]


def client(url: str, **options: Any) -> ChatClient:
    return ChatClient("tiny", url, **{"backoff_s": 0, "max_retries": 0, "timeout": 10, **options})


# --- proxies and certificates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
def test_the_environments_proxy_is_asked_but_for_what_needs_none(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    proxy = Script(completion("left"))
    with serve(proxy) as through, serve(Script(completion("left"))) as near:
        monkeypatch.setenv(variable, through.removesuffix("/v1"))
        assert isinstance(ask(client("http://far.example:81/v1"), HELLO, {}), Completion)
        assert len(proxy.bodies) == 1
        monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
        assert isinstance(ask(client(near), HELLO, {}), Completion)
    assert len(proxy.bodies) == 1


def test_a_proxy_of_another_kind_is_refused_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://me:word@localhost:1")
    with pytest.raises(ConfigError, match="only http and https proxies are known, got 'socks5'") as caught:
        client("http://far.example/v1")
    assert "word" not in str(caught.value)


def test_a_certificate_counts_where_it_is_known(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(Script(completion("left")), certificate=certificate) as url:
        url = url.replace("http://127.0.0.1", "https://localhost")
        failure = ask(client(url), HELLO, {})
        certificates.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        assert isinstance(ask(client(url), HELLO, {}), Completion)
    assert isinstance(failure, RequestFailed)
    assert failure.kind == "broken", "waiting for another certificate would be in vain"
    assert "certificate" in str(failure).lower()


# --- connections ----------------------------------------------------------------------------------------------------


def test_a_long_request_arrives_whole() -> None:
    script = Script(completion("left"))
    long = [{"role": "user", "content": "word " * 2**20}]
    with serve(script) as url:
        assert isinstance(ask(client(url), long, {}), Completion)
    assert script.bodies[0]["messages"] == long


def test_nobody_there_is_told_from_somebody_who_hangs_up() -> None:
    with serve(Script(Response(hang_up=True))) as url:
        hung_up = ask(client(url), HELLO, {})
    gone = ask(client(url), HELLO, {})
    assert isinstance(hung_up, RequestFailed)
    assert isinstance(gone, RequestFailed)
    assert (hung_up.kind, gone.kind) == ("broken", "away")


def test_a_reply_of_more_than_16_mib_is_none() -> None:
    whole = json.dumps(completion("left")).encode()
    for size in (2**24, 2**24 + 1):
        with serve(Script(Response(whole.ljust(size)))) as url:
            outcome = ask(client(url), HELLO, {})
        assert isinstance(outcome, Completion) == (size == 2**24)
    assert "larger than 16 MiB" in str(outcome)


def test_no_redirect_is_followed_and_the_address_is_named() -> None:
    for status, place in ((307, "/v2/chat/completions"), (300, "http://elsewhere/v1"), (399, "http://elsewhere/v1")):
        script = Script(Response(b"", status, {"Location": place}))
        with (
            serve(script) as url,
            pytest.raises(HedgeError, match=rf"another address \(http:/.*{place.removeprefix('http:/')}\)"),
        ):
            ask(client(url), HELLO, {})
        assert len(script.bodies) == 1
    with serve(Script(Response(b"", 400, {"Location": "/v2"}))) as url:
        assert str(ask(client(url), HELLO, {})) == "400: no reason given"


# --- processes ------------------------------------------------------------------------------------------------------

PROGRAM = """
    import os, sys, threading, time
    sys.path[:] = {path!r}
    from hedge_tasks.llm.chat import ChatClient
    from hedge_tasks.llm.event_loop import run

    HELLO = [{{"role": "user", "content": "which side?"}}]
    client = ChatClient("tiny", {url!r}, max_retries=0, timeout=60)
    ask = lambda client, *asked: run(client.ask_async(*asked))[0]
    {rest}
"""


def program(url: str, rest: str) -> subprocess.CompletedProcess[str]:
    text = PROGRAM.format(path=sys.path, url=url, rest=textwrap.indent(textwrap.dedent(rest), "    ").strip())
    command = [sys.executable, "-c", textwrap.dedent(text)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_a_forked_process_has_connections_of_its_own() -> None:
    with serve(Script(completion("left"))) as url:
        done = program(
            url,
            """
            assert ask(client, HELLO, {}).text == "left"
            child = os.fork()
            assert ask(client, HELLO, {}).text == "left"
            if child:
                assert os.waitpid(child, 0)[1] == 0
                assert ask(client, HELLO, {}).text == "left"
                print("both")
            """,
        )
    assert (done.stdout, done.stderr, done.returncode) == ("both\n", "", 0)


@pytest.mark.slow
def test_a_process_ends_while_a_request_is_under_way() -> None:
    with serve(Script(Response(completion("left"), pause=60))) as url:
        done = program(
            url,
            """
            threading.Thread(target=lambda: ask(client, HELLO, {}), daemon=True).start()
            time.sleep(0.5)
            print("over")
            """,
        )
    assert (done.stdout, done.returncode) == ("over\n", 0)
    assert "never retrieved" not in done.stderr
    assert "Unclosed" not in done.stderr


# --- what a request is made of ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("timeout", "connect"), [(10, 9), (60, 54), (1000, 60)])
@pytest.mark.parametrize("size", [0, 2**20, 2**20 + 1])
def test_a_request_has_bounds(monkeypatch: pytest.MonkeyPatch, timeout: float, connect: float, size: int) -> None:
    calls: list[tuple[Any, ...]] = []

    class Session:
        def request(self, method: str, address: Any, **how: Any) -> Any:
            calls.append((method, str(address), how))
            raise aiohttp.ClientError

    monkeypatch.setattr(border, "session", Session)
    with pytest.raises(RequestFailed, match=r"no connection \(ClientError\)") as caught:
        run(border.HttpClient("http://h/v1/", {}, timeout).request("/x", b"a" * size if size else None))
    [(method, address, how)] = calls
    assert (caught.value.kind, method, address) == ("broken", "POST" if size else "GET", "http://h/v1/x")
    assert (how["timeout"].total, how["timeout"].sock_connect) == (timeout, pytest.approx(connect))
    assert isinstance(how["data"], io.BytesIO) == (size > 2**20)
    assert ("Content-Type" in how["headers"], how["allow_redirects"]) == (size > 0, False)


def test_an_answer_that_is_compressed_is_none() -> None:
    for coding, text in (("gzip", "compressed"), ("Identity", "")):
        with serve(Script(Response(completion("left"), headers={"Content-Encoding": coding}))) as url:
            outcome = ask(client(url), HELLO, {})
        assert isinstance(outcome, RequestFailed if text else Completion)
        assert text in str(outcome)

"""`hedge serve`: an OpenAI-compatible server in front of a model, which lets through what a policy does."""

from __future__ import annotations

import os
from typing import Literal

from hedge_tasks.cli.calibrate import promise_of
from hedge_tasks.cli.choices import PolicyChoice
from hedge_tasks.io.commands import say
from hedge_tasks.llm.addresses import is_loopback, url_of

QUOTING = ("hedge_tasks.llm", "hedge_tasks.sampling", "hedge_tasks.models")
"""Modules whose log may quote a server that quotes the question."""


def serve(
    policy: PolicyChoice,
    *,
    upstream: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8900,
    on_reject: Literal["flag", "refuse"] = "flag",
    within: float = 60.0,
    stop_on: Literal["audits", "any", "none"] = "any",
    concurrency: int = 16,
) -> str:
    """Serve a model with OpenAI's API, each answer with its verdict under a policy.

    Args:
        upstream: The model's server, such as http://localhost:8000/v1.
        host: Address to listen at; the default is this machine only.
        port: Port to listen at; 0 takes a free one.
        on_reject: An answer that is not accepted comes with its verdict (flag), or a refusal in its place (refuse).
        within: Seconds after which an answer is undecided.
        stop_on: After which alarm nothing is accepted: of any test, of audits alone, of none.
        concurrency: Questions at a time; as many wait, and more get a 429.
    """
    from loguru import logger

    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io import options

    try:
        from hedge_tasks.guard.proxy.app import build_app
        from hedge_tasks.guard.proxy.server import listen, server_of
        from hedge_tasks.guard.proxy.settings import KEY_VARIABLE, ProxySettings
    except ModuleNotFoundError as error:
        raise ConfigError(f"`hedge serve` needs {error.name}: pip install 'hedge-tasks[serve]'") from None
    from hedge_tasks.llm.secrets import NO_KEY, check_key

    key = check_key(KEY_VARIABLE, os.environ.get(KEY_VARIABLE))
    settings = ProxySettings(
        on_reject=on_reject,
        key=None if key == NO_KEY else key,
        local=is_loopback(host),
        most_requests=2 * options.count("--concurrency", concurrency, at_least=1),
    )
    with policy.guard(within=within, concurrency=concurrency, endpoint=upstream, stop_on=stop_on) as guard:
        server = server_of(build_app(guard, settings))
        with listen(host, port) as listener:
            guard.warm()
            keys = "with a key" if settings.key else "without a key, for programs of this machine"
            url = url_of(*listener.getsockname()[:2])
            say(f"{url}/v1 ({keys}). {promise_of(guard.policy)} Ctrl-C ends.")
            logger.trace("")
            for module in QUOTING:
                logger.disable(module)
            server.run(sockets=[listener])
    return ""

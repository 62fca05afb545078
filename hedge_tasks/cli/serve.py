"""`hedge serve`: an OpenAI-compatible server in front of a model, which lets through what a policy does."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_listener, add_policy
from hedge_tasks.io.commands import Parser, command, say
from hedge_tasks.llm.addresses import is_loopback, url_of
from hedge_tasks.numbers import PERCENT, WHOLE_PERCENT

if TYPE_CHECKING:
    from hedge_tasks.guard import Guard
    from hedge_tasks.guard.proxy.settings import ProxySettings

_WITHIN_S = 60.0
_SILENT = ("hedge_tasks.llm", "hedge_tasks.sampling", "hedge_tasks.models")
"""Modules whose log may quote a server that quotes the question."""


def add(commands: Parser) -> None:
    text = "serve a model with OpenAI's API, each answer with its verdict under a policy"
    parser = command(commands, "serve", run, text)
    parser.add_argument("--upstream", metavar="URL", help="the model's server, such as http://localhost:8000/v1")
    add_policy(parser)
    add_listener(parser, 8900)
    how = "an answer that is not accepted comes with its verdict, or a refusal in its place (default: flag)"
    parser.add_argument("--on-reject", default="flag", metavar="flag|refuse", help=how)
    how = f"after that an answer is undecided (default: {_WITHIN_S:g})"
    parser.add_argument("--within", type=float, default=_WITHIN_S, metavar="SECONDS", help=how)
    how = "after which alarm nothing is accepted: of any test, of audits alone, of none (default: any)"
    parser.add_argument("--stop-on", default="any", choices=("audits", "any", "none"), help=how)
    parser.add_argument("--concurrency", type=int, default=16, help="questions at a time (default: 16)")
    how = "further ones that wait; more get a 429 (default: 16)"
    parser.add_argument("--waiting", type=int, default=16, help=how)
    parser.add_argument("--max-body-mb", type=int, default=32, help="of a request (default: 32)")
    parser.add_argument("--max-megapixels", type=int, default=32, help="of a request's picture (default: 32)")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.guard import Guard

    try:
        from hedge_tasks.guard.proxy.app import build_app
        from hedge_tasks.guard.proxy.server import listen, server_of
    except ModuleNotFoundError as error:
        raise ConfigError(f"`hedge serve` needs {error.name}: pip install 'hedge-tasks[serve]'") from None
    settings = _settings(arguments)
    options = {
        "within": arguments.within,
        "at_once": arguments.at_once,
        "concurrency": arguments.concurrency,
        "endpoint": arguments.upstream,
        "trust": arguments.trust_policy,
        "stop_on": arguments.stop_on,
    }
    with Guard.load(arguments.policy, model=arguments.model, model_args=arguments.model_args, **options) as guard:
        server = server_of(build_app(guard, settings))
        with listen(arguments.host, arguments.port) as listener:
            guard.warm()
            say(_greeting(guard, settings, *listener.getsockname()[:2]))
            with silent():
                server.run(sockets=[listener])
    return 0


@contextmanager
def silent() -> Iterator[None]:
    """Log nothing that may quote a question."""
    from loguru import logger

    for name in _SILENT:
        logger.disable(name)
    try:
        yield
    finally:
        for name in _SILENT:
            logger.enable(name)


def _settings(arguments: argparse.Namespace) -> ProxySettings:
    from hedge_tasks.guard.proxy.settings import KEY_VARIABLE, ProxySettings
    from hedge_tasks.io import options
    from hedge_tasks.llm.secrets import NO_KEY, check_key

    key = check_key(KEY_VARIABLE, os.environ.get(KEY_VARIABLE))
    return ProxySettings(
        on_reject=arguments.on_reject,
        key=None if key == NO_KEY else key,
        local=is_loopback(arguments.host),
        most_requests=options.count("--concurrency", arguments.concurrency, at_least=1)
        + options.count("--waiting", arguments.waiting),
        largest_body=options.count("--max-body-mb", arguments.max_body_mb, at_least=1) << 20,
        most_pixels=options.count("--max-megapixels", arguments.max_megapixels, at_least=1) * 10**6,
    )


def _greeting(guard: Guard, settings: ProxySettings, host: str, port: int) -> str:
    promise = guard.policy.promise
    key = "with a key" if settings.key else "without a key, for programs of this machine"
    return (
        f"{url_of(host, port)}/v1 ({key}): of the answers that are accepted at most {PERCENT(promise.risk)} are "
        f"what the policy's judge calls hallucinated, with {WHOLE_PERCENT(promise.confidence)} confidence. Ctrl-C ends."
    )

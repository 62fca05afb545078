"""Fixtures of the engine tests: one server at a time, each started once, its log shown where a test fails.

A test names its engines by `@on("vllm", ...)` of `engines.servers`; the fixture `server` is each of them in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from engines.servers import ENGINES, Server, running

_SERVER = pytest.StashKey[Server]()
_SECONDS = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running engine; another one is ended before it starts."""
    with running(request.param, tmp_path_factory.mktemp(request.param)) as started:
        request.config.stash[_SERVER] = started
        yield started
        del request.config.stash[_SERVER]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one engine follow each other, so that each engine starts once and two never run at a time."""
    order = {name: i for i, name in enumerate(ENGINES)}
    items.sort(key=lambda item: order.get(_engine(item), -1))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    seconds = item.config.stash.setdefault(_SECONDS, Counter())
    seconds[_engine(item) or item.path.stem] += report.duration
    server = item.config.stash.get(_SERVER, None)
    if report.failed and server is not None and _engine(item):
        report.sections.append((f"log of {server.engine}", server.tail()))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What each engine took, from the start of its server to its last test."""
    terminalreporter.section("seconds by engine")
    for name, seconds in config.stash.get(_SECONDS, Counter()).most_common():
        terminalreporter.write_line(f"{seconds:6.0f}  {name}")


def _engine(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("server", "") if callspec else ""

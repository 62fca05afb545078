"""Shared by all tests: where the real data is, and small answer sets."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from forked import LOG, SOCKET
from hypothesis import settings
from killing import progress_locks_apart
from left_behind import kill, left_behind
from loguru import logger
from once import SHARED, leave_out_unused

# The first example pays for imports; a slow machine is no failure. Examples are the same in every run, so that a change
# and not the day decides; HEDGE_TESTS_RANDOM=1 looks for new ones.
settings.register_profile("ours", deadline=None, derandomize="HEDGE_TESTS_RANDOM" not in os.environ)
settings.load_profile("ours")

# What is imported and collected stays: looking through it for garbage took a third of the time of collecting.
gc.disable()

# Tests must say the same on a machine that can reach the hub and on one that cannot.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

leave_out_unused()
progress_locks_apart()

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"

FORK_SERVER = pytest.StashKey["subprocess.Popen[bytes]"]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder of the test run, and start its fork server; both are common to the workers of xdist."""
    if hasattr(config, "workerinput"):
        return
    folder = Path(tempfile.mkdtemp(prefix="hedge-tests-"))
    os.environ[SHARED] = str(folder)
    (folder / "bin").mkdir()
    for name in ("python", "hedge", "lmms-eval"):
        program = folder / "bin" / name
        program.write_text(f"#!{sys.executable} -SE\n{(HERE / 'forked.py').read_text('utf-8')}")
        program.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening, (folder / LOG).open("w") as log:
        listening.bind(str(folder / SOCKET))
        listening.listen(64)
        command = [sys.executable, str(HERE / "fork_server.py"), str(listening.fileno())]
        quiet = {**os.environ, "JE_ARROW_MALLOC_CONF": "background_thread:false"}  # no thread before a fork
        server = subprocess.Popen(command, pass_fds=[listening.fileno()], env=quiet, stderr=log, start_new_session=True)
    config.stash[FORK_SERVER] = server
    if config.getoption("tx", None):  # workers of xdist are forks as well
        config.option.tx = [f"popen//python={folder / 'bin' / 'python'}" for _ in config.option.tx]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever opens a browser is of the tier of pages. Long files come first, so that workers end together."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.pages)
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test run that leaves a process behind has failed."""
    if (server := session.config.stash.get(FORK_SERVER, None)) is None:
        return
    found = left_behind(f"{SHARED}={os.environ[SHARED]}", [server.pid])
    for process, command in found.items():
        sys.stderr.write(f"\nA test has left a process behind: {process} {command}\n")
    kill(found)
    if found and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure(config: pytest.Config) -> None:
    if server := config.stash.get(FORK_SERVER, None):
        server.terminate()
        server.wait()
        shutil.rmtree(os.environ.pop(SHARED), ignore_errors=True)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder with real data (../shared/data) is not here")
    return SHARED_DATA


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = (f"HEDGE_{name}" for name in ("STORE", "DATA_DIR", "MODELS", "JUDGE", "DETECTORS"))
    accounts = ("OPENAI_API_KEY", "OPENAI_API_URL", "OPENAI_BASE_URL", "API_TYPE", "LLM_JUDGE_URL")
    for name in (*ours, *accounts, "AZURE_API_KEY", "AZURE_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEDGE_CACHE", "off")  # what one test has learned is no help to the next
    monkeypatch.setattr("hedge_tasks.cli.PATIENCE_S", 1e6)  # however slow the machine is


def logged(level: str) -> Iterator[list[str]]:
    lines: list[str] = []
    sink = logger.add(lambda message: lines.append(str(message)), level=level)
    yield lines
    with suppress(ValueError):  # lmms-eval takes all sinks away
        logger.remove(sink)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """Everything that is logged."""
    yield from logged("TRACE")


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    """What is logged as a warning or worse."""
    yield from logged("WARNING")


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """A command that succeeds, with `--json`: what it prints."""
    from printed import json_of

    return lambda *words: json_of(capsys, [*map(str, words), "--json"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, of the machine's own."""
    reason = "the pages are opened with playwright: pip install playwright"
    playwright = pytest.importorskip("playwright.sync_api", reason=reason)
    found = (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name)))
    if (chromium := next(found, None)) is None:
        pytest.skip("no Chromium here (Debian: apt install chromium)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Opens a file; at the end of the test there must have been no error, and no request but for files."""
    contexts, complaints = [], []

    def opened(path: Path, fragment: str = "", **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url))
        page.goto(path.as_uri() + fragment)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of localhost, signed by itself."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "key", "-out", "cert"]
    command = [program, "req", "-x509", "-days", "2", *made, *names]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
    return folder / "cert", folder / "key"

"""The answer store on S3, whose protocol moto's server speaks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_places import check_same

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import keyed_log, places
from hedge_tasks.io.places import Remote
from hedge_tasks.lmms.identity import store_folder

PATIENCE_S = 60.0
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


class Server:
    """moto's server in a process of its own."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from moto.server import main; main()", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **KEYS},
        )
        end = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert time.monotonic() < end, "moto's server does not answer"
            time.sleep(0.1)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    import s3fs

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_MAX_ATTEMPTS": "2"}.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    places.check_writable.cache_clear()
    monkeypatch.setattr(keyed_log, "UPLOAD_SECONDS", 0.0)
    started = Server(port)
    s3fs.S3FileSystem().mkdir("bucket")
    yield started
    started.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_the_store_on_s3_holds_the_same(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_same(tmp_path, Remote("s3://bucket/a/store"), monkeypatch)


def test_refused_before_the_first_draw(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The bucket is missing; nobody is there."""
    monkeypatch.chdir(tmp_path)
    nothing = SimpleNamespace(output_path=None)
    monkeypatch.setenv("HEDGE_STORE", "s3://bucket/store")
    assert store_folder(nothing) == Remote("s3://bucket/store")
    monkeypatch.setenv("HEDGE_STORE", "s3://no-such-bucket/store")
    with pytest.raises(ConfigError, match=r"HEDGE_STORE=s3://no-such-bucket/store: cannot be written: .*[bB]ucket"):
        store_folder(nothing)
    server.stop()
    monkeypatch.setenv("HEDGE_STORE", "s3://bucket/another")
    with pytest.raises(ConfigError, match=r"HEDGE_STORE=s3://bucket/another: cannot be written: .*onnect"):
        store_folder(nothing)
    assert list(tmp_path.iterdir()) == []

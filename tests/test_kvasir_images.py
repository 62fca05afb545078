"""Images that a data set names instead of holding: files beside it, files on the hub, addresses."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Image
from requested import png

from hedge_tasks.cli import main
from hedge_tasks.data import splits
from hedge_tasks.errors import DataError
from hedge_tasks.io.downloads import certificates

ID = "SimulaMet/Kvasir-VQA-x1"
HUB = f"https://huggingface.co/datasets/{ID}/resolve/main/images"


def named(*names: str | None) -> Dataset:
    return Dataset.from_dict(
        {"question": [f"{i}?" for i in range(len(names))], "image": list(names), "answer": ["x"] * len(names)}
    )


def stored(dataset: Dataset) -> list[bytes | None]:
    return [image and image["bytes"] for image in dataset.cast_column("image", Image(decode=False))["image"]]


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The images of a local copy of the data set."""
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    folder = tmp_path / ID.replace("/", "__") / "images"
    folder.mkdir(parents=True)
    (folder / "one.png").write_bytes(png(1))
    (folder / "two b.png").write_bytes(png(2))
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, str | None]]:
    """A hub that has every file; a list of what was asked of it."""
    asked: list[tuple[str, str, str | None]] = []

    def download(repo: str, name: str, *, repo_type: str, revision: str | None) -> str:
        assert repo_type == "dataset"
        asked.append((repo, name, revision))
        (tmp_path / "downloaded.png").write_bytes(png(9))
        return str(tmp_path / "downloaded.png")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    return asked


def test_file_names_and_addresses_mean_the_local_copy(local: Path, hub: list) -> None:
    names = ("images/one.png", f"{HUB}/one.png", f"{HUB}/two%20b.png?download=true", "images/one.png")
    dataset = splits.fetch_images(named(*names), ["image"], ID)
    assert stored(dataset) == [png(1), png(1), png(2), png(1)]
    assert dataset.column_names == ["question", "image", "answer"]
    assert dataset[2]["image"].getpixel((0, 0)) == (2, 0, 0)
    keys = splits.contents_of(dataset, [], ["image"]).image_keys
    assert keys[0] == keys[1] == keys[3] != keys[2], "one image has one group"
    missing = splits.fetch_images(named("images/one.png", None, ""), ["image"], ID)
    assert stored(missing) == [png(1), None, None]
    assert splits.contents_of(missing, [], ["image"]).faults == {1: "no image", 2: "no image"}
    embedded = Dataset.from_list([{"image": {"bytes": png(3), "path": None}}]).cast_column("image", Image())
    assert splits.fetch_images(embedded, ["image"], ID) is embedded
    assert hub == []


def test_what_is_not_local_is_asked_of_the_hub_once_and_at_the_revision(local: Path, hub: list) -> None:
    dataset = splits.fetch_images(named("images/new.png", "images/new.png", f"{HUB}/new.png"), ["image"], ID, "abc")
    assert stored(dataset) == [png(9)] * 3
    assert set(hub) == {(ID, "images/new.png", "abc")}
    assert len(hub) == 2  # two spellings of one file


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../secret.png", "must lie in the data set's folder"),
        ("/etc/passwd", "must lie in the data set's folder"),
        (f"{HUB}/%2e%2e/%2e%2e/secret.png", "must lie in the data set's folder"),
        ("images\\..\\secret.png", "must lie in the data set's folder"),
        ("file:///etc/passwd", "only https:// addresses are downloaded"),
        ("http://example.org/a.png", "only https:// addresses are downloaded"),
    ],
)
def test_names_that_lead_elsewhere_are_refused(local: Path, hub: list, name: str, reason: str) -> None:
    records = Dataset.from_list([{"image": {"bytes": None, "path": path}} for path in ("images/one.png", name)])
    for dataset in (named("images/one.png", name), records):
        with pytest.raises(DataError, match=reason) as caught:
            splits.fetch_images(dataset, ["image"], ID)
        assert "column 'image'" in str(caught.value)
    assert hub == []


def test_an_unreachable_file_is_named(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> str:
        raise ConnectionError("no route\nand a long story")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    with pytest.raises(DataError, match=r"the image 'images/gone.png' cannot be had: ConnectionError: no route$"):
        splits.fetch_images(named("images/gone.png"), ["image"], ID)


@contextmanager
def pictures(certificate: tuple[Path, Path] | None, paths: dict[str, bytes | str]) -> Iterator[int]:
    """A server on this machine's loopback, with files and redirects by path; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = paths[self.path]
            self.send_response(302 if isinstance(content, str) else 200)
            if isinstance(content, str):
                self.send_header("Location", content)
            self.end_headers()
            self.wfile.write(b"" if isinstance(content, str) else content)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_other_addresses_are_downloaded_from_the_host_that_is_named(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only this machine can reach is no picture of a data set, wherever its address redirects to."""
    monkeypatch.setattr("hedge_tasks.io.downloads.LARGEST", 1 << 20)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    certificates.cache_clear()
    paths: dict[str, bytes | str] = {"/a.png": png(5), "/near.png": "/a.png", "/long.png": bytes((1 << 20) + 1)}
    with pictures(None, {"/secret.png": png(7)}) as secret, pictures(certificate, paths) as port:
        paths["/far.png"] = f"http://127.0.0.1:{secret}/secret.png"
        host = f"https://localhost:{port}"
        dataset = splits.fetch_images(named(f"{host}/a.png", f"{host}/near.png"), ["image"], ID)
        assert stored(dataset) == [png(5), png(5)]
        for name, reason in (("far", "redirects to another host"), ("long", "more than 1 MiB")):
            with pytest.raises(DataError, match=reason):
                splits.fetch_images(named(f"{host}/{name}.png"), ["image"], ID)
        table = tmp_path / "table.csv"
        table.write_text(f"image,question,answer\n{host}/far.png,what?,x\n")
        assert main(["init", "far", str(table), "--out", str(tmp_path / "task")]) == 2
        assert "redirects to another host" in capsys.readouterr().err
    certificates.cache_clear()


def test_the_loaded_commit_is_known() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    dataset = named("a")
    assert splits.loaded_revision(dataset) is None
    dataset.info.download_checksums = {f"hf://datasets/{ID}@{commit}/data/test.parquet": {"num_bytes": 1}}
    assert splits.loaded_revision(dataset) == commit
    assert splits.loaded_revision(dataset.select([0])) == commit

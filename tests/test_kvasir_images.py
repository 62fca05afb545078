"""Images that a data set names instead of holding: files beside it, files on the hub, addresses."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset, Image
from PIL import Image as PILImage

from hedge_tasks.data import splits
from hedge_tasks.errors import DataError

ID = "SimulaMet/Kvasir-VQA-x1"
HUB = f"https://huggingface.co/datasets/{ID}/resolve/main/images"


def png(shade: int) -> bytes:
    buffer = io.BytesIO()
    PILImage.new("RGB", (4, 4), (shade, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


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
    assert hub == []


def test_one_image_has_one_group_however_it_is_named(local: Path) -> None:
    dataset = splits.fetch_images(named("images/one.png", f"{HUB}/one.png", "images/two b.png"), ["image"], ID)
    groups = splits.image_keys(dataset, ["image"])
    assert groups[0] == groups[1] != groups[2]


def test_what_is_not_local_is_asked_of_the_hub_once_and_at_the_revision(local: Path, hub: list) -> None:
    dataset = splits.fetch_images(named("images/new.png", "images/new.png", f"{HUB}/new.png"), ["image"], ID, "abc")
    assert stored(dataset) == [png(9)] * 3
    assert set(hub) == {(ID, "images/new.png", "abc")}
    assert len(hub) == 2  # two spellings of one file


def test_embedded_images_stay_as_they_are(hub: list) -> None:
    embedded = Dataset.from_list([{"image": {"bytes": png(3), "path": None}}]).cast_column("image", Image())
    assert splits.fetch_images(embedded, ["image"], ID) is embedded
    assert hub == []


def test_a_missing_name_is_a_missing_image(local: Path) -> None:
    dataset = splits.fetch_images(named("images/one.png", None, ""), ["image"], ID)
    assert stored(dataset) == [png(1), None, None]
    told = splits.describe_faults(splits.image_faults(dataset, ["image"]), 3)
    assert told == "2 of 3 documents have no image (rows 1, 2)"


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
    with pytest.raises(DataError, match=reason) as caught:
        splits.fetch_images(named("images/one.png", name), ["image"], ID)
    assert "column 'image'" in str(caught.value)
    assert hub == []


def test_an_unreachable_file_is_named(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> str:
        raise ConnectionError("no route\nand a long story")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", fail)
    with pytest.raises(DataError, match=r"the image 'images/gone.png' cannot be had: ConnectionError: no route$"):
        splits.fetch_images(named("images/gone.png"), ["image"], ID)


def answer_with(monkeypatch: pytest.MonkeyPatch, *parts: bytes) -> list[str]:
    asked: list[str] = []

    @contextmanager
    def stream(method: str, address: str, **options: Any) -> Iterator[SimpleNamespace]:
        asked.append(address)
        yield SimpleNamespace(raise_for_status=lambda: None, iter_bytes=lambda: iter(parts))

    monkeypatch.setattr("httpx.stream", stream)
    return asked


def test_other_addresses_are_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer_with(monkeypatch, png(5)[:20], png(5)[20:])
    dataset = splits.fetch_images(named("https://example.org/a.png"), ["image"], ID)
    assert stored(dataset) == [png(5)]
    assert asked == ["https://example.org/a.png"]


def test_a_download_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "_LARGEST_IMAGE", 1 << 20)
    answer_with(monkeypatch, bytes(1 << 20), b"x")
    with pytest.raises(DataError, match="more than 1 MiB"):
        splits.fetch_images(named("https://example.org/a.png"), ["image"], ID)


def test_the_loaded_commit_is_known() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    dataset = named("a")
    assert splits.loaded_revision(dataset) is None
    dataset.info.download_checksums = {f"hf://datasets/{ID}@{commit}/data/test.parquet": {"num_bytes": 1}}
    assert splits.loaded_revision(dataset) == commit
    assert splits.loaded_revision(dataset.select([0])) == commit

"""Loading documents: a local folder, the package, an unreachable hub; and what identifies a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Features, Image, Value
from requested import png

from hedge_tasks.data import splits
from hedge_tasks.data.own_data import describe
from hedge_tasks.errors import DataError

FEATURES = Features({"question": Value("string"), "answer": Value("string"), "image": Image()})


RED, BLUE = png((255, 0, 0)), png((0, 0, 255))


def dataset(*rows: tuple[str, str, bytes | None]) -> Dataset:
    return Dataset.from_list(
        [{"question": q, "answer": a, "image": {"bytes": i, "path": None} if i else None} for q, a, i in rows],
        features=FEATURES,
    )


def keys(documents: Dataset) -> list[str]:
    return splits.contents_of(documents, ["question", "answer"], ["image"]).keys


def test_keys_follow_content_not_position() -> None:
    one, other = ("a?", "yes", RED), ("b?", "no", BLUE)
    forward, backward = keys(dataset(one, other)), keys(dataset(other, one))
    assert forward == backward[::-1]
    assert len(set(forward)) == 2


@pytest.mark.parametrize("changed", [("A?", "yes", RED), ("a?", "no", RED), ("a?", "yes", BLUE), ("a?y", "es", RED)])
def test_any_change_of_content_changes_the_key(changed: tuple[str, str, bytes]) -> None:
    assert keys(dataset(("a?", "yes", RED))) != keys(dataset(changed))


def test_questions_on_one_image_share_its_key() -> None:
    groups = splits.contents_of(dataset(("a?", "", RED), ("b?", "", RED), ("a?", "", BLUE)), [], ["image"]).image_keys
    assert groups[0] == groups[1] != groups[2]


def test_missing_images_are_counted_and_named() -> None:
    faults = splits.contents_of(dataset(("a?", "y", None), ("b?", "n", RED), ("c?", "n", None)), [], ["image"]).faults
    assert describe(faults, 3, "cannot be shown") == "2 of 3 rows cannot be shown: row 1: no image; row 3: no image"


def test_real_vqa_rad_from_a_local_folder(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_DATA_DIR", str(shared_data / "hub"))
    documents = splits.load_split("flaviagiammarino/vqa-rad", None, "test")
    assert len(documents) == 48
    assert len(set(splits.contents_of(documents, [], ["image"]).image_keys)) == 14


@pytest.mark.parametrize(
    ("folder", "file", "words"),
    [
        ("nowhere", "", "HEDGE_DATA_DIR=.*nowhere is not a folder"),
        ("", "", "cannot be loaded.*writes, or DIR/org__set/small/test"),
        ("", "org__set/x.txt", "there: no parquet file"),
        ("", "org__set/small/train.parquet", r"no file of config small, split test in .*there: small/train.parquet"),
        ("", "org__set/small/test.parquet", r"org/set: cannot read test.parquet in "),
    ],
)
def test_a_copy_that_is_not_there_is_named(
    folder: str, file: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path / folder))
    if file:
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_bytes(b"PAR1 not really PAR1")
    with pytest.raises(DataError, match=words):
        splits.load_split("org/set", "small", "test")


def test_a_config_has_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    (tmp_path / "org__set" / "small").mkdir(parents=True)
    dataset(("a?", "yes", RED)).to_parquet(tmp_path / "org__set" / "small" / "train-00000.parquet")
    assert splits.load_split("org/set", "small", "train")[0]["question"] == "a?"


def test_an_unreachable_hub_fails_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*args: Any, **kwargs: Any) -> None:
        raise ConnectionError("Couldn't reach the hub\nand a long story")

    monkeypatch.setattr("datasets.load_dataset", unreachable)
    with pytest.raises(DataError) as caught:
        splits.load_split("org/set", "small", "test", revision="abc")
    assert (
        "data set org/set (config small, split test) cannot be loaded: ConnectionError: Couldn't reach the hub"
        in str(caught.value)
    )
    assert "DIR/org__set/small/test*.parquet" in str(caught.value)

"""Stock tasks behind `hedge:` take their rows from below HEDGE_DATA_DIR, and say at once where there are none."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from datasets import Dataset

from hedge_tasks.errors import DataError
from hedge_tasks.lmms.stock import data

CONFIG = {"task": "pope", "dataset_path": "org/set", "test_split": "mmmu_val", "dataset_kwargs": {"token": True}}


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("org__set/data/mmmu_val-00000-of-00001-0123abcd.parquet", None),
        ("org/set/mmmu_val.parquet", None),
        ("org__set/small/mmmu_val-00000-of-00001.parquet", "small"),
        ("org__set/small/mmmu_val/0000.parquet", "small"),
        ("datasets--org--set/snapshots/abc/data/mmmu_val-00000-of-00001.parquet", "small"),
    ],
)
def test_a_copy_in_any_layout_serves_a_stock_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, name: str | None
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    Dataset.from_dict({"question": ["q"]}).to_parquet(str(path))
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    found = data.with_local_copy({**CONFIG, "dataset_name": name}, "hedge:pope")
    assert (found["dataset_path"], found["dataset_name"]) == ("parquet", None)
    assert found["dataset_kwargs"] == {"data_files": {"mmmu_val": [str(path)]}}


def test_what_there_is_no_copy_of_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data.with_local_copy(CONFIG, "hedge:pope") == CONFIG
    monkeypatch.setenv("HEDGE_DATA_DIR", str(tmp_path))
    assert data.with_local_copy(CONFIG, "hedge:pope") == CONFIG
    videos = {**CONFIG, "dataset_kwargs": {"video": True}}
    (tmp_path / "org__set").mkdir()
    assert data.with_local_copy(videos, "hedge:pope") == videos
    with pytest.raises(DataError, match=r"hedge:pope: no file of split 'mmmu_val' of org/set in .*org__set"):
        data.with_local_copy(CONFIG, "hedge:pope")


class Retried:
    """A stock task whose download fails, and counts how often it is tried."""

    tries = 0

    def __init__(self, config: Any, model_name: str | None) -> None:
        self.DATASET_PATH, self.config = config["dataset_path"], SimpleNamespace(**config)
        self.download(None)

    def download(self, dataset_kwargs: Any) -> None:
        for _ in range(5):
            self.once(dataset_kwargs)

    def once(self, dataset_kwargs: Any) -> None:
        type(self).tries += 1
        raise ConnectionError("no route\nto host")

    download.__wrapped__ = once  # type: ignore[attr-defined]


def test_without_copy_and_hub_a_task_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "why_hub_unreachable", lambda: "no route to host")
    with pytest.raises(DataError) as caught:
        data.built(Retried, CONFIG, None, ("org/set", None))
    assert str(caught.value).startswith(
        "pope: data set org/set cannot be loaded: the hub cannot be reached (no route to host), and its cache does not"
    )
    assert "`hf download org/set --repo-type dataset --local-dir DIR/org__set`" in str(caught.value)
    monkeypatch.setattr(data, "why_hub_unreachable", lambda: None)
    with pytest.raises(ConnectionError):  # lmms-eval's own way, with its retries
        data.built(Retried, CONFIG, None, ("org/set", None))

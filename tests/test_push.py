"""`--push`: a made set arrives at the hub whole, and nothing else does."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from datasets import Dataset
from fake_hub import TOKEN, FakeHub, fake_hub

from hedge_tasks.errors import DataError
from hedge_tasks.llm.account import Account
from hedge_tasks.making.croissant import CROISSANT, croissant_of
from hedge_tasks.making.output import CARD, DATA, REPORT, CardText, push_set, write_set
from hedge_tasks.making.production import Production


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    with fake_hub() as server:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def made(tmp_path: Path) -> Path:
    rows = [{"Question": "q", "Ground Truth": "a"}, {"Question": "r", "Ground Truth": "b"}]
    production = Production(rows, {"accepted": 2}, {}, {}, Account(), 2)
    write_set(tmp_path, production, CardText("A set", "mit", "Made in a test.", {"seed": 0}, ()))
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "replies.jsonl").write_text("what models said")
    return tmp_path


def test_a_pushed_set_is_what_lies_in_the_folder(hub: FakeHub, made: Path, tmp_path: Path) -> None:
    address = push_set(made, "me/set")
    assert address == f"{hub.url}/datasets/me/set"
    [created] = hub.created
    assert created == {"type": "dataset", "organization": "me", "name": "set", "visibility": "private"}
    assert hub.files == {
        f"datasets/me/set/{name}": (made / name).read_bytes() for name in (DATA, REPORT, CARD, CROISSANT)
    }
    assert hub.tokens == {f"Bearer {TOKEN}"}
    arrived = tmp_path / "arrived.parquet"
    arrived.write_bytes(hub.files[f"datasets/me/set/{DATA}"])
    assert Dataset.from_parquet(str(arrived), keep_in_memory=True)["Question"] == ["q", "r"]


def test_what_the_hub_refuses_is_said_without_the_token(hub: FakeHub, made: Path) -> None:
    hub.refuse = 403
    with pytest.raises(DataError, match=r"the hub did not take me/set: .*403") as caught:
        push_set(made, "me/set")
    assert TOKEN not in str(caught.value)
    assert not hub.files
    with pytest.raises(DataError, match="did not take"):
        push_set(made, "no such name/at all")


def test_nothing_made_is_nothing_to_push(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no data/train.parquet to upload"):
        push_set(tmp_path, "me/set")
    assert not hub.created


def test_croissant_names_every_file_and_column(made: Path, tmp_path: Path) -> None:
    found = json.loads((made / CROISSANT).read_text("utf-8"))
    assert (found["name"], found["license"], found["description"]) == ("A set", "mit", "Made in a test.")
    [file] = found["distribution"]
    assert (made / file["contentUrl"]).is_file()
    assert file["sha256"] == hashlib.sha256((made / DATA).read_bytes()).hexdigest()
    [records] = found["recordSet"]
    assert [(f["name"], f["dataType"], f["source"]["extract"]["column"]) for f in records["field"]] == [
        ("Question", "sc:Text", "Question"),
        ("Ground Truth", "sc:Text", "Ground Truth"),
    ]
    rows = [{"picture": {"bytes": b"x", "path": None}, "said": ["a"], "n": 1, "p": 0.5, "is": True, "of": {"x": 1}}]
    Dataset.from_list(rows).to_parquet(tmp_path / "all.parquet")
    kinds = croissant_of(tmp_path, {"a": "all.parquet"}, {"all.parquet": "0"}, title="t", licence=None, description="")
    assert "license" not in kinds
    assert {f["name"]: (f["dataType"], f.get("repeated", False)) for f in kinds["recordSet"][0]["field"]} == {
        "picture": ("sc:ImageObject", False),
        "said": ("sc:Text", True),
        "n": ("sc:Integer", False),
        "p": ("sc:Float", False),
        "is": ("sc:Boolean", False),
    }

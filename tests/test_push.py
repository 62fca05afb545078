"""`--push`: a made set arrives at the hub whole, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub.constants
import pytest
from datasets import Dataset
from fake_hub import TOKEN, FakeHub, fake_hub

from hedge_tasks.errors import DataError
from hedge_tasks.making.output import CARD, DATA, REPORT, CardText, describe_set, push_set, write_rows
from hedge_tasks.making.stages import Made


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
    path = write_rows(tmp_path, rows)
    card = CardText("A set", "mit", "Made in a test.", {"seed": 0}, ())
    describe_set(tmp_path, Made(rows, total=2, accepted=2), card, {"train": path})
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "replies.jsonl").write_text("what models said")
    return tmp_path


def test_a_pushed_set_is_what_lies_in_the_folder(hub: FakeHub, made: Path, tmp_path: Path) -> None:
    address = push_set(made, "me/set", [made / DATA])
    assert address == f"{hub.url}/datasets/me/set"
    [created] = hub.created
    assert created == {"type": "dataset", "organization": "me", "name": "set", "visibility": "private"}
    assert hub.files == {f"datasets/me/set/{name}": (made / name).read_bytes() for name in (DATA, REPORT, CARD)}
    assert hub.tokens == {f"Bearer {TOKEN}"}
    arrived = tmp_path / "arrived.parquet"
    arrived.write_bytes(hub.files[f"datasets/me/set/{DATA}"])
    assert Dataset.from_parquet(str(arrived), keep_in_memory=True)["Question"] == ["q", "r"]


def test_what_the_hub_refuses_is_said_without_the_token(hub: FakeHub, made: Path) -> None:
    hub.refuse = 403
    with pytest.raises(DataError, match=r"the hub did not take me/set: .*403") as caught:
        push_set(made, "me/set", [made / DATA])
    assert TOKEN not in str(caught.value)
    assert not hub.files
    with pytest.raises(DataError, match="did not take"):
        push_set(made, "no such name/at all", [made / DATA])


def test_nothing_made_is_nothing_to_push(hub: FakeHub, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no data/train.parquet to upload"):
        push_set(tmp_path, "me/set", [tmp_path / DATA])
    assert not hub.created

"""Places named by URLs: they are taken, or refused before the first draw; no folder is named after a protocol."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from test_segments import DEFINITION, dice_answers, document, draws, held, sample

from hedge_tasks.cli import main
from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io import keyed_log, places
from hedge_tasks.io.places import Remote, is_url, place
from hedge_tasks.lmms.identity import output_folder, store_folder
from hedge_tasks.sampling import store
from hedge_tasks.sampling.store import AnswerStore


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/store"


def test_urls_are_told_from_folders() -> None:
    assert all(map(is_url, ["s3://bucket/x", "gs://b", "memory://x", "hf://datasets/a/b", "s3:/bucket"]))
    for text in ("/data/x", "data", "C:\\data", "C:/data", "a:b", "./s3:/x", "~/x"):
        assert (is_url(text), place(text, "x")) == (False, Path(text))


def test_a_url_that_cannot_be_written_is_refused_and_no_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    nothing = SimpleNamespace(output_path=None)
    monkeypatch.setenv("HEDGE_STORE", "s4://bucket/x")
    with pytest.raises(ConfigError, match="HEDGE_STORE=s4://bucket/x: Protocol not known: s4"):
        store_folder(nothing)

    def missing(protocol: str) -> Any:
        raise ImportError("Install s3fs to access S3")

    with monkeypatch.context() as patch:
        patch.setattr(fsspec, "get_filesystem_class", missing)
        patch.setenv("HEDGE_STORE", "s3://bucket/x")
        with pytest.raises(ConfigError, match="Install s3fs"):
            store_folder(nothing)

    def unreachable(self: Remote, content: bytes) -> None:
        raise OSError("Could not connect to the endpoint")

    monkeypatch.setattr(Remote, "write", unreachable)
    monkeypatch.setenv("HEDGE_STORE", f"memory://{uuid.uuid4().hex}")
    with pytest.raises(ConfigError, match=r"HEDGE_STORE=memory://.*cannot be written: Could not connect"):
        store_folder(nothing)
    assert list(tmp_path.iterdir()) == []


def test_lmms_evals_output_folder_is_on_this_machine(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    with pytest.raises(ConfigError, match=r"--output_path=s3://bucket/out: .*, not a URL"):
        store_folder(SimpleNamespace(output_path="s3://bucket/out"))
    monkeypatch.setenv("HEDGE_STORE", url)
    with pytest.raises(ConfigError, match="--output_path"):
        store_folder(SimpleNamespace(output_path="s3://bucket/out"))
    assert store_folder(SimpleNamespace(output_path="out")) == Remote(url)
    assert output_folder(SimpleNamespace(output_path="out"), "labels") == Path("out/labels")
    assert output_folder(SimpleNamespace(output_path=None), "labels") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["report", "s3://b/run"], ["show", "s3://b/run", "--id", "q"], ["score", "x", "--out", "s3://b/o"]]
)
def test_commands_refuse_urls_where_they_take_none(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(command)
    assert "s3://b/" in capsys.readouterr().err


def check_same(here: Path, there: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be appended there: a writer has several files, of which it writes the last one again."""
    monkeypatch.setattr(keyed_log, "LARGEST_OBJECT", 4000)
    monkeypatch.setattr(keyed_log, "UPLOAD_SECONDS", 0.0)
    for seed, of in enumerate((range(5), range(3, 9))):
        sample(here, of, seed)
        sample(there, of, seed)
    files, expected = keyed_log.files_of(there, store.KIND), {**held(here), "problems": 0}
    assert len(files) > 2
    assert {**held(there), "problems": 0} == expected
    assert len(held(there)["problems"]) == len(held(here)["problems"]) > 0
    for stem in sorted({log.name.rpartition("-")[0] for log in files}):
        store._make_segment(there, stem)
    assert keyed_log.files_of(there, store.KIND) == []
    assert {**held(there), "problems": 0} == expected
    mine = AnswerStore(there, lazy=True)
    mine.load([document(4).key])
    assert (len(mine), [d.id for d in mine.documents]) == (5, ["q4"])


def test_on_object_storage_the_store_holds_the_same(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_same(tmp_path, Remote(url), monkeypatch)


def test_a_connection_that_is_cut_loses_nothing_of_a_living_process(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_log, "UPLOAD_SECONDS", 0.0)
    remote, answers = Remote(url), dice_answers(0)
    written = AnswerStore(remote)
    written.put_documents([DEFINITION], [document(0), document(1)])

    def cut(self: Remote, content: bytes) -> None:
        raise OSError("Connection reset by peer")

    with monkeypatch.context() as patch:
        patch.setattr(Remote, "write", cut)
        with pytest.raises(HedgeError, match=r"cannot write answers to memory://.*Connection reset"):
            written.put(draws(0, answers))
    assert len(AnswerStore(remote)) == 0
    written.put(draws(1, answers))
    written.close()
    assert len(AnswerStore(remote)) == 10


@pytest.mark.slow
def test_the_commands_of_the_store_take_urls(tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    sample(Remote(url), range(4))
    assert main(["store", "info", url]) == 0
    assert re.search(r"^answers +20$", capsys.readouterr().out, re.MULTILINE)
    assert main(["store", "info", url]) == 0
    assert main(["store", "import", url, "--into", str(tmp_path / "here")]) == 0
    assert main(["store", "export", url, "--out", f"{url}2/out.parquet"]) == 0
    assert main(["store", "import", f"{url}2/out.parquet", "--into", f"{url}2"]) == 0
    assert held(tmp_path / "here")["answers"] == held(Remote(url))["answers"] == held(Remote(f"{url}2"))["answers"]


def test_the_trial_of_writing_leaves_nothing(url: str) -> None:
    places.check_writable(Remote(url), "HEDGE_STORE")
    assert Remote(url).listed("", "") == []


def test_a_store_that_is_off_is_in_memory_and_no_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEDGE_STORE", "Off")
    given = SimpleNamespace(output_path="results")
    assert store_folder(given) is None
    assert output_folder(given, "x") == Path("results/x")
    assert output_folder(SimpleNamespace(output_path=None), "x") is None
    assert list(tmp_path.iterdir()) == []

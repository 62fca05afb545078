"""A store read in blocks gives the numbers of the same store read at once."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from at_border import at_border
from test_segments import DEFINITION, document, finished

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer
from hedge_tasks.runs.from_store import run_from_store, stored_blocks
from hedge_tasks.runs.run_files import load_run
from hedge_tasks.sampling import blocks
from hedge_tasks.sampling import store as store_module
from hedge_tasks.sampling.store import AnswerStore


def fill(folder: Path, documents: range, n: int = 2) -> None:
    dice = random.Random(documents.start)
    with AnswerStore(folder) as store:
        for i in documents:
            about = {"reference": ("yes", "no")[i % 2], "group": f"g{i // 3}"}
            asked = document(i, n).replaced(n_noisy=n, question_type=("open", "closed")[i % 2], **about)
            store.put_documents([DEFINITION], [asked])
            for draw in DEFINITION.plan(n, n).draws(asked.key):
                store.put([finished(asked, draw, Answer(dice.choice(["yes", "no", "Yes."]), -dice.random(), 1))])


def rescored(store: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["rescore", str(store), "--clustering", "exact", "--json", *options]) == 0
    printed = capsys.readouterr().out  # in front of it Ray may say that a node is gone
    return dict(json.loads(printed[printed.index("{") :]))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two segments, and a log."""
    folder = tmp_path / "store"
    with monkeypatch.context() as patch:
        patch.setattr(store_module, "SMALLEST_SEGMENT", 1)
        for documents in (range(20), range(15, 34)):  # some are in both
            fill(folder, documents)
    fill(folder, range(34, 40))
    return folder


@pytest.mark.slow
def test_rescore_in_blocks_gives_the_numbers_of_all_at_once(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = rescored(store, capsys)
    monkeypatch.setattr(blocks, "BLOCK", 7)
    sizes = [len(block.load()[0].answer_sets) for block in stored_blocks(store, None, "rule")]
    assert (sum(sizes), max(sizes)) == (40, 7)
    in_blocks = rescored(store, capsys)
    assert in_blocks == at_once
    assert at_once["filters"]["exact"]["auroc"]["se"]["value"] is not None
    # A run file is made of all documents, and read like any other.
    [file] = [rescored(store, capsys, "--out", str(tmp_path / "out"))["run"]]
    again = rescored(Path(file), capsys)
    assert (again["filters"], len(load_run(tmp_path / "out").answer_sets)) == (at_once["filters"], 40)


def test_what_a_block_lacks_of_the_numbers_asked_for_is_known(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One document was asked for three answers: all others lack one, also in blocks where nobody asked for it."""
    fill(store, range(1), n=3)
    monkeypatch.setattr(blocks, "BLOCK", 7)
    loaded = [block.load() for block in stored_blocks(store, None, "rule")]
    complete = [answers.id for run, _ in loaded for answers in run.answer_sets]
    assert sum(n_incomplete for _, n_incomplete in loaded) == 39
    assert complete == ["q0"] == [answers.id for answers in run_from_store(store, None, "rule").answer_sets]


def test_a_store_is_large_with_more_documents_than_a_block_and_small_logs(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_large(**borders: float) -> bool:
        for name, value in borders.items():
            monkeypatch.setattr(blocks, name, int(value))
        return blocks.is_large(store)

    at_border(lambda n: is_large(BLOCK=n), 34, "100")  # those in the log are not counted
    logs = sum(file.stat().st_size for file in store.glob("*.jsonl"))
    at_border(lambda n: is_large(BLOCK=7, LARGEST_LOGS=n), logs, "011")

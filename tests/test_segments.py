"""Segments: whatever becomes one, and whenever its making is killed, the store holds the same answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Draw, Thought
from hedge_tasks.io.places import Place
from hedge_tasks.sampling import Answer, SamplingPlan, archive, store
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.segments import home, read_homes, write_segment
from hedge_tasks.sampling.store import AnswerStore, FinishedDraw, StoredDocument

PLAN = SamplingPlan(n=2)
DEFINITION = Definition.of("a model", "a task", load_prompt("plain/question"), PLAN)
ANSWERS = (
    Answer("yes"),
    Answer("no \u2028 é", -0.1 - 0.2, 3, "stop"),
    Answer("", -700.0, 1),
    Answer("cut", -1e-300, 2, "length", tokens=(("cu", -0.5), ("t", -0.25))),
    Answer("thought", -1.5, 2, thought=Thought(3)),
    Answer("none", no_logprob="the server told other tokens"),
)


def document(i: int, n: int = 2) -> StoredDocument:
    return StoredDocument(
        definition=DEFINITION.id, key=f"{i:040x}", id=f"q{i}", question="What is it?", n=n, n_noisy=2, group=f"g{i % 3}"
    )


def finished(asked: StoredDocument, draw: Draw, answer: Answer) -> FinishedDraw:
    key = DEFINITION.key(asked.key, asked.question, draw)
    return FinishedDraw(key, answer, asked.id, draw.condition, draw.index, home(asked.key))


def draws(i: int, answers: Iterator[Answer]) -> list[FinishedDraw]:
    asked = document(i)
    return [finished(asked, draw, next(answers)) for draw in DEFINITION.plan(2, 2).draws(asked.key)]


def dice_answers(seed: int) -> Iterator[Answer]:
    dice = random.Random(seed)
    while True:
        yield dice.choice(ANSWERS)


def sample(folder: Place, documents: range, seed: int = 0) -> AnswerStore:
    """What a process leaves behind that samples these documents."""
    answers = dice_answers(seed)
    with AnswerStore(folder) as written:
        written.put_documents([DEFINITION], [document(i) for i in documents])
        for i in documents:
            written.put(draws(i, answers))
        written.put_report(DEFINITION.id, {"seed": seed})
    return written


def held(folder: Place) -> dict[str, Any]:
    """All that a store tells its readers."""
    opened = AnswerStore(folder)
    return {
        "answers": {key: opened[key] for key in sorted(opened)},
        "documents": list(opened.documents),
        "definitions": list(opened.definitions.values()),
        "reports": opened.reports,
        "sets": archive.complete_sets(opened, DEFINITION).answer_sets,
        "problems": sorted((line.file.name.partition(".")[0], line.number) for line in opened.conflicts),
        "dropped": opened.dropped,
    }


def suffixes(folder: Path) -> set[str]:
    return {file.suffix for file in folder.iterdir()}


def segmented(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log becomes a segment at its end."""
    monkeypatch.setattr(store, "SMALLEST_SEGMENT", 1)


def test_as_logs_or_as_segments_the_store_holds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill() -> None:
        late = AnswerStore(tmp_path)  # it knows nothing of the first one's answers, which are older
        sample(tmp_path, range(5))
        late.put_documents([DEFINITION], [document(i) for i in range(3, 9)])
        for i in range(3, 9):
            late.put(draws(i, dice_answers(i)))
        late.close()

    fill()
    before = held(tmp_path)
    assert before["problems"]
    assert suffixes(tmp_path) == {".jsonl"}
    for log in tmp_path.iterdir():
        store._make_segment(tmp_path, log.stem)
    assert suffixes(tmp_path) == {".parquet"}
    assert held(tmp_path) == before
    assert set(read_homes(min(tmp_path.iterdir())).tolist()) == {int(home(document(i).key), 16) for i in range(5)}


@pytest.mark.parametrize("step", ["before the segment", "before the log goes"])
def test_killed_at_any_step_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    segmented(monkeypatch)
    with monkeypatch.context() as patch:
        if step == "before the segment":
            patch.setattr(store, "write_segment", killed)
        else:
            patch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt):
            sample(tmp_path, range(3))
    found = held(tmp_path)
    assert (len(found["answers"]), found["dropped"], found["problems"]) == (15, [], [])


def test_no_changed_byte_of_a_segment_becomes_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    segmented(monkeypatch)
    sample(tmp_path, range(3))
    whole = held(tmp_path)
    assert main(["store", "info", str(tmp_path)]) == 0
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    dice = random.Random(0)
    for position in dice.sample(range(len(content)), 60):
        changed = bytearray(content)
        changed[position] ^= 1 << dice.randrange(8)
        file.write_bytes(changed)
        opened = AnswerStore(tmp_path)
        assert all(whole["answers"][key] == opened[key] for key in opened), position
        assert len(opened) == len(whole["answers"]) or opened.dropped, position
    file.write_bytes(content[:-30])
    capsys.readouterr()
    assert main(["store", "info", str(tmp_path), "--json"]) == 1
    [problem] = json.loads(capsys.readouterr().out)["problems"]
    assert "no sound segment" in problem["problem"]


def test_a_segment_names_the_documents_that_it_has_answers_of(tmp_path: Path) -> None:
    """0 stands for answers of no document alone; definitions are nobody's and make nobody read it."""
    records = [{"document": {"key": "a/blank"}}, {"key": "k", "of": home("b")}, {"definition": {}}]
    homes = sorted(int(home(key), 16) for key in "ab")
    for more, expected in (([], homes), ([{"key": "of two documents"}], [0, *homes])):
        assert write_segment(tmp_path / "x.parquet", [*records, *more]) == 3 + len(more)
        assert read_homes(tmp_path / "x.parquet").tolist() == expected


def test_a_slice_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of segments of other documents nothing but the footer is read."""
    segmented(monkeypatch)
    slices = [range(0, 5), range(5, 10), range(10, 15)]
    for i, of in enumerate(slices):
        sample(tmp_path, of, seed=i)
    everything, read, rows = AnswerStore(tmp_path), list[str](), store.read_segment
    monkeypatch.setattr(store, "read_segment", lambda file, homes: read.append(file.name) or rows(file, homes))
    for of in slices:
        read.clear()
        mine = AnswerStore(tmp_path, lazy=True)
        assert (len(mine), read) == (0, [])
        for _ in range(2):
            mine.load(document(i).key for i in of)
            assert len(read) == 1
        keys = {draw.key for i in of for draw in draws(i, dice_answers(0))}
        assert {key: mine[key] for key in mine} == {key: everything[key] for key in keys}
        assert [d.id for d in mine.documents] == [f"q{i}" for i in of]

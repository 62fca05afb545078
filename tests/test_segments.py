"""Segments: whatever is compacted, and whenever the compaction is killed, the store holds the same answers."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Thought
from hedge_tasks.errors import DataError
from hedge_tasks.io import keyed_log
from hedge_tasks.io.json_lines import seal
from hedge_tasks.io.places import Place
from hedge_tasks.sampling import Answer, SamplingPlan, archive, compaction, segments, store
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.segments import home, read_footer
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


def draws(i: int, answers: Iterator[Answer]) -> list[FinishedDraw]:
    asked = document(i)
    return [
        FinishedDraw(
            DEFINITION.key(asked.key, asked.question, draw),
            next(answers),
            asked.id,
            draw.condition,
            draw.index,
            home(asked.key),
        )
        for draw in DEFINITION.plan(2, 2).draws(asked.key)
    ]


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
        "exported": archive.export(opened, DEFINITION).lines,
        "problems": sorted((line.file.name, line.number) for line in opened.conflicts),
        "dropped": opened.dropped,
    }


def suffixes(folder: Path) -> set[str]:
    return {file.suffix for file in folder.iterdir()}


def test_compacted_or_not_the_store_holds_the_same(tmp_path: Path) -> None:
    sample(tmp_path, range(5))
    sample(tmp_path, range(3, 9), seed=1)  # and two documents with other answers, which do not count
    before = held(tmp_path)
    assert before["problems"]
    done = compaction.compact(tmp_path)
    assert (suffixes(tmp_path), done.replaced, done.segments, done.left) == ({".parquet"}, 2, 1, {})
    assert held(tmp_path) == before
    sample(tmp_path, range(7, 12), seed=2)
    before = held(tmp_path)
    compaction.compact(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert held(tmp_path) == before
    assert compaction.compact(tmp_path).replaced == 0


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(0, 3), st.booleans()), min_size=1, max_size=5),
    st.integers(3, 40),
)
def test_any_order_of_writing_and_compacting(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int, bool]], most: int
) -> None:
    """Whole or in part, in segments of any size: which of two answers counts does not depend on it."""
    plain, compacted = tmp_path_factory.mktemp("plain"), tmp_path_factory.mktemp("compacted")
    seen: set[Path] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "MOST_ROWS", most)
        for start, number, seed, whole in steps:
            sample(plain, range(start, start + number), seed)
            for file in plain.iterdir():
                if file not in seen:
                    seen.add(file)
                    (compacted / file.name).write_bytes(file.read_bytes())
            if whole:
                compaction.compact(compacted)
            else:
                names = sorted(file.name for file in compacted.glob("*.jsonl"))
                compaction.compact(compacted, mine=(names[-1],))
    assert held(compacted) == held(plain)


def test_a_newer_log_that_is_compacted_first_does_not_come_first(tmp_path: Path) -> None:
    older = sample(tmp_path, range(3))
    newer = sample(tmp_path, range(3), seed=1)
    before = held(tmp_path)
    compaction.compact(tmp_path, mine=tuple(newer.stems))
    assert suffixes(tmp_path) == {".jsonl", ".parquet"}
    assert held(tmp_path) == before
    assert older.stems < newer.stems


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("step", range(8))
def test_killed_at_any_step_nothing_is_lost(tmp_path: Path, step: int) -> None:
    """SIGKILL before each change of the folder: writing, naming, removing."""
    sample(tmp_path, range(4))
    sample(tmp_path, range(2, 8), seed=1)
    before = held(tmp_path)
    pid = os.fork()
    if not pid:
        try:
            kill_before(step)
            compaction.MOST_ROWS = 20
            compaction.compact(tmp_path)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert held(tmp_path) == before
    compaction.compact(tmp_path)
    assert held(tmp_path) == before
    assert suffixes(tmp_path) == {".parquet"}


def kill_before(step: int) -> None:
    """Have this process kill itself before its change number `step`."""
    count = iter(range(1000))

    def killing(change: Any) -> Any:
        def changed(*arguments: Any, **options: Any) -> Any:
            if next(count) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments, **options)

        return changed

    os.fsync = killing(os.fsync)
    Path.replace = killing(Path.replace)  # type: ignore[method-assign]
    Path.unlink = killing(Path.unlink)  # type: ignore[method-assign]


def test_what_somebody_writes_to_stays(tmp_path: Path) -> None:
    with AnswerStore(tmp_path) as writing:
        writing.put_documents([DEFINITION], [document(0)])
        writing.put(draws(0, dice_answers(0)))
        done = compaction.compact(tmp_path, everything=True)
        assert list(done.left.values()) == ["somebody writes to it, or makes a segment of it"]
        writing.put(draws(1, dice_answers(0)))
    assert (compaction.compact(tmp_path).left, suffixes(tmp_path)) == ({}, {".parquet"})
    assert len(AnswerStore(tmp_path)) == 10


def test_a_log_of_another_machine_stays_until_somebody_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample(tmp_path, range(2))
    monkeypatch.setattr(compaction.socket, "gethostname", lambda: "elsewhere")
    assert list(compaction.compact(tmp_path).left.values()) == ["somebody may be writing to it"]
    assert compaction.compact(tmp_path, everything=True).replaced == 1


def test_a_damaged_log_stays_for_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample(tmp_path, range(2))
    [log] = tmp_path.iterdir()
    log.write_bytes(log.read_bytes().replace(b'"yes"', b'"yEs"', 1))
    done = compaction.compact(tmp_path)
    assert (done.replaced, list(done.left.values())) == (0, ["it has damaged lines (hedge store verify)"])
    assert main(["store", "verify", str(tmp_path), "--json"]) == 1
    assert "checksum" in json.loads(capsys.readouterr().out)["problems"][0]["problem"]


def test_a_torn_end_is_no_damage(tmp_path: Path) -> None:
    sample(tmp_path, range(2))
    [log] = tmp_path.iterdir()
    log.write_bytes(log.read_bytes() + seal({"key": "k"})[:9])
    assert compaction.compact(tmp_path).replaced == 1


def test_no_changed_byte_of_a_segment_becomes_an_answer(tmp_path: Path) -> None:
    sample(tmp_path, range(3))
    compaction.compact(tmp_path)
    whole = held(tmp_path)
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


def test_verify_says_that_a_segment_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample(tmp_path, range(3))
    compaction.compact(tmp_path)
    assert main(["store", "verify", str(tmp_path)]) == 0
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-30])
    capsys.readouterr()
    assert main(["store", "verify", str(tmp_path), "--json"]) == 1
    [problem] = json.loads(capsys.readouterr().out)["problems"]
    assert problem["kind"] == "damaged"
    assert "no sound segment" in problem["problem"]


def test_a_slice_is_read_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of logs and segments of other documents nothing but the first line or the footer is read."""
    monkeypatch.setattr(compaction, "MOST_ROWS", 30)
    slices = [range(0, 5), range(5, 10), range(10, 15), range(15, 20)]
    for i, of in enumerate(slices):
        written = sample(tmp_path, of, seed=i)
        if i % 2:
            compaction.compact(tmp_path, mine=tuple(written.stems))
    everything = AnswerStore(tmp_path)
    read: list[str] = []
    lines, rows = store.read_lines, store.read_rows
    monkeypatch.setattr(store, "read_lines", lambda files: lines(read.append(f.name) or f for f in files))
    monkeypatch.setattr(store, "read_rows", lambda file, homes: read.append(file.name) or rows(file, homes))
    for of in slices:
        read.clear()
        mine = AnswerStore(tmp_path, lazy=True)
        assert (len(mine), read) == (0, [])
        mine.load(document(i).key for i in of)
        keys = {draw.key for i in of for draw in draws(i, dice_answers(0))}
        assert {key: mine[key] for key in mine} == {key: everything[key] for key in keys}
        assert [d.id for d in mine.documents] == [f"q{i}" for i in of]
        assert len(read) == 1
        mine.load(document(i).key for i in of)
        assert len(read) == 1


def test_derived_draws_and_draws_of_nobody_are_read_with_a_slice(tmp_path: Path) -> None:
    with AnswerStore(tmp_path) as written:
        written.put_documents([DEFINITION], [document(0), document(1)])
        written.put([FinishedDraw("a check", Answer("grey"), "q0", "image check", 0, home(f"{document(0).key}/blank"))])
        written.put([FinishedDraw("nobody's", Answer("yes"), "", "", -1)])
    for _ in range(2):
        mine = AnswerStore(tmp_path, lazy=True)
        mine.load([document(1).key])
        assert set(mine) == {"nobody's"}
        mine.load([document(0).key])
        assert set(mine) == {"nobody's", "a check"}
        compaction.compact(tmp_path)


def test_a_log_that_becomes_a_segment_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample(tmp_path, range(3))
    before = held(tmp_path)
    files = AnswerStore.segments

    def late(self: AnswerStore) -> list[Any]:
        found = files(self)
        compaction.compact(tmp_path)  # after this reader has looked for segments
        return found

    monkeypatch.setattr(AnswerStore, "segments", late)
    assert held(tmp_path) == before


def test_a_process_compacts_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.compact_own(sample(tmp_path, range(2)))
    assert suffixes(tmp_path) == {".jsonl"}
    monkeypatch.setattr(compaction, "WORTH_IT", 10)
    compaction.compact_own(sample(tmp_path, range(2, 4)))
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".jsonl", ".parquet"]


def test_a_large_log_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LARGEST_LOG", 1000)
    sample(tmp_path, range(6))
    assert len(list(tmp_path.iterdir())) > 2
    assert len(AnswerStore(tmp_path)) == 30


def test_a_footer_names_its_documents(tmp_path: Path) -> None:
    sample(tmp_path, range(3))
    compaction.compact(tmp_path)
    [file] = tmp_path.iterdir()
    footer = read_footer(file)
    assert set(footer.homes.tolist()) == {int(home(document(i).key), 16) for i in range(3)}
    assert footer.may_hold(segments.homes_array([home(document(1).key)]))
    assert not footer.may_hold(segments.homes_array([home(document(7).key)]))
    file.write_bytes(b"PAR1 no segment PAR1")
    with pytest.raises(DataError, match="no sound segment"):
        read_footer(file)


def test_the_names_of_a_process_files_are_in_the_order_of_time() -> None:
    assert keyed_log.new_stem("x") < keyed_log.new_stem("x")

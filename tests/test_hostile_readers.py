"""Every reader under structured damage: an error of ours with its place, never another one, never a silent change."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, finished_run, run_text
from hostile import attempt, dumped, mangled, mutated

from hedge_tasks.clustering import build_backend
from hedge_tasks.data.answer_files import read_answers
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import cluster_answer_sets, score_clustered, summarise
from hedge_tasks.io.json_lines import seal
from hedge_tasks.judging.label_files import by_id, label_rows
from hedge_tasks.judging.prompt import JudgePrompt, load_judge_prompt
from hedge_tasks.leaderboard.entry import entry_of, read_entry
from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.replies.text import normalise
from hedge_tasks.report.results import read_results
from hedge_tasks.runs.run_files import Run, read_run
from hedge_tasks.runs.scorers import scorers_of
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.store import AnswerStore

RUN = finished_run(4, samples=2)
CASES = 40
"""Of each reader."""

EXACT_BACKEND = build_backend("exact")
ROW = RUN.answer_sets[0].to_dict()


def sound(answer_sets: Any) -> None:
    """What was read can be clustered, scored, written and read again."""
    for answer_set in answer_sets:
        line = answer_set.to_json()
        line.encode()
        assert AnswerSet.from_json(line) == answer_set
    attempt(lambda: summarise([score_clustered(a) for a in cluster_answer_sets(answer_sets, EXACT_BACKEND)]))


def run_lines(dice: random.Random) -> bytes:
    settings = {"filters": EXACT, "documents": {"images": ["image"], "judge": {"judge": "rule"}}, "sampling": {"n": 2}}
    header = {"hedge_run": 2, "task": "t", "model": "m", "created": "", "settings": settings, "documents": 4}
    rows = [{**a.to_dict(), "verdict": RUN.verdicts[a.id]} for a in RUN.answer_sets]
    if dice.random() < 0.5:
        header = mutated(header, dice)
    else:
        rows[dice.randrange(4)] = mutated(rows[0], dice)
    lines = [line if isinstance(line, dict) and line else {"x": line} for line in (header, *rows)]
    text = run_text(lines[0], [{"id": "?", **row} for row in lines[1:]])
    return text.encode() if dice.random() < 0.8 else mangled(text.encode(), dice)


def read_a_run(path: Path) -> None:
    run = read_run(path)
    sound(run.answer_sets)
    attempt(lambda: [scorer.score(run.answer_sets) for scorer in scorers_of(run).values()])
    documents = run.settings.get("documents") or {}
    assert isinstance((documents.get("judge") or {}).get("judge"), object)


DEFINITION = Definition.of("m", "t", load_prompt("plain/question"), SamplingPlan(), "1").model_dump()
RECORDS = [
    {"definition": DEFINITION},
    {"document": {"definition": "0", "key": "k", "id": "q", "question": "q?", "n": 2, "n_noisy": 1}},
    {"key": "k", "answer": {"text": "a", "mean_logprob": -0.5, "n_tokens": 2}, "id": "q", "condition": "clean"},
]


def store_lines(dice: random.Random) -> bytes:
    records = [mutated(record, dice) if dice.random() < 0.6 else record for record in RECORDS]
    lines = b"".join(seal(r if isinstance(r, dict) and r else {"x": r}) for r in records)
    return lines if dice.random() < 0.7 else mangled(lines, dice)


def read_a_store(path: Path) -> None:
    store = AnswerStore(path.parent)
    for key in store:
        store[key].text.encode()


def json_lines(row: Any) -> Callable[[random.Random], bytes]:
    def content(dice: random.Random) -> bytes:
        text = dumped(mutated(row, dice)).encode() + b"\n" + dumped(row).encode()
        return text if dice.random() < 0.7 else mangled(text, dice)

    return content


ENTRY = entry_of(RUN, "org/model").model_dump(mode="json")
CHOICE = {"message": {"content": [{"type": "text", "text": "a"}]}, "logprobs": {"content": [{"logprob": -0.5}]}}
LOG = {
    **{"version": 2, "status": "success", "eval": {"model": "m"}},
    "samples": [{"id": 1, "epoch": 1, "input": [{"role": "user", "content": "?"}], "target": ["a"],
                 "output": {"choices": [CHOICE]}, "scores": {"match": {"value": "C"}}}],
}  # fmt: skip
BATCH = {"custom_id": "a", "response": {"body": {"model": "m", "choices": [CHOICE, CHOICE]}}}
CSV = b"id,response,question,label\nq1,\"['a', 'b']\",which?,1\nq2,b,,\nq3,c,why?,1.0\n"


PROMPT = Path(__file__).parents[1] / "hedge_tasks" / "judging" / "prompts" / "hedge.json"
VERDICT = {"key": "k", "verdict": {"label": 1, "reason": "r", "judge": "j", "version": "1"}}
RESULTS = {
    "results": {"t": {"se_auroc,nli": 0.5, "se_auroc_stderr,nli": 0.1}},
    "configs": {"t": {"dataset_path": "x"}},
    "n-samples": {"t": {"effective": 5}},
    "model_name": "m",
    "total_evaluation_time_seconds": "5.0",
}

READERS: dict[str, tuple[str, Callable[[random.Random], bytes], Callable[[Path], Any]]] = {
    "answers": ("a.jsonl", json_lines(ROW), lambda path: sound(read_answers([path]).answer_sets)),
    "log": (
        "a.json",
        lambda dice: dumped(mutated(LOG, dice)).encode(),
        lambda path: sound(read_answers([path]).answer_sets),
    ),
    "batch": ("a.jsonl", json_lines(BATCH), lambda path: sound(read_answers([path]).answer_sets)),
    "table": ("a.csv", lambda dice: mangled(CSV, dice), lambda path: sound(read_answers([path]).answer_sets)),
    "run": ("run-20260102-t.jsonl", run_lines, read_a_run),
    "store": ("answers-1.jsonl", store_lines, read_a_store),
    "label store": (
        "replies-1.jsonl",
        lambda dice: mangled(seal(r if isinstance(r := mutated(VERDICT, dice), dict) and r else {"x": 1}), dice),
        lambda path: ReplyLog(path.parent).get("k"),
    ),
    "labels": (
        "l.jsonl",
        json_lines({"id": "q1", "label": "supported"}),
        lambda path: by_id(label_rows(path), "id", "label", None),
    ),
    "entry": ("s.json", lambda dice: dumped(mutated(ENTRY, dice)).encode(), read_entry),
    "prompt": (
        "p.json",
        lambda dice: dumped(mutated(json.loads(PROMPT.read_text("utf-8")), dice)).encode(),
        lambda path: JudgePrompt.parse(path.read_text("utf-8"), str(path), foreign=True),
    ),
    "results": (
        "results.json",
        lambda dice: dumped(mutated(RESULTS, dice)).encode(),
        lambda path: [dict(row) for row in getattr(read_results(path), "rows", ())],
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_reader_reads_or_refuses(tmp_path: Path, reader: str) -> None:
    name, content, read = READERS[reader]
    for case in range(CASES):
        path = tmp_path / name
        path.unlink(missing_ok=True)  # a file that is cut and written again is flushed to the disk
        path.write_bytes(content(random.Random(f"{reader} {case}")))
        _, error = attempt(partial(read, path))  # anything but an error of ours fails the test
        assert len(error) < 20_000


def test_a_file_that_is_read_holds_what_was_written(tmp_path: Path) -> None:
    """Whatever single byte of a sealed file changes, it is refused, or says what it said before."""
    dice = random.Random(0)
    good = Run("t", "m", RUN.answer_sets)
    path = tmp_path / "run-20260102-t.jsonl"
    header = {"hedge_run": 2, "task": "t", "model": "m", "created": "", "settings": {}, "documents": 4}
    content = run_text(header, [a.to_dict() for a in RUN.answer_sets]).encode()
    store = tmp_path / "store" / "answers-1.jsonl"
    store.parent.mkdir()
    records = b"".join(seal(record) for record in RECORDS)
    for _ in range(80):
        path.write_bytes(mangled(content, dice))
        run, _ = attempt(partial(read_run, path))
        assert run is None or replace(run, path=None) == good
        store.write_bytes(mangled(records, dice))
        kept = AnswerStore(store.parent)
        assert [kept[key].to_dict() for key in kept] in ([], [RECORDS[2]["answer"]])


def test_replies_of_judges_are_read_or_unreadable() -> None:
    prompt = load_judge_prompt("hedge")
    pieces = ["supported", "hallucinated", '{"verdict": "supported"}', "false", ":", "not", "\n", "```", "<think>"]
    pieces += ["\ud83d", "verdict", "is", "{" * 300, '"', "nothing", "</think>", "[", "1" * 5000, "\x00", "no"]
    for case in range(100):
        dice = random.Random(case)
        text = " ".join(dice.choices(pieces, k=dice.randrange(8)))
        outcome, _ = prompt.outcome_in(text)
        if outcome is not None:
            # "nothing supported", "not false": an outcome rests on a word for right or wrong.
            assert any(word in normalise(text) for word in ("supported", "hallucinated", "false"))

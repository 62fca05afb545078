"""Replies that are no plain answers, and a document that cannot be asked: evaluations end with their table and run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from evaluation import evaluate

from hedge_tasks.cli import main
from hedge_tasks.data.thoughts import NO_BOUNDARY, NO_END
from hedge_tasks.runs.run_files import load_run

pytestmark = [pytest.mark.framework, pytest.mark.slow]

END = "</s>"
REPLIES: dict[str, tuple[str, ...]] = {
    "cut": ("<think>", "Is it", " the left?"),
    "boundary": ("<think>", "Yes.", "</think", ">left", END),
    "refusal": ("I cannot", " help with that.", END),
    "empty": (END,),
    "filtered": ("le",),
    "doubled": ("left", "left", END),
    "plain": ("left", END),
}
MARKED = "Which side does <image> show in </s>?"
QUESTIONS = {f"Is it {name}?": tokens for name, tokens in REPLIES.items()}
MAXIMUM = "n=2,perturbation=none,probe=false,max_new_tokens=9,until=\\n"


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rows = [{"question": question, "answer": "left"} for question in (*QUESTIONS, MARKED)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEDGE_FILTERS", "embed")
    assert main(["init", "odd", "rows.jsonl", "--image", "none", "--group", "none"]) == 0
    return tmp_path / "odd-task"


def run(task: Path, *arguments: str) -> Any:
    """Evaluate; the table and the run file are there."""
    made = evaluate(task.parent / "out", "--tasks", "odd", "--include_path", str(task), *arguments)
    assert any(name.startswith("se_auroc") for name in made.values("odd"))
    finished = load_run(task.parent / "out")
    assert finished.settings["sampling"]["until"] == ["\n"]
    return finished


def test_a_model_in_this_process(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hedge_tasks.models.hedge_hf import HedgeHF
    from hedge_tasks.models.token_sampling import AnswerReader

    def sample(self: Any, draws: Any, messages: Any, owners: Any) -> list[Any]:
        self._inputs([messages[owner] for owner in owners])  # what cannot be asked ends all others here
        return [read(QUESTIONS[draw.request.question], draw.request.plan.until) for draw in draws]

    def read(tokens: tuple[str, ...], until: tuple[str, ...]) -> Any:
        def decode(ids: Any, *, skip_special_tokens: bool) -> str:
            return "".join(tokens[i] for i in ids if not (skip_special_tokens and tokens[i] == END))

        ends = [i for i, token in enumerate(tokens) if token == END]
        tokenizer = SimpleNamespace(decode=decode, all_special_ids=ends, eos_token_id=ends)
        reader = AnswerReader(tokenizer, SimpleNamespace(eos_token_id=ends), until)  # type: ignore[arg-type]
        return reader.read(range(len(tokens)), [-0.5] * len(tokens))

    monkeypatch.setattr(HedgeHF, "_sample", sample)
    finished = run(task, "--model", "hedge_tiny", "--gen_kwargs", MAXIMUM)
    assert len(finished.answer_sets) == len(QUESTIONS)
    [failed] = finished.settings["failed"]
    assert failed == {
        "id": str(len(QUESTIONS)),
        "reason": f"document {len(QUESTIONS)} cannot be asked: its text holds '<image>', which the model reads as a "
        "mark of its own",
    }
    reasons = Counter(a.no_logprob for s in finished.answer_sets for a in s.answers if a.mean_logprob is None)
    assert (reasons[NO_END], reasons[NO_BOUNDARY]) == (5, 5)

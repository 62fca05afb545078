"""A language model as the judge of an evaluation: its labels are the task's labels, and it is asked only once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evaluation import evaluate
from openai_server import serve, texts_of

from hedge_tasks.runs.run_files import load_run

pytestmark = [pytest.mark.framework, pytest.mark.slow]

ARGUMENTS = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "6", "--gen_kwargs", "n=1")


def test_labels_come_from_the_judge_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def reply(body: dict[str, Any]) -> str:
        asked.append(texts_of(body)[-1])
        verdict = "hallucinated" if len(asked) % 2 else "supported"
        return "no idea" if len(asked) > 4 else json.dumps({"reason": f"reason {len(asked)}", "verdict": verdict})

    with serve(reply) as url:
        judge = {"name": "llm", "model": "judge", "url": url, "concurrency": 1, "asks": 1}
        monkeypatch.setenv("HEDGE_JUDGE", json.dumps(judge))
        run = evaluate(tmp_path, *ARGUMENTS)
    outcome = run.results["configs"]["hedge_demo"]["hedge"]["outcome"]
    assert outcome["health"]["unreliable"]
    assert run.values("hedge_demo")["unlabelled_rate,nli"] == pytest.approx(2 / 6)
    kept = load_run(tmp_path)
    labels = [answers.label for answers in kept.answer_sets]
    assert sorted(map(str, labels)) == ["0", "0", "1", "1", "None", "None"]
    assert {v["reason"] for v in kept.verdicts.values() if v.get("label") is not None} == {
        f"reason {i}" for i in range(1, 5)
    }
    assert list((tmp_path / "hedge_labels").glob("*.jsonl"))
    assert len(asked) >= 6


def test_a_judge_that_cannot_work_is_told_before_sampling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_JUDGE", "labels:path=nowhere.jsonl")
    with pytest.raises(Exception, match=r"nowhere\.jsonl"):
        evaluate(tmp_path, *ARGUMENTS)
    assert not (tmp_path / "hedge_answers").exists()

"""Whole evaluations through lmms-eval: the embedded model, stock adapters, mixed tasks, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run, evaluate, evaluated
from openai_server import serve
from printed import json_of

from hedge_tasks.cli import main
from hedge_tasks.errors import DrawsFailed
from hedge_tasks.sampling import AnswerSet

pytestmark = pytest.mark.framework

FILTERS = ("nli", "embed", "nli_qa", "embed_qa")
SMALL = ("--limit", "24", "--gen_kwargs", "n=3")
TINY_NLI = "package://hedge_tasks.models.tiny/nli"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return evaluated(tmp_path_factory.mktemp("demo"), "--model", "hedge_tiny", "--tasks", "hedge_demo", *SMALL)


def answer_sets(run: Run, task: str = "hedge_demo") -> dict[str, AnswerSet]:
    """One answer set a document; every filter logs the same ones."""
    sets: dict[str, AnswerSet] = {}
    for sample in run.samples(task):
        answer_set = replace(AnswerSet.read(json.loads(sample["filtered_resps"])), cluster_ids=None, held_out=False)
        assert sets.setdefault(answer_set.id, answer_set) == answer_set
    return sets


@pytest.mark.slow
def test_its_run_is_reported_and_scored_again_without_a_model(
    demo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a model is loaded")

    for loader in ("clustering.nli_model._config", "clustering.nli_model._load"):
        monkeypatch.setattr(f"hedge_tasks.{loader}", refused)
    monkeypatch.setattr("hedge_tasks.clustering.nli_source.load_nli_model", refused)
    monkeypatch.setattr("hedge_tasks.clustering.embedding.load_encoder", refused)
    monkeypatch.setenv("HEDGE_CACHE", "off")
    out = ["--out", str(tmp_path / "report.html"), "--figures", str(tmp_path)]
    assert main(["report", str(demo.output), *out]) == 0
    assert "Left out" not in (tmp_path / "report.html").read_text("utf-8")
    assert main(["leaderboard", "submit", str(demo.output), "--out", str(tmp_path / "board")]) == 0
    assert main(["show", str(demo.output), "--id", next(iter(answer_sets(demo)))]) == 0
    capsys.readouterr()
    filters = json_of(capsys, ["rescore", str(demo.output), "--json"])["filters"]
    values = demo.values("hedge_demo")
    assert {(f, s): of["auroc"][s]["value"] for f, of in filters.items() for s in ("se", "vase")} == {
        (f, s): values[f"{s}_auroc,{f}"] for f in FILTERS for s in ("se", "vase")
    }


@pytest.mark.slow
def test_a_failing_server_stops_the_run_without_a_results_file(tmp_path: Path) -> None:
    calls: list[int] = []

    def reply(body: dict[str, Any]) -> str:
        calls.append(1)
        if body["temperature"] < 1:
            raise RuntimeError("the server is on fire")
        return "yes"

    arguments = ("--tasks", "hedge_demo", "--limit", "2", "--gen_kwargs", "n=1")
    with serve(reply) as url:
        model_args = f"model=tiny,base_url={url},api_key=x,max_retries=1,retry_backoff_s=0"
        with pytest.raises(DrawsFailed, match=r"2 of 6 draws failed.*on fire.*Finished draws are kept in"):
            evaluate(tmp_path, "--model", "openai", "--model_args", model_args, *arguments)
    assert list(tmp_path.rglob("*_results.json")) == []
    assert len(list(tmp_path.glob("hedge_answers/answers-*.jsonl"))) == 1

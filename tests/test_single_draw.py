"""`n: 0`: one draw a document. What is said of the model is there; what looks at samples is absent, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evaluation import Run, evaluate

from hedge_tasks.models.hedge_hf import HedgeHF
from hedge_tasks.runs.run_files import load_run
from hedge_tasks.sampling.requests import DrawRequest

COMMAND = ("--model", "hedge_tiny", "--tasks", "hedge_demo", "--limit", "12")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, store: Path) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEDGE_MODELS", "nli=microsoft/deberta-v2-xlarge-mnli")  # not here, and nobody misses it
        patch.setenv("HEDGE_STORE", str(store))
        return evaluate(tmp_path_factory.mktemp("single"), *COMMAND, "--gen_kwargs", "n=0")


@pytest.mark.slow
@pytest.mark.framework
def test_the_baseline_answers_are_those_of_any_n_and_come_from_the_store(
    run: Run, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, draw = [], HedgeHF.generate_draws

    def counted(self: HedgeHF, draws: Sequence[DrawRequest]) -> Any:
        asked.extend(one.draw.condition for one in draws)
        return draw(self, draws)

    monkeypatch.setattr(HedgeHF, "generate_draws", counted)
    monkeypatch.setenv("HEDGE_STORE", str(store))
    more = evaluate(tmp_path, *COMMAND, "--gen_kwargs", "n=1,probe=False")
    assert (asked.count("baseline"), asked.count("clean"), asked.count("noisy")) == (0, 12, 12)
    single, sampled = load_run(run.output), load_run(more.output)
    assert [a.baseline.text for a in single.answer_sets] == [a.baseline.text for a in sampled.answer_sets]
    assert [a.label for a in single.answer_sets] == [a.label for a in sampled.answer_sets]
    assert not any(a.clean or a.noisy for a in single.answer_sets)
    assert "zero_entropy" not in single.settings["outcome"]
    one, other = (of.values("hedge_demo")["hallucination_rate,nli"] for of in (run, more))
    assert one == other

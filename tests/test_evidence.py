"""What models said of a run's answers is kept with it, and a finished run is scored without them."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import finished_run, run_text

from hedge_tasks.cli import main
from hedge_tasks.clustering import nli_source
from hedge_tasks.clustering.model_outputs import COSINES, ModelOutputs, Source
from hedge_tasks.clustering.nli_model import Origin
from hedge_tasks.errors import DataError
from hedge_tasks.llm import encoders
from hedge_tasks.llm.loading import ModelUnavailableError
from hedge_tasks.measures.sweep import usual_sizes
from hedge_tasks.runs.evidence import KeptEvidence, pack_outputs
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.runs.scorers import scorers_of

NLI = {"backend": "nli", "model": "package://hedge_tasks.models.tiny/nli", "dtype": "float32"}
CHOICE = {"threshold": "cross-fit", "tuning": {"low": 0.3, "per_class": 3}}
FILTERS = {
    "nli": {**NLI, "with_question": False, "alpha": 1.0, "detectors": ["kle"]},
    "nli_qa": {**NLI, "with_question": True, "veto": True, "alpha": 1.0},
    "embed": {"backend": "embed", "with_question": False, "alpha": 1.0, "detectors": ["kle_cosine"], **CHOICE},
}


class Models:
    """Stand-ins that answer by chance, always the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.forbidden = False
        monkeypatch.setenv("HEDGE_CACHE", "off")
        monkeypatch.setattr(nli_source, "find_origin", self._origin)
        monkeypatch.setattr(nli_source, "load_nli_model", lambda *_: self)
        monkeypatch.setattr("hedge_tasks.clustering.embedding.load_encoder", self._encoder)
        monkeypatch.setattr(encoders, "_load_sentence_transformer", self._refuse)

    def _refuse(self, *_: Any) -> Any:
        raise AssertionError("a model is loaded")

    def _origin(self, model: str, revision: str | None) -> Origin:
        if self.forbidden:
            raise ModelUnavailableError("the model cannot be had")
        return Origin(model, revision, None)

    def predict(self, pairs: list[tuple[str, str]], **_: Any) -> Any:
        yield {pair: self._probabilities(pair) for pair in pairs}

    def _probabilities(self, pair: tuple[str, str]) -> tuple[float, float, float]:
        dice = random.Random(repr(pair))
        parts = np.array([dice.random() ** 3 for _ in range(3)], dtype=np.float32)
        rows = (parts / parts.sum()).astype(np.float32).tolist()
        return rows[0], rows[1], rows[2]

    def _encoder(self, *_: Any) -> Any:
        if self.forbidden:
            raise ModelUnavailableError("the model cannot be had")

        def encode(texts: list[str]) -> list[list[float]]:
            return [[1.0 + random.Random(f"{text} {i}").random() for i in range(3)] for text in texts]

        return encode


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    return Models(monkeypatch)


def asked_run(n: int = 40) -> Run:
    return replace(finished_run(n), settings={"filters": FILTERS})


def with_evidence(run: Run) -> Run:
    """As an evaluation does it."""
    outputs = ModelOutputs()
    for scorer in scorers_of(run).values():
        scorer = scorer.with_outputs(outputs)
        scorer.score(run.answer_sets)
        scorer.look_ahead(run.answer_sets, usual_sizes(6))
    return replace(run, evidence=pack_outputs(outputs, run.answer_sets))


@pytest.mark.slow
def test_a_finished_run_is_scored_without_a_model_and_to_the_last_digit(models: Models, tmp_path: Path) -> None:
    run = asked_run()
    fresh = {name: scorer.score(run.answer_sets) for name, scorer in scorers_of(run).items()}
    path = save_run(with_evidence(run), tmp_path)
    models.forbidden = True
    read = load_run(path)
    for name, scorer in scorers_of(read).items():
        assert scorer.score(read.answer_sets) == fresh[name]
    assert any(s["kle"] for s in fresh["nli"])
    assert any(s["kle_cosine"] for s in fresh["embed"])
    # Without the evidence, this would not do.
    with pytest.raises(ModelUnavailableError):
        scorers_of(replace(read, evidence=KeptEvidence()))["nli"].score(read.answer_sets)


def test_evidence_is_of_these_texts_and_no_others(models: Models) -> None:
    run = with_evidence(asked_run(6))
    changed = [replace(a, baseline=replace(a.baseline, text="another")) for a in run.answer_sets]
    table = run.evidence.outputs(run.answer_sets).table(Source(COSINES, encoders.DEFAULT_MODEL))
    assert len(table)
    assert not list(run.evidence.outputs(changed))
    # Documents in another order or fewer of them are no other texts.
    some = run.evidence.outputs(run.answer_sets[3:1:-1]).table(Source(COSINES, encoders.DEFAULT_MODEL))
    assert 0 < len(some) <= len(table)


def sealed_with(run: Run, folder: Path, **changed: Any) -> Path:
    """A run file whose first document's evidence is changed, with a sound digest: somebody wrote it so."""
    first, *rows, _ = map(json.loads, save_run(run, folder).read_text("utf-8").splitlines())
    row = next(row for row in rows if "evidence" in row)
    row["evidence"] |= changed
    path = folder / "run-2.jsonl"
    path.write_text(run_text(first, rows))
    return path


@pytest.mark.parametrize("written", ["no base64!", "", base64.b64encode(b"\xff" * 7).decode()])
def test_damaged_evidence_is_refused_by_name(models: Models, tmp_path: Path, written: str) -> None:
    run = with_evidence(asked_run(6))
    [id, *_] = run.evidence.rows
    said = [written if s.kind == COSINES else None for s in run.evidence.sources]
    path = sealed_with(run, tmp_path, said=said)
    with pytest.raises(DataError, match=f"{id}: evidence: not outputs for its answers"):
        scorers_of(load_run(path))
    assert main(["report", str(path), "--out", str(tmp_path / "out.html")]) == 2

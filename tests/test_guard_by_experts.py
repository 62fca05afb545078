"""Promises on labels of experts: which labels count, and that a bad judge breaks none."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from finished_runs import finished_run

from hedge_tasks.cli import main
from hedge_tasks.guard.by_experts import drawn_alike
from hedge_tasks.guard.calibrate import risk_of
from hedge_tasks.guard.policy import load_policy
from hedge_tasks.judging.designed import MEANINGS, ExpertAudit, ExpertSaid
from hedge_tasks.measures.audit_plan import make_plan
from hedge_tasks.runs.audit_files import keep_audit
from hedge_tasks.runs.run_files import Run, load_run, save_run

SAMPLING = {"n": 6, "temperature": 1.0, "seed": 1, "decoding": "pure"}


def audit_with(sizes: list[int], labelled: list[int]) -> ExpertAudit:
    of = {f"{h}-{i}": h for h, size in enumerate(sizes) for i in range(size)}
    said = {f"{h}-{i}": MEANINGS[i % 2] for h, n in enumerate(labelled) for i in range(n)}
    return ExpertAudit(of, said)


def test_every_document_has_the_same_chance() -> None:
    audit = audit_with([100, 40, 7], [20, 30, 3])
    counts = Counter(audit.of[id] for seed in range(400) for id in drawn_alike(audit, seed))
    shares = [counts[h] / 400 / size for h, size in enumerate((100, 40, 7))]
    # The least is 19 of 100 in the first stratum.
    assert shares == pytest.approx([0.19] * 3, abs=0.015)
    assert drawn_alike(audit_with([5, 5], [5, 5])) == set(audit_with([5, 5], [5, 5]).of)
    assert drawn_alike(audit_with([5, 5], [5, 0])) == frozenset()


def audited(folder: Path, n: int = 600, labels: int = 400) -> Run:
    """A run whose judge misses a third of the hallucinations, with an audit beside it."""
    chance = random.Random(3)
    run = finished_run(n, sampling=SAMPLING)
    truth = {a.id: int(a.label or 0) for a in run.answer_sets}
    judged = tuple(a.with_label(truth[a.id] and int(chance.random() < 0.65)) for a in run.answer_sets)
    run = load_run(save_run(replace(run, answer_sets=judged), folder))
    plan = make_plan(run, n=labels)
    said = [ExpertSaid("", code, "r", MEANINGS[0 if truth[id] else 1]) for code, id in plan.codes.items()]
    keep_audit(run, plan, said, "2 radiologists")
    return run


@pytest.mark.slow
def test_the_command_promises_what_experts_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = audited(tmp_path / "run")
    assert run.path is not None
    options = ["--risk", "0.4", "--confidence", "0.8", "--detectors", "radflag"]
    out = tmp_path / "policy.json"
    assert main(["calibrate", str(run.path), *options, "--audit", "--out", str(out)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "labels 400" in printed
    assert "Hallucinated of it, by the experts: " in printed
    assert "experts: 2 radiologists" in printed
    assert load_policy(out).calibration.coverage.total <= 400
    plain = save_run(finished_run(40, seed=5, sampling=SAMPLING), tmp_path / "other")
    assert main(["calibrate", str(plain), *options, "--audit"]) == 2
    assert "hedge audit apply" in capsys.readouterr().err


def test_the_risk_by_experts_of_a_census_is_counted() -> None:
    run = finished_run(60)
    ids = [a.id for a in run.answer_sets]
    truth = [i % 3 == 0 for i in range(60)]
    said = {id: MEANINGS[0 if wrong else 1] for id, wrong in zip(ids, truth, strict=True)}
    taken = np.arange(60) < 20
    found = risk_of(run, taken, ExpertAudit(dict.fromkeys(ids, 0), said))
    assert found.value == pytest.approx(7 / 20)

"""A guard on a fitted detector: fitted on other documents than its promise rests on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import finished_run
from guarded import PICTURE, PROMPT

from hedge_tasks.cli import main
from hedge_tasks.data.answers import Answer
from hedge_tasks.data.inside import PLACES
from hedge_tasks.detectors.probes.base import at_place
from hedge_tasks.detectors.probes.registry import fitted
from hedge_tasks.detectors.registry import get, names
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.guard.ask import Guard
from hedge_tasks.guard.calibrate import calibrate, check
from hedge_tasks.guard.fitted import fit_apart
from hedge_tasks.guard.policy import Policy, load_policy, save_policy
from hedge_tasks.measures.detector_table import detector_table
from hedge_tasks.runs.kept_inside import inside_source
from hedge_tasks.runs.run_files import Run, load_run, save_run
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.sampling.inside import MODEL, InsideStore, inside_key
from hedge_tasks.sampling.plan import SamplingPlan

PROBE = fitted("linear_probe")
PLAN = SamplingPlan(n=6, n_noisy=6)


def state(wrong: bool, noise: np.random.Generator | None = None) -> Any:
    shape = (1, len(PLACES), 4)
    found = np.zeros(shape) if noise is None else noise.normal(size=shape)
    found[..., 0] += 4.0 * wrong
    return found.astype(np.float16)


def kept(folder: Path, seed: int) -> Run:
    """A run on the disk, with states that tell its labels."""
    run = finished_run(600, seed=seed, sampling=PLAN.settings(), prompt=PROMPT, **{MODEL: "key"})
    save_run(run, folder)
    rng = np.random.default_rng(seed)
    with InsideStore(folder / "hedge_answers") as store:
        keys = {inside_key(run.task, "key", a.id, a.baseline.text): a for a in run.answer_sets}
        store.put({key: {"states": state(bool(a.label), rng)} for key, a in keys.items()})
    return load_run(folder, None)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return kept(tmp_path_factory.mktemp("one"), 1)


@pytest.fixture(scope="module")
def found(run: Run) -> Policy:
    apart = fit_apart(run, scorer_of(run, None), [PROBE])
    there = {a.group for a in apart.run.answer_sets}
    assert len(apart.run.answer_sets) == 300
    [of] = apart.states.values()
    assert of.documents == 300  # two documents an image
    assert len(there) == 150
    search = calibrate(apart.run, scorer_of(run, None), [of.name], risk=0.15, fitted=apart.states)
    assert search.policy is not None
    assert search.policy.promise.n <= 300
    assert of.name not in names()  # known, and not listed
    assert get(of.name).draws(10, 10) == 0
    return search.policy


@pytest.mark.slow
def test_a_policy_brings_its_state_and_holds_on_another_run(found: Policy, run: Run, tmp_path: Path) -> None:
    save_policy(found, tmp_path / "policy.json")
    policy = load_policy(tmp_path / "policy.json")
    assert policy == found
    with pytest.raises(DataError, match="was fitted on documents of it"):
        check(policy, run)
    outcome = check(policy, kept(tmp_path / "two", 2))
    assert outcome.held
    assert outcome.accepted.value is not None
    assert outcome.accepted.value > 0.3
    content = policy.model_dump(mode="json")
    content["fitted"]["arrays"]["bias"]["data"] = "AAAAAAAA8D8="  # 1.0
    with pytest.raises(DataError, match="sha256"):
        Policy.read(content, "policy")
    content = policy.model_dump(mode="json")
    content["fitted"]["arrays"]["bias"]["data"] = "AAAA"
    with pytest.raises(DataError, match="3 bytes are no"):
        Policy.read(content, "policy")
    with pytest.raises(DataError, match="it is the state of linear_probe_"):
        Policy.read({**policy.model_dump(mode="json"), "detector": "radflag"}, "policy")


class Model:
    """Says "a", and has the question in mind."""

    answer_identity = "model"

    def __init__(self) -> None:
        self.task_dict: dict[str, Any] = {}
        self.looked = 0

    def generate_draws(self, draws: Any) -> Any:
        for i, draw in enumerate(draws):
            yield [(i, Answer(draw.request.question, -0.1, 1))]

    def inside(self, conversations: Any, texts: Any, parts: frozenset[str]) -> list[Any]:
        assert parts == {"states"}
        self.looked += len(texts)
        return [{"states": state(text == "wrong")} for text in texts]


@pytest.mark.slow
def test_a_question_is_looked_at_from_inside(found: Policy) -> None:
    model = Model()
    guard = Guard(found, model)
    assert guard.ask(PICTURE, "right").accepted
    verdict = guard.ask(PICTURE, "wrong")
    assert not verdict.accepted
    assert verdict.draws == 0
    assert model.looked == 2
    blind = Model()
    with pytest.raises(ConfigError, match="looks inside the model"):
        Guard(found, type("Server", (), {"generate_draws": blind.generate_draws, "task_dict": {}})())


@pytest.mark.slow
def test_nobody_is_fitted_and_calibrated_on_the_same(run: Run, tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(ConfigError, match="images of RUN are in it"):
        fit_apart(run, scorer_of(run, None), [PROBE], fit_on=run)
    assert run.path is not None
    out = tmp_path / "policy.json"
    asked = ["calibrate", str(run.path), "--risk", "0.15", "--detectors", "linear_probe,radflag", "--json"]
    assert main([*asked, "--out", str(out), "--no-sentinels"]) == 0
    told = json.loads(capsys.readouterr().out)
    [name] = told["fitted"]
    assert told["fitted"][name] == 300
    assert set(told["tried"]) == {name, "radflag"}
    assert told["policy"]["detector"] == name
    assert load_policy(out).fitted is not None


@pytest.mark.slow
def test_a_fitted_row_stands_among_detectors_and_not_within_kinds_of_questions(run: Run) -> None:
    small = replace(run, answer_sets=run.answer_sets[:80])
    table = detector_table(small, scorer_of(run, None), ["se"], fitted=(PROBE,), blind=False)
    rows = {row.detector: row for row in table.rows}
    row = rows[PROBE.name]
    assert (row.fitted, row.labels, row.passes, row.draws) == (True, 64, 1, 0)
    assert "for the fitting" in row.estimate.method
    assert row.within.reason == "cross-fitted scores are not compared within kinds of questions"
    assert not rows["se"].fitted


@pytest.mark.slow
@pytest.mark.framework
def test_a_guard_on_the_embedded_model_from_the_evaluation_to_the_answer(tmp_path: Path, capsys: Any) -> None:
    """Every draw agrees on the wrong answer, and the states tell: only what is right is let through."""
    from evaluation import evaluate

    from hedge_tasks.data.pictures import open_picture
    from training.overconfident_set import build_rows

    more = ("--gen_kwargs", "inside=states,n=1,n_noisy=1")
    done = evaluate(tmp_path / "a", "--model", "hedge_tiny", "--tasks", "hedge_demo_overconfident", *more)
    capsys.readouterr()
    out = tmp_path / "policy.json"
    risk = ("--risk", "0.45", "--confidence", "0.8")
    asked = ["calibrate", str(done.output), *risk, "--detectors", "image_probe", "--out", str(out)]
    assert main([*asked, "--no-sentinels", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert list(told["fitted"].values()) == [40]
    run = load_run(done.output, None)
    apart = fit_apart(run, scorer_of(run, None), [fitted("image_probe")])
    [state] = apart.states.values()
    assert state == load_policy(out).fitted
    held_out = {a.id: a for a in apart.run.answer_sets}
    assert len(held_out) == len(run.answer_sets) - 40
    source, detector = inside_source(run)(frozenset({"states"})), fitted("image_probe")
    accepted = []
    with Guard.load(out, model="hedge_tiny") as guard:
        for row in [row for row in build_rows() if row["question_id"] in held_out][:16]:
            path = tmp_path / row["image"]["path"]
            path.write_bytes(row["image"]["bytes"])
            verdict = guard.ask([open_picture(path)], row["question"])
            kept_states = source[row["question_id"]]["states"][None].astype(np.float32)
            [score] = detector.score(state.numbers(), at_place(detector, kept_states))
            assert verdict.score == pytest.approx(score, abs=0.02)
            assert verdict.draws == 0
            if verdict.accepted:
                accepted.append(held_out[row["question_id"]].label)
    assert len(accepted) >= 3
    assert np.mean(accepted) < 0.45


# --- several detectors as one score -----------------------------------------------------------------------------------

MEMBERS = ("se", "radflag", "msp")


@pytest.fixture(scope="module")
def plain() -> Run:
    return finished_run(600, seed=5, sampling=PLAN.settings(), prompt=PROMPT)


def test_a_fused_score_is_the_logistic_regression_of_its_members(plain: Run) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scorer = scorer_of(plain, None)
    apart = fit_apart(plain, scorer, [], fused=[MEMBERS])
    [state_] = apart.states.values()
    left = {a.id for a in apart.run.answer_sets}
    scores = replace(scorer, detectors=(*MEMBERS, state_.name)).score(plain.answer_sets)
    seen, unseen = ([s for s in scores if (s.id in left) is here] for here in (False, True))
    assert {s.group for s in seen}.isdisjoint({s.group for s in unseen})
    table = np.array([[s[name] for name in MEMBERS] for s in seen])
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(table, [s.label for s in seen])
    expected = model.decision_function(np.array([[s[name] for name in MEMBERS] for s in unseen]))
    assert [s[state_.name] for s in unseen] == pytest.approx(expected.tolist(), abs=1e-9)
    assert get(state_.name).draws(10, 5) == get("se").draws(10, 5)
    assert get(state_.name).needs == get("se").needs | get("radflag").needs | get("msp").needs


@pytest.mark.slow
def test_a_fused_policy_is_whole_and_holds_elsewhere(
    plain: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scorer = scorer_of(plain, None)
    apart = fit_apart(plain, scorer, [], fused=[MEMBERS])
    [name] = apart.states
    search = calibrate(apart.run, scorer, [name], risk=0.45, fitted=apart.states)
    assert search.policy is not None
    save_policy(search.policy, tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json") == search.policy
    other = finished_run(600, seed=6, sampling=PLAN.settings(), prompt=PROMPT)
    assert not check(search.policy, other).refuted
    changed = json.loads((tmp_path / "policy.json").read_text())
    changed["fitted"]["of"] = ["radflag", "se", "msp"]
    (tmp_path / "changed.json").write_text(json.dumps(changed))
    with pytest.raises(DataError, match="its digest does not fit"):
        load_policy(tmp_path / "changed.json")
    save_run(plain, tmp_path / "run")
    asked = ["calibrate", str(tmp_path / "run"), "--risk", "0.45", "--no-sentinels", "--detectors"]
    assert main([*asked, "fused:se+msp, radflag"]) == 0
    assert "Fitted on 300 other documents" in capsys.readouterr().out
    assert main([*asked, "fused:se"]) == 2
    assert "name two detectors or more" in capsys.readouterr().err
    assert main([*asked, "fused:se+linear_probe"]) == 2
    assert main([*asked, "fused:se+inside"]) == 2
    assert "cannot be fused" in capsys.readouterr().err

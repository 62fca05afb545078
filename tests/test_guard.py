"""Policies: what a run lets one promise, what the promise is bound to, and its check on other documents."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from at_border import at_border
from finished_runs import finished_run

from hedge_tasks.cli import main
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.guard.calibrate import PolicyCheck, _enough, apart, calibrate, check, groups_of, labels_of, of_type
from hedge_tasks.guard.policy import differences, load_policy, save_policy
from hedge_tasks.numbers import Number
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics.base import wilson

SAMPLING = {"n": 6, "temperature": 1.0, "seed": 1, "decoding": "pure"}


def run_of(seed: int, n: int = 600, **settings: object) -> Run:
    """Another seed has other documents."""
    run = finished_run(n, seed=seed, sampling={**SAMPLING, "seed": seed}, **settings)  # type: ignore[arg-type]
    return replace(run, answer_sets=tuple(replace(a, question=f"{a.question} ({seed})") for a in run.answer_sets))


RUN = run_of(1)
FOUND = calibrate(RUN, scorer_of(RUN, None), ["radflag"], risk=0.3, confidence=0.8)
assert FOUND.policy is not None
POLICY = FOUND.policy


def test_a_policy_comes_back_from_its_file_and_no_other_one_does(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    save_policy(POLICY, path)
    assert load_policy(path) == POLICY
    for wrong in ({"n_wrong": 999}, {"risk": 0.001, "confidence": 0.999}):
        alone = POLICY.promise.replaced(n_groups=None, n_wrong=0)
        save_policy(POLICY.replaced(promise=alone.replaced(**wrong)), path)
        with pytest.raises(DataError, match="promise: its counts do not allow it"):
            load_policy(path)
    save_policy(POLICY, path)
    changed = json.loads(path.read_text())
    changed["threshold"] += 0.1
    path.write_text(json.dumps(changed))
    with pytest.raises(DataError, match="changed by hand"):
        load_policy(path)
    path.write_text("{}")
    with pytest.raises(DataError, match="no policy of format"):
        load_policy(path)


def test_it_is_checked_on_new_documents_and_not_on_its_own() -> None:
    found = check(POLICY, run_of(2, 1200))
    assert (found.outcome, found.enough, found.shifted, found.judge) == ("held", None, False, "rule 1")
    with pytest.raises(DataError, match="the documents it was calibrated on"):
        check(POLICY, RUN)
    others = {a.id: a.answers for a in run_of(2).answer_sets}
    drawn_again = tuple(replace(a, baseline=others[a.id][0], clean=others[a.id][1:]) for a in RUN.answer_sets)
    with pytest.raises(DataError, match="the documents it was calibrated on"):
        check(POLICY, replace(RUN, answer_sets=drawn_again))


def test_a_promise_holds_from_the_end_of_the_interval_on_and_is_broken_before_it() -> None:
    run = run_of(2, 100)
    risk = check(POLICY, run).risk
    assert risk.value is not None
    assert risk.interval is not None

    def promised(promise: float) -> PolicyCheck:
        return check(POLICY.replaced(promise=POLICY.promise.replaced(risk=promise)), run)

    at_border(lambda promise: promised(promise).outcome == "held", risk.interval[1], "011")
    at_border(lambda promise: promised(promise).outcome == "broken", risk.interval[0], "100")
    at_border(lambda promise: promised(promise).enough is None, risk.value, "110")
    for wrong, n, promise in ((0, 1, 0.4), (3, 20, 0.2), (9, 120, 0.1)):
        enough = _enough(Number(wrong / n, interval=wilson(wrong / n, n, 0.95), n=n), promise) or 0
        assert wilson(wrong / n, enough, 0.95)[1] <= promise < wilson(wrong / n, enough - 1, 0.95)[1]
    at_border(lambda low: apart((0.2, 0.3), (low, 0.9)), 0.3, "001")
    at_border(lambda low: apart((low, 0.9), (0.2, 0.3)), 0.3, "001")
    for wrong in ({"risk": 0.0}, {"risk": 1.0}, {"risk": 0.1, "confidence": 0.0}, {"risk": 0.1, "confidence": 1.0}):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            calibrate(RUN, scorer_of(RUN, None), ["radflag"], **wrong)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"model": "another"}, "model: 'model' when calibrated, 'another' here"),
        (
            {"settings": {**run_of(2).settings, "sampling": {**SAMPLING, "temperature": 0.5}}},
            "sampling.temperature: 1.0",
        ),
        ({"settings": {**run_of(2).settings, "prompt": {"text": "{question}!"}}}, "prompt.text: None when"),
    ],
)
def test_the_promise_is_about_nothing_else(changed: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check(POLICY, replace(run_of(2), **changed))  # type: ignore[arg-type]
    assert differences(POLICY, run_of(2)) == []  # another seed is the same protocol


def test_what_is_missing_is_not_like_the_rest() -> None:
    """Thirty that decline with the best score are never accepted; more than 5 % undecided count as hallucinated."""
    template = min(RUN.answer_sets, key=lambda a: a.label or 0)
    extra = [replace(template, id=f"d{i}", group=f"d{i}").with_label(None) for i in range(30)]
    run = replace(RUN, answer_sets=(*RUN.answer_sets, *extra))
    options = {"risk": 0.3, "confidence": 0.8}
    whole = calibrate(RUN, scorer_of(RUN, None), ["radflag"], **options).policy
    declined = replace(run, verdicts={**run.verdicts, **{a.id: {"category": "no_answer"} for a in extra}})
    silent = calibrate(declined, scorer_of(RUN, None), ["radflag"], **options).policy
    assert whole is not None
    assert silent is not None
    assert silent.promise.replaced(accepted=0.5) == whole.promise.replaced(accepted=0.5)
    assert silent.promise.accepted == pytest.approx(whole.promise.accepted * 600 / 630)
    assert silent.calibration.coverage.declined == 30
    assert np.isnan(labels_of(run)[-30:]).all(), "5 % at most are left out"
    more = replace(run, answer_sets=(*run.answer_sets, *(replace(a, id=f"more {a.id}") for a in extra[:2])))
    assert (labels_of(more)[-32:] == 1).all()


def test_a_type_of_question_has_a_promise_of_its_own(tmp_path: Path) -> None:
    """Every other picture's questions are open, and all answers to them wrong: closed ones are promised alone."""
    types = {group: "open" if i % 2 else "closed" for i, group in enumerate(sorted({a.group for a in RUN.answer_sets}))}
    typed = [replace(a, question_type=types[a.group]) for a in RUN.answer_sets]
    sets = tuple(a.with_label(1) if a.question_type == "open" else a for a in typed)
    run, options = replace(RUN, answer_sets=sets), {"risk": 0.4, "confidence": 0.8}
    scorer = scorer_of(run, None)
    assert calibrate(run, scorer, ["radflag"], **options, question_type="open").policy is None  # type: ignore[arg-type]
    policy = calibrate(run, scorer, ["radflag"], **options, question_type="closed").policy  # type: ignore[arg-type]
    assert policy is not None
    assert policy.promise.n < sum(type == "closed" for type in types.values()) * 2
    save_policy(policy, tmp_path / "policy.json")
    assert load_policy(tmp_path / "policy.json").calibration.question_type == "closed"
    new = replace(run_of(2), answer_sets=tuple(replace(a, question_type="closed") for a in run_of(2).answer_sets[:100]))
    others = tuple(replace(a, id=f"{a.id} open", question_type="open").with_label(1) for a in new.answer_sets)
    assert check(policy, replace(new, answer_sets=(*new.answer_sets, *others))) == check(policy, new)
    with pytest.raises(ConfigError, match=r"type of question 'close'.*did you mean 'closed'"):
        calibrate(run, scorer, ["radflag"], risk=0.4, question_type="close")


@pytest.mark.slow
def test_the_command_writes_checks_and_says_no(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other, out = save_run(RUN, tmp_path / "a"), save_run(run_of(2, 1200), tmp_path / "b"), tmp_path / "policy.json"
    assert main(["calibrate", str(one), "--risk", "0.3", "--confidence", "0.8", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "With 80 % confidence at most 30.0 % of the answers that radflag lets through are called" in text
    assert "are called hallucinated by" in text
    made = load_policy(out)
    assert made == POLICY
    assert main(["calibrate", str(one), "--risk", "0.001", "--out", str(out)]) == 1
    assert load_policy(out) == made
    assert main(["calibrate", str(other), "--check", str(out)]) == 0
    assert "by rule 1. The promise: held." in " ".join(capsys.readouterr().out.split())
    few = run_of(2, 4)
    others = {id: {**verdict, "judge": "llm 2"} for id, verdict in few.verdicts.items()}
    alone = replace(few, answer_sets=few.answer_sets[:1]), replace(few, verdicts=others)
    for i, checked in enumerate(alone):
        assert main(["calibrate", str(save_run(checked, tmp_path / f"few {i}")), "--check", str(out)]) == 1
        text = " ".join(capsys.readouterr().out.split())
        assert f"by {'llm 2' if i else 'rule 1'}; promised 30.0 % by rule 1." in text
        assert "The promise: not contradicted: too few answers." in text
    assert main(["calibrate", str(one), "--risk", "0.001", "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["policy"] is None
    more = facts["candidates"][0]["labels_that_might_do"]
    assert more is None or more > 600
    assert main(["calibrate", str(one)]) == 2
    assert "--risk: say which share" in capsys.readouterr().err
    assert main(["calibrate", str(one), "--risk", "1.5"]) == 2
    assert "risk: expected a number between 0 and 1, got 1.5" in capsys.readouterr().err


def test_what_cannot_be_calibrated_or_checked_is_refused() -> None:
    tuned = Scorer.build("embed", "embed", {"threshold": "cross-fit", "encoder": lambda texts: [[1.0]] * len(texts)})
    options: dict[str, float] = {"risk": 0.3, "confidence": 0.8}
    with pytest.raises(ConfigError, match="threshold is chosen on the run's own labels"):
        calibrate(RUN, tuned, ["radflag"], **options)  # type: ignore[arg-type]
    bare = replace(RUN, answer_sets=tuple(a.with_label(None) for a in RUN.answer_sets))
    with pytest.raises(DataError, match="no document has a label"):
        calibrate(bare, scorer_of(RUN, None), ["radflag"], **options)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="there are no answers"):
        check(POLICY, replace(RUN, answer_sets=()))
    with pytest.raises(ConfigError, match="none has a type"):
        of_type(replace(RUN, answer_sets=tuple(replace(a, question_type=None) for a in RUN.answer_sets)), "open")
    left_out = calibrate(RUN, scorer_of(RUN, None), ["radflag", "p_true", "msp"], **options).left_out  # type: ignore[arg-type]
    assert "forced passes" in left_out["p_true"]


def test_the_share_accepted_is_as_sure_as_there_are_images() -> None:
    promise = POLICY.promise
    assert promise.n_groups is not None
    alone = promise.replaced(n_groups=None).accepted_interval
    assert promise.n_groups < promise.n
    assert promise.accepted_interval[0] < alone[0] < promise.accepted < alone[1] < promise.accepted_interval[1]
    policy = POLICY.calibration
    assert (policy.task, policy.created, policy.judge) == (RUN.task, RUN.created, "rule 1")
    mixed = [*RUN.answer_sets[:2], replace(RUN.answer_sets[2], group=None)]
    assert groups_of(mixed) == ["group image 0", "group image 0", "document 2"]
    assert groups_of(mixed[2:]) is None


def test_a_clustering_with_a_tuned_threshold_tries_detectors_without_clusters() -> None:
    tuned = Scorer.build("embed", "embed", {"threshold": "cross-fit", "encoder": lambda texts: [[1.0]] * len(texts)})
    found = calibrate(RUN, tuned, ["msp"], risk=0.5, confidence=0.8)
    assert list(found.tried) == ["msp"]


def test_missing_labels_leave_a_promise_that_seems_broken_open() -> None:
    run = run_of(2, 100)
    sets = tuple(a.with_label(None) if i < 10 else a for i, a in enumerate(run.answer_sets))

    def outcome(risk: float, sets: tuple[AnswerSet, ...]) -> str:
        policy = POLICY.replaced(promise=POLICY.promise.replaced(risk=risk))
        return check(policy, replace(run, answer_sets=sets)).outcome

    few = "not contradicted: too few answers"
    assert [outcome(1e-6, run.answer_sets), outcome(1e-6, sets), outcome(0.999, sets)] == ["broken", few, "held"]
    nothing = check(POLICY.replaced(threshold=-1.0), run)
    assert (nothing.outcome, nothing.accepted.value) == (few, 0)

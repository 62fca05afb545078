"""Predicted ends: the law behind them, their limit, and a promise that has them inside."""

from __future__ import annotations

from dataclasses import replace
from math import comb, gamma
from pathlib import Path

import numpy as np
import pytest
from finished_runs import finished_run
from guarded import PICTURE, policy
from test_guard_ask import Model

from hedge_tasks.cli import main
from hedge_tasks.clustering.exact import ExactClustering
from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.detectors.builtin.radflag import radflag
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError
from hedge_tasks.guard.ask import Guard
from hedge_tasks.guard.calibrate import calibrate, check
from hedge_tasks.guard.curtailment import interim_analyses, predicted, settled, stopped_scores
from hedge_tasks.guard.policy import load_policy
from hedge_tasks.guard.seen import columns
from hedge_tasks.runs.run_files import save_run
from hedge_tasks.runs.scorers import scorer_of

EXACT = Scorer.build("exact", "exact", {})


def beta(a: float, b: float) -> float:
    return gamma(a) * gamma(b) / gamma(a + b)


def chance_of_at_least(wanted: int, agreeing: int, seen: int, n: int) -> float:
    """From the definition: the binomial, averaged over the posterior of Jeffreys' prior."""
    a, b, left = agreeing + 0.5, seen - agreeing + 0.5, n - seen
    law = [comb(left, x) * beta(x + a, left - x + b) / beta(a, b) for x in range(left + 1)]
    return sum(p for x, p in enumerate(law) if agreeing + x >= wanted)


@pytest.mark.parametrize("epsilon", [0.005, 0.01, 0.049, 0.2])
def test_the_prediction_is_the_beta_binomial_one(epsilon: float) -> None:
    n, found = 10, set()
    for seen in range(n):
        for agreeing in range(seen + 1):
            for wanted in range(n + 1):
                chance = chance_of_at_least(wanted, agreeing, seen, n)
                expected = True if 1 - chance <= epsilon else False if chance <= epsilon else None
                assert predicted(agreeing, seen, n, (n - wanted) / n, epsilon) is expected
                found.add(expected)
    assert found == {True, False, None}


@pytest.mark.parametrize("epsilon", [0.0, 1e-12])
def test_without_an_epsilon_it_is_the_exact_end(epsilon: float) -> None:
    for n in (1, 4, 10, 12):
        for seen in range(n + 1):
            for agreeing in range(seen + 1):
                for threshold in (-1.0, 0.0, 0.25, 0.3, 1 / 3, 0.5, 0.99, 1.0):
                    exact = settled("radflag", ExactClustering(), agreeing, seen, n, threshold)
                    assert predicted(agreeing, seen, n, threshold, epsilon) is exact


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1])
def test_its_score_is_its_verdict_at_every_threshold(epsilon: float) -> None:
    rng, n = np.random.default_rng(0), 10
    at = interim_analyses(n)
    chances = rng.beta(0.5, 0.3, 400)
    draws = rng.random((400, n)) < chances[:, None]
    counts = draws.cumsum(axis=1)[:, [k - 1 for k in at]]
    scores, used = stopped_scores(counts, n, epsilon, at)
    for wanted in range(n + 1):
        threshold = (n - wanted) / n
        for i, row in enumerate(counts):
            verdicts = [predicted(int(a), k, n, threshold, epsilon) for a, k in zip(row, at, strict=True)]
            end = next(j for j, verdict in enumerate(verdicts) if verdict is not None)
            assert (scores[i] <= threshold) == verdicts[end]
            assert used[i, wanted] == at[end]
    whole = np.array([radflag(True, row.tolist()) for row in draws])
    assert (scores == whole).all() == (epsilon == 0)
    assert np.mean(scores == whole) > 0.8
    saved = used[:, 7].mean()
    assert saved < n
    assert saved <= stopped_scores(counts, n, 0.0, at)[1][:, 7].mean()


def test_wrong_interim_analyses_are_refused() -> None:
    for counts, at in (([[1]], (4,)), ([[1]], (4, 10)), ([1], (10,))):
        with pytest.raises(ValueError, match="a column for each of the analyses"):
            stopped_scores(counts, 10, 0.01, at)


def answers(*clean: str, noisy: tuple[str, ...] = ()) -> AnswerSet:
    return AnswerSet("q", Answer("a"), tuple(map(Answer, clean)), tuple(map(Answer, noisy)))


def test_a_policy_looks_at_no_draw_that_is_not_made_for_it() -> None:
    """Noisy answers can join clusters of clean ones, and a question that is asked for RadFlag has none."""

    def encode(texts: list[str]) -> np.ndarray:
        return np.array([{"a": (1, 0), "b": (0, 1), "between": (1, 1)}[text] for text in texts], float)

    scorer = Scorer.build("embed", "embed", {"threshold": 0.7})
    scorer = replace(scorer, backend=replace(scorer.backend, encoder=encode))
    bridged = answers("b", "b", noisy=("between", "between"))
    assert scorer.with_detectors(["radflag"]).score([bridged])[0]["radflag"] == 0
    found = columns([bridged], scorer, ["radflag", "radflag_noisy", "n_clusters", "vase"])
    assert found["radflag"].values.tolist() == [1]
    assert found["radflag_noisy"].values.tolist() == [0]
    assert list(found) == ["radflag", "radflag_noisy", "n_clusters", "vase"]


def test_whether_a_score_depends_on_log_probabilities_is_noticed() -> None:
    def weighted(*logprobs: float | None) -> AnswerSet:
        clean = tuple(Answer(t, p, 1) for t, p in zip("aab", logprobs, strict=True))
        return AnswerSet("q", Answer("a", -1.0, 1), clean)

    with_them = columns([weighted(-1.0, -2.0, -0.1)] * 3, EXACT, ["se", "radflag"])
    assert (with_them["se"].weighting, with_them["radflag"].weighting) == ("logprob", None)
    assert columns([weighted(-1.0, None, -0.1)], EXACT, ["se"])["se"].weighting is None


def test_documents_with_different_numbers_of_draws_have_no_predicted_end() -> None:
    with pytest.raises(ConfigError, match="different numbers of draws"):
        columns([answers("a"), answers("a", "b")], EXACT, ["radflag"], epsilon=0.01)
    with pytest.raises(ConfigError, match=r"epsilon: expected a number from 0 to 0\.25"):
        calibrate(finished_run(60), EXACT, ["radflag"], risk=0.3, epsilon=0.3)


def run_of(seed: int) -> object:
    sampling = {"n": 10, "temperature": 1.0, "seed": seed, "decoding": "pure"}
    return finished_run(600, seed=seed, samples=10, sampling=sampling)


@pytest.mark.slow
def test_the_promise_is_about_the_answers_let_through_with_early_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counted anew, document by document: what the guard would do with these very draws."""
    run = run_of(1)
    found = calibrate(run, scorer_of(run, None), ["radflag"], risk=0.3, confidence=0.8, epsilon=0.1).policy  # type: ignore
    assert found is not None
    assert (found.epsilon, found.looks) == (0.1, interim_analyses(10))
    other, taken, labels = run_of(2), 0, []
    for a in other.answer_sets:  # type: ignore[attr-defined]
        same = [answer.text == a.baseline.text for answer in a.clean]
        ends = (predicted(sum(same[:k]), k, 10, found.threshold, 0.1) for k in found.looks)
        if next(end for end in ends if end is not None):
            taken += 1
            labels.append(a.label)
    checked = check(found, other)  # type: ignore[arg-type]
    assert checked.accepted.value == pytest.approx(taken / 600)
    assert checked.risk.value == pytest.approx(np.mean(labels))
    folder = save_run(run, tmp_path / "run")  # type: ignore[arg-type]
    out = tmp_path / "policy.json"
    command = ["calibrate", str(folder), "--risk", "0.3", "--confidence", "0.8", "--epsilon", "0.1", "--out", str(out)]
    assert main(command) == 0
    assert "end early at epsilon 0.1, which is part of the promise" in capsys.readouterr().out
    kept = load_policy(out)
    # The command says in the policy which attempt this was; all else is what the function found.
    assert kept.replaced(calibration={**kept.calibration, "attempts": []}) == found.replaced(
        calibration={**found.calibration, "attempts": []}
    )


def test_questions_end_where_the_policy_s_prediction_says_so() -> None:
    early = policy(0.3).replaced(epsilon=0.1, looks=interim_analyses(10))
    drawn = {"exact": 0, "early": 0, "at once": 0}
    for question in ("0.0", "0.1", "0.3", "0.5", "0.8"):
        one, whole = (Guard(early, Model(), at_once=at_once).ask(PICTURE, question) for at_once in (False, True))
        exact = Guard(policy(0.3), Model()).ask(PICTURE, question)
        assert (
            one.accepted == whole.accepted
        )  # of all draws, the verdict is still that of the first look that gives one
        assert one.draws in interim_analyses(10)
        for name, verdict in (("exact", exact), ("early", one), ("at once", whole)):
            drawn[name] += verdict.draws
    assert drawn["early"] < drawn["exact"] < drawn["at once"] == 50


def test_a_verdict_at_the_first_look_stands_also_if_all_draws_would_say_something_else() -> None:
    """Four draws agree, the other six do not: accepted at the first look, with all draws made or not."""

    class Turns(Model):
        def generate_draws(self, draws):  # type: ignore[no-untyped-def]
            for i, draw in enumerate(draws):
                agrees = draw.draw.condition == "baseline" or draw.draw.index < 4
                yield [(i, Answer("a" if agrees else "b", -1.0, 1))]

    early = policy(0.5).replaced(epsilon=0.2, looks=interim_analyses(10))
    for at_once in (False, True):
        verdict = Guard(early, Turns(), at_once=at_once).ask(PICTURE, "0")
        assert (verdict.accepted, verdict.draws) == (True, 10 if at_once else 4)
    assert not Guard(policy(0.5), Turns(), at_once=True).ask(PICTURE, "0").accepted

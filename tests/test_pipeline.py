"""Cluster, score, summarise, and the filters around it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hedge_tasks import AnswerSet, detectors
from hedge_tasks.detectors.pipeline import prices_of, score_answers, summarise
from hedge_tasks.errors import DataError
from hedge_tasks.sampling import Answer


def answer_set(
    clean: str = "aab", noisy: str = "abc", *, baseline: str = "a", logprobs: bool = True, **fields: object
) -> AnswerSet:
    """Answers are single letters; every letter is its own meaning."""

    def answers(letters: str) -> tuple[Answer, ...]:
        return tuple(Answer(x, -0.1 * (i + 1) if logprobs else None) for i, x in enumerate(letters))

    return AnswerSet(str(fields.pop("id", "q")), answers(baseline)[0], answers(clean), answers(noisy), **fields)


def test_scores_are_those_of_the_scoring_functions() -> None:
    scores = score_answers(answer_set(), clustering="exact")
    clean, noisy = [-0.1, -0.2, -0.3], [-0.1, -0.2, -0.3]
    assert scores.cluster_ids == (0, 0, 0, 1, 0, 1, 2)
    assert scores["se"] == detectors.semantic_entropy([0, 0, 1], clean)
    assert scores["radflag"] == pytest.approx(1 / 3)
    assert scores["vase"] == detectors.vase([0, 0, 1], [0, 1, 2], clean, noisy, baseline_id=0)
    assert (scores["n_clusters"], scores.weighting) == (2, "logprob")
    assert scores["baseline_nll"] == pytest.approx(0.1)
    assert scores["clean_nll"] == pytest.approx(0.2)


def test_answers_of_probability_zero() -> None:
    impossible = Answer("a", -math.inf)
    some = AnswerSet("q", Answer("a", -1.0), (impossible, Answer("b", -1.0)), (Answer("a", -1.0),))
    assert score_answers(some, clustering="exact")["se"] == 0.0  # all weight is on "b"
    with pytest.raises(DataError, match=r"^q: .*-inf"):
        score_answers(AnswerSet("q", Answer("a"), (impossible, impossible)), clustering="exact")


# --- held-out documents and missing log-probabilities ----------------------------------------------------------------


@pytest.mark.parametrize("missing", ["one noisy", "all noisy", "one clean"])
def test_answers_without_logprobs_make_all_weights_uniform_also_where_only_noisy_ones_lack_them(missing: str) -> None:
    whole = answer_set("aab", "abb")
    lacking = {
        "one noisy": {"noisy": (*whole.noisy[:2], Answer("b"))},
        "all noisy": {"noisy": tuple(Answer(answer.text) for answer in whole.noisy)},
        "one clean": {"clean": (*whole.clean[:2], Answer("b"))},
    }[missing]
    found = score_answers(replace(whole, **lacking), clustering="exact")
    uniform = score_answers(answer_set("aab", "abb", logprobs=False), clustering="exact")
    weighted = score_answers(whole, clustering="exact")
    assert (found.weighting, weighted.weighting) == ("uniform", "logprob")
    assert (found["se"], found["vase"]) == (uniform["se"], uniform["vase"])
    assert found["vase"] != weighted["vase"]
    assert (found["clean_nll"] is None) == (missing == "one clean")
    assert summarise([found, weighted])["weighting"].startswith("uniform for 1 of 2 documents")


def test_a_question_with_fewer_draws_changes_the_price_of_no_other() -> None:
    scored = score_answers(answer_set(), clustering="exact")
    full = replace(scored, n_clean=20, cluster_ids=(0,) * 41)
    short = replace(scored, n_clean=6, cluster_ids=(0,) * 13)
    prices = prices_of([*[full] * 419, short])
    assert (prices["se"].least, prices["se"].most) == (6, 20)
    assert prices["se"].mean == pytest.approx((419 * 20 + 6) / 420)
    assert str(prices["vase"]) == "39.9 (12-40)"
    assert prices_of([full])["vase"].as_json == 40

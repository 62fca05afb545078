"""Cluster, score, summarise, and the filters around it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import rows_of

from hedge_tasks import AnswerSet, detectors
from hedge_tasks.detectors.builtin.semantic_entropy import discrete_semantic_entropy
from hedge_tasks.detectors.pipeline import prices_of, score_answers, score_clustered, summarise
from hedge_tasks.detectors.registry import names
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.lmms.filters import ClusterFilter, ScoreFilter
from hedge_tasks.measures.standard_measures import known_measures
from hedge_tasks.sampling import Answer
from hedge_tasks.statistics import auroc

METRICS = rows_of(known_measures().values())


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


def test_without_logprobs_the_weights_are_uniform_and_it_says_so() -> None:
    scores = score_answers(answer_set(logprobs=False), clustering="exact")
    assert scores.weighting == "uniform"
    assert scores["se"] == scores["discrete_se"] == detectors.discrete_semantic_entropy([0, 0, 1])
    assert (scores["baseline_nll"], scores["clean_nll"]) == (None, None)


def test_without_noisy_answers_only_vase_is_undefined() -> None:
    scores = score_answers(answer_set(noisy=""), clustering="exact")
    assert scores["vase"] is None
    assert scores["se"] > 0


def test_a_meaning_that_only_the_baseline_has_counts_in_vase() -> None:
    with_it = score_answers(answer_set("bb", "bb", baseline="a"), clustering="exact")
    assert with_it["vase"] == pytest.approx(detectors.vase([1, 1], [1, 1], baseline_id=0))
    assert with_it["vase"] > 0
    assert score_answers(answer_set("bb", "bb", baseline="b"), clustering="exact")["vase"] == 0.0


def test_cluster_ids_that_are_there_are_used() -> None:
    given_ids = answer_set().with_clusters([0, 1, 2, 3, 4, 5, 6])
    assert score_answers(given_ids, clustering="exact")["radflag"] == 1.0


def test_alpha_is_the_weight_of_the_gap() -> None:
    scored = [score_answers(answer_set(), clustering="exact", alpha=alpha)["vase"] for alpha in (0.0, 1.0, 2.0)]
    assert len({*scored}) == 3


@pytest.mark.parametrize("alpha", [math.nan, math.inf])
def test_impossible_numbers_name_the_question(alpha: float) -> None:
    with pytest.raises(DataError, match=r"^q: .*alpha"):
        score_answers(answer_set(), clustering="exact", alpha=alpha)


def test_answers_of_probability_zero() -> None:
    impossible = Answer("a", -math.inf)
    some = AnswerSet("q", Answer("a", -1.0), (impossible, Answer("b", -1.0)), (Answer("a", -1.0),))
    assert score_answers(some, clustering="exact")["se"] == 0.0  # all weight is on "b"
    with pytest.raises(DataError, match=r"^q: .*-inf"):
        score_answers(AnswerSet("q", Answer("a"), (impossible, impossible)), clustering="exact")


def test_clustering_with_the_question_needs_one() -> None:
    with pytest.raises(DataError, match="q: clustering with the question needs a question"):
        score_answers(answer_set(), clustering="exact", with_question=True)


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["a", "ab", "abc"]), st.sampled_from([0, 1])), min_size=2, max_size=16))
def test_auroc_is_a_number_or_a_reason(rows: list[tuple[str, int]]) -> None:
    scores = [score_answers(answer_set(c, "", label=y, id=str(i)), clustering="exact") for i, (c, y) in enumerate(rows)]
    estimate = detection_auroc(scores, "se")
    wrong = sum(y for _, y in rows)
    enough = min(wrong, len(rows) - wrong) >= 5
    assert (estimate.value is not None) == (enough and len({s["se"] for s in scores}) > 1)
    assert (estimate.reason is None) or estimate.value is None or estimate.stderr is None
    vase = detection_auroc(scores, "vase")
    assert (vase.value, vase.reason) == (
        None,
        f"{len(rows)} of {len(rows)} documents have no such score (there are no answers sampled on perturbed images)",
    )


def test_no_labels_no_auroc() -> None:
    summary = summarise([score_answers(answer_set(), clustering="exact")])
    assert summary["auroc"]["se"].reason == "no document has a label"
    assert summary["hallucination_rate"] is None


def test_half_a_run_without_logprobs_is_told() -> None:
    scores = [score_answers(answer_set(logprobs=i > 0, id=str(i)), clustering="exact") for i in range(4)]
    assert summarise(scores)["weighting"].startswith("uniform for 1 of 4 documents")


# --- filters and metrics --------------------------------------------------------------------------------------------


def test_the_two_filters_make_scores_of_answers() -> None:
    resps = [[answer_set(label=1).to_json()], [answer_set("aaa", label=0).to_json()]]
    clustered = ClusterFilter("exact").apply(resps)
    rows = ScoreFilter(alpha=0.5).apply(clustered)
    assert [row.scores.label for row in rows] == [1, 0]
    assert rows[0].scores == score_clustered(clustered[0], alpha=0.5)
    assert json.loads(str(rows[0]))["scores"]["vase"] == rows[0].scores["vase"]
    assert AnswerSet.from_json(str(rows[0])) == clustered[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "nil"}, "unknown clustering backend 'nil', did you mean 'nli'"),
        ({"backend": "embed", "treshold": 0.9}, "'treshold', did you mean 'threshold'"),
        ({"backend": "embed", "threshold": 2}, "threshold must be a number in"),
        ({"backend": "nli", "rule": "lax"}, "'lax'"),
        ({"backend": "exact", "with_question": "yes"}, "with_question: expected true or false, got 'yes'"),
    ],
)
def test_wrong_cluster_options(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ClusterFilter(**options)


@pytest.mark.parametrize("options", [{"alhpa": 1}, {"alpha": "1"}, {"alpha": math.nan}])
def test_wrong_score_options(options: dict) -> None:
    with pytest.raises(ConfigError, match="alpha"):
        ScoreFilter(**options)


def test_an_environment_variable_replaces_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEDGE_NLI_MODEL", "mine")
    assert ClusterFilter("nli", model="theirs").settings()["model"] == "mine"
    assert ClusterFilter("embed", model="theirs").settings()["model"] == "theirs"


def records(metric: str, *labels: int | None) -> list[dict]:
    scored = score_answers(answer_set(), clustering="exact")
    scores = [replace(scored, numbers={"se": float(i)}, label=label, group=str(i)) for i, label in enumerate(labels)]
    return [METRICS[metric].record(s, {"judge": "rule 1", "reason": "because"}, {}) for s in scores]


def test_metrics_leave_out_what_has_no_label_and_count_it() -> None:
    # Scores are the positions: 1 3 5 7 9 of the hallucinated against 0 2 4 6 8.
    labels = (*(0, 1) * 5, None, None)
    se, rate = METRICS["se_auroc"], METRICS["hallucination_rate"]
    assert se(records("se_auroc", *labels)) == 15 / 25
    assert 0 < se.stderr(records("se_auroc", *labels)) < 0.5
    assert rate(records("hallucination_rate", *labels)) == 0.5
    assert rate.stderr(records("hallucination_rate", *labels)) == pytest.approx((0.25 / 10) ** 0.5)
    assert METRICS["unlabelled_rate"](records("unlabelled_rate", *labels)) == pytest.approx(1 / 6)


def test_a_score_that_only_knows_the_kind_of_question_is_found_out() -> None:
    # All "hard" questions score 1 and are mostly wrong, all "easy" ones score 0 and are mostly right.
    scored = score_answers(answer_set(), clustering="exact")
    kinds = [("hard", 1.0, y) for y in (1, 1, 1, 0) * 2] + [("easy", 0.0, y) for y in (0, 0, 0, 1) * 2]
    scores = [
        replace(scored, numbers={**scored, "se": x}, label=y, parent=kind, group=str(i))
        for i, (kind, x, y) in enumerate(kinds)
    ]

    def value(metric: str) -> object:
        return METRICS[metric]([METRICS[metric].record(s, {}, {}) for s in scores])

    assert value("se_auroc") == 0.75
    assert value("se_auroc_within") == 0.5
    assert summarise(scores)["auroc_within_question_types"]["se"].value == 0.5
    without = [replace(s, parent=None) for s in scores]
    assert (
        summarise(without)["auroc_within_question_types"]["se"].reason
        == "not every unit has a parent, such as a kind of question"
    )


@pytest.mark.parametrize("labels", [(0, 0), (1, 1), (None, None)])
def test_an_undefined_metric_is_a_reason_not_a_number(labels: tuple) -> None:
    value = METRICS["se_auroc"](records("se_auroc", *labels))
    assert isinstance(value, str)
    assert value.startswith("undefined: ")
    assert METRICS["se_auroc"].stderr(records("se_auroc", *labels)) == "N/A"


def test_no_record_looks_like_a_number_to_lmms_eval() -> None:
    # It would average bare numbers and fields called "score" into a meaningless standard error.
    [clustered] = ClusterFilter("exact").apply([[answer_set(label=1).to_json()]])
    scores = score_clustered(clustered, detectors=names())
    for metric in METRICS.values():
        record = metric.record(scores, {"judge": "rule", "reason": ""}, {})
        assert isinstance(record, dict)
        assert "score" not in record


def test_published_semantic_entropies_through_the_whole_path(shared_data: Path) -> None:
    """Every answer its own cluster, as the published run has it; 4 questions x 10 answers."""
    questions = json.loads((shared_data / "samples" / "triviaqa_10samples_token_loglik_4q.json").read_text())
    for question in questions:
        clean = tuple(Answer(s["answer"], s["mean_logprob"]) for s in question["samples"])
        sets = AnswerSet(question["question_id"], Answer("?"), clean).with_clusters(range(len(clean) + 1))
        published = next(v for k, v in question.items() if "entropy" in k)
        assert score_clustered(sets)["se"] == pytest.approx(published, abs=1e-6)


# --- held-out documents and missing log-probabilities ----------------------------------------------------------------


def test_rates_are_about_all_documents_and_an_auroc_about_those_not_held_out() -> None:
    scored = score_answers(answer_set(), clustering="exact")
    # With the two held-out ones the AUROC would be 0.5, and without them the rate of hallucinations 0.5 as well.
    rows = [*[(0.0, 0, False)] * 5, *[(1.0, 1, False)] * 5]
    rows += [*[(0.0, 1, True)] * 5, *[(-1.0, 1, True)] * 5, *[(0.5, None, False)] * 5]
    scores = [
        replace(scored, numbers={**scored, "se": x}, label=y, held_out=out, parent="open", group=str(i))
        for i, (x, y, out) in enumerate(rows)
    ]

    def value(metric: str) -> object:
        return METRICS[metric]([METRICS[metric].record(s, {}, {}) for s in scores])

    assert value("se_auroc") == value("se_auroc_within") == 1.0
    assert value("hallucination_rate") == 3 / 4
    assert value("unlabelled_rate") == 1 / 5
    summary = summarise(scores)
    assert (summary["n"], summary["n_labelled"], summary["n_held_out"]) == (25, 20, 10)
    assert summary["hallucination_rate"] == 3 / 4
    assert (summary["auroc"]["se"].value, summary["auroc"]["se"].n) == (1.0, 10)
    assert summary["auroc_within_question_types"]["se"].n_pairs == 25


def test_all_held_out_leaves_rates_and_no_auroc() -> None:
    scored = score_answers(answer_set(), clustering="exact")
    scores = [replace(scored, numbers={"se": float(i)}, label=i, held_out=True, group=str(i)) for i in (0, 1)]
    assert METRICS["se_auroc"]([METRICS["se_auroc"].record(s, {}, {}) for s in scores]).startswith("undefined")
    rate, unlabelled = METRICS["hallucination_rate"], METRICS["unlabelled_rate"]
    assert rate([rate.record(s, {}, {}) for s in scores]) == 0.5
    assert unlabelled([unlabelled.record(s, {}, {}) for s in scores]) == 0.0


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


def test_equal_entropies_tie() -> None:
    """2 2 2 2 2 and 1 1 1 1 2 4 of ten answers have one entropy, ln 5; in floats two, in the fifteenth digit."""
    even, uneven = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [0, 1, 2, 3, 4, 4, 5, 5, 5, 5]
    values = [discrete_semantic_entropy(ids) for ids in (even, uneven, uneven[::-1], [9 - i for i in even])]
    assert len(set(values)) == 1
    assert values[0] == pytest.approx(math.log(5), abs=1e-11)
    assert auroc([values[0], values[1]], [0, 1]) == 0.5

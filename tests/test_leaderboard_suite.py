"""A suite's own numbers on the leaderboard: what is submitted, what is verified, and ways to tamper with it."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import board_rules, on_board, suite_run
from tampered_submissions import match_blind

from hedge_tasks.data.manifests import Data, Digests, Manifest, grouping_digest, text_digest
from hedge_tasks.leaderboard import build_site, check, make_submission, read_entries, write_submission
from hedge_tasks.leaderboard.chain import check_with_texts, prove_run
from hedge_tasks.leaderboard.columns import columns_of
from hedge_tasks.leaderboard.comparison import Counted, sum_pairs
from hedge_tasks.leaderboard.submission import aggregates_of, answer_set_of, digest_of, stored_scores, summary_of
from hedge_tasks.leaderboard.suite import documents_in, metrics_of, suite_fields
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.measures.run_measures import compare_documents, documents_of, estimate_of, numbers_of_run, sums_of
from hedge_tasks.runs.run_files import Run, read_run, save_run
from hedge_tasks.statistics import compare_sums, ratio
from hedge_tasks.statistics.base import FloatArray

Json = dict[str, Any]

REFUSED, REPORTED, MISSED = "refused", "self-reported", "not noticed"


@dataclass(frozen=True)
class World:
    run: Run
    with_texts: Json
    without_texts: Json

    def manifests(self, task: str) -> list[Manifest]:
        known = {
            a.id: Digests(
                text_digest(a.question), text_digest(a.reference), grouping_digest(a.group, a.question_type), None
            )
            for a in self.run.answer_sets
        }
        return [Manifest((task,), Data("package://nowhere/data", None, "test", None), known)]

    @property
    def rules(self) -> Json:
        return {**board_rules(self.without_texts), "manifests": self.manifests}

    def check(self, submission: Json) -> ValidationFindings:
        return check(submission, **self.rules)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    run = read_run(save_run(on_board(suite_run(40, wrong=0.35)), tmp_path_factory.mktemp("run")))
    return World(run, make_submission(run, texts=True), make_submission(run, texts=False))


# --- what is submitted ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_numbers_are_the_runs(made: World) -> None:
    for submission in (made.with_texts, made.without_texts):
        findings = made.check(submission)
        assert (findings.problems, findings.set_aside) == ((), ())
        for metric, found in numbers_of_run(made.run):
            told = submission["suite"][metric.name]
            assert told["value"] == pytest.approx(found.value, abs=1e-6)
            assert [told["low"], told["high"]] == pytest.approx(found.interval, abs=1e-6)
            assert (told["title"], told["n"]) == (metric.title, found.n)
    assert all(part.verified for part in made.check(made.with_texts).suite.values())
    assert not any(part.verified for part in made.check(made.without_texts).suite.values())
    for submission in (made.with_texts, made.without_texts):
        assert prove_run(submission, made.run).problems == ()
    lent = check_with_texts(made.without_texts, made.run, **made.rules)
    assert lent.labels.verified
    assert all(part.verified for part in lent.suite.values())


def test_records_have_no_texts(made: World) -> None:
    assert made.without_texts["documents"][3]["suite"]["f1"] == {"said": 0, "truth": 1, "row": "1"}


def test_a_number_that_a_run_does_not_record_is_submitted_as_undefined(made: World) -> None:
    bare = make_submission(replace(made.run, columns={}), texts=True)
    assert bare["suite"]["f1"]["value"] is None
    assert "does not keep truth" in bare["suite"]["f1"]["reason"]
    assert made.check(bare).problems == ()


def test_a_metric_that_is_not_installed_is_self_reported_and_of_a_known_task_refused(made: World) -> None:
    other = copy.deepcopy(made.with_texts)
    other["suite"]["own_f1"] = {**other["suite"]["f1"], "value": 0.99, "title": "<b>F1</b>"}
    for document in other["documents"]:
        document["suite"]["own_f1"] = document["suite"]["f1"]
    other["digest"] = digest_of(other)
    findings = check(other, manifests=made.manifests)
    assert findings.problems == ()
    assert not findings.suite["own_f1"].verified
    assert "no metric of this name" in findings.suite["own_f1"].reason
    assert made.check(other).problems == (
        "suite.own_f1: no metric of this name is installed here for the task's suite",
    )


# --- tampers ----------------------------------------------------------------------------------------------------------


def number(key: str, value: Any) -> Callable[[Json], None]:
    def change(submission: Json) -> None:
        submission["suite"]["f1"][key] = value

    return change


def leave_out(submission: Json) -> None:
    del submission["suite"]["f1"]


def leave_out_with_records(submission: Json) -> None:
    leave_out(submission)
    for document in submission["documents"]:
        del document["suite"]["f1"]


def call_undefined(submission: Json) -> None:
    leave_out_with_records(submission)
    told = {**submission["suite"]["accuracy"], "title": "F1", "reason": "the run does not record it", "n": 0}
    submission["suite"]["f1"] = {**told, **dict.fromkeys(("value", "stderr", "low", "high")), "n_groups": 0}


def of_wrong_documents(change: Callable[[Json, Json], None]) -> Callable[[Json], None]:
    """Change the records, and whatever else, of the documents with a wrong verdict."""

    def tamper(submission: Json) -> None:
        for document in submission["documents"]:
            if document["label"] == 1:
                for record in document["suite"].values():
                    change(document, record)

    return tamper


def say_the_truth(document: Json, record: Json) -> None:
    if record["said"] is not None:
        record["said"] = record["truth"]


def say_the_truth_and_label_so(document: Json, record: Json) -> None:
    say_the_truth(document, record)
    document["label"] = 0
    document["judged"]["category"] = ("factual", "hallucinated")[record["truth"]]


def say_it_in_the_answer_too(document: Json, record: Json) -> None:
    say_the_truth_and_label_so(document, record)
    if "texts" in document:
        document["texts"]["answers"][0] = ("factual", "hallucinated")[record["truth"]]


def reply_it_too(document: Json, record: Json) -> None:
    say_it_in_the_answer_too(document, record)
    if "texts" in document:
        document["texts"]["reply"] = f"So the answer is {record['truth']}."


def leave_out_replies(submission: Json) -> None:
    of_wrong_documents(say_the_truth_and_label_so)(submission)
    for document in submission["documents"]:
        document.get("texts", {}).pop("reply", None)


def turn_the_truth(document: Json, record: Json) -> None:
    if record["said"] is not None:
        record["truth"] = record["said"]
    document["label"] = 0


def say_nothing(document: Json, record: Json) -> None:
    record["said"] = None


def say_nothing_unlabelled(document: Json, record: Json) -> None:
    record["said"] = None
    document["label"] = document["judged"]["category"] = None


def rows_of_their_own(submission: Json) -> None:
    for i, document in enumerate(submission["documents"]):
        for record in document["suite"].values():
            record["row"] = str(i)


def some_records_only(submission: Json) -> None:
    for document in submission["documents"]:
        if document["label"] == 1:
            del document["suite"]["f1"]


def no_numbers(submission: Json) -> None:
    for document in submission["documents"]:
        document["suite"]["f1"] = {"said": "1", "truth": "1", "row": document["group"]}


@dataclass(frozen=True)
class Tamper:
    """What is done, and what comes of it with texts, without, and with the run file."""

    name: str
    change: Callable[[Json], None]
    outcomes: tuple[str, str, str]
    follow: bool = True

    def of(self, submission: Json) -> Json:
        changed = copy.deepcopy(submission)
        self.change(changed)
        if self.follow:
            matched(changed)
        return {**changed, "digest": digest_of(changed)}


def matched(submission: Json) -> None:
    """Make everything follow from the records and labels, as an able forger would."""
    for metric in metrics_of(submission):
        if documents := documents_in(submission, metric):
            try:
                submission["suite"][metric.name] = suite_fields(metric, estimate_of(metric, documents))
            except Exception:
                continue
    submission["summary"] = summary_of(
        [answer_set_of(document) for document in submission["documents"]], submission["documents"]
    )
    for name, of in submission["clusterings"].items():
        of["aggregates"] = aggregates_of(stored_scores(submission, name))
    match_blind(submission)


TAMPERS = [
    Tamper("a number of the suite raised", number("value", 0.99), (REFUSED,) * 3, follow=False),
    Tamper("its interval narrowed", number("low", 0.66), (REFUSED,) * 3, follow=False),
    Tamper("its direction turned", number("higher_is_better", False), (REFUSED,) * 3, follow=False),
    Tamper("it left out, with its records in place", leave_out, (REFUSED,) * 3),
    Tamper("it left out, and its records", leave_out_with_records, (MISSED, MISSED, REFUSED)),
    Tamper("it called undefined", call_undefined, (REPORTED, REPORTED, REFUSED)),
    Tamper("records changed to what is right", of_wrong_documents(say_the_truth), (REFUSED,) * 3),
    Tamper("records and labels changed", of_wrong_documents(say_the_truth_and_label_so), (REFUSED, REPORTED, REFUSED)),
    Tamper(
        "records, labels and answers changed",
        of_wrong_documents(say_it_in_the_answer_too),
        (REFUSED, REPORTED, REFUSED),
    ),
    Tamper(
        "records, labels, answers and replies changed", of_wrong_documents(reply_it_too), (REFUSED, REPORTED, REFUSED)
    ),
    Tamper("records and labels changed, replies left out", leave_out_replies, (REFUSED, REPORTED, REFUSED)),
    Tamper("the truth changed to what was said", of_wrong_documents(turn_the_truth), (REFUSED,) * 3),
    Tamper("wrong verdicts called unreadable", of_wrong_documents(say_nothing), (REFUSED,) * 3),
    Tamper("wrong verdicts unreadable and unlabelled", of_wrong_documents(say_nothing_unlabelled), (REFUSED,) * 3),
    Tamper("every record a group of its own", rows_of_their_own, (REFUSED,) * 3),
    Tamper("records of some documents only", some_records_only, (REFUSED,) * 3),
    Tamper("records of another form", no_numbers, (REFUSED,) * 3),
]


def outcome(findings: ValidationFindings) -> str:
    if findings.problems:
        return REFUSED
    part = findings.suite.get("f1")
    return MISSED if part is None or (part.verified) else REPORTED


@pytest.mark.slow
@pytest.mark.parametrize("tamper", TAMPERS, ids=[tamper.name for tamper in TAMPERS])
def test_a_tamper_has_the_outcome_that_is_told(made: World, tamper: Tamper) -> None:
    with_texts, without = tamper.of(made.with_texts), tamper.of(made.without_texts)
    found = [outcome(made.check(submission)) for submission in (with_texts, without)]
    found.append(REFUSED if prove_run(without, made.run).problems else found[1])
    assert tuple(found) == tamper.outcomes, made.check(with_texts).problems


def test_the_readme_tells_these_outcomes() -> None:
    text = (resources.files("hedge_tasks.leaderboard") / "README.md").read_text("utf-8")
    table = text.split("## A suite's own numbers\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$", table, re.MULTILINE)
    told = {name: tuple(of) for name, *of in rows if set(of) <= {REFUSED, REPORTED, MISSED}}
    assert told == {tamper.name: tamper.outcomes for tamper in TAMPERS}


@pytest.mark.slow
def test_entries_are_compared_as_runs_are() -> None:
    runs = [suite_run(60, seed=1, wrong=0.2, mute=0.1), suite_run(60, seed=2, wrong=0.4)]
    runs[1] = replace(runs[1], answer_sets=runs[1].answer_sets[::-1])
    columns = [columns_of(make_submission(run)) for run in runs]
    for metric in sums_of(runs[0].settings):
        expected = compare_documents(metric, *(documents_of(run, metric) for run in runs))
        found = sum_pairs([of.counted(metric.name) for of in columns], metric.statistic)
        assert expected is not None
        assert (found.difference[0, 1], found.stderr[0, 1]) == pytest.approx(
            (expected.difference, expected.stderr), rel=1e-9
        )
        assert found.p_values[0, 1] == pytest.approx(expected.p_value)
        assert found.n[0, 1] == expected.n


@pytest.mark.slow
def test_two_hundred_entries_are_compared_without_a_pass_over_each_pair() -> None:
    """20,000 pairs of 1,000 documents: a page of the site."""
    passes = 0

    def counted_ratio(sums: FloatArray) -> FloatArray:
        nonlocal passes
        passes += 1
        return ratio(sums)

    chance, ids = np.random.default_rng(0), np.arange(1000)
    entries = [Counted(ids, chance.integers(2, size=(1000, 2)).astype(float), ids // 2) for _ in range(200)]
    found = sum_pairs(entries, counted_ratio)
    assert passes <= 3 * len(entries)
    a, b = entries[3], entries[150]
    expected = compare_sums(a.parts, b.parts, (ids // 2).tolist(), ratio)
    assert (found.difference[3, 150], found.stderr[3, 150]) == pytest.approx((expected.difference, expected.stderr))


# --- the site ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_site_ranks_by_them_first_and_compares_in_pairs(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    runs = {
        name: on_board(suite_run(60, seed=seed, wrong=wrong, model=name))
        for seed, (name, wrong) in enumerate({"good": 0.1, "bad": 0.5, "middling": 0.3}.items())
    }
    for name, run in runs.items():
        write_submission(folder / f"{name}.json", make_submission(run, texts=True))
    built = read_entries(folder, **board_rules(make_submission(runs["good"])))
    assert built.refused == {}
    build_site(built, tmp_path / "site")
    pages = {path.name: path.read_text("utf-8") for path in (tmp_path / "site").glob("*.html")}
    first = min((name for name in pages if name.startswith("task-own-medhallu")), key=len)
    assert "F1" in re.findall(r'aria-current="page"><span[^>]*>([^<]+)<', pages[first])
    assert list(dict.fromkeys(re.findall(r'href="entry-(\w+?)-', pages[first]))) == ["good", "middling", "bad"]
    assert re.findall(r'class="rank" data-value="(\d)"', pages[first]) == ["1", "1", "2"]
    assert '"difference":[' in pages[first]
    [entry] = (name for name in pages if name.startswith("entry-good-"))
    own = pages[entry].split("The suite&#39;s own numbers")[-1]
    value = make_submission(runs["good"])["suite"]["f1"]["value"]
    assert f"{value:.3f}" in own.split("ROC-AUC")[0]
    assert "value recomputed" in own

"""Numbers of SHALE, VOPE and Med-HallMark on the leaderboard: read again from the texts, or self-reported with why."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, board_rules, on_board
from tampered_submissions import match_blind

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.manifests import Data, Digests, Manifest, grouping_digest, text_digest
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.config import verdict_record
from hedge_tasks.judging.rule import RuleJudge
from hedge_tasks.leaderboard import check, make_submission
from hedge_tasks.leaderboard.chain import prove_run
from hedge_tasks.leaderboard.submission import aggregates_of, answer_set_of, digest_of, stored_scores, summary_of
from hedge_tasks.leaderboard.suite import documents_in, metrics_of, suite_fields
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.measures.run_measures import estimate_of
from hedge_tasks.runs.run_files import Run, read_run, save_run
from hedge_tasks.suites.shale.judge import ShaleJudge
from hedge_tasks.suites.vope.judge import VopeJudge
from hedge_tasks.suites.vope.objects import recheck_records, story_scores, story_verdict

Json = dict[str, Any]


def run_of(
    evaluation: str,
    sets: list[AnswerSet],
    verdicts: dict[str, Any],
    judge: dict[str, Any],
    columns: dict[str, Any],
    metrics: tuple[str, ...],
) -> Run:
    documents = {"evaluation": evaluation, "judge": judge}
    settings = {"filters": {"exact": EXACT["exact"]}, "documents": documents, "metrics": list(metrics)}
    run = Run(f"own_{evaluation}", "model", tuple(sets), verdicts, settings, "2026-01-02T03:04:05", columns=columns)
    return on_board(run)


# --- SHALE ------------------------------------------------------------------------------------------------------------

CHOICE = "What is it? (A) a pear (B) a plum (C) a fig (D) a kiwi"
REPLIES = ("Yes.", "I'm sorry, I cannot see it.", "No, there is none.", "<think>Yes?</think>No")


def shale_run() -> Run:
    judge, sets, columns, verdicts = ShaleJudge(), [], {}, {}
    for i in range(24):
        scenario, task = ("clean", "crp")[i % 2], ("ynq", "mcq")[i // 2 % 2]
        question, truth = ("Is it a pan?", "Yes") if task == "ynq" else (CHOICE, "(B) a plum")
        reply = REPLIES[i // 3 % 4] if task == "ynq" else ("B", "The answer is C.", "(B) a plum")[i // 4 % 3]
        case = Case(f"{i // 2}-{scenario}", question, truth, reply)
        [verdict] = judge.judge([case])
        text = verdict.category or "unreadable"
        about = {"question": question, "reference": truth, "label": verdict.label, "group": str(i // 4)}
        baseline, drawn = Answer(text, -0.1, 1, "stop"), (Answer(text, -0.1, 1), Answer("no", -0.1, 1))
        sets.append(AnswerSet(case.id, baseline, drawn, drawn, **about, question_type=scenario))
        verdicts[case.id] = verdict_record(case, verdict)
        columns[case.id] = {"task": task, "scenario": scenario, "pair": str(i // 2), "group": str(i // 4)}
    metrics = ("accuracy_average", "accuracy_clean", "resistance_image", "resistance_rate")
    return run_of("shale", sets, verdicts, judge.settings(), columns, metrics)


# --- VOPE -------------------------------------------------------------------------------------------------------------


def vope_run() -> Run:
    judge, sets, verdicts, columns = VopeJudge(), [], {}, {}
    for i in range(12):
        story = Answer("A dog sits on a bench. A zebra dreams.", -0.1, 9, "stop")
        replies = {
            "dog": "Yes.",
            "bench": ("Yes", "No, there is no bench.")[i % 2],
            "zebra": ("No", "Yes, a zebra")[i % 3 == 0],
        }
        told = AnswerSet(
            f"s{i}", story, (story,), (story,), question="Write.", reference="bench, dog", group=f"i{i // 2}"
        )
        rechecks = [
            AnswerSet(
                f"s{i}/{word}",
                Answer(reply),
                (Answer(reply),),
                question=f"a {word}",
                reference=("yes", "no")[word == "zebra"],
            )
            for word, reply in replies.items()
        ]
        told = told.with_follow_ups(rechecks)
        records = recheck_records(told, judge)
        verdict = story_verdict(records, judge.name, judge.version)
        objects = {"objects": [one.to_dict() for one in records], "story": story_scores(told)}
        sets.append(told.with_label(verdict.label))
        verdicts[told.id] = {**verdict.to_dict(), "judge": "vope 3", **objects}
        columns[told.id] = {"truth": "bench, dog"}
    return run_of(
        "vope", sets, verdicts, judge.settings(), columns, ("hal_d", "hal_i", "exp", "chair_i", "chair_s", "cover")
    )


# --- Med-HallMark -----------------------------------------------------------------------------------------------------


def medhallmark_run() -> Run:
    judge, sets, verdicts = RuleJudge(), [], {}
    for i in range(12):
        answer, truth = ("Yes.", "No.", "the left lung")[i % 3], ("yes", "no", "the right lung")[i % 3 if i % 4 else 0]
        case = Case(f"conventional-{i}", "Is it so?", truth, answer)
        [verdict] = judge.judge([case])
        baseline = Answer(answer, -0.1, 1, "stop")
        about = {"question": case.question, "reference": truth, "label": verdict.label, "group": str(i // 2)}
        sets.append(AnswerSet(case.id, baseline, (baseline,), (baseline,), **about))
        verdicts[case.id] = verdict_record(case, verdict)
    metrics = ("medihall", "accuracy", "accuracy_unread_wrong", "rouge1_f1", "rougel_f1", "bleu")
    return run_of("medhallmark", sets, verdicts, judge.settings(), {}, metrics)


RUNS: dict[str, Callable[[], Run]] = {"shale": shale_run, "vope": vope_run, "medhallmark": medhallmark_run}


def checked(submission: Json, run: Run) -> ValidationFindings:
    known = {
        a.id: Digests(
            text_digest(a.question), text_digest(a.reference), grouping_digest(a.group, a.question_type), None
        )
        for a in run.answer_sets
    }
    manifests = [Manifest((run.task,), Data("package://nowhere/data", None, "test", None), known)]
    return check(submission, **{**board_rules(submission), "manifests": lambda task: manifests})


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[Run, Json, Json]]:
    runs = {name: run() for name, run in RUNS.items()}
    return {
        name: (run, make_submission(run, texts=True), make_submission(run, texts=False)) for name, run in runs.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("suite", RUNS)
def test_what_follows_from_texts_is_verified(
    made: dict[str, tuple[Run, Json, Json]], suite: str, tmp_path: Path
) -> None:
    run, with_texts, without = made[suite]
    found = checked(with_texts, run)
    assert found.problems == ()
    verified = {name for name, part in found.suite.items() if part.verified}
    assert set(with_texts["suite"]) - verified == ({"medihall"} if suite == "medhallmark" else set())
    assert found.labels.verified is (suite != "vope")
    bare = checked(without, run)
    assert bare.problems == ()
    assert not any(part.verified for part in bare.suite.values())
    assert "texts" not in str(without["documents"])
    saved = read_run(save_run(run, tmp_path))
    for submission in (make_submission(saved, texts=True), make_submission(saved, texts=False)):
        assert prove_run(submission, saved).problems == ()


@pytest.mark.slow
def test_the_reply_itself_is_submitted_and_read_again(made: dict[str, tuple[Run, Json, Json]]) -> None:
    run, with_texts, _ = made["shale"]
    replies = [document["texts"]["reply"] for document in with_texts["documents"]]
    assert set(REPLIES) <= set(replies)
    other = copy.deepcopy(with_texts)
    for document in other["documents"]:
        document["texts"]["reply"] = "Yes, (B)."
    other = {**other, "digest": digest_of(other)}
    assert any("judged.category: stated" in text for text in checked(other, run).problems)


def forged(submission: Json, change: Callable[[Json], None]) -> Json:
    """Changed, with everything made to follow from the records and labels."""
    other = copy.deepcopy(submission)
    change(other)
    for metric in metrics_of(other):
        other["suite"][metric.name] = suite_fields(metric, estimate_of(metric, documents_in(other, metric)))
    other["summary"] = summary_of([answer_set_of(document) for document in other["documents"]], other["documents"])
    for name, of in other["clusterings"].items():
        of["aggregates"] = aggregates_of(stored_scores(other, name))
    match_blind(other)
    return {**other, "digest": digest_of(other)}


def all_right(submission: Json) -> None:
    for document in submission["documents"]:
        if document["label"] == 1:
            document["label"], document["judged"]["category"] = 0, "yes"
            for record in document["suite"].values():
                for of in (record, *(part for part in record.values() if isinstance(part, dict))):
                    if of.get("right") is not None:
                        of["right"] = 1


def no_hallucination(submission: Json) -> None:
    for document in submission["documents"]:
        document["label"] = 0
        for name in ("hal_d", "hal_i"):
            document["suite"][name]["part"] = 0


def good_words(submission: Json) -> None:
    for document in submission["documents"]:
        document["suite"]["rouge1_f1"]["value"] = 0.9


def other_objects(submission: Json) -> None:
    for document in submission["documents"]:
        document["texts"]["follow_ups"].pop()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "change", "said"),
    [
        ("shale", all_right, "the judge 'shale' says 1"),
        ("vope", no_hallucination, "the replies say 1, but the label is 0"),
        ("vope", other_objects, "the rechecks are not those of the story's objects"),
        ("medhallmark", good_words, "the texts say"),
    ],
)
def test_forged_records_are_refused_where_the_texts_are_there(
    made: dict[str, tuple[Run, Json, Json]], suite: str, change: Callable[[Json], None], said: str
) -> None:
    run, with_texts, _ = made[suite]
    found = checked(forged(with_texts, change), run)
    assert any(said in text for text in found.problems), found.problems


def test_what_a_model_read_or_judged_is_self_reported(made: dict[str, tuple[Run, Json, Json]]) -> None:
    run, _, _ = made["shale"]
    behind = {**ShaleJudge().settings(), "fallback": {"judge": "llm"}}
    other = replace(run, settings={**run.settings, "documents": {**run.settings["documents"], "judge": behind}})
    found = checked(make_submission(other, texts=True), other)
    assert found.problems == ()
    assert "with a model behind it" in found.labels.reason
    assert not any(part.verified for part in found.suite.values())
    assert "with a model behind it" in found.suite["accuracy_clean"].reason
    judge = {**VopeJudge().settings(), "presence": "embedding"}
    run = made["vope"][0]
    other = replace(run, settings={**run.settings, "documents": {**run.settings["documents"], "judge": judge}})
    found = checked(make_submission(other, texts=True), other)
    assert not found.suite["hal_d"].verified
    assert "the judge's reading" in found.suite["hal_d"].reason

"""Thoughts and control tokens of free answers reach neither judge nor clustering, in any task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.judging import Case, build_judge
from hedge_tasks.lmms.own_task.task import OptionTask
from hedge_tasks.lmms.reasoning import changed, spoken
from hedge_tasks.lmms.task import HedgeTask
from hedge_tasks.perturb import Wording
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.suites.medhallu.task import MedHalluTask


def test_the_judge_sees_what_was_said() -> None:
    task = SimpleNamespace(judge=build_judge("rule"), answers_are_free=True)
    texts = ["<think>Is it right? No.</think>left</s>", "<think>It is left", "right", "Answer: left"]
    cases = [Case(str(i), "Which side?", "left", text) for i, text in enumerate(texts)]
    judged = HedgeTask.judge_cases(task, cases, [])  # type: ignore[arg-type]
    assert [verdict.label for verdict, _ in judged] == [0, None, 1, 0]


def test_a_judge_that_reads_replies_itself_gets_them_as_they_were_written() -> None:
    task = SimpleNamespace(judge=build_judge("medhallu"), answers_are_free=False)
    case = Case("1", "q", "1", "Answer: 1\n\nNote it.")
    [(verdict, _)] = HedgeTask.judge_cases(task, [case], [])  # type: ignore[arg-type]
    assert verdict.raw == case.answer
    assert HedgeTask.__new__(HedgeTask).answers_are_free
    assert not MedHalluTask.__new__(MedHalluTask).answers_are_free


def test_answers_are_compared_without_thoughts_and_plain_ones_are_left_alone() -> None:
    plain = AnswerSet("1", Answer("left"), (Answer("left"),), (Answer("right"),))
    assert changed(plain, lambda answer, _: spoken(answer)) is plain
    thinking = AnswerSet("1", Answer("<think>a</think>left", -0.5), (Answer("left<|im_end|>"),), (Answer("<think>b"),))
    read = changed(thinking, lambda answer, _: spoken(answer))
    assert [answer.text for answer in read.answers] == ["left", "left", ""]
    assert read.baseline.mean_logprob == -0.5


def test_replies_with_options_are_compared_by_what_their_letters_mean() -> None:
    task: Any = SimpleNamespace(judge=build_judge("option"))
    asked = Wording("Which? (A) dark Blue (B) red")
    said = [Answer(text, finish="stop") for text in ("(B)", "A. dark blue", "?")]
    assert [OptionTask.read_answer(task, a, asked).text for a in said] == ["red", "dark blue", UNREADABLE]

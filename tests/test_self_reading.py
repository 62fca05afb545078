"""Replies that the model reads itself: what is asked, and what decides."""

from __future__ import annotations

import math

import pytest

from hedge_tasks.data.answers import READ, Answer, AnswerSet
from hedge_tasks.judging import Case
from hedge_tasks.replies.reading import MODEL
from hedge_tasks.suites.shale.judge import ShaleJudge

QUESTION = "Which? (A) red (B) blue"


def answered(number: int, reply: str, **logprobs: float) -> AnswerSet:
    forced = {f"{READ}{option}": Answer(option, value, 1) for option, value in logprobs.items()}
    return AnswerSet(str(number), Answer(reply), (Answer("x"),), question=QUESTION, reference="(A) red", forced=forced)


@pytest.mark.framework
def test_rules_are_the_second_opinion() -> None:
    from hedge_tasks.lmms.self_reading import self_read

    a, b = {"A": math.log(0.9), "B": math.log(0.1)}, {"A": math.log(0.2), "B": math.log(0.3)}
    sets = [
        answered(0, "(A)", **a),
        answered(1, "(A)", **b),
        answered(2, "Something of a warm hue, surely.", **a),
        answered(3, "I'm sorry, but I can't help with that.", **a),
        answered(4, "(B)"),
        answered(5, "(B)", A=-1.0, B=-1.0),
        # The rules read nothing, and then only softly; p = .6 decides neither, p = .9 confirms.
        answered(6, "Something of a cool hue, surely.", **b),
        answered(7, "There is a blue one.", **b),
        answered(8, "There is a red one.", **a),
    ]
    judge = ShaleJudge()
    cases = [Case(s.id, QUESTION, "(A) red", s.baseline.text) for s in sets]
    judged = [(verdict, {"kept": verdict.reason}) for verdict in judge.judge(cases)]
    found, counts = self_read(judge, cases, sets, judged)
    assert counts == {"agree": 2, "decided": 1, "unsure": 2, "declined": 1, "differ": 1}
    verdicts = [verdict for verdict, _ in found]
    assert [verdict.label for verdict in verdicts] == [0, None, 0, None, 1, 1, None, None, 0]
    assert verdicts[1].category == judge.unread
    assert "the rules read 'A', the model itself reads 'B' (p = 0.600)" in verdicts[1].reason
    assert "p = 0.900" in verdicts[2].reason
    assert (verdicts[2].raw, verdicts[2].category) == (sets[2].baseline.text, "A")
    assert verdicts[7].reason.endswith("the model itself reads 'B' (p = 0.600), and is not sure")
    assert verdicts[8].basis == MODEL
    assert [verdicts[i] for i in (0, 3, 4, 5)] == [judged[i][0] for i in (0, 3, 4, 5)]
    assert [more for _, more in found] == [more for _, more in judged]

"""Scripted models whose replies are right, or none, whatever their style, before the judge of every suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from hedge_tasks.judging import Case, build_judge

READABLE: Mapping[str, Callable[[str], str]] = {
    "perfect": "{}".format,
    "verbose": "Thank you for the question! Let me look at it step by step.\n\nI weighed what speaks for each side.\n\n"
    "**Final answer:** {}\n\nLet me know if you have any other questions.".format,
    "thinking": "<think>\nIs it 0 or 1? Yes or no? (A) or (B)? Final answer: 1, no, (A). Wait.\n</think>\n\n{}".format,
    "json": '{{"reason": "1 of 0, (A), yes, no", "answer": "{}"}}'.format,
    "boxed": "So we get $\\boxed{{\\text{{{}}}}}$.".format,
}
"""Models that are always right, each in its own style."""

UNREADABLE: Mapping[str, Callable[[str], tuple[str, bool]]] = {
    "refusing": lambda right: ("I'm sorry, but I can't assist with that. I am not able to view images.", False),
    "cut": lambda right: ("Let me think about this carefully. The first thing to note is that the", True),
    "unfinished thought": lambda right: (f"<think>\nThe answer is {right}.\n\n{right}", False),
    "doubting": lambda right: ("It is hard to say; it depends.", False),
    "silent": lambda right: ("", False),
}
"""Models that never answer: their replies, and whether they were cut off."""

CHOICE = "What is it? (A) a pear (B) a plum (C) a fig (D) a kiwi"
ASKED = [
    *(("medhallu", "q", truth, truth) for truth in "01"),
    *(("shale", "Is the object a pan?", truth, truth) for truth in ("Yes", "No")),
    *(("shale", CHOICE, truth, said) for truth in ("(A) a pear", "(D) a kiwi") for said in (truth, truth[1])),
    *(("vope", "a dog", truth, truth.capitalize()) for truth in ("yes", "no")),
]
"""Judge, question, reference, and what is right to say."""


@pytest.mark.parametrize("style", READABLE)
def test_a_model_that_is_right_is_right_in_every_style(style: str) -> None:
    for name, question, reference, right in ASKED:
        [verdict] = build_judge(name).judge([Case("1", question, reference, READABLE[style](right))])
        assert verdict.label == 0, (name, right)


@pytest.mark.parametrize("model", UNREADABLE)
def test_a_model_that_never_answers_has_no_label(model: str) -> None:
    for name, question, reference, right in ASKED:
        reply, cut = UNREADABLE[model](right)
        [verdict] = build_judge(name).judge([Case("1", question, reference, reply, cut=cut)])
        assert (verdict.label, verdict.category) == (None, "unreadable" if name == "shale" else None), name

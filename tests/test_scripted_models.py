"""Scripted models whose numbers are known beforehand, on every suite that reads replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from rows import rows_of

from hedge_tasks.judging import Case, Verdict
from hedge_tasks.replies.reading import UNREADABLE
from hedge_tasks.suites.medhallu import measures as medhallu
from hedge_tasks.suites.medhallu.judge import MedHalluJudge
from hedge_tasks.suites.shale import measures as shale
from hedge_tasks.suites.shale.judge import ShaleJudge
from hedge_tasks.suites.vope import measures as vope
from hedge_tasks.suites.vope.judge import VopeJudge
from hedge_tasks.suites.vope.objects import ObjectRecord

MEDHALLU, SHALE, VOPE = (rows_of(suite.MEASURES) for suite in (medhallu, shale, vope))

N = 40

READABLE: Mapping[str, Callable[[str], str]] = {
    "perfect": "{}".format,
    "verbose": "Thank you for the question! Let me look at it step by step.\n\nI weighed what speaks for each side.\n\n"
    "**Final answer:** {}\n\nLet me know if you have any other questions.".format,
    "thinking": "<think>\nIs it 0 or 1? Yes or no? (A) or (B)? Final answer: 1, no, (A). Wait.\n</think>\n\n{}".format,
    "json": '{{"reason": "1 of 0, (A), yes, no", "answer": "{}"}}'.format,
    "boxed": "So we get $\\boxed{{\\text{{{}}}}}$.".format,
}
"""Models that are always right, each in its own style."""

UNREADABLE_MODELS: Mapping[str, Callable[[str], tuple[str, bool]]] = {
    "refusing": lambda right: ("I'm sorry, but I can't assist with that. I am not able to view images.", False),
    "cut": lambda right: ("Let me think about this carefully. The first thing to note is that the", True),
    "unfinished thought": lambda right: (f"<think>\nThe answer is {right}.\n\n{right}", False),
    "doubting": lambda right: ("It is hard to say; it depends.", False),
    "silent": lambda right: ("", False),
}
"""Models that never answer: their replies, and whether they were cut off."""


# --- MedHallu ---------------------------------------------------------------------------------------------------------

DOCUMENTS = [{"id": str(i), "truth": str(i % 2), "row": str(i // 2), "difficulty": "easy"} for i in range(N)]


def medhallu(said: Sequence[tuple[str, bool]], *names: str) -> list[Any]:
    """Rows of the table for replies to the documents, with the reply as the only sample."""
    judge = MedHalluJudge()
    cases = [Case(d["id"], "q", d["truth"], reply, cut=cut) for d, (reply, cut) in zip(DOCUMENTS, said, strict=True)]
    sampled = [[judge.read(reply, cut=cut) or UNREADABLE] for reply, cut in said]
    verdicts = [verdict.to_dict() for verdict in judge.judge(cases)]
    scores = SimpleNamespace(label=None, group=None)
    documents = [{**d, "sampled": s} for d, s in zip(DOCUMENTS, sampled, strict=True)]
    return [
        MEDHALLU[name]([MEDHALLU[name].record(scores, v, d) for v, d in zip(verdicts, documents, strict=True)])
        for name in names
    ]


# --- SHALE ------------------------------------------------------------------------------------------------------------

CHOICE = "What is it? (A) a pear (B) a plum (C) a fig (D) a kiwi"
ITEMS = [("Is the object a pan?", "Yes" if i % 2 else "No") for i in range(N // 2)]
ITEMS += [(CHOICE, ("(A) a pear", "(B) a plum", "(C) a fig", "(D) a kiwi")[i % 4]) for i in range(N // 2)]


def shale(said: Sequence[tuple[str, bool]], *names: str) -> list[Any]:
    cases = [
        Case(str(i), question, truth, reply, cut=cut)
        for i, ((question, truth), (reply, cut)) in enumerate(zip(ITEMS, said, strict=True))
    ]
    verdicts = [verdict.to_dict() for verdict in ShaleJudge().judge(cases)]
    document = {"scenario": "clean", "group": "g", "pair": "p", "aspect": "type"}
    scores = SimpleNamespace(label=None, group=None)
    return [SHALE[name]([SHALE[name].record(scores, v, document) for v in verdicts]) for name in names]


# --- VOPE -------------------------------------------------------------------------------------------------------------

PRESENT = [i % 4 != 0 for i in range(N)]


def vope(said: Sequence[tuple[str, bool]], *names: str) -> list[Any]:
    """Rows of the table where story i has one object, a dog, that is in image i or not."""
    verdicts: list[Verdict] = VopeJudge().judge(
        [
            Case(str(i), "a dog", "yes" if present else "no", reply, cut=cut)
            for i, (present, (reply, cut)) in enumerate(zip(PRESENT, said, strict=True))
        ]
    )
    stories = [
        ObjectRecord("dog", "dog", p, v.category, False, "", None, None, kind_official=v.votes[1].category).to_dict()
        for p, v in zip(PRESENT, verdicts, strict=True)
    ]
    return [
        VOPE[name]([VOPE[name].record(SimpleNamespace(group=str(i), id=str(i)), {"objects": [s]}, {}) for i, s in rows])
        for name in names
        for rows in [list(enumerate(stories))]
    ]


# --- all --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", READABLE)
def test_a_model_that_is_right_is_right_in_every_style(style: str) -> None:
    def said(truths: Iterable[str]) -> list[tuple[str, bool]]:
        return [(READABLE[style](truth), False) for truth in truths]

    right = said(d["truth"] for d in DOCUMENTS)
    names = ("f1", "accuracy", "f1_unread_wrong", "response_rate", "hallucinated_share_auroc")
    assert medhallu(right, *names) == [1.0] * len(names)
    assert medhallu(right, "unreadable_rate", "sampled_unreadable_rate") == [0, 0]
    if style in ("thinking", "json"):
        # What the reference code makes of the same replies: every one of them contains a 1.
        assert medhallu(right, "recall_official", "accuracy_official") == [1.0, 0.5]
    for options in ([truth for _, truth in ITEMS], [truth[1] if truth[0] == "(" else truth for _, truth in ITEMS]):
        assert shale(said(options), "accuracy_clean", "accuracy_clean_read", "unreadable_rate") == [1.0, 1.0, 0]
    seen = said("Yes" if present else "No" for present in PRESENT)
    names = ("hal_d", "hal_i", "exp", "unread_rate", "hal_d_unread_wrong", "hal_i_unread_wrong")
    assert vope(seen, *names) == [0, 0, N // 4 / N, 0, 0, 0]


@pytest.mark.parametrize("model", UNREADABLE_MODELS)
def test_a_model_that_never_answers_has_no_score(model: str) -> None:
    def said(truths: Iterable[str]) -> list[tuple[str, bool]]:
        return [UNREADABLE_MODELS[model](truth) for truth in truths]

    mute = said(d["truth"] for d in DOCUMENTS)
    assert medhallu(mute, "response_rate", "unreadable_rate", "sampled_unreadable_rate") == [0, 1, 1]
    assert medhallu(mute, "f1_unread_wrong", "accuracy_unread_wrong") == [0, 0]
    assert shale(said(truth for _, truth in ITEMS), "accuracy_clean", "unreadable_rate") == [0, 1.0]
    blind = said("Yes" if present else "No" for present in PRESENT)
    assert vope(blind, "unread_rate", "hal_d_unread_wrong", "hal_i_unread_wrong") == [1, 1, 1]
    undefined = [*medhallu(mute, "f1", "hallucinated_share_auroc"), *vope(blind, "hal_d", "hal_i", "exp")]
    undefined += shale(said(truth for _, truth in ITEMS), "accuracy_clean_read")
    assert all(value.startswith("undefined") for value in undefined)
    # To the reference code each of these replies is an answer.
    assert isinstance(vope(blind, "exp_official")[0], float)

"""Relevance of tokens: how much less an answer says what it said when one of them is left out."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.data.answers import Answer
from hedge_tasks.detectors.evidence import Cosines, Relevances, placed_cosines

Asked = tuple[str | None, Sequence[Answer]]
"""A question and answers to it."""


def token_relevances(asked: Sequence[Asked], cosines: Cosines) -> list[list[Relevances | None]]:
    r"""Log-probability and relevance of each token of answers; None for an answer whose tokens are not known.

    .. math::
        R_t = 1 - \max\bigl(0, \cos(x \circ y, \; x \circ y \setminus \{y_t\})\bigr)

    Duan et al. 2024, with the cosine of an embedding where they have a cross-encoder. The question x stands before
    both, so that what repeats it has little relevance.

    Args:
        asked: questions with their answers.
        cosines: called once with the different texts of all answers, in pairs.

    Returns:
        For each question a list in the order of its answers.

    Example:
        >>> import numpy as np
        >>> answer = Answer("a cyst", -0.5, 2, tokens=(("a", -0.25), (" cyst", -0.75)))
        >>> kept = lambda pairs: [np.array([[1.0, shorter == "cyst"], [0.0, 1.0]]) for _, shorter in pairs]
        >>> token_relevances([(None, [answer, Answer("a cyst")])], kept)
        [[((-0.25, 0.0), (-0.75, 1.0)), None]]
    """
    pairs = [[_pairs(question, answer) for answer in answers] for question, answers in asked]
    flat = [pair for of_question in pairs for of_answer in of_question for pair in of_answer]
    place = {pair: i for i, pair in enumerate(dict.fromkeys(flat))}
    told = placed_cosines(list(place), cosines) if place else []

    def relevance(pair: tuple[str, str]) -> float:
        return 1.0 - max(0.0, float(told[place[pair]][0, 1]))

    return [
        [
            None
            if answer.tokens is None
            else tuple((p, relevance(pair)) for (_, p), pair in zip(answer.tokens, of_answer, strict=True))
            for answer, of_answer in zip(answers, of_question, strict=True)
        ]
        for (_, answers), of_question in zip(asked, pairs, strict=True)
    ]


def _pairs(question: str | None, answer: Answer) -> list[tuple[str, str]]:
    """The whole text, and the text without each token in turn."""
    texts = [text for text, _ in answer.tokens or ()]
    before = f"{question} " if question else ""

    def behind(kept: Sequence[str]) -> str:
        return (before + "".join(kept).strip()).strip()

    return [(behind(texts), behind([*texts[:t], *texts[t + 1 :]])) for t in range(len(texts))]

"""Relevance of tokens: how much less an answer says what it said when one of them is left out."""

from __future__ import annotations

from collections.abc import Sequence

from hedge_tasks.data.answers import Answer
from hedge_tasks.detectors.evidence import Cosines, Relevances, placed_cosines

QuestionAndAnswers = tuple[str | None, Sequence[Answer]]


def token_relevances(questions: Sequence[QuestionAndAnswers], cosines: Cosines) -> list[list[Relevances | None]]:
    r"""Return log-probability and relevance of each token of answers; None for an answer whose tokens are not known.

    .. math::
        R_t = 1 - \max\bigl(0, \cos(x \circ y, \; x \circ y \setminus \{y_t\})\bigr)

    Duan et al. 2024, with the cosine of an embedding where they have a cross-encoder. The question x stands before
    both, so that what repeats it has little relevance.

    Args:
        questions: With their answers.
        cosines: Called once with the different texts of all answers, in pairs.

    Returns:
        For each question a list in the order of its answers.

    Example:
        >>> import numpy as np
        >>> answer = Answer("a cyst", -0.5, 2, tokens=(("a", -0.25), (" cyst", -0.75)))
        >>> kept = lambda pairs: [np.array([[1.0, shorter == "cyst"], [0.0, 1.0]]) for _, shorter in pairs]
        >>> token_relevances([(None, [answer, Answer("a cyst")])], kept)
        [[((-0.25, 0.0), (-0.75, 1.0)), None]]
    """
    pairs = [[_pairs(question, answer) for answer in answers] for question, answers in questions]
    flat = [pair for by_answer in pairs for answer_pairs in by_answer for pair in answer_pairs]
    place = {pair: i for i, pair in enumerate(dict.fromkeys(flat))}
    matrices = placed_cosines(list(place), cosines) if place else []

    def relevance(pair: tuple[str, str]) -> float:
        return 1.0 - max(0.0, float(matrices[place[pair]][0, 1]))

    return [
        [
            None
            if answer.tokens is None
            else tuple((p, relevance(pair)) for (_, p), pair in zip(answer.tokens, answer_pairs, strict=True))
            for answer, answer_pairs in zip(answers, by_answer, strict=True)
        ]
        for (_, answers), by_answer in zip(questions, pairs, strict=True)
    ]


def _pairs(question: str | None, answer: Answer) -> list[tuple[str, str]]:
    """Return the whole text, and the text without each token in turn."""
    texts = [text for text, _ in answer.tokens or ()]
    before = f"{question} " if question else ""

    def joined(tokens: Sequence[str]) -> str:
        return (before + "".join(tokens).strip()).strip()

    return [(joined(texts), joined([*texts[:t], *texts[t + 1 :]])) for t in range(len(texts))]

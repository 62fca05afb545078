"""The words of an answer: without thoughts, as lmms-eval takes them out for its own tasks, and without labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lmms_eval.api.reasoning import strip_reasoning_tags

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.replies import spoken_text

Tags = Sequence[Sequence[str]]
"""Pairs of an opening and a closing tag, such as <think> and </think>."""


def without_reasoning(answers: AnswerSet, tags: Tags) -> AnswerSet:
    """Answers and follow-ups without what stands between the tags."""
    if not tags:
        return answers
    stripped = changed(answers, lambda answer, _: replace(answer, text=strip_reasoning_tags(answer.text, tags)))
    return stripped.with_follow_ups([without_reasoning(further, tags) for further in answers.follow_ups])


def spoken(answer: Answer) -> Answer:
    """Return the answer without thoughts, control tokens and labels; the very same object where nothing had to go."""
    text = spoken_text(answer.text)
    return answer if text == answer.text else replace(answer, text=text)


def changed(answers: AnswerSet, change: Callable[[Answer, int | None], Answer]) -> AnswerSet:
    """Return the set with each answer changed; the very same object where none is another one.

    Args:
        change: of an answer, and the number of its noisy draw, None for the others.
    """
    n = 1 + len(answers.clean)
    new = [change(answer, i - n if i >= n else None) for i, answer in enumerate(answers.answers)]
    if all(before is after for before, after in zip(answers.answers, new, strict=True)):
        return answers
    return replace(answers, baseline=new[0], clean=tuple(new[1:n]), noisy=tuple(new[n:]))

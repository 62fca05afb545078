"""Answers that decline: labels of another tool are none of theirs, for a model that declines says nothing false."""

from __future__ import annotations

from dataclasses import replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.option_order import options_in
from hedge_tasks.replies import read_option
from hedge_tasks.replies.declining import declining_option, unanswered
from hedge_tasks.replies.reading import DECLINING


def why_declined(answers: AnswerSet) -> str | None:
    """Why a baseline is no answer, by its words or by those of the option that it takes; None where it is one."""
    text = answers.baseline.text
    why = unanswered(text)
    if why in DECLINING:
        return why
    options = {option.letter: option.text for option in options_in(answers.question or "")}
    letter = read_option(text, options, cut=answers.baseline.finish == "length").value if options else None
    return None if letter is None or letter == answers.reference else declining_option(options[letter])


def without_false_label(answers: AnswerSet) -> AnswerSet:
    """Return the answers of a file without a label that calls a baseline hallucinated that declines."""
    return replace(answers, label=None) if answers.label == 1 and why_declined(answers) else answers

"""Answers that say nothing, and so nothing false: another tool's label that calls them hallucinated is none."""

from __future__ import annotations

from dataclasses import replace

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.option_order import options_in
from hedge_tasks.data.thoughts import NO_END
from hedge_tasks.data.words import words
from hedge_tasks.replies import read_option
from hedge_tasks.replies.declining import declining_option, unanswered


def is_cut(answer: Answer) -> bool:
    """Whether an answer had become too long, or its thought has no end."""
    return answer.finish == "length" or answer.no_logprob == NO_END


def why_no_answer(answers: AnswerSet) -> str | None:
    """Why a baseline is no answer, by its words or by those of the option that it takes; None where it is one.

    A word of the question is an answer, as "unclear" is to "Is the outline clear or unclear?".
    """
    text, cut, question = answers.baseline.text, is_cut(answers.baseline), answers.question or ""
    if text.strip(" .!").casefold() not in words(question) and (why := unanswered(text, cut=cut)):
        return why
    options = {option.letter: option.text for option in options_in(question)}
    letter = read_option(text, options, cut=cut).value if options else None
    return None if letter is None or letter == answers.reference else declining_option(options[letter])


def without_false_label(answers: AnswerSet) -> AnswerSet:
    """Return the answers of a file without a label that calls a baseline hallucinated that says nothing."""
    return replace(answers, label=None) if answers.label == 1 and why_no_answer(answers) else answers

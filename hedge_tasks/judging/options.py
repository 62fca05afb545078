"""The judge of multiple-choice questions whose lettered options stand in the question. No model is asked."""

from __future__ import annotations

from typing import ClassVar

from hedge_tasks.data.option_order import options_in
from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.reply_judge import ReplyJudge
from hedge_tasks.replies import Reading, official, read_option
from hedge_tasks.replies.parsing import HEDGE, OFFICIAL
from hedge_tasks.replies.reading import NOTHING


class OptionJudge(ReplyJudge):
    """Label 0 where the reply takes the right option, 1 where it takes another, None where it takes none.

    The options are those that `data.option_order.options_in` finds in the question, the reference is the letter of the
    right one. The verdict's `category` is a letter.
    """

    name = "option"
    version = "8"
    prompts: ClassVar[tuple[str, ...]] = ("reply_option",)

    def reading(self, parsing: str, case: Case) -> Reading:
        return read_reply(parsing, case.answer, case.question, cut=case.cut)

    def truth(self, case: Case) -> str:
        letter = case.reference.strip().upper()
        if letter not in options_of(case.question):
            raise DataError(f"{case.id}: {case.reference!r} is no option of {case.question[:80]!r}")
        return letter


def read_reply(parsing: str, reply: str, question: str, *, cut: bool = False) -> Reading:
    """The letter of the option that a reply takes.

    Args:
        parsing: "hedge", or "official": the first letter in brackets, as SHALE's code reads it.
    """
    if parsing == HEDGE:
        return read_option(reply, options_of(question), cut=cut)
    letter = official.shale_choice(reply)
    return Reading(letter, OFFICIAL if letter is not None else NOTHING)


def options_of(question: str) -> dict[str, str]:
    """Text of each option by its letter; empty without options."""
    return {option.letter: option.text for option in options_in(question)}

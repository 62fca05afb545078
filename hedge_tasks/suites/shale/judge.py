"""The judge of SHALE's closed questions: the reply is read and compared. No model is asked."""

from __future__ import annotations

from typing import ClassVar

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import SUPPORTED, Case
from hedge_tasks.judging.reply_judge import ReplyJudge
from hedge_tasks.replies import Reading, official, read_option, read_yes_no
from hedge_tasks.replies.parsing import HEDGE, OFFICIAL
from hedge_tasks.replies.reading import NOTHING, UNREADABLE
from hedge_tasks.runs.relabel import case_of
from hedge_tasks.suites.shale.items import options_of


class ShaleJudge(ReplyJudge):
    """Label 0 where the reply takes the right answer, 1 where it takes another, None where it takes none.

    The verdict's `category` is "yes", "no", a letter or "unreadable". A case's `reference` is "Yes", "No" or an option
    such as "(B) red".
    """

    name = "shale"
    version = "12"
    unread: ClassVar[str | None] = UNREADABLE
    prompts: ClassVar[tuple[str, ...]] = ("reply_yes_no", "reply_option")

    def read(self, reply: str, question: str, *, cut: bool = False) -> str | None:
        """ "yes", "no" or a letter; None where the reply cannot be read."""
        return read(self.parsing, reply, question, cut=cut).value

    def reading(self, parsing: str, case: Case) -> Reading:
        return read(parsing, case.answer, case.question, cut=case.cut)

    def truth(self, case: Case) -> str:
        return right_reading(case)

    def prompt_for(self, case: Case) -> str:
        return self.prompts[bool(options_of(case.question))]


def read(parsing: str, reply: str, question: str, *, cut: bool = False) -> Reading:
    """Read a reply to a yes-or-no or multiple-choice question.

    Args:
        parsing: one of `PARSINGS`.
        question: with the options in it, where it has some.
    """
    options = options_of(question)
    if parsing == HEDGE:
        return read_option(reply, options, cut=cut) if options else read_yes_no(reply, question, cut=cut)
    choice = official.shale_choice(reply) if options else official.shale_yes_no(reply)
    return Reading(choice, OFFICIAL if choice is not None else NOTHING)


def reply_is_right(answers: AnswerSet, parsing: str) -> bool:
    """Whether the baseline reply to a closed question takes the right answer; one that cannot be read, or
    is read only softly, does not.

    Raises:
        DataError: the reference is no answer to the question.
    """
    [verdict] = ShaleJudge(parsing).judge([case_of(answers)])
    return verdict.label == SUPPORTED


def right_reading(case: Case) -> str:
    """Return the value that a reply to the case should be read as.

    Raises:
        DataError: the reference is no answer to the question.
    """
    options = options_of(case.question)
    answer = case.reference.strip().lower() if not options else case.reference[1:2]
    if answer not in (options or ("yes", "no")):
        raise DataError(f"{case.id}: {case.reference!r} is no answer to {case.question[:80]!r}")
    return answer

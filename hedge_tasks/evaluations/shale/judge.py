"""The judge of SHALE's closed questions: the reply is read and compared. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.shale.items import options_of
from hedge_tasks.replies import Reading, official, read_option, read_yes_no
from hedge_tasks.replies.parsing import HEDGE, OFFICIAL, PARSINGS, check_parsing
from hedge_tasks.replies.reading import NOTHING, UNREADABLE


class ShaleJudge:
    """Label 0 where the reply takes the right answer, 1 where it takes another, None where it takes none.

    The verdict's `category` is what was read ("yes", "no", a letter, "unreadable"), its `votes` are both readings, ours
    first; the reason says what a reading rests on.

    Args:
        parsing: "hedge" (`replies.read_yes_no`, `replies.read_option`) or "official" (the reference code's rules).

    Raises:
        ConfigError: there is no such parsing.
    """

    name = "shale"
    version = "2"

    def __init__(self, parsing: str = HEDGE) -> None:
        self.parsing = check_parsing(parsing)

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, "parsing": self.parsing}

    def read(self, reply: str, question: str, *, cut: bool = False) -> str | None:
        """ "yes", "no" or a letter; None where the reply cannot be read."""
        return read(self.parsing, reply, question, cut=cut).value

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case; `reference` is "Yes", "No" or an option such as "(B) red".

        Raises:
            DataError: a reference is none of these; names the case.
        """
        return [self._judge(case) for case in cases]

    def _judge(self, case: Case) -> Verdict:
        votes = {name: self._verdict(name, case) for name in PARSINGS}
        own = votes[self.parsing]
        return replace(own, judge=self.name, raw=case.answer[:2000], votes=tuple(votes.values()))

    def _verdict(self, parsing: str, case: Case) -> Verdict:
        truth = right_reading(case)
        said = read(parsing, case.answer, case.question, cut=case.cut)
        who = (f"{self.name}:{parsing}", self.version)
        if said.value is None:
            return Verdict(None, str(said), *who, UNREADABLE)
        wrong = said.value != truth
        return Verdict(int(wrong), f"{'wrong' if wrong else 'right'}: {said}", *who, said.value)


def read(parsing: str, reply: str, question: str, *, cut: bool = False) -> Reading:
    """What a reply to a yes-or-no or multiple-choice question says.

    Args:
        parsing: one of `PARSINGS`.
        question: with the options in it, where it has some.
    """
    options = options_of(question)
    if parsing == HEDGE:
        return read_option(reply, options, cut=cut) if options else read_yes_no(reply, question, cut=cut)
    said = official.shale_choice(reply) if options else official.shale_yes_no(reply)
    return Reading(said, OFFICIAL if said is not None else NOTHING)


def right_reading(case: Case) -> str:
    """What a reply to the case should be read as.

    Raises:
        DataError: the reference is no answer to the question.
    """
    options = options_of(case.question)
    said = case.reference.strip().lower() if not options else case.reference[1:2]
    if said not in (options or ("yes", "no")):
        raise DataError(f"{case.id}: {case.reference!r} is no answer to {case.question[:80]!r}")
    return said

"""The judge of SHALE's closed questions: the reply is read and compared. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.shale.items import options_of
from hedge_tasks.evaluations.shale.replies import READERS, reader

UNREADABLE = "unreadable"


class ShaleJudge:
    """Label 0 where the reply takes the right answer, 1 where it takes another, None where it takes none.

    The verdict's `category` is what was read ("yes", "no", a letter, "unreadable"), its `votes` are both readings, the
    strict one first.

    Args:
        parsing: "strict" or "official"; see `replies`.

    Raises:
        ConfigError: there is no such parsing.
    """

    name = "shale"
    version = "1"

    def __init__(self, parsing: str = "strict") -> None:
        reader(parsing)
        self.parsing = parsing

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, "parsing": self.parsing}

    def read(self, reply: str, question: str) -> str | None:
        return READERS[self.parsing](reply, question)

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case; `reference` is "Yes", "No" or an option such as "(B) red".

        Raises:
            DataError: a reference is none of these; names the case.
        """
        return [self._judge(case) for case in cases]

    def _judge(self, case: Case) -> Verdict:
        votes = {name: self._verdict(name, case) for name in READERS}
        own = votes[self.parsing]
        return replace(own, judge=self.name, raw=case.answer[:2000], votes=tuple(votes.values()))

    def _verdict(self, parsing: str, case: Case) -> Verdict:
        truth = right_reading(case)
        said = READERS[parsing](case.answer, case.question)
        who = (f"{self.name}:{parsing}", self.version)
        if said is None:
            return Verdict(None, "unreadable: the reply takes no answer, or more than one", *who, UNREADABLE)
        wrong = said != truth
        return Verdict(int(wrong), f"{'wrong' if wrong else 'right'}: {said}", *who, said)


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

"""The judge of SHALE's closed questions: the reply is read and compared. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.adjudication.config import Spec
from hedge_tasks.adjudication.fallback import Fallback
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.evaluations.shale.items import options_of
from hedge_tasks.replies import Reading, official, read_option, read_yes_no
from hedge_tasks.replies.parsing import HEDGE, OFFICIAL, PARSINGS, check_parsing
from hedge_tasks.replies.reading import NOTHING, UNREADABLE

_PROMPTS = ("reply_yes_no", "reply_option")


class ShaleJudge:
    """Label 0 where the reply takes the right answer, 1 where it takes another, None where it takes none.

    The verdict's `category` is what was read ("yes", "no", a letter, "unreadable"), its `votes` are both readings, ours
    first; the reason says what a reading rests on.

    Args:
        parsing: "hedge" (`replies.read_yes_no`, `replies.read_option`) or "official" (the reference code's rules).
        fallback: a judge model that reads baseline replies which the rules cannot (`llm:model=...`); None for none.

    Raises:
        ConfigError: there is no such parsing.
    """

    name = "shale"
    version = "2"

    def __init__(self, parsing: str = HEDGE, fallback: Spec | None = None) -> None:
        self.parsing = check_parsing(parsing)
        self.fallback = None if fallback is None else Fallback(fallback, _PROMPTS)

    def settings(self) -> dict[str, Any]:
        own = {"judge": self.name, "version": self.version, "parsing": self.parsing}
        return own if self.fallback is None else {**own, "fallback": self.fallback.settings()}

    def keep_labels(self, folder: Path | None) -> None:
        if self.fallback is not None:
            self.fallback.keep_labels(folder)

    def check(self, cases_have_images: bool = True) -> None:
        if self.fallback is not None:
            self.fallback.check()

    def read(self, reply: str, question: str, *, cut: bool = False) -> str | None:
        """ "yes", "no" or a letter; None where the reply cannot be read."""
        return read(self.parsing, reply, question, cut=cut).value

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case; `reference` is "Yes", "No" or an option such as "(B) red".

        Raises:
            DataError: a reference is none of these; names the case.
        """
        own = [read(self.parsing, case.answer, case.question, cut=case.cut) for case in cases]
        if self.fallback is not None:
            prompts = [_PROMPTS[bool(options_of(case.question))] for case in cases]
            own = self.fallback.read(list(zip(cases, own, prompts, strict=True)))
        return [self._judge(case, said) for case, said in zip(cases, own, strict=True)]

    def _judge(self, case: Case, said: Reading) -> Verdict:
        votes = [self._verdict(name, case, read(name, case.answer, case.question, cut=case.cut)) for name in PARSINGS]
        own = self._verdict(self.parsing, case, said)
        return replace(own, judge=self.name, raw=case.answer[:2000], votes=tuple(votes))

    def _verdict(self, parsing: str, case: Case, said: Reading) -> Verdict:
        truth = right_reading(case)
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


def reply_is_right(answers: AnswerSet, parsing: str) -> bool:
    """Whether the baseline reply to a closed question takes the right answer; one that cannot be read does not.

    Raises:
        DataError: the reference is no answer to the question.
    """
    reply = answers.baseline
    case = Case(answers.id, answers.question or "", answers.reference or "", reply.text, cut=reply.finish == "length")
    return read(parsing, case.answer, case.question, cut=case.cut).value == right_reading(case)


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

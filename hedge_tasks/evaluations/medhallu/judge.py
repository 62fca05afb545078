"""The judge of MedHallu: a verdict on an answer is itself right or wrong. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.replies import Reading, official, read_verdict
from hedge_tasks.replies.parsing import HEDGE, OFFICIAL, PARSINGS, check_parsing

FACTUAL = "factual"
HALLUCINATED = "hallucinated"
NOT_SURE = "not_sure"

VERDICTS: Mapping[str, int] = {FACTUAL: 0, HALLUCINATED: 1, NOT_SURE: 2}
"""The digit that each verdict is asked for as."""

_NAMES = {str(digit): name for name, digit in VERDICTS.items()}

_LONGEST_RAW = 2000


class MedHalluJudge:
    """Label 1 where the verdict in the reply is wrong, 0 where it is right, None where it is "not sure" or unreadable.

    The verdict's `category` is what was read ("factual", "hallucinated", "not_sure"; None where nothing was), its
    `votes` are both readings, ours first; the reason says what a reading rests on.

    Args:
        parsing: "hedge" (`replies.read_verdict`) or "official" (the reference code's rules).
        not_sure: whether the prompt offers "not sure".

    Raises:
        ConfigError: an option makes no sense.
    """

    name = "medhallu"
    version = "2"

    def __init__(self, parsing: str = HEDGE, not_sure: bool = False) -> None:
        self.parsing = check_parsing(parsing)
        if not isinstance(not_sure, bool):
            raise ConfigError(f"judge 'medhallu': not_sure must be true or false, got {not_sure!r}")
        self.not_sure = not_sure

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, "parsing": self.parsing, "not_sure": self.not_sure}

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case; `reference` is "1" where the answer that was shown is hallucinated, else "0".

        Raises:
            DataError: a reference is neither; names the case.
        """
        return [self._judge(case) for case in cases]

    def read(self, reply: str, *, cut: bool = False) -> str | None:
        """The name of the verdict in a reply."""
        return self._reading(self.parsing, reply, cut).value

    def _reading(self, parsing: str, reply: str, cut: bool) -> Reading:
        if parsing == OFFICIAL:
            return Reading(_NAMES[official.medhallu(reply)], OFFICIAL)
        read = read_verdict(reply, offered="012" if self.not_sure else "01", cut=cut)
        return replace(read, value=_NAMES[read.value]) if read.value is not None else read

    def _judge(self, case: Case) -> Verdict:
        if case.reference not in ("0", "1"):
            raise DataError(f"{case.id}: expected the reference 0 or 1, got {case.reference!r}")
        votes = {name: self._verdict(name, case) for name in PARSINGS}
        own = votes[self.parsing]
        return replace(own, judge=self.name, raw=case.answer[:_LONGEST_RAW], votes=tuple(votes.values()))

    def _verdict(self, parsing: str, case: Case) -> Verdict:
        read = self._reading(parsing, case.answer, case.cut)
        who = (f"{self.name}:{parsing}", self.version)
        if read.value is None:
            return Verdict(None, str(read), *who)
        if read.value == NOT_SURE:
            return Verdict(None, str(read), *who, read.value)
        right = VERDICTS[read.value] == int(case.reference)
        return Verdict(int(not right), f"{'right' if right else 'wrong'}: {read}", *who, read.value)

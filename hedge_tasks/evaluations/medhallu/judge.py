"""The judge of MedHallu: a verdict on an answer is itself right or wrong. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.adjudication.config import Spec
from hedge_tasks.adjudication.fallback import Fallback
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
_PROMPT = "reply_verdict"


class MedHalluJudge:
    """Label 1 where the verdict in the reply is wrong, 0 where it is right, None where it is "not sure" or unreadable.

    The verdict's `category` is what was read ("factual", "hallucinated", "not_sure"; None where nothing was), its
    `votes` are both readings, ours first; the reason says what a reading rests on.

    Args:
        parsing: "hedge" (`replies.read_verdict`) or "official" (the reference code's rules).
        not_sure: whether the prompt offers "not sure".
        fallback: a judge model that reads baseline replies which the rules cannot (`llm:model=...`); None for none.

    Raises:
        ConfigError: an option makes no sense.
    """

    name = "medhallu"
    version = "2"

    def __init__(self, parsing: str = HEDGE, not_sure: bool = False, fallback: Spec | None = None) -> None:
        self.parsing = check_parsing(parsing)
        if not isinstance(not_sure, bool):
            raise ConfigError(f"judge 'medhallu': not_sure must be true or false, got {not_sure!r}")
        self.not_sure = not_sure
        self.fallback = None if fallback is None else Fallback(fallback, [_PROMPT])

    def settings(self) -> dict[str, Any]:
        own = {"judge": self.name, "version": self.version, "parsing": self.parsing, "not_sure": self.not_sure}
        return own if self.fallback is None else {**own, "fallback": self.fallback.settings()}

    def keep_labels(self, folder: Path | None) -> None:
        if self.fallback is not None:
            self.fallback.keep_labels(folder)

    def check(self, cases_have_images: bool = True) -> None:
        if self.fallback is not None:
            self.fallback.check()

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case; `reference` is "1" where the answer that was shown is hallucinated, else "0".

        Raises:
            DataError: a reference is neither; names the case.
        """
        for case in cases:
            if case.reference not in ("0", "1"):
                raise DataError(f"{case.id}: expected the reference 0 or 1, got {case.reference!r}")
        own = [self._reading(self.parsing, case.answer, case.cut) for case in cases]
        if self.fallback is not None:
            own = self.fallback.read([(case, read, _PROMPT) for case, read in zip(cases, own, strict=True)])
            own = [replace(read, value=_NAMES.get(read.value or "", read.value)) for read in own]
        return [self._judge(case, read) for case, read in zip(cases, own, strict=True)]

    def read(self, reply: str, *, cut: bool = False) -> str | None:
        """The name of the verdict in a reply."""
        return self._reading(self.parsing, reply, cut).value

    def _reading(self, parsing: str, reply: str, cut: bool) -> Reading:
        if parsing == OFFICIAL:
            return Reading(_NAMES[official.medhallu(reply)], OFFICIAL)
        read = read_verdict(reply, offered="012" if self.not_sure else "01", cut=cut)
        return replace(read, value=_NAMES[read.value]) if read.value is not None else read

    def _judge(self, case: Case, read: Reading) -> Verdict:
        votes = [self._verdict(name, case, self._reading(name, case.answer, case.cut)) for name in PARSINGS]
        own = self._verdict(self.parsing, case, read)
        return replace(own, judge=self.name, raw=case.answer[:_LONGEST_RAW], votes=tuple(votes))

    def _verdict(self, parsing: str, case: Case, read: Reading) -> Verdict:
        who = (f"{self.name}:{parsing}", self.version)
        if read.value is None:
            return Verdict(None, str(read), *who)
        if read.value == NOT_SURE:
            return Verdict(None, str(read), *who, read.value)
        right = VERDICTS[read.value] == int(case.reference)
        return Verdict(int(not right), f"{'right' if right else 'wrong'}: {read}", *who, read.value)

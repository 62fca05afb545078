"""The judge of MedHallu: a verdict on an answer is itself right or wrong. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hedge_tasks.adjudication.base import Case, Verdict
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.evaluations.medhallu.replies import NOT_SURE, READERS, VERDICTS, reader

_LONGEST_RAW = 2000


class MedHalluJudge:
    """Label 1 where the verdict in the reply is wrong, 0 where it is right, None where it is "not sure" or unreadable.

    The verdict's `category` is what was read ("factual", "hallucinated", "not_sure"; None where nothing was), its
    `votes` are both readings, the strict one first.

    Args:
        parsing: "strict" or "official"; see `replies`.
        not_sure: whether the prompt offers "not sure".

    Raises:
        ConfigError: an option makes no sense.
    """

    name = "medhallu"
    version = "1"

    def __init__(self, parsing: str = "strict", not_sure: bool = False) -> None:
        reader(parsing)
        if not isinstance(not_sure, bool):
            raise ConfigError(f"judge 'medhallu': not_sure must be true or false, got {not_sure!r}")
        self.parsing = parsing
        self.not_sure = not_sure

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, "parsing": self.parsing, "not_sure": self.not_sure}

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case; `reference` is "1" where the answer that was shown is hallucinated, else "0".

        Raises:
            DataError: a reference is neither; names the case.
        """
        return [self._judge(case) for case in cases]

    def read(self, reply: str) -> str | None:
        """The verdict in a reply."""
        return READERS[self.parsing](reply, self.not_sure)

    def _judge(self, case: Case) -> Verdict:
        if case.reference not in ("0", "1"):
            raise DataError(f"{case.id}: expected the reference 0 or 1, got {case.reference!r}")
        votes = {name: self._verdict(name, case) for name in READERS}
        own = votes[self.parsing]
        return Verdict(
            own.label,
            own.reason,
            self.name,
            self.version,
            own.category,
            case.answer[:_LONGEST_RAW],
            tuple(votes.values()),
        )

    def _verdict(self, parsing: str, case: Case) -> Verdict:
        said = READERS[parsing](case.answer, self.not_sure)
        who = (f"{self.name}:{parsing}", self.version)
        if said is None:
            return Verdict(None, "unreadable: the reply states no verdict, or more than one", *who)
        if said == NOT_SURE:
            return Verdict(None, "not sure", *who, said)
        right = VERDICTS[said] == int(case.reference)
        return Verdict(int(not right), f"{'right' if right else 'wrong'}: {said}", *who, said)

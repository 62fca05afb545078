"""The judge of MedHallu: a verdict on an answer is itself right or wrong. No model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging.base import Case
from hedge_tasks.judging.config import Spec
from hedge_tasks.judging.reply_judge import ReplyJudge
from hedge_tasks.replies import Reading, official, read_verdict
from hedge_tasks.replies.parsing import HEDGE, OFFICIAL

FACTUAL = "factual"
HALLUCINATED = "hallucinated"
NOT_SURE = "not_sure"

VERDICTS: Mapping[str, int] = {FACTUAL: 0, HALLUCINATED: 1, NOT_SURE: 2}
"""The digit that each verdict is asked for as."""

_NAMES = {str(digit): name for name, digit in VERDICTS.items()}


class MedHalluJudge(ReplyJudge):
    """Label 1 where the verdict in the reply is wrong, 0 where it is right, None where it is "not sure" or unreadable.

    The verdict's `category` is "factual", "hallucinated", "not_sure", or None where nothing was read.

    Args:
        parsing: "hedge" (`replies.read_verdict`) or "official" (the reference code's rules).
        not_sure: whether the prompt offers "not sure".
        fallback: see `ReplyJudge`.

    Raises:
        ConfigError: an option makes no sense.
    """

    name = "medhallu"
    version = "11"
    undecided: ClassVar[tuple[str, ...]] = (NOT_SURE,)
    prompts: ClassVar[tuple[str, ...]] = ("reply_verdict",)

    def __init__(self, parsing: str = HEDGE, not_sure: bool = False, fallback: Spec | None = None) -> None:
        super().__init__(parsing, fallback)
        if not isinstance(not_sure, bool):
            raise ConfigError(f"judge 'medhallu': not_sure must be true or false, got {not_sure!r}")
        self.not_sure = not_sure

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "not_sure": self.not_sure}

    def read(self, reply: str, *, cut: bool = False) -> str | None:
        """Return the name of the verdict in a reply."""
        return self._read(self.parsing, reply, cut).value

    def reading(self, parsing: str, case: Case) -> Reading:
        return self._read(parsing, case.answer, case.cut)

    def truth(self, case: Case) -> str:
        """ "hallucinated" where the reference is "1": the answer that was shown is. "factual" where it is "0"."""
        if case.reference not in ("0", "1"):
            raise DataError(f"{case.id}: expected the reference 0 or 1, got {case.reference!r}")
        return _NAMES[case.reference]

    def named(self, digit: str) -> str:
        return _NAMES[digit]

    def _read(self, parsing: str, reply: str, cut: bool) -> Reading:
        if parsing == OFFICIAL:
            return Reading(_NAMES[official.medhallu(reply)], OFFICIAL)
        read = read_verdict(reply, offered="012" if self.not_sure else "01", cut=cut)
        return replace(read, value=_NAMES[read.value]) if read.value is not None else read

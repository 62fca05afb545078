"""The common part of judges of closed questions: a reply is read, by rules or else by a model, and compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Judge, Verdict
from hedge_tasks.judging.config import Spec
from hedge_tasks.judging.fallback import Fallback
from hedge_tasks.replies import Reading
from hedge_tasks.replies.parsing import HEDGE, PARSINGS, check_parsing

LONGEST_REPLY = 20_000
"""Characters of a reply that its verdict keeps; thoughts are long, and the answer comes last."""


def reads_replies(settings: object) -> bool:
    """Whether the judge with these settings is one of replies, so that a verdict's `raw` is the reply."""
    return isinstance(settings, Mapping) and "parsing" in settings


class ReplyJudge(ABC):
    """Label 0 where the reply says what is right, 1 where it says something else, None where it says neither.

    A reading that the rest of the reply may take back (`replies.reading.SOFT`) counts where the fallback model reads
    the same, and is counted as unconfirmed where nobody reads more. Without a fallback it is the model itself that says
    what such a reply and an unread one mean, where it was asked (`Case.own`).

    The verdict's `category` is what was read, its `votes` are the readings of every parsing, ours first, `raw` is the
    reply, so that anybody can read it again; the reason says what a reading rests on.

    Attributes:
        unread: category of a reply that cannot be read.
        undecided: categories that are neither right nor wrong.
        prompts: with which a fallback model is asked, one for each kind of reply.
        of_documents: whether a case is a document, and not a part of one.

    Args:
        parsing: "hedge" (`hedge_tasks.replies`) or "official" (the reference code's rules).
        fallback: a judge model that reads baseline replies which the rules cannot, or read only softly
            (`llm:model=...`); None for the model that replied.

    Raises:
        ConfigError: an option makes no sense.
    """

    name: str
    version: str
    unread: ClassVar[str | None] = None
    undecided: ClassVar[tuple[str, ...]] = ()
    prompts: ClassVar[tuple[str, ...]]
    of_documents: ClassVar[bool] = True

    def __init__(self, parsing: str = HEDGE, fallback: Spec | None = None) -> None:
        self.parsing = check_parsing(parsing)
        self.fallback = Fallback(fallback, self.prompts)

    # --- what a judge says of itself ----------------------------------------------------------------------------------

    @abstractmethod
    def reading(self, parsing: str, case: Case) -> Reading:
        """Read the case's reply, on the terms that `category` has."""

    @abstractmethod
    def truth(self, case: Case) -> str:
        """The reading that the reply should have, on the same terms.

        Raises:
            DataError: the reference is no answer to the question; names the case.
        """

    def prompt_for(self, case: Case) -> str:
        """The prompt with which a model reads the reply."""
        return self.prompts[0]

    def named(self, category: str) -> str:
        """The category for what the fallback model says."""
        return category

    # --- what all of them do ------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, "parsing": self.parsing, **self.fallback.settings()}

    @property
    def parts(self) -> Sequence[Judge]:
        return self.fallback.parts

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        """One verdict a case.

        Raises:
            DataError: a reference is no answer to the question; names the case.
        """
        truths = [self.truth(case) for case in cases]
        readings = [self.reading(self.parsing, case) for case in cases]
        replies = [(case, read, self.prompt_for(case)) for case, read in zip(cases, readings, strict=True)]
        if self.fallback.parts or self.parsing == HEDGE:  # as published, nobody asks the model itself
            readings = self.fallback.read(replies, self.named)
        return [self._judged(*parts) for parts in zip(cases, truths, readings, strict=True)]

    def _judged(self, case: Case, truth: str, read: Reading) -> Verdict:
        votes = tuple(self._verdict(parsing, truth, self.reading(parsing, case)) for parsing in PARSINGS)
        own = self._verdict(self.parsing, truth, read)
        return replace(own, judge=self.name, raw=case.answer[:LONGEST_REPLY], votes=votes)

    def _verdict(self, parsing: str, truth: str, read: Reading) -> Verdict:
        who = (f"{self.name}:{parsing}", self.version)
        if read.soft:
            return Verdict(None, f"unconfirmed: {read}", *who, self.unread, basis=read.basis)
        if read.value is None or read.value in self.undecided:
            return Verdict(None, str(read), *who, read.value or self.unread, basis=read.basis)
        label = SUPPORTED if read.value == truth else HALLUCINATED
        return Verdict(label, f"{'wrong' if label else 'right'}: {read}", *who, read.value, basis=read.basis)

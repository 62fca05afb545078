"""The result of a reader: a value and its basis, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

JSON = "json"
FORM = "form"
STATED = "stated"
LINE = "line"
OPENING = "opening"
SAID_BACK = "said back"
LEADING = "leading"
STATEMENT = "statement"
MODEL = "model"
ITSELF = "the model itself"

BASES = {
    JSON: "the answer field of a JSON object",
    FORM: "a ticked box, or the share that each answer is given",
    STATED: "a stated answer: boxed, between answer tags, behind `Final answer:`, `the answer is`, `I choose` ...",
    LINE: "an answer that stands on a line by itself",
    OPENING: "how the reply begins, set off from what follows, and nothing that follows could take it back",
    SAID_BACK: "a sentence that says or denies what was asked, in its words and no others",
    LEADING: "how the reply begins, where what follows says more or something else",
    STATEMENT: "a sentence about what was asked",
    MODEL: "a judge model, asked about what the rules cannot read, or read only softly",
    ITSELF: "the model that replied, by its own distribution over the offered answers behind its reply",
}
"""Bases of a reading, the firmest first."""

SOFT = frozenset({LEADING, STATEMENT})
"""Bases on which a reading needs a second one to count; all others are firm."""

EMPTY = "empty"
FAILED = "failed request"
THOUGHT = "unfinished thought"
REFUSAL = "refusal"
DOUBT = "doubt"
CONTRADICTION = "contradiction"
CUT = "cut off"
NOT_OFFERED = "not offered"
NOTHING = "no answer"
NOTICE = "copyright line"
ECHO = "echo"
UNCONFIRMED = "unconfirmed"
DISAGREED = "disagreement"

REASONS = {
    EMPTY: "there is no letter and no digit in it",
    FAILED: "a text that an adapter puts in the place of a reply",
    THOUGHT: "the reply ends inside its thoughts",
    REFUSAL: "the model declines, or says that it sees no image",
    DOUBT: "the model says that it does not know",
    CONTRADICTION: "two answers, or one that is named and denied",
    CUT: "the reply ends before it says its answer",
    NOT_OFFERED: "an answer that the question does not offer",
    NOTHING: "none of the answers is in it",
    NOTICE: "a copyright line or numbers in the place of an answer",
    ECHO: "only words of the question, or a question or request back",
    UNCONFIRMED: "the rules read it only softly, and nobody read it a second time",
    DISAGREED: "the rules and the model that read it a second time differ",
}
"""Why a reply is unreadable."""

DECLINING = frozenset({REFUSAL, DOUBT, NOTICE, ECHO})
"""Reasons with which the model declined; with any other it may have given an answer that nobody could read."""

UNFINISHED = frozenset({THOUGHT, CUT})
"""Reasons with which the reply ended before it could say an answer: no decision of the model's."""

UNANSWERED = DECLINING | UNFINISHED | {FAILED, EMPTY}
"""Reasons with which there is no answer that anybody could be asked to judge."""

UNSETTLED = SOFT | {NOTHING, CONTRADICTION}
"""Bases and reasons of replies that say something of which words do not settle what it is."""

UNREADABLE = "unreadable"
"""Stands in the place of every sampled reply that cannot be read, so that they are one meaning and no more."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading of one reply.

    Attributes:
        value: the answer; None where the reply is unreadable.
        basis: one of `BASES`, or the reason among `REASONS` where there is no value.
    """

    value: str | None
    basis: str

    @property
    def readable(self) -> bool:
        return self.value is not None

    @property
    def soft(self) -> bool:
        """Whether the reading needs a second one to count."""
        return self.readable and self.basis in SOFT

    def __str__(self) -> str:
        return f"{self.value} ({self.basis})" if self.readable else f"unreadable: {self.basis}"


def unreadable(reason: str) -> Reading:
    """No value, and why.

    Example:
        >>> print(unreadable(REFUSAL))
        unreadable: refusal
    """
    return Reading(None, reason)

"""The interface of every judge: cases in, verdicts out, in the same order.

A judge answers one question: is this baseline answer a hallucination, given the reference? It may decline
(`label=None`), and a caller must expect that: a declined case is left out of the statistics and counted, never given
a default label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hedge_tasks.evaluation import from_evaluations
from hedge_tasks.registry import Registry

HALLUCINATED = 1
SUPPORTED = 0

_OPTIONAL = ("category", "basis", "raw", "key")
NO_ANSWER = "no_answer"
"""Category of declined answers (of `rule`, and of the prompt `hedge`): a verdict without a label."""

JUDGE_UNREAD = "judge unread"
"""Basis of a verdict where a model judge was asked and wrote something that cannot be read."""


@dataclass(frozen=True)
class Case:
    """One answer to judge.

    Attributes:
        id: Of the document.
        question, reference, answer: What was asked, what is true, what the model said. For an object to be rated (VOPE)
            the answer is its name.
        description: What the image shows or what else is known, for judges that are told more than the reference.
        images: Loads the pictures (PIL images, paths or data URLs), for judges that look at them; called once a
            question.
        image_key: What tells these pictures from others, such as a digest; labels are stored under it.
        cut: Whether the answer ended because it had become too long.
        own: The offered answer that the model takes its reply for; see `fallback.own_reading`.
    """

    id: str
    question: str
    reference: str
    answer: str
    description: str | None = None
    images: Callable[[], Sequence[Any]] | None = None
    image_key: str | None = None
    cut: bool = False
    own: str | None = None


@dataclass(frozen=True)
class Verdict:
    """The judgement of one case.

    Attributes:
        label: 1 = hallucinated, 0 = supported, None = this judge cannot tell.
        reason: For a person; a rule judge starts it with the id of the rule, as in `"polar: ..."`.
        judge, version: Who decided. A change that can change labels raises the version.
        category: Kind of hallucination (or of support), for judges that tell.
        basis: What the reading of a reply rests on, or why nothing was read (`replies.BASES`, `replies.REASONS`); None
            where no reply was read.
        raw: What the judge said before it was parsed, for judges that say something; of bounded length.
        votes: The verdicts behind a verdict of several judges.
        key: Under which a label store has it; None where none does. Says nothing about the case.
    """

    label: int | None
    reason: str
    judge: str
    version: str
    category: str | None = None
    raw: str | None = None
    votes: tuple[Verdict, ...] = ()
    key: str | None = field(default=None, compare=False)
    basis: str | None = None

    def __post_init__(self) -> None:
        if self.label not in (None, HALLUCINATED, SUPPORTED):
            raise ValueError(f"a verdict's label is 1, 0 or None, got {self.label!r}")

    def to_dict(self) -> dict[str, Any]:
        """As JSON, without what is not set."""
        fields: dict[str, Any] = {"label": self.label, "reason": self.reason}
        fields |= {"judge": self.judge, "version": self.version}
        fields |= {key: value for key in _OPTIONAL if (value := getattr(self, key)) is not None}
        return fields | ({"votes": [vote.to_dict() for vote in self.votes]} if self.votes else {})


@runtime_checkable
class Judge(Protocol):
    """Anything that judges cases. `settings()` holds all that can change a verdict, ready for JSON."""

    name: str
    version: str

    def judge(self, cases: Sequence[Case]) -> list[Verdict]: ...

    def settings(self) -> dict[str, Any]: ...


JUDGES: Registry[Judge] = Registry(
    "judge",
    "hedge_tasks.judges",
    {
        "rule": "hedge_tasks.judging.rule:RuleJudge",
        "llm": "hedge_tasks.judging.llm:LLMJudge",
        "hf": "hedge_tasks.judging.hf:HFJudge",
        "labels": "hedge_tasks.judging.labels:LabelsJudge",
        "panel": "hedge_tasks.judging.panel:Panel",
        "option": "hedge_tasks.judging.options:OptionJudge",
        "any_of": "hedge_tasks.judging.references:AnyReference",
        "none": "hedge_tasks.judging.references:NoJudge",
    },
    also=from_evaluations("judges"),
)
"""Every judge by name: those that any task may have, those of evaluations and those of other packages."""


def judge_names() -> list[str]:
    """Names that `build_judge` knows."""
    return sorted(JUDGES.names())


def build_judge(name: str, **options: Any) -> Judge:
    """Build a registered judge; a wrong name or option is named together with the nearest valid one."""
    return JUDGES.build(name, **options)

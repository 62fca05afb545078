"""The judge of VOPE: is what the model believes of an object's presence true? No model is asked for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io import options
from hedge_tasks.judging.base import Case, Judge, Verdict, build_judge
from hedge_tasks.judging.config import Spec, parse_spec
from hedge_tasks.judging.reply_judge import ReplyJudge
from hedge_tasks.replies import Reading, official, read_yes_no
from hedge_tasks.replies.parsing import HEDGE, OFFICIAL
from hedge_tasks.replies.reading import NOTHING

TRUE_DESCRIPTION = "true_description"
FALSE_DESCRIPTION = "hallucinated_description"
TRUE_IMAGINATION = "true_imagination"
FALSE_IMAGINATION = "hallucinated_imagination"

SETS = {
    (True, True): TRUE_DESCRIPTION,
    (False, True): FALSE_DESCRIPTION,
    (False, False): TRUE_IMAGINATION,
    (True, False): FALSE_IMAGINATION,
}
"""The four sets of section 3.2 by (the object is in the image, the model says that it is)."""

HALLUCINATED = (FALSE_DESCRIPTION, FALSE_IMAGINATION)


class VopeJudge(ReplyJudge):
    """Label 1 where the model is wrong about an object's presence, 0 where it is right, None where it says neither.

    A case is one recheck: its answer the reply, its reference "yes" where the object is in the image, else "no". The
    verdict's `category` is one of the four `SETS`. The case's question names the object ("a dog"); one about another
    object says nothing about it.

    Args:
        parsing, fallback: see `ReplyJudge`.
        relevance: judge or judges of the relevance of absent objects, with the prompt `vope_relevance`; None for none.
        recheck_temperature: of the rechecks that count; None for that of the baseline story.

    Raises:
        ConfigError: an option makes no sense.
    """

    name = "vope"
    version = "13"
    prompts: ClassVar[tuple[str, ...]] = ("reply_yes_no",)
    of_documents: ClassVar[bool] = False

    def __init__(
        self,
        parsing: str = HEDGE,
        relevance: Spec | None = None,
        fallback: Spec | None = None,
        recheck_temperature: float | None = None,
    ) -> None:
        super().__init__(parsing, fallback)
        self.recheck_temperature = None
        if recheck_temperature is not None:
            self.recheck_temperature = options.number("VOPE: recheck_temperature", recheck_temperature)
        self.relevance = relevance_judges(relevance) if relevance is not None else []

    def settings(self) -> dict[str, Any]:
        relevance = [judge.settings() for judge in self.relevance]
        return {**super().settings(), "recheck_temperature": self.recheck_temperature, "relevance": relevance}

    @property
    def parts(self) -> Sequence[Judge]:
        return [*super().parts, *self.relevance]

    def reading(self, parsing: str, case: Case) -> Reading:
        if parsing == HEDGE:
            return read_yes_no(case.answer, case.question, cut=case.cut)
        answer = official.vope(case.answer)
        return Reading(answer, OFFICIAL if answer is not None else NOTHING)

    def truth(self, case: Case) -> str:
        if case.reference not in ("yes", "no"):
            raise DataError(f"{case.id}: expected the reference yes or no, got {case.reference!r}")
        return case.reference

    def _verdict(self, parsing: str, truth: str, read: Reading) -> Verdict:
        who = (f"{self.name}:{parsing}", self.version)
        if read.value is None or read.soft:
            return Verdict(None, f"unconfirmed: {read}" if read.soft else str(read), *who, basis=read.basis)
        kind = SETS[truth == "yes", read.value == "yes"]
        return Verdict(int(kind in HALLUCINATED), f"the model says {read}", *who, kind, basis=read.basis)


def relevance_judges(spec: Spec) -> list[Judge]:
    """Return the judges of relevance that a specification names.

    Raises:
        ConfigError: one of them does not judge with a prompt of scores 1 to 3; says which prompt does.
    """
    judges = []
    for settings in parse_spec(spec):
        judge = build_judge(**settings)
        if not rates_relevance(judge):
            raise ConfigError(
                f"judge {judge.name!r} does not rate relevance; an llm or hf judge with prompt=vope_relevance does"
            )
        judges.append(judge)
    return judges


def rates_relevance(judge: Judge) -> bool:
    """Whether a judge's verdicts are scores 1, 2 and 3."""
    prompt = getattr(judge, "prompt", None)
    return prompt is not None and {outcome.key for outcome in prompt.outcomes} == {"1", "2", "3"}

"""From a wrong answer that failed to a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hedge_tasks.asking.models import Model
from hedge_tasks.asking.template import load_template
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.medhallu.checks import allowed_length
from hedge_tasks.making.medhallu.questions import SourceQuestion
from hedge_tasks.registry import Registry

_ROOM = "hedge_tasks.making.medhallu"

TOP_P = 0.95
"""Of the paper (section 4)."""


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer with its kind of error, and how it came about."""

    answer: str
    category: str
    error: str
    refined: bool = False


class Refiner(Protocol):
    """Writes the next wrong answer to a question."""

    def refine(
        self,
        question: SourceQuestion,
        failed: WrongAnswer,
        faults: Sequence[str],
        *,
        number: str,
        temperature: float,
        asking: Asking,
    ) -> WrongAnswer | None:
        """A better answer; None where the models said nothing that could be read.

        Args:
            faults: What it failed, in sentences.
            number: Tells apart the attempts at one question.
        """


class CritiqueAndRewrite:
    """As TextGrad does it: one model says what is wrong with a text, and a text is written that answers this.

    Args:
        critic: Says what gives the answer away (the paper: GPT-4o mini).
        generator: Writes the next one.
    """

    def __init__(self, critic: Model, generator: Model) -> None:
        self._critic, self._generator = critic, generator

    def refine(
        self,
        question: SourceQuestion,
        failed: WrongAnswer,
        faults: Sequence[str],
        *,
        number: str,
        temperature: float,
        asking: Asking,
    ) -> WrongAnswer | None:
        shown = {"question": question.question, "true_answer": question.answer}
        fields = {**shown, "wrong_answer": failed.answer, "failed_checks": list(faults)}
        said = asking.ask("critique", self._critic, load_template(_ROOM, "critique"), fields, number=number)
        if said is None:
            return None
        fields = {**told(question), "earlier_answer": failed.answer, "feedback": said["feedback"]}
        prompt = load_template(_ROOM, "rewrite")
        sampling: dict[str, Any] = {"number": number, "temperature": temperature, "top_p": TOP_P}
        return candidate_of(asking.ask("rewrite", self._generator, prompt, fields, **sampling), refined=True)


class Regenerate:
    """Asks for another answer, and says nothing of the one that failed."""

    def __init__(self, critic: Model, generator: Model) -> None:
        self._generator = generator

    def refine(
        self,
        question: SourceQuestion,
        failed: WrongAnswer,
        faults: Sequence[str],
        *,
        number: str,
        temperature: float,
        asking: Asking,
    ) -> WrongAnswer | None:
        return generate(question, self._generator, number=number, temperature=temperature, asking=asking)


REFINERS: Registry[Refiner] = Registry(
    "refiner",
    "hedge_tasks.refiners",
    {"critique": f"{__name__}:CritiqueAndRewrite", "regenerate": f"{__name__}:Regenerate"},
)


def generate(
    question: SourceQuestion, generator: Model, *, number: str, temperature: float, asking: Asking
) -> WrongAnswer | None:
    """A first wrong answer; None where nothing that was said could be read.

    Raises:
        Unfinished: The generator did not reply.
    """
    prompt = load_template(_ROOM, "candidate")
    sampling: dict[str, Any] = {"number": number, "temperature": temperature, "top_p": TOP_P}
    return candidate_of(asking.ask("candidate", generator, prompt, told(question), **sampling))


def told(question: SourceQuestion) -> dict[str, Any]:
    """Return what whoever writes a wrong answer is told of its question."""
    least, most = allowed_length(question.answer)
    return {
        "question": question.question,
        "true_answer": question.answer,
        "knowledge": list(question.knowledge) or None,
        "length": {"least": least, "most": most},
    }


def candidate_of(reply: dict[str, Any] | None, *, refined: bool = False) -> WrongAnswer | None:
    if reply is None:
        return None
    return WrongAnswer(reply["hallucinated_answer"].strip(), reply["category"], reply["error"], refined)

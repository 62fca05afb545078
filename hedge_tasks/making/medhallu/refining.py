"""Refiners: from a wrong answer that failed to a better one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.medhallu.checks import allowed_length
from hedge_tasks.making.medhallu.questions import SourceQuestion
from hedge_tasks.registry import Registry

_ROOM = "hedge_tasks.making.medhallu"

TOP_P = 0.95
"""Nucleus of the sampling (paper: section 4)."""


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer with its kind of error, and how it came about."""

    answer: str
    category: str
    error: str
    refined: bool = False


class Attempt(NamedTuple):
    """An attempt at a wrong answer.

    Attributes:
        question: To be answered wrongly.
        number: Tells apart the attempts at one question.
        temperature: Of the generator.
        asking: Asks the models.
    """

    question: SourceQuestion
    number: str
    temperature: float
    asking: Asking


class Refiner(Protocol):
    """Writes the next wrong answer to a question."""

    def refine(self, attempt: Attempt, failed: WrongAnswer, faults: Sequence[str]) -> WrongAnswer | None:
        """A better answer; None where the models said nothing that could be read.

        Args:
            attempt: The one that the better answer is.
            failed: The answer before.
            faults: What it failed, in sentences.
        """


class CritiqueAndRewrite:
    """As TextGrad does it: one model says what is wrong with a text, and a text is written that answers this.

    Args:
        critic: Says what gives the answer away (the paper: GPT-4o mini).
        generator: Writes the next one.
    """

    def __init__(self, critic: Model, generator: Model) -> None:
        self._critic, self._generator = critic, generator

    def refine(self, attempt: Attempt, failed: WrongAnswer, faults: Sequence[str]) -> WrongAnswer | None:
        fields = {
            "question": attempt.question.question,
            "true_answer": attempt.question.answer,
            "wrong_answer": failed.answer,
            "failed_checks": list(faults),
        }
        prompt = load_template(_ROOM, "critique")
        critique = attempt.asking.ask("critique", self._critic, prompt, fields, number=attempt.number)
        if critique is None:
            return None
        revision = {"earlier_answer": failed.answer, "feedback": critique["feedback"]}
        return _write("rewrite", attempt, self._generator, revision)


class Regenerate:
    """Asks for another answer, and says nothing of the one that failed."""

    def __init__(self, critic: Model, generator: Model) -> None:
        self._generator = generator

    def refine(self, attempt: Attempt, failed: WrongAnswer, faults: Sequence[str]) -> WrongAnswer | None:
        return generate(attempt, self._generator)


REFINERS: Registry[Refiner] = Registry(
    "refiner",
    "hedge_tasks.refiners",
    {"critique": f"{__name__}:CritiqueAndRewrite", "regenerate": f"{__name__}:Regenerate"},
)


def generate(attempt: Attempt, generator: Model) -> WrongAnswer | None:
    """A first wrong answer; None where nothing that was said could be read.

    Raises:
        Unfinished: The generator did not reply.
    """
    return _write("candidate", attempt, generator)


def _write(stage: str, attempt: Attempt, generator: Model, revision: Mapping[str, str] = {}) -> WrongAnswer | None:
    """Ask for a wrong answer; None where the reply cannot be read.

    Args:
        stage: Also the name of the prompt.
        revision: By the prompt's fields what a rewrite starts from.
    """
    question = attempt.question
    least, most = allowed_length(question.answer)
    fields = {
        "question": question.question,
        "true_answer": question.answer,
        "knowledge": list(question.knowledge) or None,
        "length": {"least": least, "most": most},
        **revision,
    }
    reply = attempt.asking.ask(
        stage,
        generator,
        load_template(_ROOM, stage),
        fields,
        number=attempt.number,
        temperature=attempt.temperature,
        top_p=TOP_P,
    )
    if reply is None:
        return None
    return WrongAnswer(reply["hallucinated_answer"].strip(), reply["category"], reply["error"], bool(revision))

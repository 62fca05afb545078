"""Checks of made questions: whether they are questions, whether a rewritten one is the same, and of responses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import Template, load_template
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.controls import CHANGED_QUESTIONS
from hedge_tasks.making.gate.refuse import folded, refused
from hedge_tasks.making.gate.twins import wrong_twin

_RHETORICAL = re.compile(
    r", (?:right|correct|no|yes|ok|(?:is|are|was|were|do|does|did|has|have|can|could|would|should|wo|ca)(?:n't)? "
    r"(?:it|they|there|he|she|this|that|we|one))\s*\?\s*$",
    re.IGNORECASE,
)
_CORRECTS = re.compile(
    r"\b(?:incorrect|wrong|false|untrue|inaccurate|mistaken|erroneous|misleading|not (?:correct|true|right))(?:ly)?\b",
    re.IGNORECASE,
)
_INSTRUCTS = re.compile(
    r"^(?:describe|identify|name|list|specify|state|indicate|determine|tell|explain|characterize|characterise|provide|"
    r"locate|please|give|assess|evaluate|classify|estimate|point|based|considering|looking|from|in|given|with)\b",
    re.IGNORECASE,
)


def instructions_of(prompt: Template) -> str:
    """Return the words that a writer is told: a reply that repeats them was not written."""
    return "\n".join([prompt.system, *(line for part in prompt.turns for line in part.text)])


def no_question(text: str, beside: str, instructions: str) -> str | None:
    """Why a text is no question of its own; None where it may be one.

    Args:
        beside: What it is to be another form of: saying it again is an echo.

    Example:
        >>> no_question("It is, isn't it?", "Is it?", ""), no_question("What is shown?", "What does it show?", "")
        ('rhetorical', None)
    """
    if why := refused(text, "", beside, instructions):
        return why
    if _RHETORICAL.search(text):
        return "rhetorical"
    return None if text.rstrip(" \"'”’)").endswith("?") or _INSTRUCTS.search(text) else "no question"


def no_response(text: str, question: str, instructions: str) -> str | None:
    """Why a text is no response that corrects a premise; None where it may be one.

    Words of correction, which are markers in an answer that is to deceive, are what such a response is made of, and
    that something cannot be told may be all that there is to say: whether it is right is for verifiers.

    Example:
        >>> no_response("Wrong: no kidney is shown.", "How big is it?", ""), no_response("I can't help.", "Is it?", "")
        (None, 'refusal')
    """
    why = refused(_CORRECTS.sub(" ", text), "", question, instructions)
    return None if why == "says nothing definite" else why


def gives_away(text: str, question: str, answer: str) -> bool:
    """Whether a question says its answer, where the one that it was made from does not."""
    words, source, answer_words = (f" {folded(part)} " for part in (text, question, answer))
    return answer_words.strip() not in ("", "yes", "no") and answer_words in words and answer_words not in source


def same_question(
    question: str, answer: str, candidate: str, verifiers: Sequence[Model], asking: Asking
) -> tuple[bool, list[str]]:
    """Whether more than half of the verifiers call a question the same, and how they did on a question that is not.

    Each is also shown the question itself with one word turned into its contrary, where it has such a word.

    Raises:
        Unfinished: A verifier did not reply.
    """
    changed = wrong_twin(question)
    steps, votes = [], 0
    for verifier in verifiers:
        verdict = _same(question, answer, candidate, verifier, asking, "same")
        if verdict and changed is not None:
            detected = _same(question, answer, changed, verifier, asking, "same_control") is False
            steps.append(CHANGED_QUESTIONS.step(verifier.name, right=detected))
            verdict = detected
        votes += verdict is True
    return 2 * votes > len(verifiers), steps


def _same(question: str, answer: str, candidate: str, verifier: Model, asking: Asking, stage: str) -> bool | None:
    fields = {"question": question, "reference": answer, "other": candidate}
    reply = asking.ask(stage, verifier, load_template(__package__, "same"), fields)
    return None if reply is None else bool(reply["same"])

"""Open-book verifiers: the evidence has to contradict a text that is to be wrong, in a sentence that is quoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.asking.models import Model
from hedge_tasks.asking.template import load_template
from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.errors import DataError
from hedge_tasks.making.asking import Asking
from hedge_tasks.statistics.base import wilson

CONTRADICTED, SUPPORTED, UNDECIDED = "contradicted", "supported", "undecided"

LEAST_RIGHT = 0.9
"""Share of controls that a verifier has to get right: truths, which it must find supported."""

_MOST_SENTENCES = 60
_FEWEST_CONTROLS = 10


@dataclass(frozen=True)
class EvidenceVerdict:
    """EvidenceVerdict of one verifier about one text.

    Attributes:
        verifier: Its name.
        verdict: `CONTRADICTED`, `SUPPORTED` or `UNDECIDED`; the last also without a sentence or after a failed control.
        quote: The sentence of the evidence that decides.
        control: Whether it found the truth itself supported; None where it was not asked.
    """

    verifier: str
    verdict: str
    quote: str = ""
    control: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        return {"verifier": self.verifier, "verdict": self.verdict, "quote": self.quote, "control": self.control}


def findings(
    question: str, truth: str, knowledge: Sequence[str], candidate: str, verifiers: Sequence[Model], asking: Asking
) -> tuple[EvidenceVerdict, ...]:
    """Findings of each verifier. One that says "contradicted" is also shown the truth, and must find it supported.

    Raises:
        Unfinished: A verifier did not reply.
    """
    sentences = [s for text in (truth, *knowledge) for s in split_sentences(text)][:_MOST_SENTENCES]
    found = []
    for verifier in verifiers:
        verdict, quote = _ask(question, truth, sentences, candidate, verifier, asking, "verify")
        control = None
        if verdict == CONTRADICTED:
            control = _ask(question, truth, sentences, truth, verifier, asking, "control")[0] == SUPPORTED
            verdict = CONTRADICTED if control and quote else UNDECIDED
        found.append(EvidenceVerdict(verifier.name, verdict, quote, control))
    return tuple(found)


def _ask(
    question: str, truth: str, sentences: Sequence[str], candidate: str, verifier: Model, asking: Asking, stage: str
) -> tuple[str, str]:
    evidence = [f"[{number}] {sentence}" for number, sentence in enumerate(sentences, start=1)]
    fields = {"question": question, "reference": truth, "evidence": evidence, "candidate": candidate}
    reply = asking.ask(stage, verifier, load_template(__package__, "verify"), fields)
    if reply is None:
        return UNDECIDED, ""
    number = reply["sentence"]
    return str(reply["verdict"]), sentences[number - 1] if 1 <= number <= len(sentences) else ""


def outcome(found: Sequence[EvidenceVerdict]) -> str:
    """`CONTRADICTED` where more than half of the verifiers say so and none finds the text supported."""
    said = [finding.verdict for finding in found]
    if SUPPORTED in said:
        return SUPPORTED
    return CONTRADICTED if 2 * said.count(CONTRADICTED) > len(said) else UNDECIDED


def check_controls(controls: Mapping[str, tuple[int, int]]) -> None:
    """Refuse verifiers that do not know a truth when they are shown it.

    Args:
        controls: Truths that were found supported, and all that were shown, by verifier.

    Raises:
        DataError: A verifier is surely below `LEAST_RIGHT`.
    """
    for name, (right, n) in sorted(controls.items()):
        if n >= _FEWEST_CONTROLS and wilson(right / n, n, 0.95)[1] < LEAST_RIGHT:
            raise DataError(
                f"verifier {name} finds {n - right} of {n} true answers not supported by themselves: "
                "nothing that it says is worth anything; take another --verifier"
            )

"""Open-book verifiers: the evidence has to contradict a text that is to be wrong, in a sentence that is quoted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.controls import TRUTHS

CONTRADICTED, SUPPORTED, UNDECIDED = "contradicted", "supported", "undecided"

_MOST_SENTENCES = 60


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


def evidence_verdicts(
    question: str, truth: str, knowledge: Sequence[str], candidate: str, verifiers: Sequence[Model], asking: Asking
) -> tuple[EvidenceVerdict, ...]:
    """Findings of each verifier. One that says "contradicted" is also shown the truth, and must find it supported.

    Raises:
        Unfinished: A verifier did not reply.
    """
    sentences = [s for text in (truth, *knowledge) for s in split_sentences(text)][:_MOST_SENTENCES]
    verdicts = []
    for verifier in verifiers:
        verdict, quote = _ask(question, truth, sentences, candidate, verifier, asking, "verify")
        control = None
        if verdict == CONTRADICTED:
            control = _ask(question, truth, sentences, truth, verifier, asking, "control")[0] == SUPPORTED
            verdict = CONTRADICTED if control and quote else UNDECIDED
        verdicts.append(EvidenceVerdict(verifier.name, verdict, quote, control))
    return tuple(verdicts)


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


def outcome(verdicts: Sequence[EvidenceVerdict]) -> str:
    """`CONTRADICTED` where more than half of the verifiers say so and none finds the text supported."""
    names = [finding.verdict for finding in verdicts]
    if SUPPORTED in names:
        return SUPPORTED
    return CONTRADICTED if 2 * names.count(CONTRADICTED) > len(names) else UNDECIDED


def confirmed(verdicts: Sequence[EvidenceVerdict]) -> bool:
    """Whether more than half of the verifiers find a text supported, and none contradicted."""
    names = [finding.verdict for finding in verdicts]
    return CONTRADICTED not in names and 2 * names.count(SUPPORTED) > len(names)


def control_steps(verdicts: Iterable[EvidenceVerdict]) -> list[str]:
    """Steps of one question: which verifiers that were shown its truth found it supported, each verifier once."""
    controls = sorted({(v.verifier, v.control) for v in verdicts if v.control is not None})
    return [TRUTHS.step(name, right=right) for name, right in controls]

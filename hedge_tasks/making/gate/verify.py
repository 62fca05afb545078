"""Open-book verifiers: the evidence has to contradict a text that is to be wrong, in a sentence that is quoted.

A verifier is believed about a text if it knows two controls: the truth in other words, which is supported, and the
truth wrong by one word, in other words as well, which is contradicted. Whoever compares letters, or words, fails the
first or the second; who goes by the frames alone says the same of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.errors import DataError
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.gate.twins import edited, reworded
from hedge_tasks.making.stages import Asking, MakingStage
from hedge_tasks.statistics.base import wilson

CONTRADICTED, SUPPORTED, UNDECIDED = "contradicted", "supported", "undecided"
VERIFIER = "verifier"
"""The role of those who say what the evidence says."""

REWORDED, EDITED = "truth in other words", "truth wrong by a word"
LEAST_RIGHT = 0.9
"""Share of the controls of a kind that a verifier or a judge has to get right."""

_MOST_SENTENCES = 60


def verifying(times: tuple[int, int], truths: int) -> dict[str, MakingStage]:
    """The stages of verifiers.

    Args:
        times: Fewest and most texts of a source row that all verifiers together are shown.
        truths: Truths of a row, at most, times the verifiers: each has two controls.
    """
    prompt = load_template(__package__, "verify")
    controls = (2 * truths if times[0] else 0, 2 * truths)
    return {
        "verify": MakingStage(prompt, VERIFIER, times=times),
        "control": MakingStage(prompt, VERIFIER, times=controls),
    }


@dataclass(frozen=True)
class OpenBook:
    """The case before a verifier: a question, its true answer, and what that rests on."""

    question: str
    truth: str
    knowledge: Sequence[str] = ()


@dataclass(frozen=True)
class EvidenceVerdict:
    """The verdict of a verifier on a text.

    Attributes:
        verifier: Its name.
        verdict: `CONTRADICTED`, `SUPPORTED` or `UNDECIDED`; the last also without a sentence or after a failed control.
        quote: The sentence of the evidence that decides.
    """

    verifier: str
    verdict: str
    quote: str = ""


def evidence_verdicts(evidence: OpenBook, candidate: str, asking: Asking) -> tuple[EvidenceVerdict, ...]:
    """The verdict of each verifier on a text.

    Raises:
        Unfinished: A verifier did not reply.
    """
    verdicts = []
    for verifier in asking.models[VERIFIER]:
        verdict, quote = _ask(evidence, candidate, verifier, asking, "verify")
        if verdict != UNDECIDED and not (quote and _knows(evidence, verifier, asking)):
            verdict = UNDECIDED
        verdicts.append(EvidenceVerdict(verifier.name, verdict, quote))
    return tuple(verdicts)


def _knows(evidence: OpenBook, verifier: Model, asking: Asking) -> bool:
    """Whether a verifier answers both controls of a truth right; they are noted."""
    known = []
    for kind, (text, label) in controls_of(evidence.truth).items():
        verdict, _ = _ask(evidence, text, verifier, asking, "control")
        known.append(asking.control(verifier, kind, text, verdict == (CONTRADICTED if label else SUPPORTED)))
    return all(known)


def controls_of(truth: str) -> dict[str, tuple[str, int]]:
    """The controls of who has a truth before them: by kind the text, and whether it is wrong (1) or right (0)."""
    return {REWORDED: (reworded(truth), 0), EDITED: (reworded(edited(truth)), 1)}


def _ask(evidence: OpenBook, candidate: str, verifier: Model, asking: Asking, stage: str) -> tuple[str, str]:
    sentences = [s for text in (evidence.truth, *evidence.knowledge) for s in split_sentences(text)][:_MOST_SENTENCES]
    shown = [f"[{number}] {sentence}" for number, sentence in enumerate(sentences, start=1)]
    fields = {
        "question": evidence.question, "reference": evidence.truth, "evidence": shown, "candidate": candidate
    }  # fmt: skip
    reply = asking.ask(stage, fields, model=verifier)
    if reply is None:
        return UNDECIDED, ""
    number = reply["sentence"]
    return str(reply["verdict"]), sentences[number - 1] if 1 <= number <= len(sentences) else ""


def outcome(verdicts: Sequence[EvidenceVerdict]) -> str:
    """`CONTRADICTED` where more than half of the verifiers say so and none finds the text supported."""
    names = [verdict.verdict for verdict in verdicts]
    if SUPPORTED in names:
        return SUPPORTED
    return CONTRADICTED if 2 * names.count(CONTRADICTED) > len(names) else UNDECIDED


def confirmed(verdicts: Sequence[EvidenceVerdict]) -> bool:
    """Whether more than half of the verifiers find a text supported, and none contradicted."""
    names = [verdict.verdict for verdict in verdicts]
    return CONTRADICTED not in names and 2 * names.count(SUPPORTED) > len(names)


def check_controls(controls: Mapping[tuple[str, str], tuple[int, int]]) -> None:
    """Refuse verifiers and judges that fail their controls, of however many.

    Args:
        controls: As `Made.controls`.

    Raises:
        DataError: Of a kind of controls one is surely below `LEAST_RIGHT`: its 95 % Wilson interval is.
    """
    for (name, kind), (right, n) in sorted(controls.items()):
        if n and wilson(right / n, n, 0.95)[1] < LEAST_RIGHT:
            raise DataError(
                f"{name} takes {n - right} of {n} controls ({kind}) for something else: nothing that it says is worth "
                "anything; take another model"
            )

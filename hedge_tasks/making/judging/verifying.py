"""Whether made wrong answers of a judge's training set are wrong, by models that have the reference before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.llm.models import Model
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.controls import TRUTHS
from hedge_tasks.making.gate.verify import CONTRADICTED, control_steps, evidence_verdicts, outcome
from hedge_tasks.making.judging.examples import TrainingExample
from hedge_tasks.making.production import MadeRecord, Production, produce


@dataclass(frozen=True)
class _Source:
    example: TrainingExample

    @property
    def id(self) -> str:
        return self.example.case.id


def contradicted(
    examples: Sequence[TrainingExample], verifiers: Sequence[Model], folder: Path, *, concurrency: int = 16
) -> tuple[list[TrainingExample], Production]:
    """The made wrong answers that their references contradict, and what asking for it cost.

    Answers that people judged are not asked about: what a reference leaves open may be a hallucination all the same.

    Args:
        folder: Where replies are kept; the same command goes on from there.

    Raises:
        DataError: A verifier does not find references supported by themselves.
        HedgeError: A server refuses every request, or is gone.
    """

    def check(source: _Source, asking: Asking) -> MadeRecord:
        case = source.example.case
        verdicts = evidence_verdicts(case.question, case.reference, [], case.answer, verifiers, asking)
        verdict = outcome(verdicts)
        step = f"verified as {verdict}"
        steps = (*control_steps(verdicts), step)
        return MadeRecord({"id": source.id}, steps) if verdict == CONTRADICTED else MadeRecord(None, steps, step)

    with ReplyLog(folder) as log:
        production = produce([_Source(example) for example in examples], check, log, concurrency=concurrency)
    TRUTHS.check(production.steps)
    accepted = {row["id"] for row in production.rows}
    return [example for example in examples if example.case.id in accepted], production

"""Several references for one question, and none at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Judge, Verdict
from hedge_tasks.judging.config import Spec, judge_from


class AnyReference:
    """Judges an answer by each of several references, which stand on the lines of the case's reference.

    Label 0 where the answer is supported by one of them, 1 where it contradicts all, None else.

    Args:
        judge: who judges by one reference.
    """

    name, version = "any_of", "1"

    def __init__(self, judge: Spec = "rule") -> None:
        self._judge = judge_from(judge)

    @property
    def parts(self) -> Sequence[Judge]:
        return [self._judge]

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version, "by": self._judge.settings()}

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        lines = [references_of(case.reference) or [""] for case in cases]
        flat = [
            replace(case, reference=line) for case, references in zip(cases, lines, strict=True) for line in references
        ]
        verdicts = iter(self._judge.judge(flat))
        return [self._joined([next(verdicts) for _ in references]) for references in lines]

    def _joined(self, verdicts: Sequence[Verdict]) -> Verdict:
        chosen = min(verdicts, key=lambda verdict: (SUPPORTED, None, HALLUCINATED).index(verdict.label))
        return replace(chosen, judge=self.name, version=self.version, votes=(), key=None)


class NoJudge:
    """Labels nothing: for answers and scores alone."""

    name, version = "none", "1"

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        return [Verdict(None, "no judge was asked for", self.name, self.version) for _ in cases]

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version}


def references_of(reference: str) -> list[str]:
    """The references of a case that has several: its lines.

    Example:
        >>> references_of("red\\nred paint")
        ['red', 'red paint']
    """
    return [line.strip() for line in reference.splitlines() if line.strip()]

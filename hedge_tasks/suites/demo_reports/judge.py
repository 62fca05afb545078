"""The judge of reports on drawn scans: what a sentence says is known, and so is what is in the scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Verdict
from hedge_tasks.judging.by_sentence import SentenceJudge
from hedge_tasks.suites.demo_reports.statements import StatementRelation, relation, statement_of

_NAME, _VERSION = "drawn_report", "1"

_LABELS = {
    StatementRelation.ENTAILMENT: SUPPORTED,
    StatementRelation.CONTRADICTION: HALLUCINATED,
    StatementRelation.NEUTRAL: None,
}


def drawn_report() -> SentenceJudge:
    """Return the judge of whole reports: one verdict a sentence."""
    return SentenceJudge(StatementJudge())


class StatementJudge:
    """Whether a sentence is true where the reference is. One that it does not understand has no label."""

    name = _NAME
    version = _VERSION

    def settings(self) -> dict[str, Any]:
        return {"judge": self.name, "version": self.version}

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        return [self._verdict(case) for case in cases]

    def _verdict(self, case: Case) -> Verdict:
        statement = statement_of(case.answer)
        if statement is None:
            return Verdict(None, "unknown: the sentence is none that is known", self.name, self.version)
        related = relation(case.reference, statement)
        reason = f"{statement.topic}: the reference {_SAYS[related]} it"
        return Verdict(_LABELS[related], reason, self.name, self.version)


_SAYS = {
    StatementRelation.ENTAILMENT: "entails",
    StatementRelation.CONTRADICTION: "contradicts",
    StatementRelation.NEUTRAL: "leaves open",
}

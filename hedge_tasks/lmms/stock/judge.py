"""The judge of a stock task: its own metric on the baseline answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.judging.base import SUPPORTED, Case, Verdict
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.lmms.stock.numbers import Numbers, ReadingRule
from hedge_tasks.lmms.stock.scoring import StockOutcome, StockScoring
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.reading import DECLINING

PROBED = 8
"""Documents, spread over the split, whose references are scored before anything is sampled."""

_SHOWN = 80


class StockJudge:
    """1 where the task's metric says that an answer is wrong, 0 where it says right, None where it says neither.
    What is no answer has no label.

    Args:
        rule: how the metric is read.
        numbers: of the task's metrics.
        facts: what else the settings should hold.
        outcomes: what `process_results` said, by the id of the case; filled when the answers are there.
    """

    name, version = "task", "2"

    def __init__(
        self, rule: ReadingRule, numbers: Numbers, facts: Mapping[str, Any], outcomes: Mapping[str, StockOutcome]
    ) -> None:
        self.rule = rule
        self._numbers, self._facts, self._outcomes = numbers, dict(facts), outcomes
        self._withdrawn: str | None = None

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        return [self._of_case(case) for case in cases]

    def _of_case(self, case: Case) -> Verdict:
        """Judge a case: what is no answer has no label, whatever the metric says, unless declining is right."""
        why = unanswered(case.answer)
        if why is None or (why in DECLINING and case.reference.strip() and unanswered(case.reference)):
            return self.verdict(self._outcomes.get(case.id, StockOutcome(fault="it was not scored")))
        return of_unanswered(why, self.name, self.version)

    def verdict(self, outcome: StockOutcome) -> Verdict:
        """Return the verdict that an outcome means."""
        number = None if outcome.fault else self._numbers.number_of(outcome, self.rule)
        label = None if number is None or self._withdrawn else self.rule.label(number)
        return Verdict(label, self._reason(outcome, number, label), self.name, self.version)

    def _reason(self, outcome: StockOutcome, number: float | None, label: int | None) -> str:
        if self._withdrawn:
            return self._withdrawn
        if outcome.fault:
            return outcome.fault
        if number is None:
            return f"process_results gave no number for {self.rule}; it gave {', '.join(outcome.metrics) or 'nothing'}"
        reading = f"{self.rule}: {number:g}"
        return reading if label is not None else f"{reading}, which is neither 0 nor 1; at_least= says what is right"

    def withdraw(self, reason: str) -> None:
        """Label nothing, for this reason: the metric cannot be believed."""
        self._withdrawn = reason

    def settings(self) -> dict[str, Any]:
        rule = {"metric": self.rule.metric or "each document's own", "read": self.rule.how}
        limits = {key: getattr(self.rule, key) for key in ("at_least", "at_most")}
        thresholds = {key: value for key, value in limits.items() if value is not None}
        return {"judge": self.name, "version": self.version, **rule, **thresholds, **self._facts}


class Probes:
    """Known answers to a few documents and what the task's scoring says of them, before anything is sampled.

    Args:
        stock: lmms-eval's task.
        scoring: of that task.
        rows: which rows of `documents` are probed.
    """

    def __init__(self, stock: Any, scoring: StockScoring, documents: Any, rows: Sequence[int]) -> None:
        self._scoring = scoring
        self._documents = documents.select(rows)
        self._targets = [target_text(stock, document) for document in self._documents]

    def outcomes(self, *, thorough: bool) -> list[StockOutcome]:
        """Return outcomes of the references; if thorough, also of nothing, half a reference and another document's.

        Half a reference shows the grades of a metric that knows some.
        """
        other_targets = [*self._targets[1:], self._targets[0]] if self._targets else []
        halves = [target[: (len(target) + 1) // 2] for target in self._targets]
        columns = [self._targets, [""] * len(self._targets), halves, other_targets] if thorough else [self._targets]
        try:
            filtered = [self._scoring.filtered(self._documents, texts)[self._scoring.filters[0]] for texts in columns]
        except Exception as error:  # a filter of the task's own, with whatever it cannot bear
            return [StockOutcome(fault=f"its filters raised {type(error).__name__}: {error}")]
        per_document = [list(answers) for answers in zip(*filtered, strict=True)]
        scored = self._scoring.score_all(self._documents, per_document, workers=1)
        return [outcome for of_document in scored for outcome in of_document]

    def check_reachable(self, judge: StockJudge, outcomes: Sequence[StockOutcome], task: str) -> None:
        """Refuse a judging model that calls the reference itself wrong.

        Raises:
            ConfigError: none of the references is right by the rule.
        """
        verdicts = [judge.verdict(outcome) for outcome in outcomes]
        if not any(verdict.label == SUPPORTED for verdict in verdicts):
            target = self._targets[0][:_SHOWN] if self._targets else ""
            raise ConfigError(
                f"{task}: its judging model does not call the reference itself right ({target!r}: "
                f"{verdicts[0].reason if verdicts else 'nothing was said'}). Can the model be reached? Its errors are "
                f"in the log; {task}:judge=none samples without labels, HEDGE_JUDGE names another judge"
            )


def spread(n_documents: int, n: int = PROBED) -> list[int]:
    """Up to n rows, spread evenly from the first to the last."""
    if n_documents <= n:
        return list(range(n_documents))
    return [round(i * (n_documents - 1) / (n - 1)) for i in range(n)] if n > 1 else [0]


def target_text(stock: Any, document: Mapping[str, Any]) -> str:
    """Return the reference as text: of several the first, of an index its choice."""
    target = stock.doc_to_target(document)
    if isinstance(target, int) and not isinstance(target, bool) and stock.config.doc_to_choice is not None:
        choices = stock.doc_to_choice(document)
        target = choices[target] if 0 <= target < len(choices) else target
    if isinstance(target, (list, tuple)):
        target = target[0] if target else ""
    return "" if target is None else str(target)

"""The judge of a stock task: which number of its own metrics tells right from wrong, and what it says of an answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Verdict
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.lmms.stock.names import StockOptions
from hedge_tasks.lmms.stock.scoring import StockOutcome, StockScoring, alone
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.reading import DECLINING

PROBED = 8
"""Documents, spread over the split, whose references are scored before anything is sampled."""

_PERCENT = 100.0
_SHOWN = 80


@dataclass(frozen=True)
class ReadingRule:
    """How a number is read from an outcome, and when it means that the answer is right.

    Attributes:
        metric: name of the metric; None takes the first that the document has.
        how: "value", "aggregation" (the metric's, of this document alone) or the key of its record.
        aggregation: of the metrics, by name.
        threshold: from where on, or up to where, a graded metric means right; without it 1 (or 100) is right, 0 wrong.
        higher_is_better: whether what is higher is right.
    """

    metric: str | None
    how: str
    aggregation: Mapping[str, Any]
    threshold: float | None = None
    higher_is_better: bool = True

    def __str__(self) -> str:
        sign = ">=" if self.higher_is_better else "<="
        threshold = "" if self.threshold is None else f" {sign} {self.threshold:g}"
        where = {"value": "", "aggregation": " of the document alone"}.get(self.how, f" ({self.how})")
        return f"{self.metric or 'the metric of each document'}{where}{threshold}"

    def number(self, outcome: StockOutcome) -> float | None:
        """Return the number; None where the outcome has none."""
        names = [name for name in self.aggregation if name in outcome.metrics and self.metric in (None, name)]
        if not names:
            return None
        value = outcome.metrics[names[0]]
        if self.how == "aggregation":
            return None if value is None else _finite(alone(self.aggregation[names[0]], value))
        if self.how != "value":
            value = value.get(self.how) if isinstance(value, Mapping) else None
        return _finite(value)

    def label(self, number: float) -> int | None:
        """1 = hallucinated, 0 = supported, None = the number says neither."""
        if self.threshold is None and number not in (0.0, 1.0, _PERCENT):
            return None
        threshold = 0.5 if self.threshold is None else self.threshold
        right = number >= threshold if self.higher_is_better else number <= threshold
        return SUPPORTED if right else HALLUCINATED


def _finite(value: Any) -> float | None:
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:  # numpy's and torch's numbers
        value = value.item()
    return float(value) if isinstance(value, (bool, int, float)) and math.isfinite(value) else None


class Probes:
    """Known answers to a few documents and what the task's scoring says of them, before anything is sampled.

    Args:
        stock: lmms-eval's task.
        scoring: of that task. It may connect from here on where the user has named the metric and it does.
        documents: the split.
        options: of the user.
        task: as the user knows it, for errors.

    Raises:
        ConfigError: nobody has named a metric, and the scoring connects somewhere.
    """

    def __init__(self, stock: Any, scoring: StockScoring, documents: Any, options: StockOptions, task: str) -> None:
        self._stock, self._scoring, self._options, self._task = stock, scoring, options, task
        self._documents = documents.select(spread(len(documents)))
        self._targets = [target_text(stock, document) for document in self._documents]
        self._aggregations: Mapping[str, Any] = stock.aggregation()
        self._right, self._wrong = self._outcomes(self._targets[:1]), list[StockOutcome]()
        self._between: list[StockOutcome] = []
        self.connects = next((outcome.connects for outcome in self._right if outcome.connects), None)
        if self.connects is None:
            # Nothing, and what shows the grades of a metric: half of a reference, and another one.
            halves = [target[: (len(target) + 1) // 2] for target in self._targets]
            self._right, self._wrong = self._outcomes(self._targets), self._outcomes([""] * len(self._targets))
            self._between = self._outcomes(halves) + self._outcomes([*self._targets[1:], *self._targets[:1]])
        elif options.judge is None:
            raise ConfigError(
                f"{task}: its scoring connects to {self.connects}, perhaps to ask a language model. To let it, name "
                f"the metric: {task}:judge=METRIC with one of {', '.join(self._aggregations)}. Otherwise judge=none, "
                "or HEDGE_JUDGE names a judge"
            )
        else:
            scoring.may_connect = True
            self._right = self._outcomes(self._targets[:1])

    def _outcomes(self, texts: Sequence[str]) -> list[StockOutcome]:
        documents = self._documents.select(range(len(texts)))
        by_filter = self._scoring.score_all(documents, texts)
        return [outcome for _, outcome in by_filter[self._scoring.filters[0]]] if texts else []

    def rule(self) -> ReadingRule:
        """Return the rule that the options ask for, or the first that tells right from wrong.

        Raises:
            ConfigError: there is none; names the metrics with what they said, and what to do.
        """
        sound = [outcome for outcome in (*self._right, *self._wrong, *self._between) if outcome.fault is None]
        if not sound:
            fault = self._right[0].fault if self._right else "it has no documents"
            raise ConfigError(f"{self._task}: its scoring says nothing of its own references: {fault}")
        judge = self._options.judge
        if judge is not None and judge not in self._aggregations:
            raise unknown(f"metric of {self._task}", judge, self._aggregations)
        seen: dict[str, list[float]] = {}
        for rule in self._rules(sound):
            numbers = sorted({number for outcome in sound if (number := rule.number(outcome)) is not None})
            seen[str(rule)] = numbers
            labels = {rule.label(number) for number in numbers}
            if labels and None not in labels and (judge is not None or self._tells(rule)):
                return rule
        raise ConfigError(self._advice(seen))

    def _advice(self, seen: Mapping[str, Sequence[float]]) -> str:
        """Return what the metrics said, by how they are read, and what to do."""
        listing = "; ".join(f"{name}: {', '.join(f'{n:g}' for n in numbers[:6])}" for name, numbers in seen.items())
        metric = self._options.judge or next(iter(self._aggregations), "METRIC")
        return (
            f"{self._task}: no metric is 1 for its own references, 0 for nothing, and nothing in between. Of known "
            f"answers they say: {listing or 'nothing that is a number'}. Name the one that judges: {self._task}:judge="
            f"{metric}, with :threshold=0.5 where it is graded and :field=KEY for a key of its record; or judge=none; "
            "or HEDGE_JUDGE names a judge of this package"
        )

    def _rules(self, outcomes: Sequence[StockOutcome]) -> Iterator[ReadingRule]:
        """Yield the ways to read a number, of the metric that is named or of each."""
        options, higher = self._options, self._stock.higher_is_better()
        shared = [name for name in self._aggregations if all(name in outcome.metrics for outcome in outcomes)]
        # Tasks such as mme file each document under one of several metrics, by its category.
        candidates: list[str | None] = [options.judge] if options.judge else [*shared] or [None]
        for metric in candidates:
            values = [value for o in outcomes for name, value in o.metrics.items() if metric in (None, name)]
            keys = dict.fromkeys(key for value in values if isinstance(value, Mapping) for key in value)
            for how in [options.record_key] if options.record_key else ["value", *keys, "aggregation"]:
                better = True if metric is None else bool(higher.get(metric, True))
                rule = ReadingRule(metric, how, self._aggregations, options.threshold, better)
                if any(rule.number(outcome) is not None for outcome in outcomes):
                    yield rule

    def _tells(self, rule: ReadingRule) -> bool:
        """Whether references are right by a rule more often than nothing at all."""
        right, wrong = (
            [number is not None and rule.label(number) == SUPPORTED for number in map(rule.number, outcomes)]
            for outcomes in (self._right, self._wrong)
        )
        return sum(right) > sum(wrong)

    def check_reachable(self, rule: ReadingRule, *, again: bool = False) -> None:
        """Refuse a judging model that calls the reference itself wrong.

        Args:
            again: ask it once more.

        Raises:
            ConfigError: it does, or says nothing.
        """
        if again:
            self._right = self._outcomes(self._targets[:1])
        if self.connects is not None and (self._right[0].fault or not self._tells(rule)):
            raise ConfigError(
                f"{self._task}: its judging model ({self.connects}) does not call the reference itself right "
                f"({self._targets[0][:_SHOWN]!r}: {self._right[0].fault or rule.number(self._right[0])}). Can it be "
                f"reached? Its errors are in the log; {self._task}:judge=none samples without labels, HEDGE_JUDGE "
                "names another judge"
            )


class StockJudge:
    """1 where the task's metric says that an answer is wrong, 0 where it says right, None where it says neither.
    What is no answer has no label.

    Args:
        rule: how the metric is read.
        facts: what else the settings should hold.

    Attributes:
        outcomes: what `process_results` said, by the id of the case; filled when the answers are there.
        withdrawn: why nothing is labelled any more: the metric cannot be believed.
    """

    name, version = "task", "3"

    def __init__(self, rule: ReadingRule, facts: Mapping[str, Any]) -> None:
        self.rule, self._facts = rule, dict(facts)
        self.outcomes: dict[str, StockOutcome] = {}
        self.withdrawn: str | None = None

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        return [self._of_case(case) for case in cases]

    def _of_case(self, case: Case) -> Verdict:
        """Judge a case: what is no answer has no label, whatever the metric says, unless declining is right."""
        why = unanswered(case.answer)
        if why is None or (why in DECLINING and case.reference.strip() and unanswered(case.reference)):
            return self._verdict(self.outcomes.get(case.id, StockOutcome(fault="it was not scored")))
        return of_unanswered(why, self.name, self.version)

    def _verdict(self, outcome: StockOutcome) -> Verdict:
        if fault := self.withdrawn or outcome.fault:
            return Verdict(None, fault, self.name, self.version)
        number = self.rule.number(outcome)
        if number is None:
            names = ", ".join(outcome.metrics) or "nothing"
            return Verdict(None, f"process_results has no number for {self.rule}, but {names}", self.name, self.version)
        label = self.rule.label(number)
        neither = "" if label is not None else ", which is neither 0 nor 1; threshold= says what is right"
        return Verdict(label, f"{self.rule}: {number:g}{neither}", self.name, self.version)

    def settings(self) -> dict[str, Any]:
        rule = {"metric": self.rule.metric or "each document's own", "read": self.rule.how}
        threshold = {} if self.rule.threshold is None else {"threshold": self.rule.threshold}
        return {"judge": self.name, "version": self.version, **rule, **threshold, **self._facts}


def spread(n_documents: int) -> list[int]:
    """Up to `PROBED` rows, spread evenly from the first to the last."""
    n = min(n_documents, PROBED)
    return [round(i * (n_documents - 1) / max(n - 1, 1)) for i in range(n)]


def target_text(stock: Any, document: Mapping[str, Any]) -> str:
    """Return the reference as text: of several the first, of an index its choice."""
    target = stock.doc_to_target(document)
    if isinstance(target, int) and not isinstance(target, bool) and stock.config.doc_to_choice is not None:
        choices = stock.doc_to_choice(document)
        target = choices[target] if 0 <= target < len(choices) else target
    if isinstance(target, (list, tuple)):
        target = target[0] if target else ""
    return "" if target is None else str(target)

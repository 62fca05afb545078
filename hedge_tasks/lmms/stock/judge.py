"""The judge of a stock task: which number of its own metrics tells right from wrong, and what it says of an answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import ConfigError, check_names
from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED, Case, Verdict
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.lmms.stock.names import StockOptions
from hedge_tasks.lmms.stock.scoring import StockOutcome, StockScoring, alone
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.replies.reading import DECLINING

PROBED = 8
"""Documents, spread over the split, whose references are scored before anything is sampled."""

_PERCENT = 100.0


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

    def is_right(self, outcome: StockOutcome) -> bool:
        number = self.number(outcome)
        return number is not None and self.label(number) == SUPPORTED


def _finite(value: Any) -> float | None:
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:  # numpy's and torch's numbers
        value = value.item()
    return float(value) if isinstance(value, (bool, int, float)) and math.isfinite(value) else None


def find_rule(stock: Any, scoring: StockScoring, documents: Any, options: StockOptions, task: str) -> ReadingRule:
    """Return the rule that the options ask for, or the first that tells a task's references from nothing.

    Args:
        stock: lmms-eval's task.
        scoring: of that task.
        documents: the split.
        task: as the user knows it, for errors.

    Raises:
        ConfigError: there is none, or the scoring connects somewhere; names the metrics with what they said, and what
            to do.
    """
    right, wrong, between = _known_outcomes(stock, scoring, documents.select(spread(len(documents))))
    known = [*right, *wrong, *between]
    sound = [outcome for outcome in known if outcome.fault is None]
    if connects := next((outcome.connects for outcome in known if outcome.connects), None):
        raise ConfigError(
            f"{task}: its scoring connects to {connects}, perhaps to ask a language model. HEDGE_JUDGE names a judge "
            f"of this package in its place; {task}:judge=none samples without labels"
        )
    if not sound:
        fault = right[0].fault if right else "it has no documents"
        raise ConfigError(f"{task}: its scoring says nothing of its own references: {fault}")
    aggregations: Mapping[str, Any] = stock.aggregation()
    if options.judge is not None:
        check_names(f"metric of {task}", [options.judge], aggregations)
    listing = []
    for rule in _rules(sound, aggregations, stock.higher_is_better(), options):
        numbers = sorted({number for number in map(rule.number, sound) if number is not None})
        listing.append(f"{rule}: {', '.join(f'{number:g}' for number in numbers[:6])}")
        tells = sum(map(rule.is_right, right)) > sum(map(rule.is_right, wrong))
        if None not in map(rule.label, numbers) and (tells or options.judge is not None):
            return rule
    raise ConfigError(
        f"{task}: no metric is 1 for its own references, 0 for nothing, and nothing in between. Of known answers they "
        f"say: {'; '.join(listing) or 'nothing that is a number'}. Name the one that judges: {task}:judge="
        f"{options.judge or next(iter(aggregations), 'METRIC')}, with :threshold=0.5 where it is graded and :field=KEY "
        "for a key of its record; or judge=none; or HEDGE_JUDGE names a judge of this package"
    )


def _known_outcomes(stock: Any, scoring: StockScoring, documents: Any) -> Iterator[list[StockOutcome]]:
    """Yield what a task says, before anything is sampled, of its references, of nothing, and of what shows the grades
    of a metric: halves of references, and other documents' ones."""
    targets = [target_text(stock, document) for document in documents]
    halves = [target[: (len(target) + 1) // 2] for target in targets]
    others = [*targets[1:], *targets[:1]]

    def outcomes(texts: Sequence[str]) -> list[StockOutcome]:
        return [outcome for _, outcome in scoring.score_all(documents, texts)[scoring.filters[0]]]

    yield from (outcomes(targets), outcomes([""] * len(targets)), outcomes(halves) + outcomes(others))


def _rules(
    outcomes: Sequence[StockOutcome],
    aggregations: Mapping[str, Any],
    higher_is_better: Mapping[str, Any],
    options: StockOptions,
) -> Iterator[ReadingRule]:
    """Yield the ways to read a number, of the metric that is named or of each."""
    shared = [name for name in aggregations if all(name in outcome.metrics for outcome in outcomes)]
    # Tasks such as mme file each document under one of several metrics, by its category.
    candidates: list[str | None] = [options.judge] if options.judge else [*shared] or [None]
    for metric in candidates:
        values = [value for o in outcomes for name, value in o.metrics.items() if metric in (None, name)]
        keys = dict.fromkeys(key for value in values if isinstance(value, Mapping) for key in value)
        better = True if metric is None else bool(higher_is_better.get(metric, True))
        for how in [options.record_key] if options.record_key else ["value", *keys, "aggregation"]:
            rule = ReadingRule(metric, how, aggregations, options.threshold, better)
            if any(rule.number(outcome) is not None for outcome in outcomes):
                yield rule


class StockJudge:
    """1 where the task's metric says that an answer is wrong, 0 where it says right, None where it says neither.
    What is no answer has no label.

    Args:
        rule: how the metric is read.
        filter_name: of the stock task's filter that answers pass first.

    Attributes:
        outcomes: what `process_results` said, by the id of the case; filled when the answers are there.
    """

    name, version = "task", "4"

    def __init__(self, rule: ReadingRule, filter_name: str) -> None:
        self.rule, self._filter = rule, filter_name
        self.outcomes: dict[str, StockOutcome] = {}

    def judge(self, cases: Sequence[Case]) -> list[Verdict]:
        return [self._of_case(case) for case in cases]

    def _of_case(self, case: Case) -> Verdict:
        """Judge a case: what is no answer has no label, whatever the metric says, unless declining is right."""
        why, outcome = unanswered(case.answer, cut=case.cut), self.outcomes[case.id]
        if why and not {why, unanswered(case.reference)} <= DECLINING:
            return of_unanswered(why, self.name, self.version)
        number = None if outcome.fault else self.rule.number(outcome)
        label = None if number is None else self.rule.label(number)
        if number is None:
            names = ", ".join(outcome.metrics) or "nothing"
            reason = outcome.fault or f"process_results has no number for {self.rule}, but {names}"
        else:
            neither = "" if label is not None else ", which is neither 0 nor 1; threshold= says what is right"
            reason = f"{self.rule}: {number:g}{neither}"
        return Verdict(label, reason, self.name, self.version)

    def settings(self) -> dict[str, Any]:
        rule = {"metric": self.rule.metric or "each document's own", "read": self.rule.how, "filter": self._filter}
        threshold = {} if self.rule.threshold is None else {"threshold": self.rule.threshold}
        return {"judge": self.name, "version": self.version, **rule, **threshold}


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

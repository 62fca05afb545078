"""From what `process_results` says of one answer to a number, and from the number to a verdict."""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.judging.base import HALLUCINATED, SUPPORTED
from hedge_tasks.lmms.stock.options import StockOptions
from hedge_tasks.lmms.stock.scoring import StockOutcome
from hedge_tasks.lmms.stock.source_scan import asks_a_model, writes_files

FIELDS = (
    "score",
    "true_false",
    "correct",
    "is_correct",
    "acc",
    "accuracy",
    "exact_match",
    "hit",
    "match",
    "relaxed_accuracy",
)
"""Keys under which records hold a number, in the order in which they are looked for."""

_GRADED = re.compile(
    r"anls|cider|bleu|rouge|meteor|bert|spice|iou|\bwer\b|\bcer\b|\bter\b|_wer|_cer|f1|edit|levens|ssim|psnr|lpips|clip|"
    r"mae\b|mse|similarity",
    re.IGNORECASE,
)
_SUBMISSION = re.compile("submi", re.IGNORECASE)
_PERCENT = 100.0


@dataclass(frozen=True)
class ReadingRule:
    """How a number is read from an outcome, and when it means that the answer is right.

    Attributes:
        metric: name of the metric; None takes the one that each document is filed under.
        how: "value", "aggregation" (the metric's, of this document alone) or the key of its record.
        at_least, at_most: what means right on a graded metric; without them 1 (or 100) is right and 0 is wrong.
        higher_is_better: without a threshold, whether 1 is right rather than 0.
    """

    metric: str | None
    how: str
    at_least: float | None = None
    at_most: float | None = None
    higher_is_better: bool = True

    def __str__(self) -> str:
        threshold = "" if self.at_least is None else f" >= {self.at_least:g}"
        threshold += "" if self.at_most is None else f" <= {self.at_most:g}"
        where = {"value": "", "aggregation": " of the document alone"}.get(self.how, f" ({self.how})")
        return f"{self.metric or 'the metric of each document'}{where}{threshold}"

    def label(self, number: float) -> int | None:
        """1 = hallucinated, 0 = supported, None = the number says neither."""
        if self.at_least is not None:
            return SUPPORTED if number >= self.at_least else HALLUCINATED
        if self.at_most is not None:
            return SUPPORTED if number <= self.at_most else HALLUCINATED
        if number not in (0.0, 1.0, _PERCENT):
            return None
        return SUPPORTED if (number != 0) == self.higher_is_better else HALLUCINATED


def is_submission(metric: str, aggregation: Any) -> bool:
    """Whether a metric is a file to be sent in, by its name or that of its aggregation."""
    name = aggregation if isinstance(aggregation, str) else getattr(aggregation, "__name__", "")
    return bool(_SUBMISSION.search(f"{metric} {name}")) or metric == "bypass"


def is_graded(metric: str) -> bool:
    """Whether a metric's name says that it knows more than right and wrong."""
    return bool(_GRADED.search(metric)) and not re.search("acc|exact_match", metric)


class Numbers:
    """The numbers that a stock task's metrics have for single documents.

    Args:
        stock: lmms-eval's task.
    """

    def __init__(self, stock: Any) -> None:
        self._stock = stock
        self._aggregations: Mapping[str, Any] = stock.aggregation()
        self._alone: dict[str, bool] = {}

    @property
    def metrics(self) -> list[str]:
        """Metrics that are more than a file to be sent in."""
        return [name for name, function in self._aggregations.items() if not is_submission(name, function)]

    def number_of(self, outcome: StockOutcome, rule: ReadingRule) -> float | None:
        """Return the number that the rule reads; None where the outcome has none."""
        names = self.metrics if rule.metric is None else [rule.metric]
        metric = next((name for name in names if name in outcome.metrics), None)
        return None if metric is None else self._number(metric, outcome.metrics[metric], rule.how)

    def rule(self, probes: Sequence[StockOutcome], options: StockOptions, task: str) -> ReadingRule:
        """Return the rule that the options ask for, or the first that says 0 or 1 of every probed answer.

        Args:
            probes: outcomes of known answers, some right, some wrong, some in between.
            task: as the user knows it, for errors.

        Raises:
            ConfigError: there is none; names the metrics with what they said, and what to give.
        """
        if not self.metrics:
            raise ConfigError(
                f"{task}: it has no metric of its own, only {', '.join(self._aggregations) or 'nothing'} to be sent "
                f"in; {task}:judge=none samples without labels, HEDGE_JUDGE names a judge for them"
            )
        sound = [probe for probe in probes if probe.fault is None]
        if not sound:
            fault = probes[0].fault if probes else "it has no documents"
            raise ConfigError(f"{task}: its scoring says nothing of its own references: {fault}")
        if options.judge is not None:
            return self._rule_for(sound, options, task)
        shared: list[str | None] = [name for name in self.metrics if all(name in probe.metrics for probe in sound)]
        # Tasks such as mme file each document under one of several metrics, by its category.
        candidates = [name for name in shared if self._is_automatic(str(name))] if shared else [None]
        seen: dict[str, list[float]] = {}
        binary = []
        for rule in [rule for metric in candidates for rule in self._rules(sound, metric, options)]:
            numbers = self._distinct(sound, rule)
            if numbers and _is_binary(numbers):
                binary.append((rule, numbers))
            seen[str(rule)] = numbers
        # First what told right from wrong; then what said wrong of all, for a reference need not have the form of an
        # answer. What says right of everything, also of nothing at all, is about something else.
        for n_distinct in (2, 1):
            for rule, numbers in binary:
                if len(numbers) == n_distinct and 0.0 in numbers:
                    return rule
        raise ConfigError(self._advice(sound, seen, task))

    def _rule_for(self, probes: Sequence[StockOutcome], options: StockOptions, task: str) -> ReadingRule:
        metric = str(options.judge)
        if metric not in self._aggregations:
            raise unknown(f"metric of {task}", metric, self.metrics)
        seen: dict[str, list[float]] = {}
        for rule in self._rules(probes, metric, options):
            numbers = self._distinct(probes, rule)
            if numbers and (options.threshold or _is_binary(numbers)):
                return rule
            seen[str(rule)] = numbers
        raise ConfigError(self._advice(probes, seen, task, metric))

    def _rules(
        self, probes: Sequence[StockOutcome], metric: str | None, options: StockOptions
    ) -> Iterator[ReadingRule]:
        higher = True if metric is None else bool(self._stock.higher_is_better().get(metric, True))
        for how in [options.record_key] if options.record_key else ["value", *FIELDS, "aggregation"]:
            rule = ReadingRule(metric, how, options.at_least, options.at_most, higher)
            if any(self.number_of(probe, rule) is not None for probe in probes):
                yield rule

    def _distinct(self, probes: Sequence[StockOutcome], rule: ReadingRule) -> list[float]:
        return sorted({number for probe in probes if (number := self.number_of(probe, rule)) is not None})

    def _is_automatic(self, metric: str) -> bool:
        """Whether a metric may be taken without being asked for: not where better is lower, nor a grade by its name."""
        return not is_graded(metric) and bool(self._stock.higher_is_better().get(metric, True))

    def _advice(
        self, probes: Sequence[StockOutcome], seen: Mapping[str, Sequence[float]], task: str, named: str | None = None
    ) -> str:
        """Return what the metrics said, and what to give."""
        for metric in [named] if named else self.metrics:
            if not any(name.startswith(metric) for name in seen):
                seen = {**seen, **self._readings(probes, metric)}
        listing = "; ".join(
            name + (f": {', '.join(f'{number:g}' for number in numbers[:6])}" if numbers else "")
            for name, numbers in seen.items()
        )
        example = named or self.metrics[0]
        return (
            f"{task}: no metric is 0 or 1 for every document. Of known answers they say: {listing}. Say which one "
            f"tells right from wrong, and from where on: {task}:judge={example}:at_least=0.5 (or at_most=; field=KEY "
            f"for the key of a record); or judge=none; or HEDGE_JUDGE names a judge of this package"
        )

    def _readings(self, probes: Sequence[StockOutcome], metric: str) -> dict[str, list[float]]:
        """Return the numbers of a metric by how they are read, or what it gives instead of numbers."""
        if rule := next(self._rules(probes, metric, StockOptions()), None):
            return {str(rule): self._distinct(probes, rule)}
        value = next((probe.metrics[metric] for probe in probes if metric in probe.metrics), None)
        keys = ", ".join(map(str, value)) if isinstance(value, Mapping) else ""
        return {f"{metric}: {f'records with {keys}' if keys else 'nothing that is a number'}": []}

    def _number(self, metric: str, value: Any, how: str) -> float | None:
        if how == "value":
            return _finite(value)
        if how != "aggregation":
            return _finite(value.get(how)) if isinstance(value, Mapping) else None
        if value is None or not self._may_stand_alone(metric):
            return None
        try:
            # Some print a line a document, and some change what they are given.
            with contextlib.redirect_stdout(io.StringIO()):
                return _finite(self._aggregations[metric]([copy.deepcopy(value)]))
        except Exception:  # task code of all kinds: then it has no number for one document
            return None

    def _may_stand_alone(self, metric: str) -> bool:
        """Whether an aggregation may be asked about one document: not if it writes files or asks a model."""
        if metric not in self._alone:
            function = self._aggregations[metric]
            try:
                takes_args = "args" in inspect.signature(function).parameters
            except (TypeError, ValueError):
                takes_args = False
            self._alone[metric] = not (
                takes_args or is_submission(metric, function) or writes_files(function) or asks_a_model([function])
            )
        return self._alone[metric]


def _finite(value: Any) -> float | None:
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:  # numpy's and torch's numbers
        value = value.item()
    if not isinstance(value, (bool, int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _is_binary(numbers: Sequence[float]) -> bool:
    return set(numbers) <= {0.0, 1.0} or set(numbers) <= {0.0, _PERCENT}

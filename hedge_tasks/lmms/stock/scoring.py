"""A stock task's own scoring of answers: its filters, then its `process_results`, a document at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.instance import Instance
from loguru import logger

from hedge_tasks.errors import unknown
from hedge_tasks.lmms.stock.faults import cause_of
from hedge_tasks.sampling.prefetch import ordered

_LONGEST_FAULT = 300


@dataclass(frozen=True)
class StockOutcome:
    """Result of `process_results` for one answer.

    Attributes:
        metrics: by name, as lmms-eval aggregates them.
        fault: what went wrong, None where nothing did.
    """

    metrics: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None


@dataclass(frozen=True)
class StockAnswer:
    """A baseline answer as one of the stock task's filters leaves it, and what its metrics say of it."""

    filtered: Any
    outcome: StockOutcome

    def __str__(self) -> str:
        """Return what lmms-eval writes into its sample file."""
        return str(self.filtered)


class StockScoring:
    """Filters and `process_results` of a stock task, outside an evaluation.

    Args:
        stock: lmms-eval's task.
        asks_a_model: whether its scoring may ask a language model. Its failures are then tried again as lmms-eval
            does, and errors that it logs and swallows count as faults: an unreachable judge says "wrong" otherwise.
        judged_after: name of the filter after which answers are judged; None for the first.

    Raises:
        ConfigError: there is no such filter; names the nearest one.

    Attributes:
        filters: their names; answers are judged after the first.
    """

    def __init__(self, stock: Any, *, asks_a_model: bool, judged_after: str | None = None) -> None:
        self._stock = stock
        self._asks_a_model = asks_a_model
        names = list(dict.fromkeys(ensemble.name for ensemble in stock._filters))
        if judged_after is not None and judged_after not in names:
            raise unknown(f"filter of {stock.config.task}", judged_after, names)
        self.filters = sorted(names, key=lambda name: name != judged_after)

    def filtered(self, documents: Any, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Return the texts as each filter leaves them.

        Args:
            documents: rows in the order of the texts. lmms-eval itself hands its filters the first rows of the split,
                whichever rows were asked.
            texts: one answer a document.
        """
        # lmms-eval's filters read `resps` and write `filtered_resps`.
        metadata = {"task": self._stock.config.task, "repeats": 1}
        instances = [Instance("generate_until", (), 0, {**metadata, "doc_id": i}, [t]) for i, t in enumerate(texts)]
        for ensemble in self._stock._filters:
            ensemble.apply(instances, documents)
        return {name: [instance.filtered_resps[name] for instance in instances] for name in self.filters}

    def score(self, document: Mapping[str, Any], filtered: Any) -> StockOutcome:
        """Return what the metrics say of a filtered answer. Never raises: what goes wrong is the outcome's fault."""
        method = type(self._stock).process_results
        if not self._asks_a_model:
            # lmms-eval tries again whatever goes wrong, five times, two seconds apart, for the sake of servers.
            method = getattr(method, "__wrapped__", method)
        with _logged_errors(self._asks_a_model) as errors:
            try:
                metrics = method(self._stock, document, [filtered])
            except Exception as error:  # task code of all kinds; a document without a verdict is better than no run
                return StockOutcome(fault=_fault_of(error))
        if not isinstance(metrics, Mapping):
            return StockOutcome(fault=f"process_results gave {type(metrics).__name__} instead of metrics")
        return StockOutcome(metrics, f"its judge reported: {errors[0][:_LONGEST_FAULT]}" if errors else None)

    def score_all(self, documents: Any, columns: Sequence[Sequence[Any]], workers: int) -> list[list[StockOutcome]]:
        """Outcomes of several filtered answers a document.

        Args:
            documents: rows, read one after the other in this thread.
            columns: for each document the filtered answers.
            workers: threads, as lmms-eval's `--process_docs_parallel`; with 1 everything stays in this thread.
        """

        def score(item: tuple[Mapping[str, Any], Sequence[Any]]) -> list[StockOutcome]:
            # A copy for each: task code changes the documents that it is given.
            return [self.score(copied(item[0]), filtered) for filtered in item[1]]

        pairs = zip(documents, columns, strict=True)
        if workers == 1:
            return [score(pair) for pair in pairs]
        return list(ordered(pairs, score, workers=workers, ahead=2 * workers))


def copied(value: Any) -> Any:
    """Mappings and lists anew, whatever they hold as it is (functions, pictures)."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def _fault_of(error: Exception) -> str:
    cause = cause_of(error)
    return f"process_results raised {type(cause).__name__}: {cause}"[:_LONGEST_FAULT]


@contextmanager
def _logged_errors(watch: bool) -> Iterator[list[str]]:
    """Errors that are logged in this thread meanwhile."""
    errors: list[str] = []
    if not watch:
        yield errors
        return
    me = threading.get_ident()

    def keep(message: Any) -> None:
        errors.append(message.record["message"])

    sink = logger.add(keep, level="ERROR", filter=lambda record: record["thread"].id == me)
    try:
        yield errors
    finally:
        try:
            logger.remove(sink)
        except ValueError:  # task code has removed all sinks
            logger.debug("the sinks of the log were removed while a task judged")

"""A stock task's own scoring of answers: its filters, then its `process_results`, a document at a time.

Whether it asks a language model is watched, not forecast: a connection that it begins ends the scoring of that answer.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval.api.instance import Instance
from loguru import logger

_LONGEST_FAULT = 300

_barred = threading.local()


class Connects(BaseException):
    """A connection begun where none is allowed. No `Exception`: clients and task code would try those again."""


@dataclass(frozen=True)
class StockOutcome:
    """Result of `process_results` for one answer.

    Attributes:
        metrics: by name, as lmms-eval aggregates them.
        fault: why there are none or they cannot be believed; None where nothing went wrong.
        connects: where it began to connect to, if that is what went wrong; None otherwise.
    """

    metrics: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None
    connects: str | None = None


@dataclass(frozen=True)
class StockAnswer:
    """A baseline answer as one of the stock task's filters leaves it, and what its metrics say of it."""

    filtered: Any
    metrics: Mapping[str, Any]

    def __str__(self) -> str:
        """Return what lmms-eval writes into its sample file."""
        return str(self.filtered)


class StockScoring:
    """Filters and `process_results` of a stock task, outside an evaluation.

    Args:
        stock: lmms-eval's task.

    Attributes:
        filters: their names; answers are judged after the first.
    """

    def __init__(self, stock: Any) -> None:
        self._stock = stock
        self.filters = list(dict.fromkeys(ensemble.name for ensemble in stock._filters))

    def score_all(self, documents: Any, texts: Sequence[str]) -> dict[str, list[tuple[Any, StockOutcome]]]:
        """Return, by filter, each text as the filter leaves it and what the metrics say of that.

        Args:
            documents: rows in the order of the texts. lmms-eval itself hands its filters the first rows of the split,
                whichever rows were asked.
            texts: one answer a document.
        """
        # lmms-eval's filters read `resps` and write `filtered_resps`.
        metadata = {"task": self._stock.config.task, "repeats": 1}
        instances = [Instance("generate_until", (), 0, {**metadata, "doc_id": i}, [t]) for i, t in enumerate(texts)]
        try:
            for ensemble in self._stock._filters:
                ensemble.apply(instances, documents)
        except Exception as error:  # a filter of the task's own, with whatever it cannot bear
            fault = StockOutcome(fault=f"its filters raised {type(error).__name__}: {error}"[:_LONGEST_FAULT])
            return {name: [(text, fault) for text in texts] for name in self.filters}
        scored: dict[str, list[tuple[Any, StockOutcome]]] = {name: [] for name in self.filters}
        for document, instance in zip(documents, instances, strict=True):
            for name in self.filters:
                filtered = instance.filtered_resps[name]
                scored[name].append((filtered, self.score(document, filtered)))
        return scored

    def score(self, document: Mapping[str, Any], filtered: Any) -> StockOutcome:
        """Return what the metrics say of a filtered answer. Never raises: what goes wrong is the outcome's fault."""
        method = type(self._stock).process_results
        # lmms-eval tries again whatever goes wrong, five times, two seconds apart, for the sake of servers.
        method = getattr(method, "__wrapped__", method)
        try:
            with barred():
                # A copy: task code changes the documents that it gets.
                metrics = method(self._stock, copied(document), [filtered])
        except Connects as error:
            return StockOutcome(fault=f"process_results connects to {error}", connects=str(error))
        except Exception as error:  # task code of all kinds; a document without a verdict is better than no run
            return StockOutcome(fault=f"process_results raised {type(error).__name__}: {error}"[:_LONGEST_FAULT])
        if not isinstance(metrics, Mapping):
            return StockOutcome(fault=f"process_results returned {type(metrics).__name__} instead of metrics")
        return StockOutcome(metrics)

    def guarded(self, aggregation: Callable[..., Any], what: str) -> Callable[..., Any]:
        """Return an aggregation of the task, but NaN and a warning where it fails: everything is sampled by then.

        It keeps the signature, by which lmms-eval tells whether it takes `args`, and in `hedge_stock` the function
        itself, by which the plug-in finds its standard error.

        Args:
            what: task and metric, for the warning.
        """

        @functools.wraps(aggregation)
        def aggregate(*items: Any, **options: Any) -> Any:
            try:
                with barred():
                    return aggregation(*items, **options)
            except (Exception, Connects) as error:  # task code of all kinds
                logger.warning("{}: its aggregation raised {}: {}", what, type(error).__name__, error)
                return math.nan

        aggregate.hedge_stock = aggregation  # type: ignore[attr-defined]
        return aggregate


def alone(aggregation: Any, value: Any) -> Any:
    """Return what an aggregation says of one document; None where it fails, writes a file or connects."""
    try:
        # Some print a line a document, and some change what they get.
        with contextlib.redirect_stdout(io.StringIO()), barred(writing=True):
            return aggregation([copy.deepcopy(value)])
    except (Exception, Connects):  # task code of all kinds: then it has no number for one document
        return None


@contextlib.contextmanager
def barred(*, writing: bool = False) -> Iterator[None]:
    """Let this thread connect nowhere meanwhile, and open no file to write where that is asked for."""
    _watch()
    before = getattr(_barred, "events", ())
    _barred.events = ("socket.getaddrinfo", "socket.connect", *(("open",) if writing else ()))
    try:
        yield
    finally:
        _barred.events = before


@functools.cache
def _watch() -> None:
    """Python tells every connection and every opened file to this hook, which cannot be taken away again."""
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in getattr(_barred, "events", ()):
        return
    if event == "open":
        if isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(f"{arguments[0]} is not written while one document is looked at")
    elif event == "socket.getaddrinfo":
        raise Connects(arguments[0])
    elif isinstance(arguments[1], tuple):  # a text is a socket of this machine's file system
        raise Connects(arguments[1][0])


def copied(value: Any) -> Any:
    """Mappings and lists anew, whatever they hold as it is (functions, pictures)."""
    if isinstance(value, Mapping):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value

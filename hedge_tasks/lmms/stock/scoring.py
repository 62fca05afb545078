"""A stock task's own scoring of answers: its filters, then its `process_results`, a document at a time.

Whether it asks a language model is watched, not forecast: unless the user has named the metric, a connection that it
begins ends the scoring of that answer.
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

from hedge_tasks.sampling.prefetch import ordered

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
        connects: where it began to connect to, if that is what went wrong.
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
        may_connect: whether its scoring may connect. Its failures are then tried again as lmms-eval does, and errors
            that it logs and swallows count as faults: a server that is not there says "wrong" otherwise.
    """

    def __init__(self, stock: Any) -> None:
        self._stock = stock
        self.may_connect = False
        self.filters = list(dict.fromkeys(ensemble.name for ensemble in stock._filters))

    def score_all(
        self, documents: Any, texts: Sequence[str], *, workers: int = 1
    ) -> dict[str, list[tuple[Any, StockOutcome]]]:
        """Return, by filter, each text as the filter leaves it and what the metrics say of that.

        Args:
            documents: rows in the order of the texts, read one after the other in this thread. lmms-eval itself hands
                its filters the first rows of the split, whichever rows were asked.
            texts: one answer a document.
            workers: threads, as lmms-eval's `--process_docs_parallel`; with 1 everything stays in this thread.
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
        columns = [[instance.filtered_resps[name] for name in self.filters] for instance in instances]

        def score(item: tuple[Mapping[str, Any], Sequence[Any]]) -> list[tuple[Any, StockOutcome]]:
            return [(filtered, self.score(item[0], filtered)) for filtered in item[1]]

        pairs = zip(documents, columns, strict=True)
        rows = list(map(score, pairs) if workers == 1 else ordered(pairs, score, workers=workers, ahead=2 * workers))
        return {name: [row[i] for row in rows] for i, name in enumerate(self.filters)}

    def score(self, document: Mapping[str, Any], filtered: Any) -> StockOutcome:
        """Return what the metrics say of a filtered answer. Never raises: what goes wrong is the outcome's fault."""
        method = type(self._stock).process_results
        if not self.may_connect:
            # lmms-eval tries again whatever goes wrong, five times, two seconds apart, for the sake of servers.
            method = getattr(method, "__wrapped__", method)
        with _logged_errors() if self.may_connect else barred() as errors:
            try:
                # A copy: task code changes the documents that it gets.
                metrics = method(self._stock, copied(document), [filtered])
            except Connects as error:
                return StockOutcome(fault=f"process_results connects to {error}", connects=str(error))
            except Exception as error:  # task code of all kinds; a document without a verdict is better than no run
                cause = cause_of(error)
                return StockOutcome(fault=f"process_results raised {type(cause).__name__}: {cause}"[:_LONGEST_FAULT])
        if not isinstance(metrics, Mapping):
            return StockOutcome(fault=f"process_results returned {type(metrics).__name__} instead of metrics")
        return StockOutcome(metrics, f"its judge reported: {errors[0]}"[:_LONGEST_FAULT] if errors else None)

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
                with contextlib.nullcontext() if self.may_connect else barred():
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
def barred(*, writing: bool = False) -> Iterator[list[str]]:
    """Let this thread connect nowhere meanwhile, and open no file to write where that is asked for."""
    _watch()
    before = getattr(_barred, "events", ())
    _barred.events = ("socket.getaddrinfo", "socket.connect", *(("open",) if writing else ()))
    try:
        yield []
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


def cause_of(error: Exception) -> BaseException:
    """Return what went wrong; tenacity's `RetryError` says nothing by itself, and holds it."""
    attempt = getattr(error, "last_attempt", None)
    return (attempt.exception() if attempt is not None else None) or error


@contextlib.contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Errors that are logged in this thread meanwhile."""
    errors: list[str] = []
    me = threading.get_ident()

    def keep(message: Any) -> None:
        errors.append(message.record["message"])

    sink = logger.add(keep, level="ERROR", filter=lambda record: record["thread"].id == me)
    try:
        yield errors
    finally:
        with contextlib.suppress(ValueError):  # task code has removed all sinks
            logger.remove(sink)

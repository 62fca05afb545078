"""Making of records, many at a time, with counts of what was accepted and why the rest was not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from loguru import logger

from hedge_tasks.errors import ConfigError, DataError, HedgeError
from hedge_tasks.io.progress import progress
from hedge_tasks.llm.account import Account
from hedge_tasks.llm.concurrency import ask_each, in_threads
from hedge_tasks.llm.failures import ServerGone
from hedge_tasks.llm.log import ReplyLog
from hedge_tasks.making.asking import Asking, Unfinished

T = TypeVar("T")


class SourceRecord(Protocol):
    """A record that others are made from."""

    @property
    def id(self) -> str:
        """Unique among the source records."""


Source = TypeVar("Source", bound=SourceRecord)


@dataclass(frozen=True)
class MadeRecord:
    """Outcome for one source record.

    Attributes:
        row: What goes into the data set; None where nothing is good enough.
        steps: What happened, in its order: names that are counted in the report of the making.
        rejected: Why there is no row.
    """

    row: Mapping[str, Any] | None
    steps: tuple[str, ...] = ()
    rejected: str | None = None


@dataclass(frozen=True)
class Production:
    """Result of a making.

    Attributes:
        rows: In the order of the source.
        steps: How often each step happened, over all records.
        rejected: Reasons, with how many records each.
        unfinished: Ids of records whose requests failed, with the reason; run again to finish them.
        account: What the asking cost.
        total: Number of source records.
    """

    rows: Sequence[Mapping[str, Any]]
    steps: Mapping[str, int]
    rejected: Mapping[str, int]
    unfinished: Mapping[str, str]
    account: Account
    total: int

    def with_left_out(self, reason: str, count: int) -> Production:
        """Return the result with source records that were left out before."""
        if not count:
            return self
        return replace(self, rejected={**self.rejected, reason: count}, total=self.total + count)

    @property
    def complete(self) -> bool:
        return not self.unfinished

    def report(self) -> dict[str, Any]:
        """As JSON values, without the rows."""
        return {
            "records": self.total,
            "accepted": len(self.rows),
            "rejected": dict(sorted(self.rejected.items())),
            "unfinished": len(self.unfinished),
            "steps": dict(sorted(self.steps.items())),
            "asked": self.account.to_dict(),
        }


def produce(
    sources: Sequence[Source],
    make: Callable[[Source, Asking], MadeRecord],
    log: ReplyLog,
    *,
    seed: int = 0,
    concurrency: int = 16,
) -> Production:
    """Make a record of each source record.

    Args:
        sources: With distinct ids.
        make: The pipeline. It asks by the `Asking` that it is given and depends on nothing else but its source and
            models whose answers do not change, so that going over it again leads to the same end.
        log: Where replies are kept.
        seed: Of the whole making.
        concurrency: Records under way at any time.

    Raises:
        DataError: Two source records have one id.
        HedgeError: A server refuses every request, or is gone; earlier replies are kept.
    """
    twice = [name for name, times in Counter(source.id for source in sources).items() if times > 1]
    if twice:
        raise DataError(f"the source names {twice[0]!r} more than once")
    account = Account()

    def call(position: int, stop: threading.Event) -> MadeRecord | Unfinished:
        source = sources[position]
        try:
            return make(source, Asking(log, account, source.id, seed, stop))
        except Unfinished as failure:
            return failure

    results: dict[int, MadeRecord | Unfinished] = {}
    workers = max(1, min(concurrency, len(sources)))
    with progress(total=len(sources), name="Making", unit="record") as bar:
        try:
            calls = in_threads(call, workers)
            with closing(ask_each(calls, len(sources), workers, unreachable=_unreachable)) as batches:
                for batch in batches:
                    results.update(batch)
                    bar.update(len(batch))
                    accepted = sum(isinstance(r, MadeRecord) and r.row is not None for r in results.values())
                    bar.set_postfix(accepted=accepted, requests=account.total.requests, refresh=False)
        except ServerGone as gone:
            raise HedgeError(
                f"nobody answers any more ({gone.last}). Every reply is kept: the same command goes on from here"
            ) from None
    return _summary(sources, results, account)


def worker_of(spec: str | None) -> tuple[int, int] | None:
    """The Kth of N workers of `K/N`; None for all the work.

    Raises:
        ConfigError: It is not of that form.
    """
    if spec is None:
        return None
    place, _, count = spec.partition("/")
    if not (place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count)):
        raise ConfigError(f"--worker: expected K/N with K from 1 to N, such as 2/3, got {spec!r}")
    return int(place), int(count)


def share(sources: Sequence[T], worker: tuple[int, int] | None) -> list[T]:
    """The part of one worker of several."""
    return list(sources if worker is None else sources[worker[0] - 1 :: worker[1]])


def _unreachable(result: MadeRecord | Unfinished) -> bool:
    return isinstance(result, Unfinished) and result.unreachable


def _summary(
    sources: Sequence[SourceRecord], results: Mapping[int, MadeRecord | Unfinished], account: Account
) -> Production:
    rows, steps, rejected, unfinished = [], Counter[str](), Counter[str](), {}
    for position, source in enumerate(sources):
        result = results[position]
        if isinstance(result, Unfinished):
            unfinished[source.id] = str(result)
            continue
        steps.update(result.steps)
        if result.row is None:
            rejected[result.rejected or "rejected"] += 1
        else:
            rows.append(result.row)
    if unfinished:
        first = next(iter(unfinished.values()))
        logger.warning("{} of {} records are unfinished ({}); run again", len(unfinished), len(sources), first)
    return Production(rows, steps, rejected, unfinished, account, len(sources))

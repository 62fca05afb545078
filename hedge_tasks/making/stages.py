"""Making records by stages of requests: every reply is kept, so that a making that was killed is simply run again.

A construction is an ordinary function of one source row, which asks the models of its stages (`Asking.ask`). The same
question is answered from what is kept: run again, the function goes the same way without a request to where it was.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from loguru import logger

from hedge_tasks.errors import DataError
from hedge_tasks.io.progress import progress
from hedge_tasks.llm.account import Account
from hedge_tasks.llm.asker import DEFAULT_TOKENS, Asker, Query
from hedge_tasks.llm.concurrency import ask_each, in_threads
from hedge_tasks.llm.log import Reply, ReplyLog
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.reading import by_schema, read_object
from hedge_tasks.llm.template import Template
from hedge_tasks.numbers import Cell, Table

LEDGER = "ledger"
"""Folder of a making with every reply."""

TRIES = 3
"""Number of times that a question is put before a row does without its reply."""

_CHARACTERS_A_TOKEN = 4
T = TypeVar("T")
Models = Mapping[str, Sequence[Model]]
"""Those who are asked, by their role."""


class SourceRow(Protocol):
    """A row that others are made from."""

    @property
    def id(self) -> str:
        """Unique among the source rows."""


Source = TypeVar("Source", bound=SourceRow)


@dataclass(frozen=True)
class ReadRows(Generic[Source]):
    """Rows of a source.

    Attributes:
        rows: Those that have all that is needed, in its order.
        left_out: Why the others are none, naming them.
    """

    rows: Sequence[Source]
    left_out: Sequence[str] = ()


class Rejected(Exception):
    """Nothing is made of a row; the text says why, in words that are counted."""


class Unfinished(Exception):
    """A question got no reply: its row is left for another time, and nothing of it is lost."""

    def __init__(self, reason: str, *, unreachable: bool) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


@dataclass(frozen=True)
class MakingStage:
    """One kind of request.

    Attributes:
        prompt: How it is put, with the schema of its reply.
        role: Who is asked.
        read: An object of the schema -> what is made of it.
        passes: What was read, and the prompt's values -> why it is no good, before any other model is asked; empty
            where it may be.
        times: Fewest and most requests of a source row, where every reply can be read.
        sampling: `temperature`, `top_p`; greedy without.
    """

    prompt: Template
    role: str
    read: Callable[[dict[str, Any]], Any] = lambda reply: reply
    passes: Callable[[Any, Mapping[str, Any]], str] = lambda value, values: ""
    times: tuple[int, int] = (1, 1)
    sampling: Mapping[str, float] = field(default_factory=dict)

    def reading(self, reply: Reply) -> Any:
        """The values of a reply; keys that nobody asked for are passed over. Raises Unreadable."""
        return self.read(read_object(reply.text, self._accept))

    @cached_property
    def _accept(self) -> Callable[[dict[str, Any]], dict[str, Any]]:
        return by_schema(_open(self.prompt.reply_schema))


def _open(schema: Any) -> Any:
    """A JSON schema that lets other keys stand beside those it names."""
    if isinstance(schema, Mapping):
        return {key: _open(value) for key, value in schema.items() if key != "additionalProperties"}
    return [_open(part) for part in schema] if isinstance(schema, list) else schema


@dataclass(frozen=True)
class Asking:
    """The questions of one source row, and what is noted of them.

    Attributes:
        row: Its id.
        stages, models: By name, and by role.
        log: Where replies are kept.
        account: What is counted, by stage.
        seed: Of the whole making.
        stop: Ends pauses between retries once it is set.
        steps: What happened, in its order: counted in the report.
        controls: (model, kind, text with a known answer) -> whether it was answered right.
    """

    row: str
    stages: Mapping[str, MakingStage]
    models: Models
    log: ReplyLog
    account: Account
    seed: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    steps: list[str] = field(default_factory=list)
    controls: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    def control(self, model: Model, kind: str, text: str, right: bool) -> bool:
        """Note whether a model answered a question with a known answer right; returns it."""
        self.controls[model.name, kind, text] = right
        return right

    def ask(
        self,
        stage: str,
        values: Mapping[str, Any],
        *,
        model: Model | None = None,
        number: str = "",
        images: Sequence[Any] = (),
        image_keys: Sequence[str] = (),
        **sampling: float,
    ) -> Any:
        """The reply of a model.

        Args:
            stage: Its name.
            values: By the fields of its prompt.
            model: One of the stage's; by default the first.
            number: Tells apart questions that are put in the same words to get other replies.
            images: PIL images; `image_keys` are the digests of what they show.
            sampling: Beside the stage's own.

        Returns:
            As the stage reads it; None where `TRIES` replies were none of the form.

        Raises:
            Unfinished: The request failed, retries included.
            HedgeError: Every other request would fail the same way.
        """
        kind = self.stages[stage]
        model = model or self.models[kind.role][0]
        query = Query(
            kind.prompt,
            values,
            kind.reading,
            lambda: images,
            image_keys,
            sampling={**kind.sampling, **sampling},
            place=f"{self.seed}\0{self.row}\0{stage}\0{number}",
        )
        outcome = Asker(model, self.account, self.log, asks=TRIES, stage=stage).ask(query, self.stop)
        if outcome.failure is not None:
            raise Unfinished(f"{stage} ({model.name}): {outcome.failure}", unreachable=outcome.failure.unreachable)
        if outcome.value is None:
            self.steps.append(f"{stage}: unreadable")
        return outcome.value


@dataclass(frozen=True)
class Made:
    """Result of a making.

    Attributes:
        rows: In the order of the source.
        steps: How often each step happened, over all source rows.
        rejected: Why rows came to nothing, with how many each.
        unfinished: Ids of source rows whose requests failed, with the reason; run again to finish them.
        controls: (model, kind) -> controls answered right, and all.
        account: What the asking cost.
        total, accepted: Source rows, and those that something was made of.
    """

    rows: Sequence[Any]
    steps: Mapping[str, int] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    unfinished: Mapping[str, str] = field(default_factory=dict)
    controls: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    account: Account = field(default_factory=Account)
    total: int = 0
    accepted: int = 0

    def with_left_out(self, reasons: Mapping[str, int]) -> Made:
        """Return the result with source rows that were left out before."""
        return replace(
            self, rejected=Counter(self.rejected) + Counter(reasons), total=self.total + sum(reasons.values())
        )

    def without(self, reasons: Mapping[int, str], *, alone: bool = False) -> Made:
        """Return the result without the rows at some places.

        Args:
            reasons: By place.
            alone: Whether a source row makes a single row, so that so many fewer are accepted.
        """
        rows = [row for place, row in enumerate(self.rows) if place not in reasons]
        rejected = Counter(self.rejected) + Counter(reasons.values())
        return replace(self, rows=rows, rejected=rejected, accepted=self.accepted - alone * len(reasons))

    def report(self) -> dict[str, Any]:
        """As JSON values, without the rows."""
        controls = {f"{name}, {kind}": f"{right} of {n}" for (name, kind), (right, n) in sorted(self.controls.items())}
        return {
            "records": self.total,
            "accepted": self.accepted,
            "rejected": dict(sorted(self.rejected.items())),
            "unfinished": len(self.unfinished),
            "steps": dict(sorted(self.steps.items())),
            "controls": controls,
            "asked": self.account.to_dict(),
        }


def make(
    rows: Sequence[Source],
    build: Callable[[Source, Asking], Sequence[Any]],
    stages: Mapping[str, MakingStage],
    models: Models,
    folder: Path,
    *,
    seed: int = 0,
    concurrency: int = 16,
) -> Made:
    """Make what a construction makes of each source row; what is kept in the folder is not asked again.

    Args:
        rows: With distinct ids.
        build: The construction: the rows that one source row comes to. It depends on nothing but its row and replies.
            Raises Rejected.
        folder: Of the making.

    Raises:
        DataError: Two source rows have one id.
        HedgeError: A server refuses every request, or is gone; earlier replies are kept.
    """
    [(name, times)] = Counter(row.id for row in rows).most_common(1) or [("", 0)]
    if times > 1:
        raise DataError(f"the source names {name!r} more than once")
    account, results = Account(), dict[int, tuple[Asking, Sequence[Any] | Exception]]()

    def call(position: int, stop: threading.Event) -> tuple[Asking, Sequence[Any] | Exception]:
        asking = Asking(rows[position].id, stages, models, log, account, seed, stop)
        try:
            return asking, build(rows[position], asking)
        except (Rejected, Unfinished) as reason:
            return asking, reason

    workers = max(1, min(concurrency, len(rows)))
    with ReplyLog(folder / LEDGER) as log, progress(total=len(rows), name="Making", unit="row") as bar:
        calls = in_threads(call, workers)
        with closing(ask_each(calls, len(rows), workers, who="the server", unreachable=_unreachable)) as batches:
            for batch in batches:
                results.update(batch)
                bar.update(len(batch))
    return _collected(rows, [results[position] for position in range(len(rows))], account)


def _unreachable(result: tuple[Asking, Sequence[Any] | Exception]) -> Unfinished | None:
    return result[1] if isinstance(result[1], Unfinished) and result[1].unreachable else None


def _collected(
    rows: Sequence[SourceRow], results: Sequence[tuple[Asking, Sequence[Any] | Exception]], account: Account
) -> Made:
    unfinished = {row.id: str(out) for row, (_, out) in zip(rows, results, strict=True) if isinstance(out, Unfinished)}
    if unfinished:
        first = next(iter(unfinished.values()))
        logger.warning("{} of {} rows are unfinished ({}); run again", len(unfinished), len(rows), first)
    ended = [(asking, out) for asking, out in results if not isinstance(out, Unfinished)]
    controls = [(name, kind, right) for asking, _ in ended for (name, kind, _), right in asking.controls.items()]
    asked_of = Counter((name, kind) for name, kind, _ in controls)
    answered = Counter((name, kind) for name, kind, right in controls if right)
    lists = [out for _, out in ended if not isinstance(out, Exception)]
    return Made(
        [row for rows_of_source in lists for row in rows_of_source],
        Counter(step for asking, _ in ended for step in asking.steps),
        Counter(str(out) for _, out in ended if isinstance(out, Rejected)),
        unfinished,
        {key: (answered[key], n) for key, n in asked_of.items()},
        account,
        len(rows),
        len(lists),
    )


def cost(stages: Mapping[str, MakingStage], models: Models, n: int, characters: float) -> Table:
    """The price of a making: requests and tokens by stage, fewest and most.

    Args:
        n: Source rows.
        characters: Of a source row, in the mean; a prompt is taken to show all of them.
    """
    names = ("requests from", "to", "prompt tokens from", "prompt tokens to", "completion tokens to")
    rows: list[list[Cell]] = []
    for name, stage in stages.items():
        if models.get(stage.role) and stage.times[1]:
            fewest, most = (count * n for count in stage.times)
            words = sum(len(line) for part in stage.prompt.turns for line in part.text) or len(stage.prompt.system)
            tokens = (words + characters) / _CHARACTERS_A_TOKEN
            reply = stage.prompt.decoding.get("max_tokens", DEFAULT_TOKENS)
            rows.append([name, fewest, most, round(fewest * tokens), round(most * tokens), round(most * reply)])
    notes = [f"Of {n} rows; tokens at four characters each; replies are as long as they may be."]
    return Table.of(("stage", *names), rows, notes=notes)

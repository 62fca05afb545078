"""Replay: an entry's answers before the model that is said to have given them.

Whoever has the weights or the endpoint lets the model read texts of the entry, each after its own prompt and picture,
and draws as many anew. Two things have to hold: the entry's log-probabilities are the model's, and its answers are as
likely as fresh ones. Until then the answers of an entry are believed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from scipy.stats import wilcoxon

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import read_json
from hedge_tasks.io.records import AtLeastOne, Count, Record, Share
from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.numbers import WHOLE_PERCENT, format_p
from hedge_tasks.sampling.hook import outcomes
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.requests import DrawRequest
from hedge_tasks.sampling.reread import Reread, reread
from hedge_tasks.sampling.store import AnswerStore

if TYPE_CHECKING:
    from hedge_tasks.lmms.task import HedgeTask

TOLERANCE = 0.1
"""Nats per token by which a log-probability may differ: engines and precisions of one model differ by less."""

MOST_OFF = 0.1
"""Share of answers that may be farther off, such as those that are read as other tokens than they were drawn in."""

LEAST_P = 0.001
"""Below which answers as (un)likely as these are not the model's draws."""

_FRESH_SEED = 1 << 40
_LARGEST = 1 << 20


class Replay(Record):
    """The outcome of a replay.

    Attributes:
        entry: digest of the entry's answers.
        model: who has read them, as people are shown it.
        documents: questions that were picked.
        n_read: answers with a log-probability that the model has read.
        close: share of them whose log-probability is within `TOLERANCE` of the entry's.
        p_draws: whether the entry's answers are as likely as fresh ones, paired by question; 1 where nothing was drawn.
    """

    hedge_replay: Literal[1] = 1
    entry: str
    model: str
    documents: AtLeastOne
    n_read: Count
    close: Share
    p_draws: Share

    @property
    def holds(self) -> bool:
        """Whether the answers are the model's."""
        return self.n_read > 0 and self.close >= 1 - MOST_OFF and self.p_draws >= LEAST_P

    @property
    def in_words(self) -> str:
        return (
            f"{'replayed' if self.holds else 'NOT the answers of this model'} by {self.model}: {self.documents} "
            f"questions; {WHOLE_PERCENT(self.close)} of {self.n_read} log-probabilities within {TOLERANCE:g} nats a "
            f"token; fresh draws p {format_p(self.p_draws)}"
        )


def read_replay(path: Path, entry: Entry) -> Replay | None:
    """Read what a replay of an entry gave; None where there is none of these answers.

    Raises:
        DataError: the file is none.
    """
    if not path.is_file():
        return None
    replay = Replay.read(read_json(path, largest=_LARGEST, constants=False), str(path))
    return replay if replay.entry == entry.digest else None


def replay_entry(
    entry: Entry, task: HedgeTask, model: Any, name: str, documents: int, seed: int, progress: Any = iter
) -> Replay:
    """Let a model read an entry's answers and draw fresh ones.

    Args:
        entry: whose answers are read.
        task: of the entry, with its data.
        model: an adapter.
        name: of the model, for people.
        documents: how many questions are picked.
        seed: of the choice, and of the fresh draws; unknown to whoever wrote the entry.
        progress: goes through the questions.

    Raises:
        DataError: a draw fails, or the model does not tell how likely given answers are.
    """
    plan = SamplingPlan.from_generation_kwargs(dict(entry.settings["sampling"]))
    chance = random.Random(seed)
    picked = chance.sample(list(entry.documents), min(documents, len(entry.documents)))
    requests = {request.id: (row, request) for row, request in enumerate(task.documents(plan))}
    split = task.config.test_split
    rows = task.dataset[split]
    gaps: list[float] = []
    excess: list[float] = []
    for answers in progress(picked):
        index, request = requests[answers.id]
        fetch, row = partial(rows.__getitem__, index), (task.config.task, split, index)
        draws = [DrawRequest(request, draw, fetch, row) for draw in plan.draws(request.key)]
        stated = [answers.baseline, *answers.clean, *answers.noisy] if task.answers_are_free else [answers.baseline]
        readings = _readings(model, draws, stated)
        gaps += [gap for gap in map(_gap, stated, readings) if gap is not None]
        excess += _excess(model, draws, readings, answers, chance.randrange(_FRESH_SEED))
    differing = [value for value in excess if value]
    return Replay(
        entry=entry.digest,
        model=name[:500],
        documents=len(picked),
        n_read=len(gaps),
        close=sum(gap <= TOLERANCE for gap in gaps) / len(gaps) if gaps else 0.0,
        p_draws=float(wilcoxon(differing).pvalue) if differing else 1.0,
    )


def _readings(model: Any, draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> list[Reread | None]:
    """Return how likely a model finds answers to its first draws; None where it does not tell."""
    readings = reread(model, draws[: len(answers)], answers)
    reasons = [reading for reading in readings if isinstance(reading, str)]
    if len(reasons) == len(readings):
        raise DataError(f"document {draws[0].request.id[:80]!r}: {reasons[0]}")
    return [reading if isinstance(reading, Reread) else None for reading in readings]


def _gap(answer: Answer, reading: Reread | None) -> float | None:
    """Distance of the log-probabilities that entry and model have of an answer; None where one of them has none."""
    if reading is None or answer.mean_logprob is None or not math.isfinite(answer.mean_logprob):
        return None
    return abs(answer.mean_logprob - reading.mean_logprob)


def _excess(
    model: Any, draws: Sequence[DrawRequest], readings: Sequence[Reread | None], answers: AnswerSet, seed: int
) -> Iterator[float]:
    """Yield by how much the entry's clean answers, and its baseline, are likelier than as many fresh ones (nats)."""
    fresh_plan = draws[0].request.plan.replaced(seed=seed)
    request = replace(draws[0].request, plan=fresh_plan)
    fresh = [
        replace(old, request=request, draw=draw)
        for old, draw in zip(draws, fresh_plan.draws(request.key), strict=True)
        if draw.condition != "noisy"
    ][: len(readings)]
    new = _answers_to(model, fresh)
    reread_fresh = _readings(model, fresh, new)
    for start, end in ((0, 1), (1, 1 + len(answers.clean))):
        pairs = [
            (a.mean_logprob * a.n_tokens, b.mean_logprob * b.n_tokens)
            for a, b in zip(readings[start:end], reread_fresh[start:end], strict=True)
            if a is not None and b is not None
        ]
        if pairs:
            yield sum(a - b for a, b in pairs) / len(pairs)


def _answers_to(model: Any, draws: Sequence[DrawRequest]) -> list[Answer]:
    nowhere = AnswerStore(None)
    answers: dict[str, Answer | str] = {}
    for batch in outcomes(model, {str(i): (draw, nowhere) for i, draw in enumerate(draws)}):
        answers |= dict(batch)
    drawn = [answers.get(str(i), "no answer") for i in range(len(draws))]
    failed = next((answer for answer in drawn if isinstance(answer, str)), None)
    if failed is not None:
        raise DataError(f"document {draws[0].request.id[:80]!r}: a draw failed: {failed[:300]}")
    return [answer for answer in drawn if isinstance(answer, Answer)]

"""Sentinel questions: some of the calibration's, with its answers, asked again to see whether the server draws alike.

A server that ignores seeds and temperature, answers from a cache, or came back greedy gives ten equal draws to every
question, and a policy would let all of it through. The test compares fresh draws with the calibration's: given both
together, which of them are the fresh ones is chance as long as the server is the same. Too many equal answers among the
fresh ones tell of a frozen server, too few of the calibration's among them of another one. It is exact for any number
of draws (a permutation test over all questions together), and an honest server fails it in at most `LEVEL` of all
checks.
"""

from __future__ import annotations

import base64
import binascii
import math
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from loguru import logger
from PIL import Image
from pydantic import Field, model_validator

from hedge_tasks.clustering.exact import normalise
from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.data.pictures import decode_picture
from hedge_tasks.io.records import AtLeastOne, CleanText, Items, Record, Text

LEVEL = 1e-4
"""Share of the checks of an honest server that fail at most: asked every hour, less than one a year."""

DRAWS = 5
"""Fresh draws of each question in a check."""

MOST = 12
"""Questions that a policy keeps."""

LARGEST_PICTURES = 512 << 10
"""Bytes of the pictures of one question."""

EVERY_S = 3600.0
_AGAIN_AFTER_S = 60.0
_FIRST, _THOROUGH = 1_999, 99_999  # a p-value of 1e-4 takes many permutations, and few checks come near it
_SUSPICIOUS = 0.05
_SURELY_TOLD = LEVEL / 20
_FEWEST = 4


class Sentinel(Record):
    """A question with the answers that the calibrated model gave.

    Attributes:
        question: as the guard puts it into the policy's prompt.
        pictures: the files of its pictures, in base64.
        answers: texts in their exact-matching form, with how many clean draws had it.
    """

    question: CleanText
    pictures: Items[Text] = ()
    answers: Annotated[dict[str, AtLeastOne], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _has_pictures(self) -> Sentinel:
        try:
            for picture in self.pictures:
                base64.b64decode(picture, validate=True)
        except binascii.Error:
            raise ValueError("pictures: not base64") from None
        return self

    def images(self) -> list[Image.Image]:
        """The pictures, decoded.

        Raises:
            DataError: one cannot be read.
        """
        return [decode_picture(base64.b64decode(picture), "a sentinel question") for picture in self.pictures]


def choose(answers: Sequence[AnswerSet], pictures: Mapping[str, Sequence[bytes]]) -> tuple[Sentinel, ...]:
    """Questions whose answers differ enough that a frozen server cannot pass; none where there are too few of them.

    They are chosen by draws that are not kept for the comparison (the noisy ones, or else the first half of the clean
    ones): chosen by the kept ones, these would vary more than any fresh ones do.

    Args:
        answers: of the calibration.
        pictures: the files of documents' pictures by id, none for a question without; documents that are not there are
            not chosen.
    """
    ranked: list[tuple[float, float, Sentinel]] = []
    seen: set[object] = set()
    for answer_set in answers:
        files = pictures.get(answer_set.id)
        by = answer_set.noisy if len(answer_set.noisy) >= _FEWEST else answer_set.clean[: len(answer_set.clean) // 2]
        clean = answer_set.clean if len(answer_set.noisy) >= _FEWEST else answer_set.clean[len(answer_set.clean) // 2 :]
        group = answer_set.group if answer_set.group is not None else answer_set.id
        if answer_set.question is None or files is None or sum(map(len, files)) > LARGEST_PICTURES or group in seen:
            continue
        if min(len(by), len(clean)) < _FEWEST:
            continue
        seen.add(group)
        share = max(counts_of(by).values()) / len(by)
        texts = tuple(base64.b64encode(file).decode("ascii") for file in files)
        sentinel = Sentinel(question=answer_set.question, pictures=texts, answers=dict(counts_of(clean)))
        # Of answers that never come twice another server would not be told by what it says.
        ranked.append((abs(share - _BEST_SHARE), _log_passes(share, len(clean)), sentinel))
    best = sorted(ranked, key=lambda f: f[0])[:MOST]
    return tuple(f[2] for f in best) if sum(f[1] for f in best) <= math.log(_SURELY_TOLD) else ()


_BEST_SHARE = 0.45
"""Of the commonest answer: a frozen server stands out, and so does one with another model."""


def _log_passes(share: float, n: int) -> float:
    """Log of the chance that all fresh draws are one answer which so much of n calibrated draws had."""
    n_equal = round(share * n)
    return math.log(math.comb(n_equal + DRAWS, DRAWS)) - math.log(math.comb(n + DRAWS, DRAWS))


def counts_of(answers: Iterable[Answer]) -> Counter[str]:
    """How often each text was the answer, up to what exact matching does not see."""
    return Counter(normalise(answer.text) for answer in answers)


def p_value(pairs: Sequence[tuple[Mapping[str, int], Mapping[str, int]]], seed: int | None = None) -> float:
    """Of the hypothesis that calibrated and fresh draws come from the same server.

    Args:
        pairs: for each question the counts of calibrated and of fresh texts.
        seed: of the permutations; by default nobody can know them.
    """
    chance = np.random.default_rng(seed)
    tables = [_table(*pair) for pair in pairs if sum(pair[0].values()) and sum(pair[1].values())]
    if not tables:
        return 1.0
    p = _permuted(tables, _FIRST, chance)
    return _permuted(tables, _THOROUGH, chance) if p <= _SUSPICIOUS else p


_Table = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def _table(calibrated: Mapping[str, int], fresh: Mapping[str, int]) -> _Table:
    texts = sorted(calibrated.keys() | fresh.keys())
    now = np.array([fresh.get(text, 0) for text in texts], dtype=np.int64)
    return now, now + np.array([calibrated.get(text, 0) for text in texts], dtype=np.int64)


def _permuted(tables: Sequence[_Table], times: int, chance: np.random.Generator) -> float:
    equal, calibrated = np.zeros(times + 1), np.zeros(times + 1)
    for now, both in tables:
        draws = np.vstack([now, chance.multivariate_hypergeometric(both, int(now.sum()), times, method="marginals")])
        equal += (draws * (draws - 1)).sum(axis=1)
        calibrated += (draws * (both - draws)).sum(axis=1)
    frozen, unlike = (equal >= equal[0]).mean(), (calibrated <= calibrated[0]).mean()
    return float(min(1.0, 2 * min(frozen, unlike)))


@dataclass(frozen=True)
class ServerCheck:
    """A check of the server.

    Attributes:
        p_value: for the hypothesis that it is the one that was calibrated.
        passed: whether it is above `LEVEL`.
        draws: that were made.
    """

    p_value: float
    passed: bool
    draws: int


Ask = Callable[[Sequence[Sentinel], Sequence[Sequence[int]]], list[list[Answer]]]
"""Draws each sentinel once with each of its seeds."""


class ServerWatch:
    """Whether the server is the calibrated one: checked before the first answer, hourly, and when another one answers.

    Threads may share it. Whoever asks while a check is under way waits for it.

    Args:
        sentinels: of the policy; without any nothing is watched.
        ask: makes draws.
        every_s: seconds between two checks.
    """

    def __init__(self, sentinels: Sequence[Sentinel], ask: Ask, *, every_s: float = EVERY_S) -> None:
        self.sentinels, self._ask, self._every_s = tuple(sentinels), ask, every_s
        self.last: ServerCheck | None = None
        self.checks = 0
        self._known: set[Served] = set()
        self._next = -math.inf
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """ "unwatched", "unchecked", "passed" or "failed"."""
        if not self.sentinels:
            return "unwatched"
        return "unchecked" if self.last is None else "passed" if self.last.passed else "failed"

    @property
    def reason(self) -> str | None:
        """Why nothing may be accepted; None where that is no question of the server."""
        if self.state in ("unwatched", "passed"):
            return None
        if self.last is None:
            return "the server has not been checked with the sentinel questions"
        return (
            f"the server does not answer the sentinel questions as when calibrated (p = {self.last.p_value:.1g}): "
            "it may ignore seeds or the temperature, answer from a cache, or be another one"
        )

    def look(self, served: Iterable[Served | None] = ()) -> None:
        """Check the server where that is due, or where somebody answers whom no check has seen.

        Raises:
            HedgeError: the model does not answer. Then nothing is known, and nothing may be accepted.
        """
        if not self.sentinels:
            return
        with self._lock:
            new = {name for name in served if name is not None} - self._known
            if time.monotonic() >= self._next or (new and self.last is not None):
                self._check(new)

    def distrust(self) -> None:
        """Check before the next answer: the server was away, and may have come back as another one."""
        with self._lock:
            self._next = -math.inf

    def _check(self, new: set[Served]) -> None:
        self._next = -math.inf  # an error leaves the check due
        before, self.last = self.last, None
        seeds = [[secrets.randbits(62) for _ in range(DRAWS)] for _ in self.sentinels]
        answers = self._ask(self.sentinels, seeds)
        pairs = [(s.answers, counts_of(replies)) for s, replies in zip(self.sentinels, answers, strict=True)]
        p = p_value(pairs)
        self.last, self.checks = ServerCheck(p, p > LEVEL, sum(map(len, answers))), self.checks + 1
        if self.last.passed:
            self._known |= new | {a.served for replies in answers for a in replies if a.served is not None}
        elif before is None or before.passed:
            logger.error("nothing is accepted: {}", self.reason)
        self._next = time.monotonic() + (self._every_s if self.last.passed else min(_AGAIN_AFTER_S, self._every_s))

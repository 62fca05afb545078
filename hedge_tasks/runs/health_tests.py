"""One test of a run's health, and what all tests look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal

from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.numbers import PERCENT
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.draws import DrawsVerdict, verdict_on

State = Literal["verified", "not contradicted", "not verifiable", "contradicted"]

STATES: tuple[State, ...] = ("contradicted", "not verifiable", "not contradicted", "verified")
"""The gravest first."""


@dataclass(frozen=True)
class HealthTest:
    """One test of a run.

    Attributes:
        name: of what was looked at; of a setting its name.
        state: `verified` where nobody has to be believed; `not contradicted` where a test could have contradicted.
        text: what says so, or why nothing can.
        unreliable: whether the run's numbers cannot be relied on because of it.
        setting: whether it is the verdict on a setting.
        implied: whether another test contradicts as well, and is the one to be read.
        share: of documents or draws that are otherwise, where it is the test of one.
    """

    name: str
    state: State
    text: str = ""
    unreliable: bool = False
    setting: bool = False
    implied: bool = False
    share: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value and key != "share"}


@dataclass(frozen=True)
class Sampled:
    """All that tests look at: a run, and what several of them count in it."""

    run: Run

    @property
    def answer_sets(self) -> Sequence[AnswerSet]:
        return self.run.answer_sets

    def setting(self, name: str) -> Mapping[str, Any]:
        """One of the run's settings; empty where it is not recorded."""
        return self.run.settings.get(name) or {}

    def part(self, name: str) -> Mapping[str, Any]:
        """How the model behaved, as the run says: `decoding`, `probe`, `server` or `image_use`."""
        return self.setting("sampled").get(name) or {}

    @property
    def n_failed(self) -> int:
        """Documents left out."""
        return len(self.run.settings.get("failed") or ())

    @cached_property
    def verdicts(self) -> list[Mapping[str, Any]]:
        """On the baseline answers, with the labels of the answer sets: people's own come without a verdict."""
        return [{**(self.run.verdicts.get(a.id) or {}), "label": a.label} for a in self.answer_sets]

    @property
    def hot(self) -> bool:
        """Whether draws were to differ."""
        return self.part("decoding").get("temperature") != 0

    @cached_property
    def answers(self) -> list[Answer]:
        return [answer for answer_set in self.answer_sets for answer in answer_set.answers]

    @cached_property
    def distinct(self) -> list[int]:
        """Number of different clean answers of each document that has several."""
        return [len({answer.text for answer in a.clean}) for a in self.answer_sets if len(a.clean) > 1]

    @cached_property
    def draws(self) -> DrawsVerdict:
        """Of the clean draws against their own log-probabilities."""
        return verdict_on([a.clean for a in self.answer_sets], self.part("decoding"))

    @cached_property
    def served(self) -> dict[str, Counter[str]]:
        """By field of `Served` how many answers each value has."""
        servers = [answer.served for answer in self.answers if answer.served is not None]
        counts = {f.name: Counter(v for s in servers if (v := getattr(s, f.name)) is not None) for f in fields(Served)}
        return {name: count for name, count in counts.items() if count}


def share_test(
    name: str, n: int, total: int, text: str, some: float, many: float = 1.0, fewest: int = 1
) -> Iterator[HealthTest]:
    """Yield the test of a share: above `some` it is worth a word, above `many` the numbers cannot be relied on.

    Args:
        n, total: how many there are, and of how many; nothing is yielded without any.
        text: what they are, behind the share.
        fewest: below which nothing can be told.
    """
    if 0 < total < fewest:
        yield HealthTest(name, "not verifiable", f"only {total} tell")
    elif total and n > some * total:
        finding = f"{PERCENT(n / total)} of the {text}"
        yield HealthTest(name, "contradicted", finding, unreliable=n > many * total, share=n / total)
    elif total:
        yield HealthTest(name, "not contradicted", share=n / total)

"""One test of a run's health, and what all tests look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal

from hedge_tasks.data.answers import Answer, AnswerSet, Served
from hedge_tasks.numbers import PERCENT
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
        accounted: whether the intervals take it into account already.
        share: of documents or draws that are otherwise, where it is the test of one.
    """

    name: str
    state: State
    text: str = ""
    unreliable: bool = False
    setting: bool = False
    implied: bool = False
    accounted: bool = False
    share: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value and key != "share"}


@dataclass(frozen=True)
class Sampled:
    """All that tests look at.

    Attributes:
        answer_sets: of the run.
        report: how the model behaved, as a run has it under `sampled`.
        n_failed: documents left out.
        verdicts: on the baseline answers, with their labels; none where nobody judged.
        zero_entropy: by clustering the share of documents with a semantic entropy of 0.
        grouping: of the documents, as a run's settings have it.
    """

    answer_sets: Sequence[AnswerSet]
    report: Mapping[str, Any]
    n_failed: int = 0
    verdicts: Sequence[Mapping[str, Any]] = ()
    zero_entropy: Mapping[str, float | None] = field(default_factory=dict)
    grouping: Mapping[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> Mapping[str, Any]:
        """One part of the report: `decoding`, `probe`, `server` or `image_use`."""
        return self.report.get(name) or {}

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

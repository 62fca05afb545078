"""One test of a run's health, and what all tests look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
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
        asked: the value that was asked for, where it is a setting and a number.
        implied: whether another test contradicts as well, and is the one to be read.
        accounted: whether the intervals take it into account already.
    """

    name: str
    state: State
    text: str = ""
    unreliable: bool = False
    setting: bool = False
    asked: float | None = None
    implied: bool = False
    accounted: bool = False

    def line(self) -> str:
        """Return it in words, such as "top_p 1: not contradicted (top_p 0.01 gives one answer to 4 seeds)"."""
        value = "" if self.asked is None else f" {self.asked:g}"
        return f"{self.name}{value}: {self.state}" + (f" ({self.text})" if self.text else "")

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value not in (None, False, "")}


@dataclass(frozen=True)
class Sampled:
    """All that tests look at.

    Attributes:
        answer_sets: of the run.
        report: how the model behaved, as a run has it under `sampled`.
        n_failed: documents left out.
        verdicts: on the baseline answers, with their labels; None where nobody judged.
        zero_entropy: by clustering the share of documents with a semantic entropy of 0.
        grouping: of the documents, as a run's settings have it.
    """

    answer_sets: Sequence[AnswerSet]
    report: Mapping[str, Any]
    n_failed: int = 0
    verdicts: Sequence[Mapping[str, Any]] | None = None
    zero_entropy: Mapping[str, float] = field(default_factory=dict)
    grouping: Mapping[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> Mapping[str, Any]:
        """One part of the report: `decoding`, `probe`, `server` or `image_use`."""
        return self.report.get(name) or {}

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
    def served(self) -> dict[str, dict[str, int]]:
        """By field of `Served` how many answers each value has, the most frequent first."""
        servers = [answer.served for answer in self.answers if answer.served is not None]
        counts = {f.name: Counter(v for s in servers if (v := getattr(s, f.name)) is not None) for f in fields(Served)}
        return {name: dict(count.most_common()) for name, count in counts.items() if count}


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
        yield HealthTest(name, "contradicted", f"{PERCENT(n / total)} of the {text}", n > many * total)
    elif total:
        yield HealthTest(name, "not contradicted")

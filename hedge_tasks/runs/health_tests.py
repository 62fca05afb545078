"""One test of a run's health, and what all tests look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Literal

from hedge_tasks.data.answers import Served
from hedge_tasks.numbers import PERCENT
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics.draws import verdict_on

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


class Sampled:
    """All that tests look at: a run, and what several of them count in it.

    Attributes:
        decoding, probe, server, image_use, untold: how the model behaved, as the run says; empty where it does not.
        n_failed: number of documents left out.
        verdicts: on the baseline answers, with the labels of the answer sets: people's own come without a verdict.
        hot: whether draws were to differ.
        distinct: number of different clean answers of each document that has several.
        draws: verdict on the clean draws against their own log-probabilities.
        served: by field of `Served` how many answers each value has.
    """

    def __init__(self, run: Run) -> None:
        self.answer_sets, self.settings = run.answer_sets, run.settings
        sampled = run.settings.get("sampled") or {}
        parts = (sampled.get(name) or {} for name in ("decoding", "probe", "server", "image_use", "untold"))
        self.decoding, self.probe, self.server, self.image_use, self.untold = parts
        self.hot = self.decoding.get("temperature") != 0
        self.n_failed = len(run.settings.get("failed") or ())
        self.verdicts = [{**(run.verdicts.get(a.id) or {}), "label": a.label} for a in run.answer_sets]
        self.answers = [answer for answer_set in run.answer_sets for answer in answer_set.answers]
        self.distinct = [len({answer.text for answer in a.clean}) for a in run.answer_sets if len(a.clean) > 1]
        self.draws = verdict_on([a.clean for a in run.answer_sets], self.decoding)
        servers = [answer.served for answer in self.answers if answer.served is not None]
        counts = {f.name: Counter(filter(None, map(attrgetter(f.name), servers))) for f in fields(Served)}
        self.served = {name: count for name, count in counts.items() if count}


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
    elif n > some * total:
        finding = f"{PERCENT(n / total)} of the {text}"
        yield HealthTest(name, "contradicted", finding, unreliable=n > many * total, share=n / total)
    elif total:
        yield HealthTest(name, "not contradicted", share=n / total)

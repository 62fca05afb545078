"""Spread over seeds of runs that differ in the seed alone, and the draws' share of a number's variance, from one.

The interval of an AUROC is about documents like these, each with draws of its own, so that what the draws add is part
of it. A seed draws all answers anew, the judged one as well, and keeps the documents: how far numbers of several seeds
are apart is what other draws of the same model change. A seed chosen for its number is outside of any interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import SCORE_NAMES, Scores
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.numbers import FOUR_DIGITS, Column, Format, Number, Table
from hedge_tasks.runs.run_files import Run

_ENOUGH = 0.1
"""Share of the variance that draws have when more of them are not worth their price."""


_CHOSEN = "chosen"
"""Setting of a filter: the threshold that it found on the draws, which differs with the seed."""


def by_seed(run: Run, others: Iterable[Run]) -> dict[int, Run]:
    """Return a run and those that differ from it in the seed alone, by seed; the newest of each.

    Task, model, documents, prompt, filters, sampling and judge are the same. Empty where the run records no seed.
    """
    if _seed(run) is None:
        return {}
    settings = _without_seed(run)
    alike = [r for r in (run, *others) if _seed(r) is not None and _without_seed(r) == settings]
    runs = {seed: r for r in sorted(alike, key=lambda r: r.created) if (seed := _seed(r)) is not None}
    return dict(sorted(runs.items()))


def _seed(run: Run) -> int | None:
    seed = (run.settings.get("sampling") or {}).get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


def _without_seed(run: Run) -> dict[str, Any]:
    filters, sampling = ({**(run.settings.get(name) or {})} for name in ("filters", "sampling"))
    sampling.pop("seed", None)
    return {
        "task": run.task,
        "model": run.model,
        "questions": {(answers.id, answers.question) for answers in run.answer_sets},
        "judges": {(str(verdict.get("judge")), str(verdict.get("version"))) for verdict in run.verdicts.values()},
        "sampling": sampling,
        "filters": {name: {k: v for k, v in own.items() if k != _CHOSEN} for name, own in filters.items()},
        **{key: run.settings.get(key) for key in ("prompt", "documents")},
    }


@dataclass(frozen=True)
class SeedSpread:
    """A number at several seeds.

    Attributes:
        name: of the number.
        values: by seed, where it is defined.
        stated: root of the mean of its squared standard errors, each of which is over the documents of one seed.
    """

    name: str
    values: Mapping[int, float]
    stated: float | None

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the seeds; None of one seed."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        values = list(self.values.values())
        return {
            "name": self.name,
            "seeds": len(values),
            "mean": self.mean,
            "deviation": self.deviation,
            "lowest": min(values),
            "highest": max(values),
            "stated": self.stated,
        }


def spreads(scores: Mapping[int, Mapping[str, Sequence[Scores]]], detectors: Sequence[str]) -> list[SeedSpread]:
    """Return the AUROC of every detector and clustering at every seed.

    Args:
        scores: of each seed, by clustering.
        detectors: by name.
    """
    clusterings = dict.fromkeys(name for by_clustering in scores.values() for name in by_clustering)
    seed_spreads = []
    for clustering in clusterings:
        for detector in detectors:
            numbers = {seed: detection_auroc(s[clustering], detector) for seed, s in scores.items()}
            if spread := spread_of(f"{clustering} {detector}_auroc", numbers):
                seed_spreads.append(spread)
    return seed_spreads


def spread_of(name: str, numbers: Mapping[int, Number]) -> SeedSpread | None:
    """Return a number at every seed that has it; None where no seed has."""
    values = {seed: number.value for seed, number in numbers.items() if number.value is not None}
    squares = [number.stderr**2 for number in numbers.values() if number.stderr is not None]
    return SeedSpread(name, values, math.sqrt(float(np.mean(squares))) if squares else None) if values else None


def spread_table(seed_spreads: Sequence[SeedSpread], seeds: Sequence[int], title: str, whose: str) -> Table:
    """Return the table of numbers over seeds, with notes on their intervals and on whose labels they rest on."""
    columns = [
        Column("name", "over seeds"),
        Column("mean", format=FOUR_DIGITS),
        Column("deviation", "sd over seeds", format=FOUR_DIGITS),
        Column("lowest", format=FOUR_DIGITS),
        Column("highest", format=FOUR_DIGITS),
        Column("stated", "stated error", format=FOUR_DIGITS),
    ]
    named = ", ".join(map(str, sorted(seeds)))
    notes = [f"These runs differ in the seed alone and are one: seeds {named}. {COVERED}", whose]
    return Table(columns, [spread.to_dict() for spread in seed_spreads], title, notes)


COVERED = (
    "An interval is about documents like these, each drawn once; what other draws of these documents would change is "
    "the spread over seeds, and a seed chosen for its number is outside of any interval."
)
"""Scope of the intervals of one run, for people."""


@dataclass(frozen=True)
class DrawsShare:
    """How much of an AUROC's variance is the sampled answers'.

    Attributes:
        detector: by name.
        n: clean answers a question.
        stderr: what other draws of the same documents would change, as a standard error.
        share: of the variance that the interval is made of; None where the number has no error.
        enough: answers with which the share is a tenth; None where that cannot be told.
    """

    detector: str
    n: int
    stderr: float
    share: float | None
    enough: int | None


def draws_shares(
    answer_sets: Sequence[AnswerSet], scorer: Scorer, detectors: Sequence[str] = SCORE_NAMES
) -> list[DrawsShare]:
    """Return the draws' part of the variance, by a jackknife that leaves out one clean and one noisy answer at a time.

    Draws of one place are independent of those of another, in all documents at once. The baseline answer, and with it
    the label, stays. A detector whose number does not depend on the draws has a share of 0.
    """
    n = min((len(answers.clean) for answers in answer_sets), default=0)
    if n < 2:
        return []
    scorer = replace(scorer, detectors=tuple(detectors))
    whole = scorer.score([_with_draws(answers, range(n)) for answers in answer_sets])
    remaining = [[place for place in range(n) if place != left_out] for left_out in range(n)]
    without = [scorer.score([_with_draws(answers, places) for answers in answer_sets]) for places in remaining]
    shares = []
    for detector in detectors:
        number = detection_auroc(whole, detector)
        values = [value for scores in without if (value := detection_auroc(scores, detector).value) is not None]
        if number.value is None or len(values) < n:
            continue
        shares.append(share_of(detector, jackknifed(values), n, number.stderr))
    return shares


def jackknifed(values: Sequence[float]) -> float:
    """Return the standard error of a number from its values without each of its parts in turn (Tukey 1958)."""
    n = len(values)
    deviations = np.array(values) - np.mean(values)
    return math.sqrt((n - 1) / n * float(deviations @ deviations))


def share_of(detector: str, by_draws: float, n: int, stderr: float | None) -> DrawsShare:
    """Return the draws' part of a number's variance, from their standard error and that of the whole number."""
    if not stderr:
        return DrawsShare(detector, n, by_draws, None, None)
    share = min(1.0, (by_draws / stderr) ** 2)
    # The draws' variance falls as 1 / n; that of the documents stays.
    enough = math.ceil(n * share * (1 - _ENOUGH) / (_ENOUGH * (1 - share))) if share < 1 else None
    return DrawsShare(detector, n, by_draws, share, enough)


def _with_draws(answers: AnswerSet, places: Iterable[int]) -> AnswerSet:
    """Return the answer set with the clean and noisy answers of these places."""
    at = list(places)
    noisy = tuple(answers.noisy[i] for i in at if i < len(answers.noisy))
    return replace(answers, clean=tuple(answers.clean[i] for i in at), noisy=noisy, cluster_ids=None)


def shares_table(shares: Sequence[DrawsShare]) -> Table:
    """Return the table of the draws' shares of each number's variance, and how many draws are enough."""
    columns = [
        Column("detector", "the draws' share"),
        Column("n", "clean"),
        Column("stderr", "error by draws", format=FOUR_DIGITS),
        Column("share", "share of the variance", format=Format(digits=2)),
        Column("enough", "enough (a tenth)"),
    ]
    return Table(columns, [asdict(share) for share in shares], notes=[COVERED] if shares else [])

"""Which sentence of a report is wrong: detectors of sentences against the judge's verdicts on each of them.

Nearly every long report has a wrong sentence, so that a score of whole reports has little to tell apart. A sentence is
scored by how far the draws that are there support it (`hedge_tasks.claims`); no draw is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import DataError, unknown
from hedge_tasks.measures.detector_table import DetectorNumbers
from hedge_tasks.measures.unit_table import unit_table
from hedge_tasks.numbers import Column, Number, Table
from hedge_tasks.numbers.table import Cell
from hedge_tasks.runs.claims import find_claims
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.scorers import model_options
from hedge_tasks.statistics import StratifiedAuroc
from hedge_tasks.suites.medhallmark.measures import is_by_sentence

WORDS, NLI = "words", "nli"

SUPPORTS = (WORDS, NLI)
"""Tests of whether a draw supports a sentence: shared words, or the NLI model that the run clustered with."""

DETECTORS = ("claim_entropy", "claim_radflag", "claim_vase")
"""SE, RadFlag and VASE of sentences."""

BLIND = ("claim_position", "claim_length", "claim_affirmed", "claim_rarity")
"""Baselines that see neither image nor draws; a classifier of the wording joins them where there are enough images."""


@dataclass(frozen=True)
class Sentences:
    """Detectors of wrong sentences on the reports of one run.

    Attributes:
        model: of the run.
        support: one of `SUPPORTS`.
        reports, sentences, wrong: how many there are; sentences with a label.
        rows: detectors, and behind them the blind baseline that is best over all sentences, and within reports.
        reason: why there are no rows.
    """

    model: str
    support: str
    reports: int
    sentences: int = 0
    wrong: int = 0
    rows: tuple[DetectorNumbers, ...] = ()
    reason: str | None = None

    def facts(self) -> dict[str, Any]:
        """Return them for JSON."""
        counts = {name: getattr(self, name) for name in ("model", "support", "reports", "sentences", "wrong", "reason")}
        return {**counts, "detectors": [_facts(row) for row in self.rows]}


def sentences_of(runs: Sequence[Run], support: str = WORDS) -> list[Sentences]:
    """Return those of every run of reports with clean draws whose sentences were judged one by one.

    Args:
        support: one of `SUPPORTS`.

    Raises:
        ConfigError: there is no such support.
        Untrusted: a run that was read from a file names an NLI model that no installed task has.
    """
    if support not in SUPPORTS:
        raise unknown("support of sentences", support, SUPPORTS)
    return [
        _sentences_of_run(run, support)
        for run in runs
        if any(answers.clean for answers in run.answer_sets) and any(map(is_by_sentence, run.verdicts.values()))
    ]


def _sentences_of_run(run: Run, support: str) -> Sentences:
    origin = (run.model, support, len(run.answer_sets))
    options = model_options(run, NLI) if support == NLI else {}
    try:
        table = unit_table(find_claims(run, support, options=options, elsewhere=False, detectors=[*DETECTORS, *BLIND]))
    except DataError as error:
        return Sentences(*origin, reason=str(error))
    rows = [row for name in DETECTORS for row in table.rows if row.detector == name]
    rows += [row for name in dict.fromkeys(table.best_blind) for row in table.rows if row.detector == name]
    return Sentences(*origin, table.n_labelled, table.counted.n_positive, tuple(rows))


def _facts(row: DetectorNumbers) -> dict[str, Any]:
    estimates: dict[str, Number | StratifiedAuroc] = {"auroc": row.estimate, "within": row.within}
    numbers = {
        name: {"value": number.value, "stderr": number.stderr, "interval": number.interval, "reason": number.reason}
        for name, number in estimates.items()
    }
    return {"detector": row.detector, "title": row.title, "draws": row.draws, "blind": row.blind, **numbers}


def sentences_table(by_run: Sequence[Sentences], names: Mapping[str, str]) -> Table:
    """Detectors of sentences by model.

    Args:
        names: short names of models.
    """
    columns = [*map(Column, ("model", "support", "sentences", "wrong", "detector", "draws"))]
    for key, title in (("auroc", "AUROC"), ("within", "within")):
        columns += [Column(key, title), Column(f"{key}_interval", "95 %", show="interval", of=key)]
    rows: list[dict[str, Cell]] = []
    for sentences in by_run:
        counts: dict[str, Cell] = {"model": names[sentences.model], "support": sentences.support}
        counts |= {"sentences": sentences.sentences, "wrong": sentences.wrong}
        for row in sentences.rows:
            title = row.title + (" (blind)" if row.blind else "")
            rows.append({**counts, "detector": title, "draws": row.draws, "auroc": row.estimate, "within": row.within})
    title = (
        "Which sentence of a report is wrong: ROC-AUC over all sentences, and within the report; blind: the best of "
        "what sees neither image nor draws"
    )
    return Table(columns, rows, title=title, notes=[f"{names[o.model]}: {o.reason}" for o in by_run if o.reason])

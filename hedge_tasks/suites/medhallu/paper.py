"""MedHallu's tables out of finished runs: a row a run, from the verdicts in its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.measures.measure import SumsMeasure
from hedge_tasks.replies.parsing import HEDGE
from hedge_tasks.runs.run_files import Run
from hedge_tasks.suites.medhallu.documents import ABOUT, verdict_columns
from hedge_tasks.suites.medhallu.measures import MEASURES
from hedge_tasks.suites.papers import Paper, PaperRow, judge_settings, numbers_in


def rows_of(runs: Sequence[Run]) -> Iterator[PaperRow]:
    """Yield a row for every run of MedHallu, by model and what it is asked.

    Raises:
        DataError: a run is of an edition that kept less.
    """
    rows = [_row(run) for run in runs if judge_settings(run).get("judge") == "medhallu"]
    yield from sorted(rows, key=lambda row: (row.model, row.about["asked"], row.setting))


def _row(run: Run) -> PaperRow:
    settings, judge = run.settings["documents"], judge_settings(run)
    options = settings.get("options") or {}
    prompt = str(settings.get("prompt") or "").rpartition("/")[0].rpartition("/")[2] or "medhallu"
    parsing = str(judge.get("parsing", HEDGE))
    parts = [
        "artificial" if "artificial" in run.task else "labeled",
        str(options.get("show", "random")) + (f" {options['seed']}" if options.get("seed") else ""),
        *([prompt] if prompt != "medhallu" else []),
        *([parsing] if parsing != HEDGE else []),
    ]
    shown = {"knowledge": settings.get("context") is not None, "not sure": bool(judge.get("not_sure"))}
    setting = " + ".join(name for name, present in shown.items() if present) or "plain"
    read = replace(run, columns={answers.id: _columns(run, answers) for answers in run.answer_sets})
    numbers = numbers_in(read, [measure for measure in MEASURES if isinstance(measure, SumsMeasure)])
    about = {"asked": ", ".join(parts), "shown, offered": setting}
    return PaperRow(run.model, setting, numbers, about, {"documents": len(run.answer_sets)})


def _columns(run: Run, answers: AnswerSet) -> dict[str, Any]:
    verdict = run.verdicts.get(answers.id) or {}
    if answers.reference not in ("0", "1") or answers.group is None or not all(column in verdict for column in ABOUT):
        raise DataError(f"{run.title}, {answers.id}: its truth, row or {' or '.join(ABOUT)} is not recorded")
    own = {"truth": answers.reference, "row": answers.group, "difficulty": answers.question_type}
    return {**own, **{column: verdict[column] for column in ABOUT}, **verdict_columns(answers)}


PAPER = Paper("medhallu", __package__, rows_of, MEASURES)

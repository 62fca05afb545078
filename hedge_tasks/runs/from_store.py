"""A run out of an answer store: for evaluations that were killed before their end, and for stores without a run."""

from __future__ import annotations

from pathlib import Path

from loguru import logger

from hedge_tasks.adjudication import Case, judge_from
from hedge_tasks.adjudication.config import verdict_record
from hedge_tasks.asking.account import asked
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling import archive


def run_from_store(folder: Path, definition: str | None, judge: str) -> Run:
    """The complete answer sets of one definition, labelled by a judge. Documents that lack answers are left out.

    Args:
        folder: the store, or lmms-eval's output folder.
        definition: first digits of its id; None takes the only one.
        judge: name of a judge, or `name:option=value,...`.

    Raises:
        DataError: there is no store, nothing complete in it, or several definitions to choose from.
        ConfigError: judge or definition is unknown.
    """
    store = archive.open_store(folder)
    chosen = archive.choose_definition(store, definition)
    exported = archive.export(store, chosen)
    if exported.incomplete:
        logger.warning(
            "{}: partial, {} documents have not all their answers yet and are left out",
            folder,
            len(exported.incomplete),
        )
    answer_sets = [AnswerSet.read(line) for line in exported.lines]
    decides = judge_from(judge)
    cases = [Case(a.id, a.question or "", a.reference or "", a.baseline.text) for a in answer_sets]
    verdicts = decides.judge(cases)
    return Run(
        task=chosen.task,
        model=chosen.model or "",
        answer_sets=tuple(a.with_label(v.label) for a, v in zip(answer_sets, verdicts, strict=True)),
        verdicts={case.id: verdict_record(case, verdict) for case, verdict in zip(cases, verdicts, strict=True)},
        settings={
            "sampling": dict(chosen.sampling),
            "documents": {"judge": decides.settings()},
            "cost": {"labels": asked(decides)[0]},
        },
        path=folder,
    )

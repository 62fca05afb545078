"""A finished run judged anew: the same answers, other labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import Case, Judge, Verdict
from hedge_tasks.judging.config import verdict_record
from hedge_tasks.judging.fallback import own_reading
from hedge_tasks.runs.no_answer import is_cut
from hedge_tasks.runs.run_files import Run, now


def cases_of(run: Run) -> list[Case]:
    """Return the baseline answers of a run as cases. A run file holds no images.

    Raises:
        DataError: an answer has no question, which every judge needs; names it.
    """
    if nameless := [answers.id for answers in run.answer_sets if answers.question is None]:
        raise DataError(f"{nameless[0]}: there is no question, so the answer cannot be judged")
    return [case_of(answers, run.verdicts.get(answers.id)) for answers in run.answer_sets]


def case_of(answers: AnswerSet, record: Mapping[str, Any] | None = None) -> Case:
    """Return a baseline answer as every judge sees it, without its picture.

    Args:
        record: an earlier verdict, which may have what the answer set does not hold.
    """
    return Case(
        answers.id,
        answers.question or "",
        answers.reference or "",
        answers.baseline.text,
        description=(record or {}).get("description"),
        image_key=(record or {}).get("image_key"),
        cut=is_cut(answers.baseline),
        own=own_reading(answers.forced),
    )


def relabel(run: Run, judge: Judge) -> tuple[Run, list[Verdict]]:
    """Judge the baseline answers of a run.

    Returns:
        The run with the new labels and verdicts, with the judge in its settings and another time of creation; and the
        verdicts, in the order of its answer sets.

    Raises:
        HedgeError: what the judge raises.
    """
    verdicts = judge.judge(cases_of(run))
    documents = {**(run.settings.get("documents") or {}), "judge": judge.settings()}
    again = {"documents": documents, "judged_again": {"created": run.created, "judge": judge_of(run)}}
    judged = replace(run, settings={**run.settings, **again}, created=now(), path=None)
    return with_verdicts(judged, verdicts), verdicts


def with_verdicts(run: Run, verdicts: Sequence[Verdict]) -> Run:
    """The run with other verdicts on its baseline answers, in the order of its answer sets, and the labels of these."""
    pairs = list(zip(run.answer_sets, verdicts, strict=True))
    records = {a.id: verdict_record(case_of(a, run.verdicts.get(a.id)), v) for a, v in pairs}
    return replace(run, answer_sets=tuple(a.with_label(v.label) for a, v in pairs), verdicts=records)


def changes(before: Run, after: Run) -> dict[tuple[int | None, int | None], list[str]]:
    """Return the ids of documents whose label changed, by their labels (before, after)."""
    old = {a.id: a.label for a in before.answer_sets}
    changed: dict[tuple[int | None, int | None], list[str]] = defaultdict(list)
    for a in after.answer_sets:
        if (label := old.get(a.id)) != a.label:
            changed[label, a.label].append(a.id)
    return changed


def judge_of(run: Run) -> Mapping[str, Any] | Sequence[Any] | None:
    """Return the settings of the judge that labelled a run; None where they are not recorded."""
    return (run.settings.get("documents") or {}).get("judge")

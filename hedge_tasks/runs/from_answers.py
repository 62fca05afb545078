"""Runs out of answers that other tools have sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.judging import Judge, Verdict, configured_judge
from hedge_tasks.judging.config import Spec
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.runs.no_answer import why_no_answer
from hedge_tasks.runs.relabel import case_of, with_verdicts
from hedge_tasks.runs.run_files import Run, now

VERSION = "1"
"""Of the way in which labels of other tools are taken over."""


def run_from_answers(
    task: str,
    model: str,
    answer_sets: Sequence[AnswerSet],
    judge: Spec,
    *,
    given_by: str = "",
    source: str = "",
    closed: bool = False,
) -> Run:
    """Return a run of answers that other tools have sampled. Its filter is exact clustering, until it is scored again.

    Labels that the answers bring stay, but for baselines that decline: these have none. Without `given_by` what has a
    reference and no label is judged; with it, it stays unlabelled, for a run's labels are all of one judge.

    Args:
        judge: who judges where nobody has labelled; HEDGE_JUDGE takes its place.
        given_by: who has labelled the answers, or some of them; empty for nobody.
        source: names of the files, for the record.
        closed: whether answers are of a closed set, so that different ones contradict each other.
    """
    asked = [case_of(a) for a in answer_sets if a.label is None and a.reference]
    chosen: Judge | None = configured_judge(judge) if asked and not given_by else None
    judged = dict(zip([case.id for case in asked], chosen.judge(asked), strict=True)) if chosen else {}
    verdicts = [judged.get(a.id) or _given_verdict(a, given_by) for a in answer_sets]
    n, n_noisy = (max((len(getattr(a, name)) for a in answer_sets), default=0) for name in ("clean", "noisy"))
    documents = chosen.settings() if chosen else {"judge": given_by or "none", "version": VERSION}
    sampling = {"n": n, "n_noisy": n_noisy, "imported": True}
    return imported_run(task, model, answer_sets, verdicts, documents, sampling, source, closed=closed)


def imported_run(
    task: str,
    model: str,
    answer_sets: Sequence[AnswerSet],
    verdicts: Sequence[Verdict],
    judge: Any,
    sampling: Mapping[str, Any],
    source: str,
    *,
    closed: bool,
) -> Run:
    """Return a run of answers and the verdicts on them; see `run_from_answers`.

    Args:
        judge, sampling: settings of the judge and of the draws, for the record.
    """
    scorer = Scorer.build("exact", "exact", {"closed": True} if closed else {})
    settings = {
        "version": __version__,
        "documents": {"judge": judge},
        "sampling": sampling,
        "filters": {scorer.name: scorer.settings()},
        "source": source,
    }
    run = Run(task, model, tuple(answer_sets), settings=settings, created=now())
    return with_verdicts(run, verdicts)


def _given_verdict(answers: AnswerSet, given_by: str) -> Verdict:
    """Verdict from a label of another tool."""
    who, label = given_by or "none", answers.label
    if label == 1 and (why := why_no_answer(answers)) is not None:
        return of_unanswered(why, who, VERSION)
    return Verdict(label, "as given" if label is not None else "no label and no reference", who, VERSION)

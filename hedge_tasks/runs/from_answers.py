"""Runs out of answers that other tools have sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.option_order import options_in
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.judging import Case, Judge, Verdict, configured_judge
from hedge_tasks.judging.config import Spec
from hedge_tasks.judging.outcomes import of_unanswered
from hedge_tasks.replies import read_option
from hedge_tasks.replies.declining import declining_option, unanswered
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
    pairs = [(case_of(a), a.label) for a in answer_sets]
    asked = [case for case, label in pairs if label is None and case.reference]
    chosen: Judge | None = configured_judge(judge) if asked and not given_by else None
    judged = dict(zip([case.id for case in asked], chosen.judge(asked), strict=True)) if chosen else {}
    verdicts = [judged.get(case.id) or _given_verdict(case, label, given_by) for case, label in pairs]
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


def _given_verdict(case: Case, label: int | None, given_by: str) -> Verdict:
    """Verdict from a label of another tool. What is no answer says nothing false, whatever the label."""
    who = given_by or "none"
    if label == 1 and (why := _why_no_answer(case)) is not None:
        return of_unanswered(why, who, VERSION)
    return Verdict(label, "as given" if label is not None else "no label and no reference", who, VERSION)


def _why_no_answer(case: Case) -> str | None:
    """Why a baseline is no answer, by its words or by those of the option that it takes; None where it is one."""
    if why := unanswered(case.answer, cut=case.cut):
        return why
    options = {option.letter: option.text for option in options_in(case.question)}
    letter = read_option(case.answer, options, cut=case.cut).value if options else None
    return None if letter is None or letter == case.reference else declining_option(options[letter])

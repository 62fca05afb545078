"""Labels of the claims of a run: from its answers, from the verdicts on them, or from a judge of every claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.adjudication.base import NO_ANSWER, Case, Judge, Verdict
from hedge_tasks.claims.decomposition import Decomposed
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.sentences import sentence_spans
from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import DataError
from hedge_tasks.runs.run_files import Run
from hedge_tasks.scoring.relabel import judge_of

CLAIMS = "claims"
"""Of a verdict: labelled spans of the answer, where its claims were judged as well."""


def labelled_spans(run: Run) -> tuple[str, Mapping[str, Sequence[LabelledSpan]]]:
    """Where a run's labels of claims come from, and these by id.

    Spans of its answers, else verdicts on its claims, else verdicts on its sentences.

    Raises:
        DataError: a verdict's spans are none of its answer.
    """
    given = {a.id: a.claims for a in run.answer_sets if any(s.label is not None or s.silent for s in a.claims)}
    if given:
        return "spans of the answers", given
    told = {a.id: found for a in run.answer_sets if (found := _told(run, a))}
    if told:
        return "the run's verdicts on claims", told
    judged = {a.id: found for a in run.answer_sets if (found := _of_verdict(run, a))}
    return ("the run's verdicts on sentences", judged) if judged else ("", {})


def _told(run: Run, answers: AnswerSet) -> tuple[LabelledSpan, ...]:
    """Labels that stand in the verdict of a document."""
    told = (run.verdicts.get(answers.id) or {}).get(CLAIMS)
    return read_spans(told, answers.baseline.text, f"{answers.id}: verdict.{CLAIMS}")


def _of_verdict(run: Run, answers: AnswerSet) -> tuple[LabelledSpan, ...]:
    """Labels of sentences where the run's judge has judged each by itself (`hedge_tasks.evaluations.medhallmark`)."""
    verdict = run.verdicts.get(answers.id) or {}
    judge = judge_of(run)
    votes = verdict.get("votes")
    if not isinstance(judge, Mapping) or judge.get("unit") != "sentence" or not isinstance(votes, list):
        return ()
    places = sentence_spans(answers.baseline.text)
    if len(places) != len(votes):
        return ()
    return tuple(_of_vote(place, vote) for place, vote in zip(places, votes, strict=True) if isinstance(vote, Mapping))


def _of_vote(place: tuple[int, int], vote: Mapping[str, Any]) -> LabelledSpan:
    label, category = vote.get("label"), vote.get("category")
    severity = ("minor" if category == "minor" else "major") if label == 1 and isinstance(category, str) else None
    return LabelledSpan(*place, label if label in (0, 1) else None, False, severity)


def check_references(has_reference: Iterable[bool]) -> None:
    """Claims can be judged where some answer of the run has a reference.

    Args:
        has_reference: of each answer of all processes.

    Raises:
        DataError: none has one.
    """
    if not any(has_reference):
        raise DataError("there are no references that a judge could compare claims with")


def judged_spans(
    answer_sets: Sequence[AnswerSet],
    decomposed: Sequence[Decomposed],
    judge: Judge,
    about: Mapping[str, Case] | None = None,
) -> dict[str, tuple[LabelledSpan, ...]]:
    """Return what a judge says of every claim by itself, as labelled spans by the answer's id.

    Claims are judged with the reference of their answer. A verdict without a label whose category is not that of an
    answer that claims nothing ("silent" of the prompt `claim`) means that the reference is silent; one without either
    is no label.

    Args:
        about: by the answer's id what the judge sees of it besides, such as its picture.

    Raises:
        HedgeError: what the judge raises.
    """
    known = about or {}
    cases = [
        replace(known.get(a.id, Case(a.id, a.question or "", a.reference or "", "")), id=claim.id, answer=claim.text)
        for a, one in zip(answer_sets, decomposed, strict=True)
        for claim in one.claims
    ]
    verdicts = iter(judge.judge(cases))
    return {
        a.id: tuple(_of_judge((claim.start, claim.end), next(verdicts)) for claim in one.claims)
        for a, one in zip(answer_sets, decomposed, strict=True)
    }


def _of_judge(place: tuple[int, int], verdict: Verdict) -> LabelledSpan:
    if verdict.label is None and verdict.category not in (None, NO_ANSWER):
        return LabelledSpan(*place, None, True)
    return _of_vote(place, {"label": verdict.label, "category": verdict.category})

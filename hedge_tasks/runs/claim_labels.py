"""Labels of the claims of a run: from its answers, from the verdicts on them, or from a judge of every claim."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.claims.decomposition import Decomposed
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.sentences import sentence_spans
from hedge_tasks.data.spans import LabelledSpan, read_spans
from hedge_tasks.errors import DataError
from hedge_tasks.judging.base import NO_ANSWER, Case, Judge, Verdict
from hedge_tasks.runs.relabel import case_of, judge_of
from hedge_tasks.runs.run_files import Run

CLAIMS = "claims"
"""Of a verdict: labelled spans of the answer, where its claims were judged as well."""


def labelled_spans(run: Run) -> tuple[str, Mapping[str, Sequence[LabelledSpan]]]:
    """Return where a run's labels of claims come from, in words, and the labelled spans by the answer's id.

    Spans of its answers, else verdicts on its claims, else verdicts on its sentences.

    Raises:
        DataError: a verdict's spans are none of its answer.
    """
    of_answers = {a.id: a.claims for a in run.answer_sets if any(s.label is not None or s.silent for s in a.claims)}
    if of_answers:
        return "spans of the answers", of_answers
    of_verdicts = {a.id: spans for a in run.answer_sets if (spans := _verdict_spans(run, a))}
    if of_verdicts:
        return "the run's verdicts on claims", of_verdicts
    of_sentences = {a.id: spans for a in run.answer_sets if (spans := _sentence_spans(run, a))}
    return ("the run's verdicts on sentences", of_sentences) if of_sentences else ("", {})


def _verdict_spans(run: Run, answers: AnswerSet) -> tuple[LabelledSpan, ...]:
    """Return the labelled claims in the verdict on a document."""
    spans = (run.verdicts.get(answers.id) or {}).get(CLAIMS)
    return read_spans(spans, answers.baseline.text, f"{answers.id}: verdict.{CLAIMS}")


def _sentence_spans(run: Run, answers: AnswerSet) -> tuple[LabelledSpan, ...]:
    """Return labelled sentences where the run's judge judged each by itself (`hedge_tasks.suites.medhallmark`)."""
    verdict = run.verdicts.get(answers.id) or {}
    judge = judge_of(run)
    votes = verdict.get("votes")
    if not isinstance(judge, Mapping) or judge.get("unit") != "sentence" or not isinstance(votes, list):
        return ()
    places = sentence_spans(answers.baseline.text)
    if len(places) != len(votes):
        return ()
    pairs = zip(places, votes, strict=True)
    return tuple(_span_of_vote(place, vote) for place, vote in pairs if isinstance(vote, Mapping))


def _span_of_vote(place: tuple[int, int], vote: Mapping[str, Any]) -> LabelledSpan:
    label, category = vote.get("label"), vote.get("category")
    severity = ("minor" if category == "minor" else "major") if label == 1 and isinstance(category, str) else None
    return LabelledSpan(*place, label if label in (0, 1) else None, False, severity)


def check_references(has_reference: Iterable[bool]) -> None:
    """Check that some answer of the run has a reference, without which claims cannot be judged.

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
    answer_cases: Mapping[str, Case] | None = None,
) -> dict[str, tuple[LabelledSpan, ...]]:
    """Judge every claim by itself, and return labelled spans by the answer's id.

    Claims are judged with the reference of their answer. A verdict without a label whose category is not that of an
    answer that claims nothing ("silent" of the prompt `claim`) means that the reference is silent; one without either
    is no label.

    Args:
        answer_cases: by the answer's id what the judge sees of it besides, such as its picture.

    Raises:
        HedgeError: what the judge raises.
    """
    known = answer_cases or {}
    cases = [
        replace(known.get(a.id) or case_of(a), id=claim.id, answer=claim.text)
        for a, parts in zip(answer_sets, decomposed, strict=True)
        for claim in parts.claims
    ]
    verdicts = iter(judge.judge(cases))
    return {
        a.id: tuple(_span_of_verdict((claim.start, claim.end), next(verdicts)) for claim in parts.claims)
        for a, parts in zip(answer_sets, decomposed, strict=True)
    }


def _span_of_verdict(place: tuple[int, int], verdict: Verdict) -> LabelledSpan:
    if verdict.label is None and verdict.category not in (None, NO_ANSWER):
        return LabelledSpan(*place, None, True)
    return _span_of_vote(place, {"label": verdict.label, "category": verdict.category})

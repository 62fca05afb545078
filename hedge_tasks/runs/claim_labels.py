"""Labels of the claims of a run: from its answers, from the verdicts on them, or from a judge of every claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
    sources: dict[str, Callable[[AnswerSet], tuple[LabelledSpan, ...]]] = {
        "spans of the answers": lambda a: a.claims if any(s.label is not None or s.silent for s in a.claims) else (),
        "the run's verdicts on claims": lambda a: read_spans(
            (run.verdicts.get(a.id) or {}).get(CLAIMS), a.baseline.text, f"{a.id}: verdict.{CLAIMS}"
        ),
        "the run's verdicts on sentences": partial(_sentence_spans, run),
    }
    for title, spans_of in sources.items():
        if labelled := {a.id: spans for a in run.answer_sets if (spans := spans_of(a))}:
            return title, labelled
    return "", {}


def _sentence_spans(run: Run, answers: AnswerSet) -> tuple[LabelledSpan, ...]:
    """Return labelled sentences where the run's judge judged each by itself (`hedge_tasks.suites.medhallmark`)."""
    votes, judge = (run.verdicts.get(answers.id) or {}).get("votes"), judge_of(run)
    places = sentence_spans(answers.baseline.text)
    by_sentence = isinstance(judge, Mapping) and judge.get("unit") == "sentence"
    if not by_sentence or not isinstance(votes, list) or len(places) != len(votes):
        return ()
    judged = [(place, vote) for place, vote in zip(places, votes, strict=True) if isinstance(vote, Mapping)]
    return tuple(_judged_span(place, vote.get("label"), vote.get("category")) for place, vote in judged)


def _judged_span(place: tuple[int, int], label: object, category: object) -> LabelledSpan:
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
    silent = verdict.label is None and verdict.category not in (None, NO_ANSWER)
    return replace(_judged_span(place, verdict.label, verdict.category), silent=silent)

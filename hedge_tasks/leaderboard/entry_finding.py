"""The finding of an entry and its state of trust, in the words that its run's own report has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.errors import HedgeError
from hedge_tasks.leaderboard.stated import has_texts
from hedge_tasks.leaderboard.submission import stored_scores
from hedge_tasks.leaderboard.validation import ValidationFindings
from hedge_tasks.measures.run_finding import RunFinding, finding_of
from hedge_tasks.runs.run_files import Run


def finding_in(
    content: Mapping[str, Any], answer_sets: Sequence[AnswerSet], findings: ValidationFindings
) -> tuple[RunFinding | None, str]:
    """The finding of a valid submission, from those of its scores that were computed again; or why there is none.

    Args:
        content: the submission.
        answer_sets: of its documents.
        findings: of its validation.
    """
    documents, entry = content["documents"], content["entry"]
    if not has_texts(content):
        return None, "the texts are not in it, which part of a finding is about"
    verdicts = {d["id"]: {**d["judged"], "label": d["label"]} for d in documents}
    settings = dict(content["settings"])
    run = Run(entry["task"], entry["model"], tuple(answer_sets), verdicts, settings, entry["created"])
    scores = {
        name: [_verified(scored, verified_names) for scored in stored_scores(content, name)]
        for name, part in findings.clusterings.items()
        if part.verified and (verified_names := {d for d, its in findings.detectors[name].items() if its.verified})
    }
    if not scores:
        return None, "no scores of it could be computed again"
    try:
        return finding_of(run, scores), ""
    except (HedgeError, ArithmeticError, ValueError, TypeError, KeyError, AttributeError) as error:
        return None, f"its settings make none ({type(error).__name__})"  # a stranger's may be anything


def _verified(scores: Scores, detectors: Collection[str]) -> Scores:
    return replace(scores, numbers={name: value for name, value in scores.numbers.items() if name in detectors})

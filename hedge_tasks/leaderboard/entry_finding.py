"""The finding of an entry and its state of trust, in the words that its run's own report has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import HedgeError
from hedge_tasks.leaderboard.submission import stored_scores
from hedge_tasks.measures.run_finding import RunFinding, finding_of
from hedge_tasks.runs.run_files import Run


def finding_in(content: Mapping[str, Any], answer_sets: Sequence[AnswerSet]) -> RunFinding | None:
    """The finding of a valid submission, from its own scores; None without texts, which part of it is about.

    Args:
        content: the submission.
        answer_sets: of its documents.
    """
    documents, entry = content["documents"], content["entry"]
    if not all("texts" in document for document in documents):
        return None
    verdicts = {d["id"]: {**d["judged"], "label": d["label"]} for d in documents}
    about = (entry["task"], entry["model"], tuple(answer_sets), verdicts, dict(content["settings"]), entry["created"])
    scores = {name: stored_scores(content, name) for name in content["clusterings"]}
    try:
        return finding_of(Run(*about), scores)
    except (HedgeError, ArithmeticError, ValueError, TypeError, KeyError, AttributeError):
        return None  # a stranger's settings may be anything, and a page without this sentence is whole

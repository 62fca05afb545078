"""Paired comparisons of what runs gave: two scores of the same answers, or two runs on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loguru import logger

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import compare_columns, labelled
from hedge_tasks.errors import DataError
from hedge_tasks.measures.run_measures import Document, compare_documents, scored_documents
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison


def compare_two_scores(scores: Sequence[Scores], a: str, others: Sequence[Scores], b: str) -> Comparison | None:
    """Return the difference in AUROC of two scores of the same answers; None where no labelled document has both.

    Args:
        scores, a: answers under one clustering, and name of the first score.
        others, b: the same answers, also under another clustering, and name of the second score.
    """
    return compare_columns(labelled(scores, a), labelled(others, b))


def compare_two_runs(a: Sequence[Scores], b: Sequence[Scores], name: str) -> Comparison | None:
    """Return the difference in AUROC of one score in two runs, on the documents that both have labelled, if any."""
    measure = detector_auroc(name)
    return compare_documents(measure, scored_documents(a, measure), scored_documents(b, measure))


def compare_hallucination_rates(a: Sequence[AnswerSet], b: Sequence[AnswerSet]) -> Comparison | None:
    """Return the difference in the share of hallucinated baseline answers, on the documents that both have labelled."""
    sides = ([Document(s.id, s.group, {"value": s.label}) for s in answer_sets] for answer_sets in (a, b))
    return compare_documents(HALLUCINATION_RATE, *sides)


@dataclass(frozen=True)
class Overlap:
    """How many documents two runs have in common, and each alone."""

    both: int
    only_a: int
    only_b: int


def check_same_documents(a: Run, b: Run) -> Overlap:
    """Return what two runs have in common, by document id.

    Different references under one id are allowed, with a warning: a data set may have been corrected.

    Raises:
        DataError: nothing in common, or different questions under one id.
    """
    sets_a, sets_b = ({s.id: s for s in run.answer_sets} for run in (a, b))
    both = [(first, sets_b[id]) for id, first in sets_a.items() if id in sets_b]
    if not both:
        raise DataError(f"{a.title} and {b.title} have no document in common")
    for first, second in both:
        if first.question != second.question:
            raise DataError(
                f"{first.id} is {first.question!r} in {a.path} and {second.question!r} in {b.path}: "
                "these are not runs on the same questions"
            )
    if changed := [first.id for first, second in both if first.reference != second.reference]:
        logger.warning("{} documents have different references in the two runs, such as {}", len(changed), changed[0])
    return Overlap(len(both), len(sets_a) - len(both), len(sets_b) - len(both))

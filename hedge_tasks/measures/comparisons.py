"""Paired comparisons of what runs gave: two scores of the same answers, or two runs on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loguru import logger

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.units import compare_columns, labelled
from hedge_tasks.errors import DataError
from hedge_tasks.judging.designed import ExpertAudit
from hedge_tasks.measures.measure import Measure
from hedge_tasks.measures.run_measures import Document, compare_documents, estimate_of
from hedge_tasks.runs.run_files import Run
from hedge_tasks.statistics import Comparison
from hedge_tasks.statistics.experts import difference_of


def compare_two_scores(scores: Sequence[Scores], a: str, others: Sequence[Scores], b: str) -> Comparison | None:
    """Return the difference in AUROC of two scores of the same answers; None where no labelled document has both.

    Args:
        scores, a: answers under one clustering, and name of the first score.
        others, b: the same answers, also under another clustering, and name of the second score.
    """
    return compare_columns(labelled(scores, a), labelled(others, b))


def compare_two_runs(
    measure: Measure, sides: Sequence[Sequence[Document]], audits: Sequence[ExpertAudit | None]
) -> Comparison | None:
    """Return the difference of a number between two runs: by experts where audits stand beside both, else by the judge.

    Args:
        measure: of answers or of a detector, whose labels experts correct.
        sides: their documents, as the measure sees them; None is returned where they have none in common.
        audits: theirs.
    """
    labels = [audit.on([d.id for d in side]) for side, audit in zip(sides, audits, strict=True) if audit is not None]
    if len(labels) < len(sides):
        return compare_documents(measure, *sides)
    return difference_of(*(estimate_of(measure, *side) for side in zip(sides, labels, strict=True)))


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

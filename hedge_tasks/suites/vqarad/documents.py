"""VQA-RAD: the hub copy has image, question and answer only; what the paper's tables need is derived here."""

from __future__ import annotations

from datasets import Dataset
from loguru import logger

from hedge_tasks.detectors.pipeline import SCORE_NAMES
from hedge_tasks.errors import DataError
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc, of_question_type

OFFICIAL = {"closed": 251, "open": 200}
"""Questions of the official test split by the yes/no rule."""


def process_docs(dataset: Dataset) -> Dataset:
    """Add the answer type, which the hub copy has lost: yes/no answers are closed, all others open (251 and 200).

    Raises:
        DataError: a row has no answer; names it.
    """
    answers = dataset["answer"][:]
    if without := [row for row, answer in enumerate(answers) if not isinstance(answer, str) or not answer.strip()]:
        raise DataError(f"VQA-RAD: {len(without)} rows have no answer (rows {', '.join(map(str, without[:10]))})")
    types = [answer_type(answer) for answer in answers]
    counts = {name: types.count(name) for name in OFFICIAL}
    if counts != OFFICIAL:
        logger.warning(
            "VQA-RAD: {closed} closed and {open} open questions; the official test split has 251 and 200", **counts
        )
    return dataset.add_column("answer_type", types)


def answer_type(answer: str) -> str:
    return "closed" if answer.strip().lower() in ("yes", "no") else "open"


MEASURES = tuple(
    of_question_type(measure, kind)
    for measure in (*map(detector_auroc, SCORE_NAMES), HALLUCINATION_RATE)
    for kind in OFFICIAL
)
"""Closed and open questions apart: published numbers on VQA-RAD mean one or the other, or both."""

"""VQA-RAD: the hub copy has image, question and answer only; what the paper's tables need is derived here."""

from __future__ import annotations

from datasets import Dataset
from loguru import logger

from hedge_tasks.detectors.pipeline import SCORE_NAMES
from hedge_tasks.lmms.metrics import AurocMetric, HallucinationRate, Metric, OfQuestionType

OFFICIAL = {"closed": 251, "open": 200}
"""Questions of the official test split by the yes/no rule."""


def process_docs(dataset: Dataset) -> Dataset:
    """Add the answer type, which the hub copy has lost: yes/no answers are closed, all others open (251 and 200)."""
    types = [answer_type(answer) for answer in dataset["answer"]]
    counts = {name: types.count(name) for name in OFFICIAL}
    if counts != OFFICIAL:
        logger.warning(
            "VQA-RAD: {closed} closed and {open} open questions; the official test split has 251 and 200", **counts
        )
    return dataset.add_column("answer_type", types)


def answer_type(answer: str) -> str:
    return "closed" if answer.strip().lower() in ("yes", "no") else "open"


_WHOLE: tuple[Metric, ...] = (*map(AurocMetric, SCORE_NAMES), HallucinationRate("hallucination_rate"))

METRICS: dict[str, Metric] = {
    metric.__name__: metric for whole in _WHOLE for metric in (OfQuestionType(whole, kind) for kind in OFFICIAL)
}
"""Closed and open questions apart: published numbers on VQA-RAD mean one or the other, or both."""

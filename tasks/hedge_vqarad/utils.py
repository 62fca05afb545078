"""VQA-RAD: the hub copy has image, question and answer only; what the paper's tables need is derived here."""

from __future__ import annotations

from datasets import Dataset


def process_docs(dataset: Dataset) -> Dataset:
    """Add the answer type, which the hub copy has lost: yes/no answers are closed, all others open (251 and 200)."""
    return dataset.add_column("answer_type", [answer_type(answer) for answer in dataset["answer"]])


def answer_type(answer: str) -> str:
    return "closed" if answer.strip().lower() in ("yes", "no") else "open"

"""Draws of the demo's documents, and the comparison of their answers with the model's own log-probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engines.forced import deviation
from hedge_tasks.sampling import Answer, SamplingPlan
from hedge_tasks.sampling.prompts import Prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest


def demo_draws(documents: int = 6, n: int = 3, *, picture: bool = True, **settings: Any) -> list[DrawRequest]:
    """1 + 2 n draws of each of the first documents, the noisy ones on perturbed pictures.

    Args:
        picture: whether the prompts show one.
        settings: of the plan.
    """
    from datasets import Dataset

    from hedge_tasks.lmms.catalogue import task_folder

    rows = Dataset.from_parquet(str(task_folder() / "hedge_demo" / "data" / "demo-test.parquet"))
    plan = SamplingPlan(n=n, n_noisy=n, max_new_tokens=24, **settings)
    return [draw for i in range(documents) for draw in _of_document(rows[i], i, plan, picture)]


def _of_document(row: Mapping[str, Any], i: int, plan: SamplingPlan, picture: bool) -> list[DrawRequest]:
    request = SampleRequest(
        id=str(row["question_id"]),
        key=f"document {i}",
        question=row["question"],
        prompt=Prompt("plain/question", "<image>{question}" if picture else "{question}", None),
        plan=plan,
        load_images=lambda document: [document["image"]] if picture else [],
    )
    return [DrawRequest(request, draw, lambda: row, ("hedge_demo", "test", i)) for draw in plan.draws(request.key)]


def sample(adapter: Any, draws: Sequence[DrawRequest]) -> list[Answer]:
    """Every draw's answer, in order; none may fail."""
    outcomes = dict(pair for batch in adapter.generate_draws(draws) for pair in batch)
    answers = [outcomes[i] for i in range(len(draws))]
    assert all(isinstance(answer, Answer) for answer in answers), answers
    return answers


def deviations(draws: Sequence[DrawRequest], answers: Iterable[Answer]) -> list[float]:
    """Of every draw; see `engines.forced.deviation`."""
    return [
        deviation(draw.messages(), answer.text, answer.mean_logprob, answer.n_tokens)
        for draw, answer in zip(draws, answers, strict=True)
    ]


def clean_texts(draws: Sequence[DrawRequest], answers: Sequence[Answer]) -> list[list[str]]:
    """The texts of the clean draws, by document."""
    texts: dict[str, list[str]] = {}
    for draw, answer in zip(draws, answers, strict=True):
        if draw.draw.condition == "clean":
            texts.setdefault(draw.request.key, []).append(answer.text)
    return list(texts.values())

"""Scripted models for MedHallu: a user's own tasks, each of which asks one of them, on a stand-in for the data set."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import Dataset
from openai_server import Response, completion, texts_of

from hedge_tasks.lmms.catalogue import task_folder

LEVELS = ("easy", "medium", "hard")
KINDS = (
    "Misinterpretation of #Question#",
    "Incomplete Information",
    "Mechanism and Pathway Misattribution",
    "Methodological and Evidence Fabrication",
)
VARIANTS = ("", "_knowledge", "_notsure", "_knowledge_notsure")
ROWS = 24


def rows(n: int = ROWS) -> Dataset:
    return Dataset.from_list(
        [
            {
                "Question": f"Does drug {i} work?",
                "Knowledge": [f"Fact {i}.", "Another. And one more."],
                "Ground Truth": f"true answer {i} " + "long " * 8,
                "Difficulty Level": LEVELS[i % 3],
                "Hallucinated Answer": f"made up {i} " + "x" * i,
                "Category of Hallucination": KINDS[i % 4],
            }
            for i in range(n)
        ]
    )


def right(row: int, truth: int, variant: str) -> bool:
    """Whether the noisy model is right about an answer; with the abstract it mostly is."""
    return random.Random(f"{row} {truth} {'knowledge' in variant}").random() < (0.9 if "knowledge" in variant else 0.6)


def unsure(row: int, truth: int, variant: str) -> bool:
    """Whether the noisy model says 2 where it may: of every third row, the more so where it would be wrong."""
    return "notsure" in variant and (row % 3 == 0 or (row % 2 == 0 and not right(row, truth, variant)))


def logprob(row: int, truth: int) -> float:
    """Of the noisy model's one token; the same for some documents, so that there are ties."""
    return -0.1 * (1 + (row * 7 + truth) % 5)


def noisy_verdict(row: int, truth: int, variant: str) -> int:
    if unsure(row, truth, variant):
        return 2
    return truth if right(row, truth, variant) else 1 - truth


def of_stand_in(asked: str) -> tuple[int, int]:
    """Row and truth of what is asked about the stand-in."""
    return int(asked.partition("Does drug ")[2].partition(" ")[0]), 1 if "made up" in asked else 0


def reply(body: dict[str, Any], known: Callable[[str], tuple[int, int]] = of_stand_in) -> str | Response:
    """What a model says.

    Args:
        known: from question and answer, as they are shown, to row and truth.
    """
    [text] = texts_of(body)
    marks = text.split("\n", 1)[0].split()  # "MODEL noisy _notsure"
    model, variant = marks[1], marks[2] if len(marks) > 2 else ""
    row, truth = known(text[text.index("Question: ") :])
    said = {
        "perfect": f"{truth}",
        "always1": "1",
        "always0": "0",
        "noisy": f"{noisy_verdict(row, truth, variant)}",
        "verbose": f"The answer was read with care. It names {row} patients.\n\n**Final verdict: {truth}**",
        "thinking": f"<think>Perhaps 0, perhaps 1.</think>\n{truth}",
        "refusing": "I'm sorry, but I can't help with medical questions.",
        "cut": "<think>Is it 0 or 1? The answer says",
    }[model]
    if model == "cut":
        return Response(completion(said, finish_reason="length"))
    return Response(completion(said, [(said, logprob(row, truth))])) if model == "noisy" else said


MODELS = ("perfect", "always1", "always0", "noisy", "verbose", "thinking", "refusing", "cut")


def write_tasks(folder: Path, models: dict[str, tuple[str, ...]]) -> list[str]:
    """YAML files and prompts of one task a model and variant; their names."""
    folder.mkdir()
    names = []
    for model, variants in models.items():
        prompts = {}
        for variant in variants:
            context = "World knowledge: {context}\n" if "knowledge" in variant else ""
            prompts[variant.strip("_") or "plain"] = {"user": f"MODEL {model} {variant}\n{context}{{question}}"}
            names.append(f"own_{model}{variant}")
            (folder / f"{names[-1]}.yaml").write_text(
                f"include: {task_folder()}/hedge_medhallu/hedge_medhallu{variant}.yaml\n"
                f"task: {names[-1]}\ndataset_kwargs: {{show: both}}\n"
                "hedge_overrides:\n"
                f"  prompt: {folder}/{model}.json/{variant.strip('_') or 'plain'}\n"
                + ("  context: knowledge\n" if context else "")
                + f"  judge: {{name: medhallu, parsing: hedge, not_sure: {str('notsure' in variant).lower()}}}\n",
                "utf-8",
            )
        (folder / f"{model}.json").write_text(json.dumps({"prompts": prompts}), "utf-8")
    return names

"""Scripted models for Med-HallMark: a user's own tasks, each of which asks one of them, and a judge that knows them.

The model that always says 1 in MedHallu says "Yes." to every question here, the one that always says 0 says "No.".
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openai_server import Response, completion, texts_of
from PIL import Image

from hedge_tasks.data.local_data import write_rows
from hedge_tasks.data.sentences import split_sentences
from hedge_tasks.lmms.catalogue import task_folder
from hedge_tasks.suites.medhallmark.building import DATASET
from hedge_tasks.suites.medhallmark.released import PARTS

MODELS = ("perfect", "always1", "always0", "noisy", "verbose", "thinking", "refusing", "cut")

RIGHT = {"plain": 0.6, "weakened": 0.4}
"""How often an answer of the noisy model, or a sentence of its reports, is right: without prefix and with it."""

WRONG = {
    "catastrophic": "It shows the liver of a bird.",
    "critical": "There is a tumour of the fin.",
    "attribute": "It is on the ninth side.",
    "prompt_induced": "It is as you say.",
    "minor": "It was taken with a telescope.",
}
"""What the noisy model says where it is wrong, by the category that the judge gives it."""

IN_REPORTS = ("catastrophic", "critical", "attribute")
"""Categories that a sentence of a report can have besides correct."""


@dataclass(frozen=True)
class Known:
    """What the models know of an item."""

    part: str
    reference: str


Answers = Mapping[str, Known]
"""By id, that of a question with its prefix among them."""


def known(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> Answers:
    """By id, of the rows of each part as `building.build` writes them."""
    items = {}
    for part, of in rows.items():
        for row in of:
            items[row["id"]] = Known(part, row["reference"])
            items[f"{row['id']}-weakened"] = items[row["id"]]
    return items


def noisy_category(id: str, sentence: int, part: str) -> str:
    """Of the noisy model's answer, or of a sentence of its report."""
    chance = random.Random(f"{id} {sentence}")
    if chance.random() < RIGHT["weakened" if id.endswith("-weakened") else "plain"]:
        return "correct"
    return chance.choice(IN_REPORTS if part == "irg" else tuple(WRONG))


def answer(model: str, id: str, item: Known) -> str:
    """What a model writes about an item."""
    if model == "noisy":
        said = split_sentences(item.reference) if item.part == "irg" else [item.reference]
        kinds = [noisy_category(id, i, item.part) for i in range(len(said))]
        return " ".join(WRONG.get(kind, f"{text.rstrip('.')}.") for kind, text in zip(kinds, said, strict=True))
    return {
        "perfect": item.reference,
        "always1": "Yes.",
        "always0": "No.",
        "verbose": f"I looked at the image with care.\n\n**Final answer:** {item.reference}\n\nDo ask if you like.",
        "thinking": f"<think>Perhaps yes, perhaps no. {WRONG['critical']}</think>\n{item.reference}",
        "refusing": "I'm sorry, but I can't help with medical images.",
        "cut": "<think>Let me see. The image shows",
    }[model]


def category(said: str, reference: str, by_sentence: bool) -> str:
    """What the judge says: the reference, or several words of a report, is correct; the noisy faults are known."""
    text, whole = (" ".join(one.lower().split()).strip(" .") for one in (said, reference))
    if text == whole or (by_sentence and " " in text and text in whole):
        return "correct"
    return next((kind for kind, wrong in WRONG.items() if wrong == said.strip()), "catastrophic")


def reply(body: dict[str, Any], items: Answers) -> str | Response:
    """One server for all models and for the judge."""
    text = texts_of(body)[-1]
    if body["model"] == "judge":
        case = json.loads(text)
        by_sentence = "sentence_to_judge" in case
        said = case["sentence_to_judge" if by_sentence else "answer_to_judge"]
        kind = category(said, case["reference_report" if by_sentence else "reference_answer"], by_sentence)
        return json.dumps({"reason": "so", "category": kind})
    _, model, id = next(line for line in text.splitlines() if line.startswith("MODEL ")).split()
    said = answer(model, id, items[id])
    return Response(completion(said, finish_reason="length")) if model == "cut" else said


def write_tasks(folder: Path, url: str) -> list[str]:
    """YAML files and prompts of one task a model and part; their names."""
    folder.mkdir()
    names = []
    for model in MODELS:
        prompt = {"prompts": {"plain": {"user": f"<image>MODEL {model} {{context}}\n{{question}}"}}}
        (folder / f"{model}.json").write_text(json.dumps(prompt), "utf-8")
        for part in PARTS:
            names.append(f"own_{model}_{part}")
            judging = "medhallmark_report" if part == "irg" else "medhallmark"
            judge = f"{{name: llm, model: judge, prompt: {judging}, url: '{url}'}}"
            (folder / f"{names[-1]}.yaml").write_text(
                f"include: {task_folder()}/hedge_medhallmark/hedge_medhallmark_{part}.yaml\n"
                f"task: {names[-1]}\nhedge_overrides:\n"
                f"  prompt: {folder}/{model}.json/plain\n  context: id\n  judge: {judge}\n",
                "utf-8",
            )
    return names


def picture(number: int) -> bytes:
    """A small image, another one for every number."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), (number % 256, number // 256, 5)).save(buffer, "PNG")
    return buffer.getvalue()


# --- a stand-in for the data set --------------------------------------------------------------------------------------

REFERENCES = {
    "conventional": ["yes", "no", "axial", "yes", "left lung", "no", "yes", "CT", "the liver", "no", "yes", "MRI"],
    "confidence": ["yes", "no", "right", "no, there is none", "yes", "X-ray", "no", "yes"],
    "counterfactual": ["There is no kidney in this image.", "no", "It is no MRI.", "yes"],
    "irg": [
        "The lungs are clear. There is no effusion. The heart is of normal size.",
        "A nodule is seen on the left. The heart is enlarged.",
        "There is a fracture of the fourth rib. No effusion is seen. The aorta is calcified. The lungs are clear.",
        "Nothing has changed. The tube is in place. There is no pneumothorax.",
        "The lungs are small. The diaphragm is raised.",
    ],
}

N_IMAGES = {"conventional": 5, "confidence": 4, "counterfactual": 3, "irg": 5}

PREFIX = "You have seen few images, please answer: {question}"


def stand_in() -> dict[str, list[dict[str, Any]]]:
    """Rows of each part, as `building.build` writes them."""
    return {
        part: [
            {
                "id": f"{part}-{number}",
                "question": f"What of {number}?",
                "prefix": PREFIX if part == "confidence" else "",
                "reference": reference,
                "image_name": f"{part} {number % N_IMAGES[part]}",
                "image": {"bytes": picture(100 * PARTS.index(part) + number % N_IMAGES[part]), "path": None},
            }
            for number, reference in enumerate(references)
        ]
        for part, references in REFERENCES.items()
    }


def write_stand_in(hub: Path) -> Answers:
    """Write it where the tasks look for it with HEDGE_DATA_DIR; what the models know of it."""
    from datasets import Image as ImageColumn
    from datasets import Value

    rows = stand_in()
    for part, of in rows.items():
        columns = {name: ImageColumn() if name == "image" else Value("string") for name in of[0]}
        write_rows(hub / DATASET.replace("/", "__") / part / "test.parquet", of, columns)
    return known(rows)

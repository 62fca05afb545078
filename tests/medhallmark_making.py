"""Scripted models for `hedge make medhallmark`, and the rows that they are given."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from making import asked_of
from openai_server import texts_of
from PIL import Image

from hedge_tasks.making.medhallmark.sources import VqaRow

_EXAMPLE = "Given the visible cardiac silhouette showing abnormal features on the CT scan, what follows?"


def rows(count: int) -> list[dict[str, Any]]:
    """Questions about organs by number; from 12 on the dimension is not said."""
    made = []
    for n in range(count):
        answer = f"No, organ {n} is not seen." if n % 4 == 2 else f"Yes, organ {n} is on the left side."
        row = {"image": f"img{n}.png", "question": f"Is organ {n} on the left side?", "answer": answer}
        made.append({**row, **({"dimension": "organ"} if n < 12 else {})})
    return made


def vqa_rows(count: int) -> list[VqaRow]:
    return [
        VqaRow(f"q-{n}", r["image"], r["question"], r["answer"], r.get("dimension")) for n, r in enumerate(rows(count))
    ]


def write_images(folder: Path, count: int) -> Path:
    folder.mkdir()
    for n in range(count):
        Image.new("RGB", (40, 40 + n), (n * 9 % 256, 30, 60)).save(folder / f"img{n}.png")
    return folder


def number_of(text: str) -> int:
    return int(re.findall(r"organ (\d+)", text)[-1])


def style(*parts: object) -> str:
    """Words that no other text has."""
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return " ".join(f"w{digest[at : at + 6]}" for at in range(0, 30, 6))


def rewrites_of(question: str) -> list[str] | None:
    """By the number modulo 4: three good ones; an echo, a rhetorical one, a good one; a refusal, one about the other
    side, a good one; nothing that can be read.
    """
    n, side = number_of(question), "right" if "right" in question else "left"

    def good(k: int, side: str = side) -> str:
        return f"Please say of organ {n}, {style(question, k)}, whether it lies {side}?"

    if n % 4 == 0:
        return [good(1), good(2), good(3)]
    if n % 4 == 1:
        return [question, f"Organ {n} lies {side}, doesn't it?", good(1)]
    if n % 4 == 2:
        return ["I'm sorry, but I cannot help with that.", good(9, "left" if side == "right" else "right"), good(1)]
    return None


def pairs_of(question: str) -> list[tuple[str, str]]:
    """By the number modulo 3: two good ones; a good one and a true premise; the prompt's example in part, a marker."""
    n = number_of(question)

    def pair(k: int, side: str = "right") -> tuple[str, str]:
        asked = f"Given that organ {n} lies on the {side}, {style(question, k)}, what follows?"
        return asked, f"That organ {n} lies on the {side} is incorrect, {style(question, k)}."

    if n % 3 == 0:
        return [pair(1), pair(2)]
    if n % 3 == 1:
        return [pair(1), pair(2, "left")]
    return [(_EXAMPLE, "It is incorrect."), (f"[HALLUCINATED] What follows of organ {n} on the right?", "No.")]


def play(body: dict[str, Any]) -> str:
    """Reply of whatever part is asked for."""
    text = "\n".join(texts_of(body))
    if "3 new question" in text:
        found = rewrites_of(re.findall(r'"question": "(.*)"\n', text)[-1])
        return "no JSON" if found is None else json.dumps({"questions": found})
    if "misleading questions" in text:
        pairs = pairs_of(re.findall(r"Original Question: (.*)\n", text)[-1])
        keys = ("misleading_question", "ideal_response")
        return json.dumps({"pairs": [dict(zip(keys, pair, strict=True)) for pair in pairs]})
    if "a sentence about the image" in text:
        return json.dumps({"answer": answer_of(number_of(text))})
    if "You grade answers" in text:
        wrong = "right" in json.loads(texts_of(body)[-1])["answer_to_judge"]
        return json.dumps({"reason": "the side", "category": "attribute" if wrong else "correct"})
    fields = asked_of(body)
    if "other_question" in fields:
        one, other = (
            (set(re.findall(r"\b(?:left|right)\b", t)), number_of(t))
            for t in (fields["question"], fields["other_question"])
        )
        return json.dumps({"same": one == other})
    if "candidate_answer" in fields:
        return json.dumps({"verdict": verdict_of(fields), "sentence": 1})
    return json.dumps({"dimension": "organ"})


def verdict_of(fields: dict[str, Any]) -> str:
    """Whether the side is the left one, and, of those that are not seen, whether it says so."""
    text = fields["candidate_answer"]
    if "incorrect" in text or "agreed" in text:
        return "supported"
    if "right" in text or ("Yes, organ" in text and "left" not in text):
        return "contradicted"
    return "supported" if "left" in text or "not seen" in text else "undecided"


def answer_of(n: int) -> str:
    """By the number modulo 4: right, wrong, beside the point, no answer."""
    return (f"agreed about organ {n}", f"Organ {n} lies right.", f"There is organ {n}.", "")[n % 4]

"""The released JSON files of Med-HallMark (github.com/ydk122024/Med-HallMark), read into items.

What is odd about them, and what is made of it:

- The questions with human labels stand inside the prompt of the paper's detector; they are cut out of it.
- Conventional items 366 to 500 have no reference, and another prompt around them; item 365 is not there.
- Conventional items 126, 250 and 316 are labelled correct although answer (bladder) and reference (intestines) differ.
- Confidence items have a prefix, a question and one answer, and nothing says whose. By the paper (section 3.4) the
  questions are those that LLaVA-Med answered correctly, with the corrected answers as references, so it is taken as the
  reference. They carry no label.
- Report items have empty fields and no label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.perturb.text import QUESTION, load_templates
from hedge_tasks.suites import documents

PARTS = ("conventional", "confidence", "counterfactual", "irg")
"""Kinds of questions, one file each; also the configs of the local data set."""

_FILES = {
    "conventional": "conventional",
    "confidence": "confidenceweakening",
    "counterfactual": "counterfactual",
    "irg": "irg",
}
_LABELS = {
    "Catastrophic Hallucinations": "catastrophic",
    "Critical Hallucinations": "critical",
    "Attribute Hallucinations": "attribute",
    "Prompt-induced Hallucinations": "prompt_induced",
    "Minor Hallucinations": "minor",
    "Correct Statements": "correct",
}
CATEGORIES = tuple(_LABELS.values())

_JUDGED = re.compile(
    r"\nquestion: (?P<question>.*?)\nMed-VLM answer: (?P<answer>.*?)"
    r"(?:\nground-truth: (?P<reference>.*?))?\n\nPlease judge",
    re.DOTALL,
)


@dataclass(frozen=True)
class MedHallMarkItem:
    """One released item.

    Attributes:
        id: of the part, such as "conventional-17": its own id, or its place in the file from 1.
        question: without the prefix.
        prefix: the confidence-weakening introduction with `{question}`; empty for none.
        reference: empty where the file has none.
        image: its name in the file, such as "rad/synpic49914.jpg".
        answer: of the Med-VLM that was judged by people; None where nothing was.
        category: what people called that answer, one of `CATEGORIES`; None without a label.
    """

    id: str
    question: str
    reference: str
    image: str
    prefix: str = ""
    answer: str | None = None
    category: str | None = None


def read_part(folder: Path, part: str) -> list[MedHallMarkItem]:
    """Return the items of one part.

    Raises:
        DataError: the file is missing, or not of the released form: names the file and the item.
    """
    path = find_file(folder, part)
    items = []
    for number, row in enumerate(documents.read_items(path), 1):
        try:
            items.append(_READERS[part](row, number))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise DataError(f"{path}, item {number}: not a {part} item ({error})") from None
    return items


def find_file(folder: Path, part: str) -> Path:
    """Return the file of a part, whatever its name's capitals, dots and underscores ("Conventional..json").

    Raises:
        DataError: there is none, or there are several.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    matches = [f for f in sorted(folder.glob("*.json")) if re.sub(r"[^a-z]", "", f.stem.lower()) == _FILES[part]]
    if len(matches) != 1:
        names = ", ".join(f.name for f in sorted(folder.glob("*.json"))) or "no JSON file"
        raise DataError(f"{folder}: expected one file for the {part} questions, found {len(matches)} (there: {names})")
    return matches[0]


def _judged(part: str) -> Callable[[Mapping[str, Any], int], MedHallMarkItem]:
    def read(row: Mapping[str, Any], number: int) -> MedHallMarkItem:
        prompt, label = (turn["value"] for turn in row["conversations"])
        match = _JUDGED.search(prompt[prompt.rindex("Here is the question received") :])
        if match is None:
            raise ValueError("no question and answer in the prompt")
        answer, reference = match["answer"].strip(), (match["reference"] or "").strip()
        category = _LABELS[label.strip()]
        item = (f"{part}-{int(row['id'])}", _text(match["question"]), reference, _text(row["image"]))
        return MedHallMarkItem(*item, answer=answer, category=category)

    return read


def _confidence(row: Mapping[str, Any], number: int) -> MedHallMarkItem:
    prompt, answer = (_text(turn["value"]) for turn in row["conversations"])
    prefix, question = split_prefix(prompt)
    return MedHallMarkItem(f"confidence-{number}", question, answer, _text(row["image"]), prefix)


def split_prefix(prompt: str) -> tuple[str, str]:
    """Return the template and the question behind it; the template is empty where the text begins with none of the ten.

    Example:
        >>> split_prefix("You are an AI with incomplete medical training, answer this question: Is it CT?")[1]
        'Is it CT?'
    """
    for template in load_templates("confidence_weakening"):
        before, _, after = template.partition(QUESTION)
        if prompt.startswith(before) and prompt.endswith(after):
            return template, prompt[len(before) : len(prompt) - len(after)].strip()
    return "", prompt


def _report(row: Mapping[str, Any], number: int) -> MedHallMarkItem:
    question, reference, image, answer = (
        _text(row[key]) for key in ("question", "ground-truth", "image", "Med-VLM answer")
    )
    return MedHallMarkItem(f"irg-{number}", question, reference, image, answer=answer)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected text, got {value!r}")
    return value.strip()


_READERS: Mapping[str, Callable[[Mapping[str, Any], int], MedHallMarkItem]] = {
    "conventional": _judged("conventional"),
    "confidence": _confidence,
    "counterfactual": _judged("counterfactual"),
    "irg": _report,
}

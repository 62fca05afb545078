"""From a row of MedHallu (a question, its true and a hallucinated answer) to what a model is shown."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from hedge_tasks.data.answers import AnswerSet, option_logprobs
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io.outside import parse_json, read_text, shown
from hedge_tasks.suites.documents import check_columns, check_options
from hedge_tasks.suites.medhallu.mesh import letter_of

if TYPE_CHECKING:
    from datasets import Dataset

OPTIONS: Mapping[str, Any] = {"show": "random", "seed": 0, "mesh": None, "knowledge": "lines"}

KNOWLEDGE = ("lines", "list")
"""How the paragraphs of an abstract are shown: a line each, or as Python prints a list, as the reference code does."""

SHOWN = ("random", "both", "true", "hallucinated")

CATEGORIES = {
    "misinterpretation": "misinterpretation of",
    "incomplete": "incomplete information",
    "mechanism": "mechanism and pathway",
    "evidence": "methodological and evidence",
}
"""Short names of the kinds of hallucination, and how the data set's names for them begin (lower case)."""

ABOUT = ("kind", "mesh")
"""Columns that the run file keeps with each verdict: an answer set has the others as group, type and reference."""

_QUESTION, _TRUE, _HALLUCINATED = "Question", "Ground Truth", "Hallucinated Answer"
_NEEDED = (_QUESTION, "Knowledge", _TRUE, "Difficulty Level", _HALLUCINATED, "Category of Hallucination")


def process_docs(dataset: Dataset, **options: Any) -> Dataset:
    """Return the documents that are asked about, one or two a row.

    Args:
        dataset: with the columns of `UTAustin-AIHealth/MedHallu`.
        options: `show`: which answer of a row: "random" (the paper's protocol; a coin that only the seed and the
            question decide), "both" (two documents a row), "true" or "hallucinated". `seed` of the coin. `mesh`: a file
            with the MeSH group of each question, see `read_groups`. `knowledge`: see `KNOWLEDGE`.

    Returns:
        Columns: id (row number and `-t` or `-h`), row, asked (question and shown answer), knowledge (text), truth ("1"
        where the shown answer is hallucinated, else "0"), difficulty, kind (short name of the category), mesh (None
        where it is not known), length (characters of the shown answer).

    Raises:
        ConfigError: an option is unknown or makes no sense.
        DataError: a column is missing or a row is damaged.
    """
    from datasets import Dataset

    show, seed, groups, knowledge = _checked(options)
    check_columns("MedHallu", dataset, _NEEDED)
    rows = [
        _document(number, row, truth, groups, knowledge)
        for number, row in enumerate(dataset)
        for truth in _truths(show, seed, str(row[_QUESTION]))
    ]
    if groups:
        grouped = sum(row["mesh"] is not None for row in rows)
        logger.info("MedHallu: {} of {} documents have a MeSH group", grouped, len(rows))
    return Dataset.from_list(rows)


def coin(seed: int, question: str) -> int:
    """0 or 1 with the same probability, decided by seed and question alone."""
    return hashlib.sha256(f"medhallu\0{seed}\0{question}".encode()).digest()[0] & 1


def short_category(name: str) -> str:
    """Return the short name of a category; an unknown one keeps its own."""
    lowered = name.strip().lower()
    return next((short for short, start in CATEGORIES.items() if lowered.startswith(start)), lowered)


def read_groups(path: str | Path) -> dict[str, str]:
    """Return the MeSH group of each question, from a JSON object `{question: group}` or a CSV file (`question,group`).

    A group is the first letter of MeSH tree numbers, or its name ("Diseases", "psychiatry"); see `mesh.letter_of`.
    `hedge data medhallu` makes such a file.

    Returns:
        question -> letter.

    Raises:
        DataError: the file cannot be read or is of another form, or a group is none of MeSH's.
    """
    path = Path(path)
    text = read_text(path)
    try:
        if path.suffix.lower() == ".csv":
            pairs = [(row["question"], row["group"]) for row in csv.DictReader(io.StringIO(text, newline=""))]
        else:
            pairs = list(parse_json(text, str(path)).items())
    except (ValueError, KeyError, AttributeError, csv.Error):
        raise DataError(f"MeSH groups: {path} is neither a JSON object nor CSV with question,group") from None
    if not all(isinstance(question, str) and isinstance(group, str) and group.strip() for question, group in pairs):
        raise DataError(f"MeSH groups: {path}: every question needs a group, as text")
    try:
        return {question.strip(): letter_of(group) for question, group in pairs}
    except DataError as error:
        raise DataError(f"MeSH groups: {path}: {error}") from None


def verdict_columns(answers: AnswerSet) -> dict[str, Any]:
    """Return what measures know of answers that are verdicts: the sampled ones, and the forced distribution.

    Returns:
        `sampled`: the verdict of each clean answer; `digits`: log-probability of each digit as the whole reply, empty
        where the model does not tell it.
    """
    return {
        "sampled": [answer.text.replace(" ", "_") for answer in answers.clean],
        "digits": option_logprobs(answers.forced),
    }


def _checked(options: Mapping[str, Any]) -> tuple[str, int, dict[str, str], str]:
    check_options("MedHallu", options, OPTIONS)
    settings = {**OPTIONS, **options}
    if settings["show"] not in SHOWN:
        raise unknown("value of 'show'", str(settings["show"]), SHOWN)
    if isinstance(settings["seed"], bool) or not isinstance(settings["seed"], int):
        raise ConfigError(f"MedHallu: seed must be an integer, got {settings['seed']!r}")
    if settings["knowledge"] not in KNOWLEDGE:
        raise unknown("value of 'knowledge'", str(settings["knowledge"]), KNOWLEDGE)
    groups = read_groups(settings["mesh"]) if settings["mesh"] else {}
    return settings["show"], settings["seed"], groups, settings["knowledge"]


def _truths(show: str, seed: int, question: str) -> Sequence[int]:
    return {"both": (0, 1), "true": (0,), "hallucinated": (1,)}.get(show) or (coin(seed, question),)


def _document(
    number: int, row: Mapping[str, Any], truth: int, groups: Mapping[str, str], knowledge: str
) -> dict[str, Any]:
    question, answer = row[_QUESTION], row[_HALLUCINATED if truth else _TRUE]
    if not all(isinstance(text, str) and text.strip() for text in (question, answer)):
        raise DataError(f"MedHallu: row {number} has no question or no answer")
    return {
        "id": f"{number}-{'h' if truth else 't'}",
        "row": str(number),
        "asked": f"Question: {question}\nAnswer: {answer}",
        "knowledge": _knowledge(row["Knowledge"], knowledge, number),
        "truth": str(truth),
        "difficulty": str(row["Difficulty Level"]).strip().lower(),
        "kind": short_category(str(row["Category of Hallucination"])),
        "mesh": groups.get(question.strip()),
    }


def _knowledge(value: object, form: str, number: int) -> str:
    if isinstance(value, str) and value.strip():
        return value
    if not isinstance(value, Sequence) or not value or not all(isinstance(paragraph, str) for paragraph in value):
        raise DataError(f"MedHallu: row {number}: Knowledge is {shown(value)}; expected a text or a list of texts")
    return "\n".join(value) if form == "lines" else str(list(value))

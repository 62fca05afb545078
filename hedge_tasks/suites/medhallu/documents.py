"""From a row of MedHallu (a question, its true and a hallucinated answer) to what a model is shown."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger

from hedge_tasks.data.answers import AnswerSet, option_logprobs
from hedge_tasks.errors import ConfigError, DataError, unknown
from hedge_tasks.io.outside import read_json, shown
from hedge_tasks.suites.documents import check_columns, check_options
from hedge_tasks.suites.medhallu.mesh import TREES

if TYPE_CHECKING:
    from datasets import Dataset

OPTIONS: Mapping[str, Any] = {"show": "random", "seed": 0, "mesh": None}

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
            with the MeSH group of each question, see `read_groups`.

    Returns:
        Columns: id (row number and `-t` or `-h`), row, asked (question and shown answer), knowledge (text), truth ("1"
        where the shown answer is hallucinated, else "0"), difficulty, kind (short name of the category), mesh (None
        where it is not known), length (characters of the shown answer).

    Raises:
        ConfigError: an option is unknown or makes no sense.
        DataError: a column is missing or a row is damaged.
    """
    from datasets import Dataset

    show, seed, groups = _checked(options)
    check_columns("MedHallu", dataset, _NEEDED)
    rows = [
        _document(number, row, truth, groups)
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
    """Return the MeSH group of each question, from `{question: letter}` (JSON) as `hedge data medhallu` makes it.

    Raises:
        DataError: the file cannot be read or is of another form, or a group is none of MeSH's.
    """
    groups = read_json(Path(path))
    if not isinstance(groups, dict) or any(str(letter) not in TREES for letter in groups.values()):
        raise DataError(f"MeSH groups: {path}: expected a JSON object of questions and letters ({', '.join(TREES)})")
    return {question.strip(): letter for question, letter in groups.items()}


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


def _checked(options: Mapping[str, Any]) -> tuple[str, int, dict[str, str]]:
    check_options("MedHallu", options, OPTIONS)
    settings = {**OPTIONS, **options}
    if settings["show"] not in SHOWN:
        raise unknown("value of 'show'", str(settings["show"]), SHOWN)
    if isinstance(settings["seed"], bool) or not isinstance(settings["seed"], int):
        raise ConfigError(f"MedHallu: seed must be an integer, got {settings['seed']!r}")
    groups = read_groups(settings["mesh"]) if settings["mesh"] else {}
    return settings["show"], settings["seed"], groups


def _truths(show: str, seed: int, question: str) -> Sequence[int]:
    return {"both": (0, 1), "true": (0,), "hallucinated": (1,)}.get(show) or (coin(seed, question),)


def _document(number: int, row: Mapping[str, Any], truth: int, groups: Mapping[str, str]) -> dict[str, Any]:
    question, answer = row[_QUESTION], row[_HALLUCINATED if truth else _TRUE]
    if not all(isinstance(text, str) and text.strip() for text in (question, answer)):
        raise DataError(f"MedHallu: row {number} has no question or no answer")
    return {
        "id": f"{number}-{'h' if truth else 't'}",
        "row": str(number),
        "asked": f"Question: {question}\nAnswer: {answer}",
        "knowledge": _knowledge(row["Knowledge"], number),
        "truth": str(truth),
        "difficulty": str(row["Difficulty Level"]).strip().lower(),
        "kind": short_category(str(row["Category of Hallucination"])),
        "mesh": groups.get(question.strip()),
    }


def _knowledge(value: object, number: int) -> str:
    paragraphs = [value] if isinstance(value, str) and value.strip() else value
    if not isinstance(paragraphs, list) or {*map(type, paragraphs)} != {str}:
        raise DataError(f"MedHallu: row {number}: Knowledge is {shown(value)}; expected a text or a list of texts")
    return "\n".join(paragraphs)

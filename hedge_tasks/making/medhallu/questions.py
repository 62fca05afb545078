"""Sources of MedHallu: questions with a true answer and the knowledge behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.data.tables import read_rows
from hedge_tasks.errors import DataError
from hedge_tasks.making.digests import text_digest
from hedge_tasks.making.stages import ReadRows

PUBMEDQA = "qiaojin/PubMedQA"
_LICENCES = {PUBMEDQA: "MIT (PubMedQA)"}

_NAMES = {
    "question": ("question", "Question", "QUESTION"),
    "answer": ("long_answer", "answer", "Ground Truth", "LONG_ANSWER"),
    "knowledge": ("knowledge", "Knowledge", "contexts", "CONTEXTS", "context"),
    "mesh": ("mesh", "meshes", "MeSH", "MESHES"),
    "id": ("pubid", "id", "PMID"),
}
"""Columns of what is read, the first that says something."""


@dataclass(frozen=True)
class SourceQuestion:
    """One question to write a wrong answer to.

    Attributes:
        id: Of the source; a digest of the question where it has none.
        question, answer: As they are published; the answer is true.
        knowledge: Passages that the true answer rests on.
        mesh: MeSH headings, as far as the source has them.
        source: Where it comes from, with the licence as far as it is known.
    """

    id: str
    question: str
    answer: str
    knowledge: tuple[str, ...] = ()
    source: str = ""
    mesh: tuple[str, ...] = ()


def read_questions(source: str, *, split: str = "train", licence: str | None = None) -> ReadRows[SourceQuestion]:
    """Questions of a file or a data set.

    Args:
        source: A JSONL or Parquet file (columns `question`; `answer` or `long_answer`; `knowledge` or `context`; `id`
            or `pubid`), or a data set on the hub, such as `qiaojin/PubMedQA:pqa_labeled`.
        split: Of a data set on the hub.
        licence: Recorded with every record; that of PubMedQA is known.

    Raises:
        DataError: There is no such file, or most rows lack a question or an answer; names the first.
    """
    path = Path(source)
    if path.suffix.lower() in (".jsonl", ".parquet") or path.exists():
        if not path.is_file():
            raise DataError(f"there is no file {path}")
        return _questions(read_rows(path), path.name, licence)
    from datasets import load_dataset

    name, _, configuration = source.partition(":")
    try:
        rows = load_dataset(name, configuration or None, split=split)
    except Exception as error:  # a hub may fail in any way
        raise DataError(f"{source} is no file, and no data set that can be loaded: {error}") from error
    places = ((f"{source} row {number}", row) for number, row in enumerate(rows))
    return _questions(places, source, licence or _LICENCES.get(name))


def _questions(
    rows: Iterable[tuple[str, Mapping[str, Any]]], name: str, licence: str | None
) -> ReadRows[SourceQuestion]:
    source = f"{name}, {licence}" if licence else name
    questions: list[SourceQuestion] = []
    left_out: list[str] = []
    for where, row in rows:
        try:
            questions.append(_question(row, where, source))
        except DataError as error:
            left_out.append(str(error))
    if len(left_out) > len(questions):
        raise DataError(left_out[0])
    if not questions:
        raise DataError(f"{name}: there is no question in it")
    if left_out:
        logger.warning("{} of {} rows are left out: {}", len(left_out), len(left_out) + len(questions), left_out[0])
    return ReadRows(questions, left_out)


def _question(row: Mapping[str, Any], where: str, source: str) -> SourceQuestion:
    nested = row.get("context")
    if isinstance(nested, Mapping):  # PubMedQA has passages and headings in it
        row = {**row, "context": None, **nested}
    question, answer = _text(row, "question", where), _text(row, "answer", where)
    knowledge = _first(row, "knowledge")
    passages = [knowledge] if isinstance(knowledge, str) else [] if knowledge is None else knowledge
    if not isinstance(passages, list) or not all(passage is None or isinstance(passage, str) for passage in passages):
        raise DataError(f"{where}: knowledge is neither a text nor a list of texts")
    mesh = _first(row, "mesh")
    headings = [text for text in mesh if text and isinstance(text, str)] if isinstance(mesh, list) else []
    source_id = _first(row, "id")
    number = text_digest(question, answer)[:16] if source_id is None else str(source_id)
    return SourceQuestion(number, question, answer, tuple(filter(None, passages)), source, tuple(headings))


def _first(row: Mapping[str, Any], key: str) -> Any:
    return next((row[name] for name in _NAMES[key] if row.get(name) is not None), None)


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = _first(row, key)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: no text under {' or '.join(_NAMES[key])}; there are {', '.join(map(str, row))}")
    return value.strip()

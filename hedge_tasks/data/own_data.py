"""A user's own table as the data of a task: what is wrong with its rows, and a parquet file with all pictures in it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.columns import Roles
from hedge_tasks.data.conversations import without_mark
from hedge_tasks.data.groups import find_groups
from hedge_tasks.data.local_data import write_rows
from hedge_tasks.data.media import PictureFiles, content_of, medium_of
from hedge_tasks.data.pictures import image_file_fault
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.data.template_tokens import mark_in
from hedge_tasks.data.video import frames_of
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown
from hedge_tasks.io.progress import progress

PICTURES = "pictures"
"""Name of the column with lists of pictures."""

MANY_PEOPLE = 8
"""Answers in a list, from which on they are taken for those of as many people."""

_AGREEING = 3
_SHOWN = 5
_NO_ANSWERS = frozenset({"", "nan", "n/a", "#n/a", "null", "<na>"})


@dataclass
class RowFindings:
    """Findings about all rows of a table.

    Attributes:
        faults: number of a row from 0 -> why it cannot be asked or judged.
        marked: number of a row from 0 -> what in its question a model may take for a mark of its own.
        repeated: rows that ask and show the same as one before.
        pictures: number of different pictures.
        groups: number of groups of questions that belong together.
    """

    faults: dict[int, str] = field(default_factory=dict)
    marked: dict[int, str] = field(default_factory=dict)
    repeated: int = 0
    pictures: int = 0
    groups: int = 0


def texts_of(row: Mapping[str, Any], roles: Roles) -> dict[str, str]:
    """The texts of a document by column: the question with its options, the references one a line.

    Raises:
        DataError: the row cannot be asked or judged; says why.
    """
    texts = {column: cells.text(row[column]) for column in roles.texts() if column != roles.answer}
    question = without_mark(texts[roles.question]) if roles.images else texts[roles.question]
    if question.lower() in _NO_ANSWERS:
        raise DataError("no question")
    references = _references(row[roles.answer], roles) if roles.answer else []
    if roles.answer and not references:
        raise DataError("no answer")
    if roles.choices:
        options = roles.choices.options_of(row, question)
        question = roles.choices.with_options(question, options)
        if roles.answer:
            if len(references) > 1:
                raise DataError(f"{len(references)} answers to a question with options")
            value = row[roles.answer]
            references = [roles.choices.right_letter(value[0] if isinstance(value, (list, tuple)) else value, options)]
    texts[roles.question] = question
    return texts if roles.answer is None else {**texts, roles.answer: "\n".join(references)}


def _references(value: object, roles: Roles) -> list[str]:
    """The references in a cell, each once.

    Of many people's answers those that three of them gave, which is what VQA accuracy calls right (Antol et al. 2015),
    or else the commonest ones.
    """
    several = value if isinstance(value, (list, tuple)) else [value]
    texts = [cells.text(text) for item in several for text in _answers_in(item)]
    if roles.separator:
        texts = [part.strip() for text in texts for part in text.split(roles.separator)]
    answers = [text for text in texts if text.lower() not in _NO_ANSWERS]
    if roles.several or roles.separator:
        answers = [" ".join(text.split()) for text in answers]
    if len(answers) >= MANY_PEOPLE:
        times = Counter(answers)
        least = min(_AGREEING, max(times.values()))
        answers = [text for text in answers if times[text] >= least]
    return list(dict.fromkeys(answers))


def _answers_in(value: object) -> Sequence[object]:
    """The answers in a record: a person's (VQAv2's `{"answer": ..., "answer_id": 1}`), or SQuAD's `{"text": [...]}`."""
    if not isinstance(value, Mapping):
        return [value]
    answers = next((value[key] for key in ("answer", "text") if key in value), value)
    return answers if isinstance(answers, (list, tuple)) else [answers]


def pictures_of(row: Mapping[str, Any], roles: Roles) -> list[Any]:
    """The cells of a row's pictures, in the order in which they are shown.

    Raises:
        DataError: one is missing that should be there.
    """
    pictures: list[Any] = []
    for column in roles.images:
        value = row[column]
        several = list(value) if isinstance(value, (list, tuple)) else [value]
        present = [cell for cell in several if not _empty(cell)]
        if len(present) < len(several) and not roles.optional:
            raise DataError("no picture" if len(roles.images) == 1 else f"no picture in {column!r}")
        pictures += present
    if roles.images and not pictures:
        raise DataError("no picture")
    return pictures


def contents_of(value: object, files: PictureFiles, frames: int | None) -> list[bytes]:
    """The bytes of the pictures that a cell shows: of a video as many frames as are asked for.

    Raises:
        DataError: there is none, or the file cannot be read.
    """
    content = content_of(value, files)
    return frames_of(content, frames) if frames and medium_of(content) == "video" else [content]


def _empty(value: object) -> bool:
    if isinstance(value, Mapping):
        return not (value.get("bytes") or value.get("path"))
    return value is None or value != value or (isinstance(value, (str, bytes)) and not value.strip())


def inspect_rows(table: StoredTable, roles: Roles, files: PictureFiles) -> RowFindings:
    """Read every row and every picture, and return what is wrong with them.

    Args:
        files: the pictures that names in the table mean.
    """
    findings = RowFindings()
    pictures = _Pictures(files, roles.frames)
    seen: set[str] = set()
    shown_before: set[str] = set()
    declared: list[str | None] = []
    pictured: list[str | None] = []
    for row, values in enumerate(progress(table.rows(roles.used()), total=table.n_rows, name="Reading", unit="row")):
        try:
            texts = texts_of(values, roles)
            digests = [pictures.digest(value) for value in pictures_of(values, roles)]
        except DataError as error:
            findings.faults[row] = str(error)
            continue
        if mark := mark_in(texts[roles.question]):
            findings.marked[row] = mark
        picture = "".join(digests)
        key = f"{texts[roles.question]}\0{texts[roles.answer] if roles.answer else ''}\0{picture}"
        findings.repeated += key in seen
        seen.add(key)
        shown_before.update(digests)
        declared.append(texts[roles.group] or None if roles.group else None)
        pictured.append(picture or f"text {texts[roles.question]}")
    findings.pictures = len(shown_before)
    findings.groups = find_groups(declared, pictured).n_groups
    return findings


def describe(faults: Mapping[int, str], n_rows: int, what: str = "cannot be used") -> str:
    """The first rows of which something is to be said, with the reasons."""
    first = "; ".join(f"row {row + 1}: {why}" for row, why in list(faults.items())[:_SHOWN])
    others = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    return f"{len(faults)} of {n_rows} rows {what}: {first}{others}"


def picture_columns(roles: Roles) -> tuple[str, ...]:
    """The columns with pictures as they are written: one of lists where documents show several."""
    if not roles.listed:
        return roles.images
    own = PICTURES if len(roles.images) > 1 else roles.images[0]
    return (own if own not in roles.texts() else f"{own}_shown",)


def write_data(table: StoredTable, roles: Roles, files: PictureFiles, without: Sequence[int], file: Path) -> None:
    """Write the columns that are used as a parquet file, pictures as they are in their files.

    Args:
        files: the pictures that names in the table mean.
        without: rows that are left out.

    Raises:
        DataError: the file cannot be written.
    """
    from datasets import Image, List, Value

    kind = List(Image()) if roles.listed else Image()
    columns = {
        **{column: Value("string") for column in roles.texts()},
        **dict.fromkeys(picture_columns(roles), kind),
    }
    left_out = frozenset(without)

    def rows() -> Iterator[Mapping[str, Any]]:
        for row, values in enumerate(table.rows(roles.used())):
            if row not in left_out:
                files_shown: list[Any] = [
                    {"bytes": content, "path": None}
                    for picture in pictures_of(values, roles)
                    for content in contents_of(picture, files, roles.frames)
                ]
                held: Any = files_shown if roles.listed else next(iter(files_shown), None)
                yield {**texts_of(values, roles), **dict.fromkeys(picture_columns(roles), held)}

    write_rows(file, rows(), columns)


class _Pictures:
    """Digests of pictures that can be shown; a file is read once however many rows name it."""

    def __init__(self, files: PictureFiles, frames: int | None) -> None:
        self._files, self._frames = files, frames
        self._known: dict[str, str | DataError] = {}

    def digest(self, value: object) -> str:
        """A digest of the file.

        Raises:
            DataError: there is no picture, or it cannot be shown.
        """
        if not isinstance(value, str):
            return self._digest(value)
        if value not in self._known:
            try:
                self._known[value] = self._digest(value)
            except DataError as error:
                self._known[value] = error
        cached = self._known[value]
        if isinstance(cached, DataError):
            raise DataError(str(cached))
        return cached

    def _digest(self, value: object) -> str:
        digest = hashlib.sha256()
        for content in contents_of(value, self._files, self._frames):
            if fault := image_file_fault(content, decode=True):
                raise DataError(f"{shown(value)}: {fault}" if isinstance(value, str) else fault)
            digest.update(content)
        return digest.hexdigest()

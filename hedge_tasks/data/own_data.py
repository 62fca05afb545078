"""A user's own table as the data of a task: what is wrong with its rows, and a parquet file with all pictures in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedge_tasks.data import cells
from hedge_tasks.data.groups import count_groups, find_groups
from hedge_tasks.data.local_data import write_rows
from hedge_tasks.data.picture_files import PictureFiles, content_of
from hedge_tasks.data.pictures import image_file_fault
from hedge_tasks.data.roles import Roles
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.data.template_tokens import mark_in
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown
from hedge_tasks.io.progress import progress

PICTURES = "pictures"
"""Name of the column with lists of pictures."""

_SHOWN = 5


@dataclass
class RowFindings:
    """Findings about all rows of a table.

    Attributes:
        faults: number of a row from 0 -> why it cannot be asked or judged.
        marked: number of a row from 0 -> what in its question a model may take for a mark of its own.
        pictures: number of different pictures.
        groups: number of groups of questions that belong together.
    """

    faults: dict[int, str] = field(default_factory=dict)
    marked: dict[int, str] = field(default_factory=dict)
    pictures: int = 0
    groups: int = 0


def texts_of(row: Mapping[str, Any], roles: Roles) -> dict[str, str]:
    """The texts of a document by column: the question with its options, the references one a line.

    Raises:
        DataError: the row cannot be asked or judged; says why.
    """
    texts = {column: cells.text(row[column]) for column in roles.texts() if column != roles.answer}
    question = without_mark(texts[roles.question]) if roles.images else texts[roles.question]
    if question.lower() in cells.NOTHING:
        raise DataError("no question")
    if roles.choices:
        options = roles.choices.options_of(row)
        question = roles.choices.with_options(question, options)
    texts[roles.question] = question
    if roles.answer is None:
        return texts
    if roles.choices:
        return {**texts, roles.answer: roles.choices.right_letter(row[roles.answer], options)}
    if not (references := cells.references([row[column] for column in roles.answers])):
        raise DataError("no answer")
    return {**texts, roles.answer: references}


def without_mark(text: str) -> str:
    """A question without the mark for the place of a single picture at its begin or end.

    Example:
        >>> without_mark("<image>\\nWhich color?"), without_mark("What is <image 1>?")
        ('Which color?', 'What is <image 1>?')
    """
    return text.strip().removeprefix("<image>").removesuffix("<image>").strip()


def pictures_of(row: Mapping[str, Any], roles: Roles) -> list[Any]:
    """The cells of a row's pictures, in the order in which they are shown. Of several columns later ones may be empty.

    Raises:
        DataError: the first one is missing, or one in a list.
    """
    pictures: list[Any] = []
    for column in roles.images:
        value = row[column]
        shown_here = list(value) if isinstance(value, (list, tuple)) else [value]
        present = [cell for cell in shown_here if not cells.is_empty(cell)]
        if not (present or pictures) or (len(present) < len(shown_here) and isinstance(value, (list, tuple))):
            raise DataError("no picture")
        pictures += present
    return pictures


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


def write_data(table: StoredTable, roles: Roles, files: PictureFiles, file: Path) -> RowFindings:
    """Write the columns that are used as a parquet file, pictures as they are in their files, and say what was found.

    Rows that cannot be asked or judged are left out.

    Args:
        files: the pictures that names in the table mean.

    Raises:
        DataError: the file cannot be written.
    """
    from datasets import Image, List, Value

    pictured, kind = picture_columns(roles), List(Image()) if roles.listed else Image()
    columns = {**{column: Value("string") for column in roles.texts()}, **dict.fromkeys(pictured, kind)}
    findings, digests = RowFindings(), set[str]()
    declared, shown_there = list[str | None](), list[str | None]()

    def rows() -> Iterator[Mapping[str, Any]]:
        for row, (_, values) in enumerate(
            progress(table.rows([*roles.named()]), total=table.n_rows, name="Reading", unit="row")
        ):
            try:
                texts = texts_of(values, roles)
                contents = [_checked(cell, files, digests) for cell in pictures_of(values, roles)]
            except DataError as error:
                findings.faults[row] = str(error)
                continue
            if mark := mark_in(texts[roles.question]):
                findings.marked[row] = mark
            declared.append(texts[roles.group] or None if roles.group else None)
            shown_there.append("".join(map(_digest, contents)) or f"text {texts[roles.question]}")
            pictures: Any = [{"bytes": content, "path": None} for content in contents]
            yield {**texts, **dict.fromkeys(pictured, pictures if roles.listed else next(iter(pictures), None))}

    write_rows(file, rows(), columns)
    findings.pictures, findings.groups = len(digests), count_groups(find_groups(declared, shown_there))
    return findings


def _checked(cell: object, files: PictureFiles, digests: set[str]) -> bytes:
    """A picture's file that can be shown; what was decoded once is not decoded again, however many rows show it.

    Raises:
        DataError: there is no picture, or it cannot be shown.
    """
    content = content_of(cell, files)
    digest = _digest(content)
    if digest not in digests and (fault := image_file_fault(content, decode=True)):
        raise DataError(f"{shown(cell)}: {fault}" if isinstance(cell, str) else fault)
    digests.add(digest)
    return content


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""A user's own table as the data of a task: what is wrong with its rows, and a parquet file with all pictures in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hedge_tasks.data import cells, choices
from hedge_tasks.data.local_data import write_rows
from hedge_tasks.data.picture_files import PictureFiles, content_of
from hedge_tasks.data.pictures import image_file_fault
from hedge_tasks.data.roles import Roles
from hedge_tasks.data.tables import StoredTable
from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import shown
from hedge_tasks.io.progress import progress

_SHOWN = 5


def texts_of(row: Mapping[str, Any], roles: Roles) -> dict[str, str]:
    """The texts of a document by column: the question with its options, the references one a line.

    Raises:
        DataError: the row cannot be asked or judged; says why.
    """
    texts = {column: cells.text(row[column]) for column in roles.texts() if column != roles.answer}
    # the mark for the place of a single picture at its begin or end
    question = texts[roles.question].strip()
    question = question.removeprefix("<image>").removesuffix("<image>").strip() if roles.image else question
    if question.lower() in cells.NOTHING:
        raise DataError("no question")
    options = choices.options_of(row, roles.options) if roles.options else []
    texts[roles.question] = choices.with_options(question, options) if options else question
    if roles.answer is None:
        return texts
    if options:
        return {**texts, roles.answer: choices.right_letter(row[roles.answer], options)}
    if not (references := cells.references([row[column] for column in roles.answers])):
        raise DataError("no answer")
    return {**texts, roles.answer: references}


def _pictures_of(row: Mapping[str, Any], roles: Roles, files: PictureFiles, decoded: set[str]) -> list[bytes]:
    """The files of a row's pictures; what was decoded once is not decoded again, however many rows show it.

    Raises:
        DataError: there is none, or one cannot be shown.
    """
    value = row[roles.image] if roles.image else []
    contents = list[bytes]()
    for cell in value if isinstance(value, (list, tuple)) else [value]:
        contents.append(content_of(cell, files))
        digest = hashlib.sha256(contents[-1]).hexdigest()
        if digest not in decoded and (fault := image_file_fault(contents[-1], decode=True)):
            raise DataError(f"{shown(cell)}: {fault}" if isinstance(cell, str) else fault)
        decoded.add(digest)
    if roles.image and not (contents if roles.listed else len(contents) == 1):
        raise DataError("a list of pictures, and the first row has none" if contents else "no picture")
    return contents


def describe(faults: Mapping[int, str], n_rows: int, what: str = "cannot be used") -> str:
    """The first rows of which something is to be said, with the reasons."""
    first = "; ".join(f"row {row + 1}: {why}" for row, why in list(faults.items())[:_SHOWN])
    others = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
    return f"{len(faults)} of {n_rows} rows {what}: {first}{others}"


def write_data(table: StoredTable, roles: Roles, files: PictureFiles, file: Path) -> dict[int, str]:
    """Write the columns that are used as a parquet file, pictures as they are in their files.

    Args:
        files: the pictures that names in the table mean.

    Returns:
        Number of a row from 0 -> why it cannot be asked or judged, of the rows that are left out.

    Raises:
        DataError: the file cannot be written.
    """
    from datasets import Image, List, Value

    columns: dict[str, Any] = {column: Value("string") for column in roles.texts()}
    if roles.image:
        columns[roles.image] = List(Image()) if roles.listed else Image()
    faults, decoded = dict[int, str](), set[str]()

    def rows() -> Iterator[Mapping[str, Any]]:
        stored = progress(table.rows([*roles.named()]), total=table.n_rows, name="Reading", unit="row")
        for number, (_, row) in enumerate(stored):
            try:
                texts, contents = texts_of(row, roles), _pictures_of(row, roles, files, decoded)
            except DataError as error:
                faults[number] = str(error)
                continue
            pictures: Any = [{"bytes": content, "path": None} for content in contents]
            yield {**texts, roles.image: pictures if roles.listed else pictures[0]} if roles.image else texts

    write_rows(file, rows(), columns)
    return faults

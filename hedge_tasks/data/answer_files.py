"""Sampled answers as files that somebody has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hedge_tasks.data.answer_rows import normal_rows, rows_of_table
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.tables import kind_of, read_rows
from hedge_tasks.errors import DataError


def read_answer_sets(path: Path, *, table: bool | None = None, allow_unknown: bool = False) -> list[AnswerSet]:
    """Read a user's answers, in any of the shapes that `hedge_tasks.data.answer_rows` describes.

    Args:
        path: a file (`hedge_tasks.data.tables.KINDS`), or `-` for the standard input.
        table: whether it is CSV, or else JSON lines; None goes by the ending.
        allow_unknown: pass over keys that no shape has, instead of taking them for a slip of the pen.

    Raises:
        DataError: names the file, the line and the field.
    """
    kind = kind_of(path) if table is None else "CSV" if table else "JSON lines"
    rows = read_rows(path, kind)
    one_a_row = kind != "JSON lines" and not (rows and rows[0][1].keys() & {"baseline", "answers"})
    rows = (rows_of_table if one_a_row else normal_rows)(rows, allow_unknown=allow_unknown)
    answer_sets = parse_answer_sets(rows)
    if not answer_sets:
        raise DataError(f"{path}: no answers in it")
    return answer_sets


def parse_answer_sets(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[AnswerSet]:
    """Answer sets from parsed lines, each with its place.

    Raises:
        DataError: names the place and the field; also where two lines have the same id, or a document has no clean
            answer and others have some.
    """
    sets: dict[str, tuple[str, AnswerSet]] = {}
    for where, row in rows:
        answer_set = AnswerSet.read(row, where)
        if answer_set.id in sets:
            first = sets[answer_set.id][0].rpartition(":")[2]
            raise DataError(f"{where}: id {answer_set.id!r} is already on line {first}")
        sets[answer_set.id] = (where, answer_set)
    # A run with a single draw has none anywhere; a hole in a file of samples is a slip.
    if any(answer_set.clean for _, answer_set in sets.values()):
        for where, answer_set in sets.values():
            if not answer_set.clean:
                raise DataError(f"{where}: clean: at least one answer is needed, as the other documents have")
    return [answer_set for _, answer_set in sets.values()]

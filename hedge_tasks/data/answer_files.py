"""Sampled answers as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.io.json_lines import read_objects


def read_answer_sets(path: Path) -> list[AnswerSet]:
    """Read answer sets, one a line (see `AnswerSet.from_dict`).

    Raises:
        DataError: names the file, the line and the field.
    """
    answer_sets = parse_answer_sets(read_objects(path))
    if not answer_sets:
        raise DataError(f"{path}: no answers in it")
    return answer_sets


def parse_answer_sets(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[AnswerSet]:
    """Answer sets from parsed lines, each with its place.

    Raises:
        DataError: names the place and the field; also where two lines have the same id.
    """
    sets: dict[str, tuple[str, AnswerSet]] = {}
    for where, row in rows:
        answer_set = AnswerSet.from_dict(row, where)
        if answer_set.id in sets:
            first = sets[answer_set.id][0].rpartition(":")[2]
            raise DataError(f"{where}: id {answer_set.id!r} is already on line {first}")
        sets[answer_set.id] = (where, answer_set)
    return [answer_set for _, answer_set in sets.values()]

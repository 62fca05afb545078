"""Sampled answers and their scores as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.files import write_whole
from hedge_tasks.pipeline import Scores
from hedge_tasks.sampling.answers import AnswerSet


def read_objects(path: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """The JSON objects of a JSONL file, each with its place (`file:line`); blank lines are skipped.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    places = ((f"{path}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip())
    return [(where, _decode(line, where)) for where, line in places]


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


def write_scores(path: Path, scores: Sequence[Scores]) -> None:
    """Write one line a question: id, se, radflag, vase, n_clusters, cluster_ids.

    The file appears as a whole or not at all.
    """
    rows = [
        {
            "id": s.id,
            "se": s.se,
            "radflag": s.radflag,
            "vase": s.vase,
            "n_clusters": s.n_clusters,
            "cluster_ids": list(s.cluster_ids),
        }
        for s in scores
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    write_whole(path, text)


def _decode(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        fields = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start})") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON ({error})") from None
    if not isinstance(fields, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(fields).__name__}")
    return fields

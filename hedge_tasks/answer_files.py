"""Sampled answers and their scores as JSON lines."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from hedge_tasks.errors import DataError
from hedge_tasks.pipeline import Scores
from hedge_tasks.sampling.answers import AnswerSet


def read_answer_sets(path: Path) -> list[AnswerSet]:
    """Read answer sets, one a line (see `AnswerSet.from_dict`); blank lines are skipped.

    Raises:
        DataError: names the file, the line and the field.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    answer_sets: list[AnswerSet] = []
    first_line: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        answer_set = AnswerSet.from_json(_decode(line, where), where)
        if answer_set.id in first_line:
            raise DataError(f"{where}: id {answer_set.id!r} is already on line {first_line[answer_set.id]}")
        first_line[answer_set.id] = number
        answer_sets.append(answer_set)
    if not answer_sets:
        raise DataError(f"{path}: no answers in it")
    return answer_sets


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
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(text, "utf-8")
        unfinished.replace(path)
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from error


def _decode(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8 ({error.reason} at byte {error.start})") from None

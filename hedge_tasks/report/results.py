"""lmms-eval's own result files, so that the numbers of other benchmarks stand beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import read_json
from hedge_tasks.numbers import FOUR_DIGITS, Cell, Column, Number, Table

_PATTERN = "*results.json"


@dataclass(frozen=True)
class ResultFile:
    """Content of a result file.

    Attributes:
        path: of the file.
        rows: of lmms-eval's table: task, model, filter, metric, value and documents.
        configs: configuration of each task.
        seconds: that the evaluation took; None where the file does not say.
    """

    path: Path
    rows: tuple[Mapping[str, Cell], ...] = ()
    configs: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None


def result_files(paths: Iterable[Path]) -> list[ResultFile]:
    """Return the readable result files in folders (and one level below them), oldest first. Others are passed over."""
    by_path: dict[Path, ResultFile] = {}
    for path in paths:
        folder = path if path.is_dir() else path.parent.parent if path.parent.name == "hedge_runs" else path.parent
        for file in sorted([*folder.glob(_PATTERN), *folder.glob(f"*/{_PATTERN}")]):
            if file.resolve() not in by_path and (read := read_results(file)) is not None:
                by_path[file.resolve()] = read
    return sorted(by_path.values(), key=lambda file: file.path.name)


def read_results(path: Path) -> ResultFile | None:
    """Read a result file; None where it is none."""
    try:
        content = read_json(path)
    except DataError:
        return None
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        return None
    seconds = _finite(content.get("total_evaluation_time_seconds"))
    return ResultFile(path, tuple(_rows(content)), _mapping(content.get("configs")), seconds)


def results_table(files: Iterable[ResultFile]) -> Table | None:
    """Return the rows of all files, of each model's task those of the newest file; None where there are none."""
    newest: dict[tuple[str, str], list[Mapping[str, Cell]]] = {}
    for file in files:
        of_file: dict[tuple[str, str], list[Mapping[str, Cell]]] = {}
        for row in file.rows:
            of_file.setdefault((str(row["task"]), str(row["model"])), []).append(row)
        newest |= of_file
    names = map(Column, ("task", "model", "filter", "metric"))
    columns = [*names, Column("value", format=FOUR_DIGITS, stderr=True), Column("documents")]
    return Table(columns, [row for key in sorted(newest) for row in newest[key]]) if newest else None


def _rows(content: Mapping[str, Any]) -> Iterator[Mapping[str, Cell]]:
    model = str(content.get("model_name") or content.get("model_source") or "")
    for task, metrics in content["results"].items():
        n = _mapping(_mapping(content.get("n-samples")).get(task)).get("effective")
        for key, value in _mapping(metrics).items():
            metric, comma, filter_name = str(key).partition(",")
            if not comma or "_stderr" in metric or value in ("", None, []):
                continue
            number = _finite(value)
            stderr = _finite(metrics.get(f"{metric}_stderr,{filter_name}"))
            yield {
                **{"task": str(task), "model": model, "filter": filter_name, "metric": metric},
                "value": str(value)[:200] if number is None else Number(number, stderr),
                "documents": n if isinstance(n, int) else None,
            }


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _finite(value: object) -> float | None:
    """Return a finite number, also where it is written as text (as lmms-eval writes its seconds); else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None

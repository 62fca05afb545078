"""lmms-eval's own result files, so that the numbers of other benchmarks stand beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io.outside import read_json

_PATTERN = "*results.json"


@dataclass(frozen=True)
class ResultLine:
    """One line of lmms-eval's table.

    Attributes:
        task, model, filter, metric: what it is about.
        value: a number, or what lmms-eval wrote instead.
        stderr: None where it has none.
        higher_is_better: None where the task does not say.
        n: documents; None where the file does not have it.
    """

    task: str
    model: str
    filter: str
    metric: str
    value: float | str
    stderr: float | None
    higher_is_better: bool | None
    n: int | None


@dataclass(frozen=True)
class ResultFile:
    """Content of a result file.

    Attributes:
        path: of the file.
        rows: of its table.
        configs: configuration of each task.
        facts: model, date, versions, seconds, limit: what was run and how long it took.
    """

    path: Path
    rows: tuple[ResultLine, ...]
    configs: Mapping[str, Any]
    facts: Mapping[str, Any]


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
    model = str(content.get("model_name") or content.get("model_source") or "")
    rows = tuple(_rows(content, model))
    configs = content.get("configs")
    return ResultFile(path, rows, configs if isinstance(configs, dict) else {}, _facts(content, model))


def newest_rows(files: Iterable[ResultFile]) -> list[ResultLine]:
    """Return the rows of all files; of each model's task those of the newest file."""
    newest: dict[tuple[str, str], list[ResultLine]] = {}
    for file in files:
        rows_of_file: dict[tuple[str, str], list[ResultLine]] = {}
        for row in file.rows:
            rows_of_file.setdefault((row.task, row.model), []).append(row)
        newest |= rows_of_file
    return [row for key in sorted(newest) for row in newest[key]]


def _rows(content: Mapping[str, Any], model: str) -> Iterable[ResultLine]:
    for task, metrics in content["results"].items():
        if not isinstance(metrics, dict):
            continue
        better = _mapping(_mapping(content.get("higher_is_better")).get(task))
        n = _mapping(_mapping(content.get("n-samples")).get(task)).get("effective")
        for key, value in metrics.items():
            metric, comma, filter_name = str(key).partition(",")
            if not comma or "_stderr" in metric or value in ("", None, []):
                continue
            number = _finite(value)
            yield ResultLine(
                *(str(task), model, filter_name, metric),
                value=str(value)[:200] if number is None else number,
                stderr=_finite(metrics.get(f"{metric}_stderr,{filter_name}")),
                higher_is_better=better.get(metric) if isinstance(better.get(metric), bool) else None,
                n=n if isinstance(n, int) else None,
            )


def _facts(content: Mapping[str, Any], model: str) -> dict[str, Any]:
    config = _mapping(content.get("config"))
    seconds = content.get("total_evaluation_time_seconds")
    facts = {
        "model": model,
        "adapter": config.get("model"),
        "model_args": config.get("model_args"),
        "limit": config.get("limit"),
        "date": content.get("date"),
        "lmms_eval_version": content.get("lmms_eval_version"),
        "seconds": _finite(seconds),
    }
    return {key: value for key, value in facts.items() if value not in (None, "")}


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

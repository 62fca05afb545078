"""A finished run on disk: its settings, and every question with its answers and the verdict on the baseline answer.

A run file is JSON lines. The first line is a header, `{"hedge_run": 1, "task", "model", "created", "settings"}`; every
other line is one answer set (`AnswerSet.to_dict`) with the judge's `verdict` beside it. Everything that is computed
later (other clusterings, sweeps, comparisons, reports) starts from here and needs no model.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hedge_tasks.data.answer_files import parse_answer_sets
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects

FORMAT = 1
FOLDER = "hedge_runs"
"""Folder of run files in lmms-eval's output folder."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Run:
    """What one task gave for one model.

    Attributes:
        task: name of the task.
        model: what identifies the model.
        answer_sets: of all documents, with labels where the judge could tell.
        verdicts: by id: the judge, its version, the reason, and whatever else it says.
        settings: all that the results depend on (DESIGN §7): package version, sampling, filters, judge, ...
        created: when it was finished, UTC, as ISO 8601.
        path: the file it was read from or written to.
    """

    task: str
    model: str
    answer_sets: tuple[AnswerSet, ...]
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""
    path: Path | None = None

    @property
    def title(self) -> str:
        return f"{self.task} of {self.model or 'an unknown model'}" + (f", {self.created}" if self.created else "")


def now() -> str:
    """The time for `Run.created`."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def save_run(run: Run, folder: Path) -> Path:
    """Write a run file into a folder, which is made if missing. The file appears as a whole or not at all.

    Raises:
        DataError: the folder cannot be written.
    """
    stamp = re.sub(r"\D", "", run.created)[:20] or "undated"
    path = _unused(folder, f"run-{stamp}-{_UNSAFE.sub('_', run.task)[:80]}")
    header = {
        "hedge_run": FORMAT,
        "task": run.task,
        "model": run.model,
        "created": run.created,
        "settings": run.settings,
    }
    rows = [{**a.to_dict(), "verdict": run.verdicts.get(a.id)} for a in run.answer_sets]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write runs to {folder}: {error.strerror}") from error
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in (header, *rows)))
    return path


def load_runs(path: Path, task: str | None = None) -> list[Run]:
    """The runs at a path, the newest of each task and model, sorted by task and model.

    Args:
        path: lmms-eval's output folder, a folder of run files, one run file, a sample file of lmms-eval, or a JSONL
            file of answer sets.
        task: only runs of this task.

    Raises:
        DataError: there is no run, or a file is damaged.
        ConfigError: no run is of that task; names the nearest one.
    """
    newest: dict[tuple[str, str], Run] = {}
    for file in _run_files(path):
        run = read_run(file)
        known = newest.get((run.task, run.model))
        if known is None or known.created <= run.created:
            newest[run.task, run.model] = run
    runs = [newest[key] for key in sorted(newest)]
    if task is None:
        return runs
    if task not in {run.task for run in runs}:
        raise unknown(f"task in {path}", task, {run.task for run in runs})
    return [run for run in runs if run.task == task]


def load_run(path: Path, task: str | None = None) -> Run:
    """The one run at a path.

    Raises:
        DataError: there is none, or there are several: the message lists them.
        ConfigError: no run is of that task; names the nearest one.
    """
    runs = load_runs(path, task)
    if len(runs) > 1:
        listing = "; ".join(f"{run.task} of {run.model} ({run.path})" for run in runs)
        raise DataError(f"{path} holds {len(runs)} runs, choose one by its task or file: {listing}")
    return runs[0]


def read_run(file: Path) -> Run:
    """Read a run file, a sample file of lmms-eval, or a JSONL file of answer sets.

    Raises:
        DataError: names the file, the line and what is wrong.
    """
    rows = read_objects(file)
    if not rows:
        raise DataError(f"{file}: nothing in it")
    where, first = rows[0]
    if "hedge_run" in first:
        return _from_run_file(file, where, first, rows[1:])
    if "filtered_resps" in first:
        return _from_samples(file, rows)
    return Run(file.stem, "", tuple(parse_answer_sets(rows)), path=file)


def _unused(folder: Path, name: str) -> Path:
    numbers = itertools.chain([""], (f"-{i}" for i in itertools.count(2)))
    return next(path for number in numbers if not (path := folder / f"{name}{number}.jsonl").exists())


def _run_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder")
    for folder in (path, path / FOLDER):
        if files := sorted(folder.glob("run-*.jsonl")):
            return files
    raise DataError(f"{path}: no finished run in it (run-*.jsonl, here or in {FOLDER}/)")


_Rows = Sequence[tuple[str, Mapping[str, Any]]]


def _from_run_file(file: Path, where: str, header: Mapping[str, Any], rows: _Rows) -> Run:
    if header["hedge_run"] != FORMAT:
        raise DataError(f"{where}: format {header['hedge_run']!r}; this version reads format {FORMAT}")
    for name, kind in (("task", str), ("model", str), ("created", str), ("settings", dict)):
        if not isinstance(header.get(name), kind):
            raise DataError(f"{where}: the header's {name!r} is missing or no {kind.__name__}")
    verdicts = {str(row.get("id")): row["verdict"] for _, row in rows if isinstance(row.get("verdict"), dict)}
    facts = (header["settings"], header["created"], file)
    return Run(header["task"], header["model"], tuple(parse_answer_sets(rows)), verdicts, *facts)


def _from_samples(file: Path, rows: _Rows) -> Run:
    """Sample files hold every document once a filter; all of them have the same answers and labels."""
    sets: dict[str, AnswerSet] = {}
    for where, row in rows:
        response = row.get("filtered_resps")
        text = response[0] if isinstance(response, list) and response else response
        if not isinstance(text, str):
            raise DataError(f"{where}: no sampled answers of a HEDGE task in 'filtered_resps'")
        answer_set = AnswerSet.from_json(text, where)
        sets.setdefault(answer_set.id, replace(answer_set, cluster_ids=None, held_out=False, choice_errors={}))
    task = file.stem.partition("_samples_")[2] or file.stem
    return Run(task, "", tuple(sets.values()), path=file)

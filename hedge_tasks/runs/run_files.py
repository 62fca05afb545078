"""A finished run on disk: its settings, and every question with its answers and the verdict on the baseline answer.

A run file is JSON lines. The first line is a header, `{"hedge_run": 2, "task", "model", "created", "settings",
"documents"}`; the last one closes it, `{"hedge_run_end": {"lines", "sha256"}}`, with a digest of all before it; every
other line is one answer set (`AnswerSet.to_dict`) with the judge's `verdict` beside it, the `columns` of its data set
that the suite's numbers need (`hedge_tasks.measures.run_measures`), and the outputs of models for the answers
(`hedge_tasks.runs.evidence`) and of its claims (`hedge_tasks.runs.support`). Everything that is computed later (sweeps,
comparisons, reports) starts from here and needs no model.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.clustering.model_outputs import ModelOutputs
from hedge_tasks.data.answer_files import read_answers
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError, check_names
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import parse_objects
from hedge_tasks.io.outside import clean, read_raw_lines
from hedge_tasks.io.records import Record
from hedge_tasks.numbers import count_of
from hedge_tasks.runs.evidence import KeptEvidence, pack_outputs
from hedge_tasks.runs.no_answer import without_false_label
from hedge_tasks.runs.run_records import RunHeader, RunRow
from hedge_tasks.runs.support import Support

HEADER, END = "hedge_run", "hedge_run_end"
EVIDENCE, SUPPORT = "evidence", "support"
FOLDER = "hedge_runs"
"""Folder of run files in lmms-eval's output folder."""

_NAME = re.compile(r"run-(\d{8,}|undated)-")


@dataclass(frozen=True)
class Run:
    """Output of one task for one model.

    Attributes:
        task: name of the task.
        model: what identifies the model.
        answer_sets: of all documents, with labels where the judge could tell.
        verdicts: by id: the judge, its version, the reason, and whatever else it says.
        settings: all that the results depend on: package version, sampling, filters, judge, ...
        created: when it was finished, UTC, as ISO 8601.
        path: the file it was read from or written to.
        trusted: whether the user has said that what it names may be loaded; see `hedge_tasks.runs.trust`.
        columns: by id: what the data set says of a document that the suite's own numbers need.
        evidence: outputs of models for the answers.
        support: of the claims of its answers by the draws.
    """

    task: str
    model: str
    answer_sets: tuple[AnswerSet, ...]
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""
    path: Path | None = None
    trusted: bool = field(default=False, compare=False)
    support: Support | None = field(default=None, compare=False, repr=False)
    evidence: KeptEvidence = field(default_factory=KeptEvidence, compare=False, repr=False)
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def outputs(self) -> ModelOutputs:
        """The evidence as clusterings look it up.

        Raises:
            DataError: it is damaged.
        """
        return self.evidence.outputs(self.answer_sets, str(self.path or self.task))

    @property
    def title(self) -> str:
        return f"{self.task} of {self.model or 'an unknown model'}" + (f", {self.created}" if self.created else "")


def now() -> str:
    """Return the time for `Run.created`."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def save_run(run: Run, folder: Path) -> Path:
    """Write a run file into a folder, which is made if missing. The file appears as a whole or not at all.

    Raises:
        DataError: the folder cannot be written.
    """
    stamp = re.sub(r"\D", "", run.created)[:20] or "undated"
    path = folder / f"run-{stamp}-{re.sub('[^A-Za-z0-9_.-]+', '_', run.task)[:80]}.jsonl"
    while path.exists():
        path = path.with_stem(f"{path.stem}-2")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write runs to {folder}: {error.strerror}") from error
    write_whole(path, _lines_of(run))
    return path


def _lines_of(run: Run) -> Iterator[bytes]:
    identity = {"task": run.task, "model": run.model, "created": run.created, "settings": run.settings}
    header: dict[str, Any] = {HEADER: 2, **identity, "documents": len(run.answer_sets)}
    kept: dict[str, Mapping[str, Any]] = {"columns": run.columns}
    if run.evidence:
        header[EVIDENCE], kept[EVIDENCE] = run.evidence.sources, run.evidence.rows
    if run.support:
        header[SUPPORT], kept[SUPPORT] = run.support.source, run.support.answers
    rows = (
        a.to_dict() | {"verdict": run.verdicts.get(a.id)} | {name: of[a.id] for name, of in kept.items() if a.id in of}
        for a in run.answer_sets
    )
    return run_lines(header, rows)


def run_lines(header: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the lines of a run file: the header, the rows, and the closing line."""
    return _closed(map(_encoded, itertools.chain([header], rows)))


def _closed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines, and then their closing line."""
    digest, n = hashlib.sha256(), 0
    for n, line in enumerate(lines, start=1):  # noqa: B007
        digest.update(line)
        yield line
    yield _encoded({END: {"lines": n, "sha256": digest.hexdigest()}})


def _encoded(fields: Mapping[str, Any]) -> bytes:
    return f"{clean(json.dumps(fields, ensure_ascii=False, default=Record.model_dump))}\n".encode()


def keep_evidence(run: Run) -> Path:
    """Write outputs of models since the run was read into its file.

    Raises:
        DataError: the run was not read from a run file, or the file cannot be written.
    """
    return write_again(replace(run, evidence=pack_outputs(run.outputs, run.answer_sets)))


def write_again(run: Run) -> Path:
    """Write a run into the file that it was read from.

    Raises:
        DataError: the run was not read from a run file, or the file cannot be written.
    """
    path = file_of(run)
    write_whole(path, _lines_of(run))
    return path


def file_of(run: Run) -> Path:
    """The run file that evidence can be kept in.

    Raises:
        DataError: the run was not read from one.
    """
    if run.path is None or not is_run_file(run.path):
        raise DataError(f"{run.path or run.title}: only a run file keeps what models say")
    return run.path


def is_run_file(file: Path) -> bool:
    """Whether a file is a run file, damaged or not: by its first line, or by its name.

    Raises:
        DataError: it cannot be read.
    """
    first = next(read_raw_lines(file), (0, b""))[1]
    return b'"hedge_run"' in first[:80] or bool(first and _NAME.match(file.name))


def load_runs(path: Path, task: str | None = None, *, trust: bool = False) -> list[Run]:
    """The runs at a path, the newest of each task, model and way of drawing, sorted by task, model and time.

    Args:
        path: lmms-eval's output folder, a folder of run files, one run file, or a JSONL file of answer sets.
        task: only runs of this task.
        trust: whether the models and data sets that they name may be loaded; see `hedge_tasks.runs.trust`.

    Raises:
        DataError: there is no run, or a file is damaged.
        ConfigError: no run is of that task; names the nearest one.
    """
    runs = sorted(map(read_run, run_paths(path)), key=lambda run: run.created)
    newest = {(run.task, run.model, str(run.settings.get("sampling"))): replace(run, trusted=trust) for run in runs}
    if older := len(runs) - len(newest):
        logger.info("{}: {} left out, which newer ones with the same settings replace", path, count_of(older, "run"))
    if task is not None:
        check_names(f"task in {path}", [task], {name for name, *_ in newest})
    chosen = [run for run in newest.values() if task in (None, run.task)]
    return sorted(chosen, key=lambda run: (run.task, run.model, run.created))


def load_run(path: Path, task: str | None = None, *, trust: bool = False) -> Run:
    """The one run at a path.

    Raises:
        DataError: there is none, or there are several: the message lists them.
        ConfigError: no run is of that task; names the nearest one.
    """
    runs = load_runs(path, task, trust=trust)
    if len(runs) > 1:
        listing = "; ".join(f"{run.task} of {run.model} ({run.path})" for run in runs)
        raise DataError(f"{path} holds {len(runs)} runs, choose one by its task or file: {listing}")
    return runs[0]


def read_run(file: Path) -> Run:
    """Read a run file, or a file of answers (`hedge_tasks.data.answer_files`).

    Raises:
        DataError: names the file and what is wrong. A run file that is damaged or was cut off is refused as a whole.
    """
    if is_run_file(file):
        return _read_run_file(file)
    read = read_answers([file])
    return Run(file.stem, read.model, tuple(map(without_false_label, read.answer_sets)), path=file)


def run_paths(path: Path) -> list[Path]:
    """The run files at a path: the file itself, or those of a folder.

    Raises:
        DataError: there is none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder")
    for folder in (path, path / FOLDER):
        if files := sorted(folder.glob("run-*.jsonl")):
            return files
    raise DataError(f"{path}: no finished run in it (run-*.jsonl, here or in {FOLDER}/)")


def _read_run_file(file: Path) -> Run:
    numbered = list(read_raw_lines(file))
    lines = [line for _, line in numbered]
    if not lines or lines[-1].rstrip() != [*_closed(lines[:-1])][-1].rstrip():
        raise DataError(
            f"{file}: the run file is damaged: it is not what was written, maybe by an editor that changes line ends. "
            "Take a sound copy, or evaluate again: kept answers are not asked for again"
        )
    (where, first), *rows = parse_objects(numbered[:-1], str(file))
    header = vars(RunHeader.read(first, where))
    documents = [(AnswerSet.read(fields, at), RunRow.read(fields, at)) for at, fields in rows]
    if shared := [id for id, n in Counter(answers.id for answers, _ in documents).items() if n > 1]:
        raise DataError(f"{file}: documents share the id {shared[0]!r}; hedge.id has to name a column of ids")

    def kept(name: str) -> dict[str, Any]:
        return {a.id: value for a, row in documents if (value := getattr(row, name)) is not None}

    return Run(
        **{name: header[name] for name in ("task", "model", "settings", "created")},
        answer_sets=tuple(answers for answers, _ in documents),
        verdicts=kept("verdict"),
        path=file,
        evidence=KeptEvidence(header[EVIDENCE], kept(EVIDENCE)),
        support=Support(source=header[SUPPORT], answers=kept(SUPPORT)) if header[SUPPORT] else None,
        columns=kept("columns"),
    )

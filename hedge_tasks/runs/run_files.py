"""A finished run on disk: its settings, and every question with its answers and the verdict on the baseline answer.

A run file is JSON lines. The first line is a header, `{"hedge_run": 2, "task", "model", "created", "settings",
"documents"}`; the last one closes it; every other line is one answer set (`AnswerSet.to_dict`) with the judge's
`verdict` beside it, the `columns` of its data set that the suite's numbers need (`hedge_tasks.measures.run_measures`),
and the outputs of models for the answers (`hedge_tasks.runs.evidence`). Each has a checksum as its last field, and the
closing line a digest of all (`hedge_tasks.runs.integrity`). Everything that is computed later (sweeps, comparisons,
reports) starts from here and needs no model.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks.clustering.model_outputs import ModelOutputs
from hedge_tasks.data.answer_files import clean_answer_sets, normal_rows, parse_answer_sets
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.io import outside
from hedge_tasks.io.files import write_whole
from hedge_tasks.io.json_lines import read_objects
from hedge_tasks.runs.evidence import FIELD, KeptEvidence, pack_outputs, read_evidence
from hedge_tasks.runs.integrity import HEADER, Inspection, inspect, is_run_file, sealed_run
from hedge_tasks.runs.run_settings import RunHeader, RunRow

FORMAT = 2
FOLDER = "hedge_runs"
"""Folder of run files in lmms-eval's output folder."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True)
class Run:
    """Output of one task for one model.

    Attributes:
        task: name of the task.
        model: what identifies the model.
        answer_sets: of all documents, with labels where the judge could tell.
        verdicts: by id: the judge, its version, the reason, and whatever else it says.
        settings: all that the results depend on (DESIGN §7): package version, sampling, filters, judge, ...
        created: when it was finished, UTC, as ISO 8601.
        path: the file it was read from or written to.
        trusted: whether the user has said that what it names may be loaded; see `hedge_tasks.runs.trust`.
        digest: SHA-256 that the run file's closing line states; empty for a run that was not read from one.
        columns: by id: what the data set says of a document that the suite's own numbers need.
        evidence: outputs of models for the answers.
    """

    task: str
    model: str
    answer_sets: tuple[AnswerSet, ...]
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""
    path: Path | None = None
    trusted: bool = field(default=False, compare=False)
    digest: str = field(default="", compare=False)
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
    path = _unused(folder, f"run-{stamp}-{_UNSAFE.sub('_', run.task)[:80]}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot write runs to {folder}: {error.strerror}") from error
    write_whole(path, _text(run))
    return path


def _text(run: Run) -> str:
    identity = {"task": run.task, "model": run.model, "created": run.created, "settings": run.settings}
    header = {HEADER: FORMAT, **identity, "documents": len(run.answer_sets)}
    if run.evidence:
        header[FIELD] = run.evidence.header()
    return sealed_run(header, [_line(run, answers) for answers in run.answer_sets])


def keep_evidence(run: Run) -> Path | None:
    """Write outputs of models since the run was read into its file; None where there are no new ones.

    Raises:
        DataError: the run was not read from a run file, or the file cannot be written.
    """
    path = file_of(run)
    evidence = pack_outputs(run.outputs, run.answer_sets)
    if evidence == run.evidence:
        return None
    write_whole(path, _text(replace(run, evidence=evidence)))
    return path


def file_of(run: Run) -> Path:
    """The run file that evidence can be kept in.

    Raises:
        DataError: the run was not read from one.
    """
    if run.path is None or not is_run_file(run.path):
        raise DataError(f"{run.path or run.title}: only a run file keeps what models say")
    return run.path


def _line(run: Run, answers: AnswerSet) -> dict[str, Any]:
    evidence = run.evidence.line(answers.id) if run.evidence else None
    columns = run.columns.get(answers.id)
    judged = {"verdict": run.verdicts.get(answers.id), **({"columns": columns} if columns else {})}
    return {**answers.to_dict(), **judged, **({FIELD: evidence} if evidence else {})}


def load_runs(path: Path, task: str | None = None, *, trust: bool = False) -> list[Run]:
    """The runs at a path, the newest of each task and model, sorted by task and model.

    Args:
        path: lmms-eval's output folder, a folder of run files, one run file, a sample file of lmms-eval, or a JSONL
            file of answer sets.
        task: only runs of this task.
        trust: whether the models and data sets that they name may be loaded; see `hedge_tasks.runs.trust`.

    Raises:
        DataError: there is no run, or a file is damaged.
        ConfigError: no run is of that task; names the nearest one.
    """
    newest: dict[tuple[str, str], Run] = {}
    for file in run_paths(path):
        run = replace(read_run(file), trusted=trust)
        newest_so_far = newest.get((run.task, run.model))
        if newest_so_far is None or newest_so_far.created <= run.created:
            newest[run.task, run.model] = run
    runs = [newest[key] for key in sorted(newest)]
    if task is None:
        return runs
    if task not in {run.task for run in runs}:
        raise unknown(f"task in {path}", task, {run.task for run in runs})
    return [run for run in runs if run.task == task]


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
    """Read a run file, a sample file of lmms-eval, or a JSONL file of answer sets.

    Raises:
        DataError: names the file, the line and what is wrong. A damaged run file is refused as a whole; one that was
            cut off is read as far as it goes, and its settings say so under `partial`.
    """
    if is_run_file(file):
        inspection = inspect(file)
        # A file of another format has no closing line either, and that is not what is wrong with it.
        if inspection.header is not None:
            _check_format(inspection.header)
        if inspection.problems:
            others = f" (and {len(inspection.problems) - 1} more)" if len(inspection.problems) > 1 else ""
            raise DataError(
                f"{inspection.problems[0]}{others}: the run file is damaged. Take a sound copy, or "
                "evaluate again: kept answers are not asked for again"
            )
        return _from_run_file(inspection)
    rows = read_objects(file)
    if not rows:
        raise DataError(f"{file}: nothing in it")
    if "filtered_resps" in rows[0][1]:
        return _from_samples(file, rows)
    return Run(file.stem, "", tuple(clean_answer_sets(parse_answer_sets(normal_rows(rows)), str(file))), path=file)


def _unused(folder: Path, name: str) -> Path:
    numbers = itertools.chain([""], (f"-{i}" for i in itertools.count(2)))
    return next(path for number in numbers if not (path := folder / f"{name}{number}.jsonl").exists())


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


_Rows = Sequence[tuple[str, Mapping[str, Any]]]


def _check_format(header: tuple[str, Mapping[str, Any]]) -> None:
    where, fields = header
    if fields.get(HEADER) != FORMAT:
        raise DataError(f"{where}: format {fields.get(HEADER)!r}; this version reads format {FORMAT}")


def _from_run_file(inspection: Inspection) -> Run:
    assert inspection.header is not None
    where, fields = inspection.header
    header = RunHeader.read(fields, where)
    answer_sets = tuple(parse_answer_sets(inspection.rows))
    rows = {a.id: RunRow.read(row, at) for a, (at, row) in zip(answer_sets, inspection.rows, strict=True)}
    partial = {"partial": {"documents": len(answer_sets), "of": header.documents}} if inspection.partial else {}
    if partial:
        logger.warning("{}: cut off: {} of {} documents are in it", inspection.file, len(answer_sets), header.documents)
    raw_rows = {a.id: row for a, (_, row) in zip(answer_sets, inspection.rows, strict=True)}
    return Run(
        task=header.task,
        model=header.model,
        answer_sets=answer_sets,
        verdicts={id: row["verdict"] for id, row in raw_rows.items() if row.get("verdict") is not None},
        settings={**fields["settings"], **partial},
        created=header.created,
        path=inspection.file,
        digest=inspection.digest,
        columns={id: row["columns"] for id, row in raw_rows.items() if row.get("columns")},
        evidence=read_evidence(header, rows, where),
    )


def _from_samples(file: Path, rows: _Rows) -> Run:
    """Sample files hold every document once a filter; all of them have the same answers and labels."""
    sets: dict[str, AnswerSet] = {}
    for where, row in rows:
        response = row.get("filtered_resps")
        text = response[0] if isinstance(response, list) and response else response
        if not isinstance(text, str):
            raise DataError(f"{where}: no sampled answers of a HEDGE task in 'filtered_resps'")
        fields = outside.parse_json(text, where)
        if isinstance(fields, Mapping) and "failed" in fields:
            continue  # a document that was left out
        answer_set = AnswerSet.read(fields, where)
        sets.setdefault(answer_set.id, replace(answer_set, cluster_ids=None, held_out=False, choice_errors={}))
    task = file.stem.partition("_samples_")[2] or file.stem
    return Run(task, "", tuple(sets.values()), path=file)

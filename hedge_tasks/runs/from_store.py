"""A run out of an answer store: for evaluations that were killed before their end, and for stores without a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from loguru import logger

from hedge_tasks.adjudication import Case, Judge, judge_from
from hedge_tasks.adjudication.config import verdict_record
from hedge_tasks.asking.account import asked
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.io.progress import progress
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling import archive
from hedge_tasks.sampling.blocks import contents_of, read_block
from hedge_tasks.sampling.definition import Definition

_PARTIAL = "{}: partial, {} documents have not all their answers yet and are left out"


def run_from_store(folder: Path, definition: str | None, judge: str) -> Run:
    """The complete answer sets of one definition, labelled by a judge. Documents that lack answers are left out.

    Args:
        folder: the store, or lmms-eval's output folder.
        definition: first digits of its id; None takes the only one.
        judge: name of a judge, or `name:option=value,...`.

    Raises:
        DataError: there is no store, nothing complete in it, or several definitions to choose from.
        ConfigError: judge or definition is unknown.
    """
    store = archive.open_store(folder)
    chosen = archive.choose_definition(store, definition)
    exported = archive.export(store, chosen)
    if exported.incomplete:
        logger.warning(_PARTIAL, folder, len(exported.incomplete))
    return _labelled(folder, chosen, exported, judge_from(judge))


def runs_from_blocks(folder: Path, definition: str | None, judge: str) -> Iterator[Run]:
    """The same run in parts, one after the other in memory, each with some thousand documents.

    Raises:
        DataError, ConfigError: as `run_from_store`.
    """
    contents = contents_of(folder, definition)
    decides = judge_from(judge)
    incomplete = 0
    for homes in progress(contents.blocks(), name="Blocks", unit="block"):
        exported = archive.export(
            read_block(contents, homes), contents.definition, asked=(contents.n, contents.n_noisy)
        )
        incomplete += len(exported.incomplete)
        yield _labelled(folder, contents.definition, exported, decides)
    if incomplete:
        logger.warning(_PARTIAL, folder, incomplete)


def _labelled(folder: Path, definition: Definition, exported: archive.Export, judge: Judge) -> Run:
    answer_sets = [AnswerSet.read(line) for line in exported.lines]
    cases = [Case(a.id, a.question or "", a.reference or "", a.baseline.text) for a in answer_sets]
    verdicts = judge.judge(cases)
    return Run(
        task=definition.task,
        model=definition.model or "",
        answer_sets=tuple(a.with_label(v.label) for a, v in zip(answer_sets, verdicts, strict=True)),
        verdicts={case.id: verdict_record(case, verdict) for case, verdict in zip(cases, verdicts, strict=True)},
        settings={
            "sampling": dict(definition.sampling),
            "documents": {"judge": judge.settings()},
            "cost": {"labels": asked(judge)[0]},
        },
        path=folder,
    )

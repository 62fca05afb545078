"""A run out of an answer store: for evaluations that were killed before their end, and for stores without a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from loguru import logger
from numpy.typing import NDArray

from hedge_tasks.data.placeholders import known_by
from hedge_tasks.errors import DataError
from hedge_tasks.judging import judge_from
from hedge_tasks.runs.relabel import case_of, with_verdicts
from hedge_tasks.runs.run_files import Run, load_runs, run_paths
from hedge_tasks.sampling import archive
from hedge_tasks.sampling.blocks import Contents, contents_of, read_block


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
    contents = contents_of(folder, definition)
    run, n = StoredBlock(contents, contents.homes, judge).load()
    if n:
        logger.warning("{}: partial, {} documents have not all their answers yet and are left out", folder, n)
    return run


def runs_so_far(path: Path, task: str | None = None, *, trust: bool = False) -> list[Run]:
    """The runs at a path, as `load_runs` has them; where none is finished, those of an answer store, by the rule judge.

    Raises:
        DataError: there is neither, or a file is damaged.
    """
    try:
        run_paths(path)
    except DataError as no_run:
        try:
            definitions = archive.open_store(path).definitions
        except DataError as no_store:
            raise DataError(f"{no_run}; {no_store}") from None
        return [run_from_store(path, id, "rule") for id, d in definitions.items() if task in (None, d.task)]
    return load_runs(path, task, trust=trust)


@dataclass(frozen=True)
class StoredBlock:
    """Documents of a store, of which this process may have read nothing yet.

    Attributes:
        homes: of the documents.
        judge: who labels them, as for `run_from_store`.
    """

    contents: Contents
    homes: NDArray[np.uint64]
    judge: str

    def load(self) -> tuple[Run, int]:
        """Read and label those of the documents that have all their answers; with the number of the others.

        Raises:
            DataError: a file cannot be read.
        """
        contents, judge = self.contents, _judge(self.judge)
        definition, store = contents.definition, read_block(contents, self.homes)
        exported = archive.complete_sets(store, definition, (contents.n, contents.n_noisy))
        answer_sets = tuple(map(known_by(exported.answer_sets), exported.answer_sets))
        settings = {
            "sampling": dict(definition.sampling),
            "documents": {"judge": judge.settings()},
            "sampled": dict(store.reports.get(definition.id, {})),
        }
        place = Path(str(contents.folder))
        run = Run(definition.task, definition.model or "", answer_sets, settings=settings, path=place)
        return with_verdicts(run, judge.judge([case_of(a) for a in answer_sets])), len(exported.incomplete)


def stored_blocks(folder: Path, definition: str | None, judge: str) -> list[StoredBlock]:
    """The documents of `run_from_store` in blocks of some thousand.

    Raises:
        DataError, ConfigError: as `run_from_store`.
    """
    contents = contents_of(folder, definition)
    _judge(judge)
    return [StoredBlock(contents, homes, judge) for homes in contents.blocks()]


_judge = lru_cache(maxsize=1)(judge_from)
"""The judge of all blocks of this process."""

"""Arrays from inside the model that were kept with the answers of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.inside import Inside
from hedge_tasks.detectors.scorer import InsideSource
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.archive import FOLDER
from hedge_tasks.sampling.inside import KIND, MODEL, InsideStore, inside_key


def inside_source(run: Run) -> InsideSource:
    """Looks up the arrays of a run by the id of the document, when it is asked; nothing where nothing was kept."""

    @cache
    def read(names: frozenset[str]) -> Mapping[str, Inside]:
        store = find_inside_store(run)
        return {} if store is None else read_inside(store, {a.id: _key(run, a) for a in run.answer_sets}, names)

    return read


def read_inside(folder: Path, keys: Mapping[str, str], names: frozenset[str]) -> dict[str, Inside]:
    """The arrays in a store by the id of the document, without documents that have none.

    Args:
        keys: see `inside_key`, by id.
        names: of the arrays.
    """
    with InsideStore(folder) as store:
        return {id: arrays for id, key in keys.items() if (arrays := store.get(key, names))}


def names_kept(run: Run) -> set[str]:
    """The names of the arrays that some document of a run has."""
    where = find_inside_store(run)
    if where is None:
        return set()
    with InsideStore(where) as store:
        return {name for a in run.answer_sets for name in store.names(_key(run, a))}


def _key(run: Run, answers: AnswerSet) -> str:
    return inside_key(run.task, str(run.settings.get(MODEL)), answers.id, answers.baseline.text)


def find_inside_store(run: Run) -> Path | None:
    """The store that lies beside the run file or above it, and holds arrays from inside."""
    folders = [] if run.path is None else list(run.path.resolve().parents)[:4]
    places = (place for folder in folders for place in (folder / FOLDER, folder))
    return next((place for place in places if any(place.glob(f"{KIND}-*.jsonl"))), None)

"""Hidden states that were kept with the answers of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from hedge_tasks.errors import DataError
from hedge_tasks.runs.run_files import Run
from hedge_tasks.sampling.hidden_states import KIND, States, StateStore, state_key

_FOLDER = "hedge_answers"
_UP = 4


def states_of(run: Run, folder: Path | None = None) -> Mapping[str, States]:
    """Hidden states by the id of the document.

    Args:
        folder: the store of answers; None looks beside the run file.

    Raises:
        DataError: none are there, with what would have kept them; or states of different shapes.
    """
    where = folder or _beside(run)
    found: dict[str, States] = {}
    if where is not None:
        with StateStore(where) as store:
            for answers in run.answer_sets:
                states = store.get(state_key(run.task, run.model, answers.id, answers.baseline.text))
                if states is not None:
                    found[answers.id] = np.asarray(states)
    if not found:
        raise DataError(
            f"{run.path or run.title}: no hidden states were kept with it; `--gen_kwargs hidden_states=true` keeps "
            "them, of hedge_hf"
        )
    if len({of.shape for of in found.values()}) > 1:
        raise DataError(f"{where}: hidden states of different shapes")
    return found


def _beside(run: Run) -> Path | None:
    """The store that lies beside the run file or above it, and holds hidden states."""
    if run.path is None:
        return None
    for folder in list(run.path.resolve().parents)[:_UP]:
        for place in (folder / _FOLDER, folder):
            if any(place.glob(f"{KIND}-*.jsonl")):
                return place
    return None

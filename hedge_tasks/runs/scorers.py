"""How a finished run was scored: the scorers that its settings describe."""

from __future__ import annotations

from collections.abc import Mapping

from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.trust import check_models


def scorers_of(run: Run) -> dict[str, Scorer]:
    """The scorers that a run was evaluated with, by name; what was kept with the run they do not ask again.

    Raises:
        ConfigError: the run records none.
        Untrusted: the run was read from a file and names a model that no installed task has.
    """
    filters = run.settings.get("filters")
    if not isinstance(filters, Mapping) or not filters:
        raise ConfigError(f"{run.path}: no filters are recorded there; choose a clustering with --clustering")
    if run.path is not None and not run.trusted:
        check_models(filters, str(run.path))
    return {name: Scorer.from_settings(name, settings).looking_up(run.said) for name, settings in filters.items()}


def scorer_of(run: Run, name: str | None) -> Scorer:
    """One scorer of a run; the first where no name is given.

    Raises:
        ConfigError: the run has no filter of that name; names the nearest one.
    """
    scorers = scorers_of(run)
    if name is not None and name not in scorers:
        raise unknown(f"filter of {run.task}", name, scorers)
    return scorers[name] if name is not None else next(iter(scorers.values()))

"""How a finished run was scored: the scorers that its settings describe."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from hedge_tasks.claims.base import ClaimEvidence
from hedge_tasks.detectors.scorer import ClaimSource, Scorer
from hedge_tasks.errors import ConfigError, lookup
from hedge_tasks.io.sources import model_option
from hedge_tasks.runs.claims import claim_evidence
from hedge_tasks.runs.kept_inside import inside_source
from hedge_tasks.runs.run_files import Run
from hedge_tasks.runs.trust import check_models


def scorers_of(run: Run) -> dict[str, Scorer]:
    """Return the scorers that a run was evaluated with, by name; they use the outputs kept with the run.

    Raises:
        ConfigError: the run records none.
        Untrusted: the run was read from a file and names a model that no installed task has.
    """
    filters = run.settings.get("filters")
    if not filters:
        raise ConfigError(f"{run.path}: no filters are recorded there; choose a clustering with --clustering")
    check_models(run, filters)
    scorers = {name: Scorer.from_settings(name, settings) for name, settings in filters.items()}
    return {name: with_kept_outputs(scorer, run) for name, scorer in scorers.items()}


def scorers_or_exact(run: Run) -> dict[str, Scorer]:
    """Return the scorers of a run, or exact matching where it records none; see `scorers_of`."""
    try:
        return scorers_of(run)
    except ConfigError:
        return {"exact": with_kept_outputs(Scorer.build("exact", "exact"), run)}


def with_kept_outputs(scorer: Scorer, run: Run) -> Scorer:
    """Return the scorer with the outputs kept with a run: of its answers, of their claims and from inside the model."""
    return replace(scorer.with_outputs(run.outputs), claims=_kept_claims(run), inside=inside_source(run))


def _kept_claims(run: Run) -> ClaimSource:
    """Return the claims that are kept with a run, read on first use; none where nothing is kept."""

    @cache
    def evidence_by_id() -> Mapping[str, ClaimEvidence]:
        if run.support is None or run.support.of(run.answer_sets) is None:
            return {}
        return dict(zip((a.id for a in run.answer_sets), claim_evidence(run.answer_sets, run.support), strict=True))

    return evidence_by_id


def scorer_of(run: Run, name: str | None) -> Scorer:
    """Return one scorer of a run; the first where no name is given.

    Raises:
        ConfigError: the run has no filter of that name; names the nearest one.
    """
    scorers = scorers_of(run)
    return next(iter(scorers.values())) if name is None else lookup(f"filter of {run.task}", name, scorers)


def model_options(run: Run, backend: str, named: Container[str] = ()) -> dict[str, Any]:
    """Return the models for another clustering of a run's answers, as options of the backend.

    Those that the environment names (HEDGE_MODELS), else those that the run clustered with; what neither has is left to
    the backend.

    Args:
        run: whose models are taken.
        backend: "nli" or "embed"; others have none.
        named: options that name a model already; what the run has in their place is not looked at.

    Raises:
        Untrusted: the run was read from a file and names a model that no installed task has.
    """
    if "model" in named:
        return {}
    if options := model_option(backend):
        return options
    for settings in run.settings.get("filters", {}).values():
        chosen = {key: value for key in ("model", "revision") if (value := settings.get(key)) is not None}
        # A process's own objects are no use elsewhere.
        if settings.get("backend") == backend and not chosen.get("model", "custom:").startswith("custom:"):
            check_models(run, {backend: chosen})
            return chosen
    return {}

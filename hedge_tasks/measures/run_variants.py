"""Runs that differ from a run in one setting alone: the seed of the draws, or the strength of the perturbation.

With the strength, AUROC can be drawn against the perturbation at one number of answers. This is what §6.2 of the HEDGE
paper misses, where both grow together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from hedge_tasks.errors import DataError
from hedge_tasks.runs.run_files import Run

_Value = TypeVar("_Value", int, float)

_CHOSEN = "chosen"
"""Setting of a filter: the threshold that it found on the draws, which differs with the seed."""


def seed_of(run: Run) -> int | None:
    """Return the seed of a run's draws; None where it records none."""
    seed = _sampling(run).get("seed")
    return seed if isinstance(seed, int) and not isinstance(seed, bool) else None


def by_seed(run: Run, others: Iterable[Run]) -> dict[int, Run]:
    """Return a run and those that differ from it in the seed alone, by seed; the newest of each.

    Task, model, documents, prompt, filters, sampling and judge are the same. Empty where the run records no seed.
    """
    return {} if seed_of(run) is None else _variants(run, (run, *others), seed_of, _without_seed)


def strength_of(run: Run) -> float | None:
    """Return the factor on all ranges of a run's perturbation; None where it has none or records none."""
    noise = _sampling(run).get("perturbation")
    strength = noise.get("strength") if isinstance(noise, Mapping) else None
    return float(strength) if isinstance(strength, (int, float)) and not isinstance(strength, bool) else None


def by_strength(run: Run, others: Iterable[Run]) -> dict[float, Run]:
    """Return the runs that differ from a run in nothing but the strength, by strength; the newest of each.

    Number of answers, temperature, seed, prompt and model are the same, so clean answers are, too.

    Raises:
        DataError: the run's perturbation has no strength.
    """
    if strength_of(run) is None:
        raise DataError(f"{run.title}: its perturbation has no strength")
    return _variants(run, others, strength_of, _without_strength)


def _variants(
    run: Run,
    others: Iterable[Run],
    value_of: Callable[[Run], _Value | None],
    shared: Callable[[Run], Mapping[str, Any]],
) -> dict[_Value, Run]:
    """Return the newest run of each value, in ascending order, of those whose other settings are the run's."""
    settings = shared(run)
    runs: dict[_Value, Run] = {}
    for candidate in sorted(others, key=lambda candidate: candidate.created):
        value = value_of(candidate)
        if value is not None and shared(candidate) == settings:
            runs[value] = candidate
    return dict(sorted(runs.items()))


def _without_seed(run: Run) -> dict[str, Any]:
    filters = run.settings.get("filters")
    if isinstance(filters, Mapping):
        filters = {name: _without(settings, _CHOSEN) for name, settings in filters.items()}
    return {
        "task": run.task,
        "model": run.model,
        "documents": {(answers.id, answers.question) for answers in run.answer_sets},
        "judges": {(str(verdict.get("judge")), str(verdict.get("version"))) for verdict in run.verdicts.values()},
        "sampling": _without(_sampling(run), "seed"),
        "settings": {"filters": filters, **{key: run.settings.get(key) for key in ("prompt", "documents")}},
    }


def _without_strength(run: Run) -> dict[str, Any]:
    sampling = _without(_sampling(run), "strength")
    noise = sampling.get("perturbation")
    if isinstance(noise, Mapping):
        sampling["perturbation"] = _without(noise, "strength")
    return {"task": run.task, "model": run.model, "prompt": run.settings.get("prompt"), "sampling": sampling}


def _without(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key != name}


def _sampling(run: Run) -> Mapping[str, Any]:
    sampling = run.settings.get("sampling")
    return sampling if isinstance(sampling, Mapping) else {}

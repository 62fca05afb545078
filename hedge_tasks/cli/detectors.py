"""`hedge detectors`: which detector tells hallucinations best on a run, and at what price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from hedge_tasks.cli.choices import ClusteringChoice, RunsChoice
from hedge_tasks.cli.claim_text import claim_block
from hedge_tasks.cli.printing import Details

if TYPE_CHECKING:
    from hedge_tasks.detectors.probes.base import FittedDetector
    from hedge_tasks.measures.detector_table import DetectorTable
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run

_SHOWN = 10
"""Rows of the best detectors that are shown without --all."""


def detectors(
    choice: RunsChoice,
    clustering: ClusteringChoice,
    *,
    all_: bool = False,
    against: str = "se",
    draws: int | None = None,
    sweep: Literal["n", "draws"] | None = None,
    thresholds: bool = False,
    search: Literal["plateau", "optuna"] = "plateau",
    seeds: bool = False,
    probes: bool = False,
    keep: bool = False,
) -> dict[str, Any] | list[dict[str, Any]]:
    """Compare all detectors on the same answers, with their price.

    Args:
        all_: All rows and columns, not the ten best and the free ones.
        against: What they are compared with.
        draws: Most draws a question: each detector gets what it can pay, such as 20 clean for se, 10 + 10 for vase.
        sweep: ROC-AUC against the number of answers (n), or their price (draws).
        thresholds: ROC-AUC by the way embed's threshold is chosen.
        search: Of --thresholds; the paper's is optuna.
        seeds: Runs that differ in the seed alone; the draws' share.
        probes: Detectors fitted on the inside of the model alone.
        keep: Ask models for what further detectors need, and write it into the run.
    """
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.audited import whose_labels
    from hedge_tasks.measures.sweep import check_samples

    if sum([sweep is not None, thresholds, seeds, probes]) > 1:
        raise ConfigError("choose one of --sweep, --thresholds, --seeds and --probes")
    finished = choice.load()
    if seeds:
        return _seeds(finished, clustering)
    if sweep or thresholds:
        [run, *others] = finished
        if others:
            raise ConfigError(f"RUN: one run, and there are {len(finished)}; --task says which")
        check_samples(run.answer_sets)
        facts = _sweep(run, clustering, sweep) if sweep else _thresholds(run, clustering, search)
        return facts | {"labels": whose_labels(run, None)}
    options: dict[str, Any] = {"against": against, "budget": draws, "probes": probes, "keep": keep, "all_": all_}
    return [_compare(run, clustering, **options) for run in finished]


def _sweep(run: Run, clustering: ClusteringChoice, by: str) -> dict[str, Any]:
    from hedge_tasks.detectors.pipeline import main_detectors
    from hedge_tasks.measures.sweep import sweep, sweep_draws, sweep_table

    scorer = clustering.scorer(run)
    most = min(len(a.clean) + len(a.noisy) * (by == "draws") for a in run.answer_sets)
    detectors = clustering.names or main_detectors(scorer.detectors)
    points = (sweep_draws if by == "draws" else sweep)(run.answer_sets, scorer, range(1, most + 1), detectors)
    return {"task": run.task, "by": by, "clustering": Details(scorer.settings()), "points": sweep_table([*points], by)}


def _thresholds(run: Run, clustering: ClusteringChoice, search: Literal["plateau", "optuna"]) -> dict[str, Any]:
    from hedge_tasks.detectors.thresholds.choice import ThresholdChoice
    from hedge_tasks.measures.threshold_report import threshold_table

    scorers = [*clustering.scorers(run).values()]
    # The first of a run's filters is NLI, which has no threshold.
    scorer = next((scorer for scorer in scorers if scorer.backend.name == "embed"), scorers[0])
    table = threshold_table(run.answer_sets, scorer, ThresholdChoice(search=search))
    return {"task": run.task, "clustering": Details(scorer.settings()), "ways": table}


def _seeds(runs: Sequence[Run], clustering: ClusteringChoice) -> dict[str, Any]:
    from hedge_tasks.detectors.pipeline import SCORE_NAMES
    from hedge_tasks.measures.audited import whose_labels
    from hedge_tasks.measures.seed_spread import by_seed, draws_shares, shares_table, spread_table, spreads

    first, detectors = max(runs, key=lambda run: run.created), clustering.names or SCORE_NAMES
    seeds = by_seed(first, runs) or {0: first}
    scorers = {seed: clustering.scorer(run).with_detectors(detectors) for seed, run in seeds.items()}
    scores = {seed: {scorers[seed].name: scorers[seed].score(run.answer_sets)} for seed, run in seeds.items()}
    table = spread_table(spreads(scores, detectors), list(seeds), first.title, whose_labels(first, None))
    shares = shares_table(draws_shares(first.answer_sets, next(iter(scorers.values())), detectors))
    return {"task": first.task, "seeds": table, "draws": shares}


def _compare(
    run: Run, clustering: ClusteringChoice, *, against: str, budget: int | None, probes: bool, keep: bool, all_: bool
) -> dict[str, Any]:
    """Return facts of all detectors on a run, or of those that are chosen, which may be fitted ones."""
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.detectors.registry import get, named
    from hedge_tasks.measures.detector_table import detector_table
    from hedge_tasks.runs.run_files import file_of, keep_evidence

    if keep:
        file_of(run)  # before anything is asked for nothing
    fitted, names, against = fitted_detectors(), clustering.detectors, get(against).name
    chosen = _kept(run, fitted, probes=probes) if names is None else [name.strip() for name in names.split(",")]
    others = ",".join(name for name in chosen if name not in fitted)
    # Whoever names a detector wants it, whatever has to be asked for it, and gets no others.
    only: dict[str, Any] = {"only_kept": names is None and not keep, "blind": names is None}
    scorer = replace(clustering, detectors=None).scorer(run)
    only["fitted"] = [fitted[name] for name in chosen if name in fitted]
    table = detector_table(run, scorer, named(others) if others else (), against=against, budget=budget, **only)
    finding = clustering.headline(run)
    return {
        **{"task": run.task, "model": run.model, "against": against, "budget": budget},
        **({"written": keep_evidence(run)} if keep else {}),
        **{"clustering": Details(scorer.settings()), "left_out": Details(table.left_out)},
        "detectors": _table(table, everything=all_),
        "finding": Details(finding),
        **claim_block(run),
        "notes": [*finding.lines(), *finding.details],
    }


def _kept(run: Run, fitted: Mapping[str, FittedDetector], *, probes: bool) -> list[str]:
    """Return the detectors that a run keeps evidence for, fitted ones as well."""
    from hedge_tasks.detectors.evidence import INSIDE_ARRAYS
    from hedge_tasks.detectors.pipeline import FREE, REFERENCE
    from hedge_tasks.detectors.registry import get, names
    from hedge_tasks.runs.kept_inside import names_kept

    kept_arrays = names_kept(run)
    if probes:
        return [REFERENCE, *FREE, *fitted]
    met = {need for need, arrays in INSIDE_ARRAYS.items() if kept_arrays >= arrays}
    shown = [name for name in names() if not get(name).experimental or get(name).needs & met]
    return [*shown, *(name for name, detector in fitted.items() if detector.array in kept_arrays)]


def _table(table: DetectorTable, *, everything: bool) -> Table:
    """Return the detectors of a run: all of them, or the ten best, those that are free, and the blind baselines."""
    from hedge_tasks.measures.detector_table import numbers_table
    from hedge_tasks.numbers import reason_lines

    rows = [r for i, r in enumerate(table.rows) if everything or i < _SHOWN or not r.draws]
    notes = ["p: of this table, exploratory; the run's family of comparisons stands below"]
    if everything:
        notes += reason_lines("left out", table.left_out.items())
    elif (hidden := len(table.rows) - len(rows)) or table.left_out:
        notes.append(f"--all: {hidden} more rows, their numbers within types, and {len(table.left_out)} left out")
    title = f"{table.run.title}; filter {table.scorer.name}"
    return numbers_table(rows, against=str(table.against[0]), brief=not everything, title=title, notes=notes)

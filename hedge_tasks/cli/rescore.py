"""`hedge rescore`: new numbers from a finished run or an answer store, without the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice, chosen_detectors

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.runs.run_files import Run


def rescore(
    run: RunChoice,
    clustering: ClusteringChoice,
    *,
    detectors: str | None = None,
    out: Path | None = None,
    definition: str | None = None,
    judge: str = "rule",
) -> dict[str, Any]:
    """Compute a run's numbers again, from its file or its store, without the model.

    Args:
        detectors: Which ones, such as se,kle,msp, in place of those of the run; all are those that are not
            experimental.
        out: Folder for a run file of the answers as they are clustered and scored here.
        definition: Which answers, where a store holds several definitions.
        judge: Who labels the answers of a store.
    """
    from hedge_tasks.cli.claim_text import claim_block
    from hedge_tasks.measures.unit_table import kept_numbers

    finished = _source(run, definition, judge)
    scorers = [
        replace(scorer, detectors=chosen_detectors(detectors, scorer.detectors))
        for scorer in clustering.scorers(finished).values()
    ]
    filters = {scorer.name: _summary(finished, scorer.score(finished.answer_sets), scorer) for scorer in scorers}
    written = {"run": str(_save(finished, scorers, out))} if out else {}
    about = {"task": finished.task, "model": finished.model, "filters": filters}
    return {**about, **written, **claim_block(kept_numbers(finished))}


def _save(finished: Run, scorers: Sequence[Scorer], folder: Path) -> Path:
    """Write the run as it was scored now, with what models said of its answers."""
    from hedge_tasks.runs.evidence import pack_outputs
    from hedge_tasks.runs.run_files import now, save_run

    settings = {**finished.settings, "filters": {scorer.name: scorer.settings() for scorer in scorers}}
    evidence = pack_outputs(finished.outputs, finished.answer_sets)
    return save_run(replace(finished, settings=settings, created=now(), evidence=evidence), folder)


def _source(run: RunChoice, definition: str | None, judge: str) -> Run:
    """Return the run; where there is only an answer store, its complete answer sets with labels of the judge."""
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.from_store import run_from_store
    from hedge_tasks.runs.run_files import run_paths

    try:
        run_paths(run.run)
    except DataError as no_run:
        if not run.run.is_dir():
            raise
        try:
            return run_from_store(run.run, definition, judge)
        except DataError as no_store:
            raise DataError(f"{no_run}; {no_store}") from None
    # A damaged run is no reason to fall back on the store: its labels may be another judge's.
    return run.load()


def _summary(finished: Run, scores: Sequence[Scores], scorer: Scorer) -> dict[str, Any]:
    from hedge_tasks.detectors.pipeline import summarise
    from hedge_tasks.measures.audited import auroc_by_experts, whose_labels
    from hedge_tasks.runs.audit_files import audit_of

    settings, audit = scorer.settings(), audit_of(finished)
    settings.pop("detectors", None)  # the table below names them
    summary = {"clustering": settings, **summarise(scores), "labels": whose_labels(finished, audit)}
    if audit is not None:
        summary["experts"] = {name: auroc_by_experts(scores, name, audit) for name in summary["auroc"]}
    return summary

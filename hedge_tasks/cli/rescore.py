"""`hedge rescore`: new numbers from a finished run or an answer store, without the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.cli.choices import ClusteringChoice, RunChoice

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.runs.from_store import StoredBlock
    from hedge_tasks.runs.parts import Part
    from hedge_tasks.runs.run_files import Run


def rescore(
    run: RunChoice,
    clustering: ClusteringChoice,
    *,
    out: Path | None = None,
    definition: str | None = None,
    judge: str = "rule",
    ray: str | None = None,
) -> dict[str, Any]:
    """Compute a run's numbers again, from its file or its store, without the model.

    Args:
        out: Folder for a run file of the answers as they are clustered and scored here.
        definition: Which answers, where a store holds several definitions.
        judge: Who labels the answers of a store.
        ray: Score by workers on a Ray cluster: workers=8,num_gpus=1,num_cpus=1,address=auto.
    """
    from hedge_tasks.cli.claim_text import claim_block
    from hedge_tasks.io.options import pairs
    from hedge_tasks.io.ray_cluster import RayOptions
    from hedge_tasks.runs.evidence import pack_outputs
    from hedge_tasks.runs.from_store import run_from_store
    from hedge_tasks.runs.parts import header_of, parts_of, score_on_ray, score_parts
    from hedge_tasks.runs.run_files import now, save_run

    finished, blocks = _source(run, definition, judge)
    choices = clustering.each(finished)
    scorers = [choice.scorer(finished) for choice in choices]
    chosen = ray is None and any(scorer.choice is not None for scorer in scorers)
    if blocks is not None and (chosen or out):
        from loguru import logger

        logger.warning("a threshold or a run file is made of all documents: the whole store is read into memory")
        finished, blocks = run_from_store(run.run, definition, judge), None
    parts: Sequence[Part] = blocks or ([finished.answer_sets] if ray is None else parts_of(finished))
    filters: dict[str, Any] = {}
    for choice, scorer in zip(choices, scorers, strict=True):
        if ray is None:
            scores = score_parts(parts, scorer)
        else:
            make = partial(choice.scorer, header_of(finished))
            scores = score_on_ray(parts, make, RayOptions.read(pairs("--ray", ray), "--ray"))
        filters[scorer.name] = _summary(finished, scores, scorer)
    about: dict[str, Any] = {"task": finished.task, "model": finished.model, "filters": filters}
    if out:
        settings = {**finished.settings, "filters": {scorer.name: scorer.settings() for scorer in scorers}}
        evidence = pack_outputs(finished.outputs, finished.answer_sets)
        about["run"] = save_run(replace(finished, settings=settings, created=now(), evidence=evidence), out)
    return {**about, **claim_block(finished)}


def _source(run: RunChoice, definition: str | None, judge: str) -> tuple[Run, list[StoredBlock] | None]:
    """Return the run; where there is only an answer store, its complete answer sets with labels of the judge.

    Of a large store the first documents, and all in blocks, for they do not fit into the memory at once.
    """
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.from_store import run_from_store, stored_blocks
    from hedge_tasks.runs.run_files import run_paths
    from hedge_tasks.sampling.blocks import is_large

    try:
        run_paths(run.run)
    except DataError as no_run:
        if not run.run.is_dir():
            raise
        try:
            if is_large(run.run):
                blocks = stored_blocks(run.run, definition, judge)
                return blocks[0].load()[0], blocks
            return run_from_store(run.run, definition, judge), None
        except DataError as no_store:
            raise DataError(f"{no_run}; {no_store}") from None
    # A damaged run is no reason to fall back on the store: its labels may be another judge's.
    return run.load(), None


def _summary(finished: Run, scores: Sequence[Scores], scorer: Scorer) -> dict[str, Any]:
    from hedge_tasks.detectors.pipeline import summarise
    from hedge_tasks.measures.audited import rate_by, scores_by, whose_labels
    from hedge_tasks.runs.audit_files import audit_of

    audit = audit_of(finished)
    summary = summarise(scores_by(scores, audit))
    if audit:
        summary["hallucination_rate"] = rate_by(finished, audit).value
    return {"clustering": scorer.settings(), **summary, "labels": whose_labels(finished, audit)}

"""`hedge rescore`: new numbers from a finished run or an answer store, without the model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from loguru import logger

from hedge_tasks.cli.choices import (
    add_detectors,
    add_run,
    add_scorer,
    add_task,
    chosen_detectors,
    chosen_run,
    chosen_scorer,
    takes_all_filters,
)
from hedge_tasks.cli.summary import as_text, facts_of
from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.runs.from_store import StoredBlock
    from hedge_tasks.runs.run_files import Run


def add(commands: Parser) -> None:
    parser = command(
        commands, "rescore", run, "compute a run's numbers again, from its file or its answer store, without the model"
    )
    add_run(parser, metavar="RUN|STORE")
    add_out(parser, "the scores of every answer (JSON lines)")
    parser.add_argument("--definition", metavar="ID", help="which answers, where a store holds several definitions")
    parser.add_argument("--judge", default="rule", help="who labels the answers of a store (default: rule)")
    add_task(parser)
    parser.add_argument(
        "--ray",
        nargs="?",
        const="workers=1",
        metavar="OPTIONS",
        help="score by workers on a Ray cluster: workers=8,num_gpus=1,num_cpus=1,address=auto",
    )
    add_scorer(parser)
    add_detectors(parser, "those of the run")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.cli.claim_text import claim_block
    from hedge_tasks.detectors.score_files import write_scores
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.unit_table import kept_numbers
    from hedge_tasks.runs.from_store import run_from_store
    from hedge_tasks.runs.scorers import scorers_of

    finished, blocks = _source(arguments)
    # One given option means one clustering, and says so when it lacks a clustering.
    single = not takes_all_filters(arguments, finished) or any(
        getattr(arguments, name) for name in ("model", "threshold", "rule", "with_question")
    )
    names: list[str | None] = [None] if single else [*scorers_of(finished)]
    scorers = [_scorer(arguments, finished, name) for name in names]
    if blocks is not None and arguments.ray is None and any(scorer.choice is not None for scorer in scorers):
        logger.warning("a threshold is chosen on all documents at once: the whole store is read into memory")
        finished, blocks = run_from_store(arguments.run, arguments.definition, arguments.judge), None
    if arguments.out and len(scorers) > 1:
        raise ConfigError(
            f"--out holds the scores of one clustering; choose one with --filter: {', '.join(map(str, names))}"
        )
    scored = {
        scorer.name: (_scores(arguments, finished, name, scorer, blocks), scorer)
        for name, scorer in zip(names, scorers, strict=True)
    }
    summaries = {name: _summary(finished, scores, scorer) for name, (scores, scorer) in scored.items()}
    if arguments.out:
        [(scores, _)] = scored.values()
        write_scores(arguments.out, scores)
    facts = {
        "task": finished.task,
        "model": finished.model,
        "filters": {name: facts_of(summary) for name, summary in summaries.items()},
    }
    tables = [f"{name}\n{as_text(summary)}" for name, summary in summaries.items()]
    claim_text, claim_facts = claim_block(kept_numbers(finished))
    show(arguments, {**facts, **claim_facts}, finished.title, *tables, claim_text)
    return 0


def _source(arguments: argparse.Namespace) -> tuple[Run, list[StoredBlock] | None]:
    """Return the run; where there is only an answer store, its complete answer sets with labels of the judge.

    Of a large store the first documents, and all in blocks, for they do not fit into the memory at once.
    """
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.from_store import run_from_store, stored_blocks
    from hedge_tasks.runs.run_files import run_paths
    from hedge_tasks.sampling.blocks import is_large

    try:
        run_paths(arguments.run)
    except DataError as no_run:
        if not arguments.run.is_dir():
            raise
        try:
            if is_large(arguments.run):
                blocks = stored_blocks(arguments.run, arguments.definition, arguments.judge)
                return blocks[0].load()[0], blocks
            return run_from_store(arguments.run, arguments.definition, arguments.judge), None
        except DataError as no_store:
            raise DataError(f"{no_run}; {no_store}") from None
    # A damaged run is no reason to fall back on the store: its labels may be another judge's.
    return chosen_run(arguments), None


def _scorer(arguments: argparse.Namespace, finished: Run, name: str | None) -> Scorer:
    """Return the scorer that the options describe, or the run's own of this name."""
    from dataclasses import replace

    from hedge_tasks.runs.scorers import scorers_of

    scorer = chosen_scorer(arguments, finished) if name is None else scorers_of(finished)[name]
    if arguments.alpha is not None:
        scorer = replace(scorer, alpha=arguments.alpha)
    return replace(scorer, detectors=chosen_detectors(arguments, scorer.detectors))


def _scores(
    arguments: argparse.Namespace, finished: Run, name: str | None, scorer: Scorer, blocks: list[StoredBlock] | None
) -> Sequence[Scores]:
    from functools import partial

    from hedge_tasks.io.ray_cluster import RayOptions
    from hedge_tasks.runs.parts import header_of, parts_of, score_on_ray, score_parts

    if arguments.ray is not None:
        make = partial(_scorer, arguments, header_of(finished), name)
        parts = parts_of(finished) if blocks is None else blocks
        return score_on_ray(parts, make, RayOptions.read("--ray", arguments.ray))
    return scorer.score(finished.answer_sets) if blocks is None else score_parts(blocks, scorer)


def _summary(finished: Run, scores: Sequence[Scores], scorer: Scorer) -> dict[str, Any]:
    from hedge_tasks.detectors.pipeline import summarise
    from hedge_tasks.measures.audited import auroc_by_experts, whose_labels
    from hedge_tasks.runs.audit_files import audit_of

    settings = scorer.settings()
    settings.pop("detectors", None)  # the table below names them
    facts = {"with_question": settings.pop("with_question"), "alpha": settings.pop("alpha")}
    summary = {"clustering": settings, **facts, "clusters_given": 0, **summarise(scores)}
    audit = audit_of(finished)
    summary["labels"] = whose_labels(finished, audit)
    if audit is not None:
        summary["experts"] = {name: auroc_by_experts(scores, name, audit) for name in summary["auroc"]}
    return summary

"""`hedge rescore`: new numbers from a finished run or an answer store, without the model."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from loguru import logger

from hedge_tasks.cli.choices import add_detectors, add_run, add_scorer, add_task, chosen_detectors, chosen_scorer
from hedge_tasks.cli.summary import as_text, facts_of
from hedge_tasks.io.commands import Parser, add_out, command, show

if TYPE_CHECKING:
    from hedge_tasks.detectors.pipeline import Scores
    from hedge_tasks.detectors.scorer import Scorer
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
    add_scorer(parser)
    add_detectors(parser, "those of the run")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.cli.claim_text import claim_block
    from hedge_tasks.detectors.score_files import write_scores
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.measures.kept_units import kept_numbers
    from hedge_tasks.runs.from_store import run_from_store
    from hedge_tasks.scoring.scorers import scorers_of

    finished, further = _source(arguments)
    all_of_them = arguments.filter is None and arguments.clustering is None and bool(finished.settings.get("filters"))
    # One given option means one clustering, and says so when it lacks a clustering.
    single = not all_of_them or any(
        getattr(arguments, name) for name in ("model", "threshold", "rule", "with_question")
    )
    scorers = {"": chosen_scorer(arguments, finished)} if single else scorers_of(finished)
    if further is not None and any(scorer.choice is not None for scorer in scorers.values()):
        logger.warning("a threshold is chosen on all documents at once: the whole store is read into memory")
        finished, further = run_from_store(arguments.run, arguments.definition, arguments.judge), None
    if arguments.out and len(scorers) > 1:
        raise ConfigError(f"--out holds the scores of one clustering; choose one with --filter: {', '.join(scorers)}")
    summaries = {scorer.name: _summary(finished, scorer, arguments, further) for scorer in scorers.values()}
    if arguments.out:
        [scores] = (scores for scores, _ in summaries.values())
        write_scores(arguments.out, scores)
    facts = {
        "task": finished.task,
        "model": finished.model,
        "filters": {name: facts_of(summary) for name, (_, summary) in summaries.items()},
    }
    blocks = [f"{name}\n{as_text(summary)}" for name, (_, summary) in summaries.items()]
    text, more = claim_block(kept_numbers(finished))
    show(arguments, {**facts, **more}, finished.title, *blocks, text)
    return 0


def _source(arguments: argparse.Namespace) -> tuple[Run, Iterator[Run] | None]:
    """The run; where there is only an answer store, its complete answer sets with labels of the judge.

    Of a large store the first documents, and the others in further parts, for they do not fit into the memory at once.
    """
    from hedge_tasks.errors import DataError
    from hedge_tasks.runs.from_store import run_from_store, runs_from_blocks
    from hedge_tasks.runs.run_files import load_run, run_paths
    from hedge_tasks.sampling.blocks import is_large

    try:
        run_paths(arguments.run)
    except DataError as no_run:
        if not arguments.run.is_dir():
            raise
        try:
            if is_large(arguments.run):
                parts = runs_from_blocks(arguments.run, arguments.definition, arguments.judge)
                return next(parts), parts
            return run_from_store(arguments.run, arguments.definition, arguments.judge), None
        except DataError as no_store:
            raise DataError(f"{no_run}; {no_store}") from None
    # A damaged run is no reason to fall back on the store: its labels may be another judge's.
    return load_run(arguments.run, arguments.task, trust=arguments.trust_run), None


def _scores(finished: Run, scorer: Scorer, further: Iterator[Run] | None) -> Sequence[Scores]:
    from hedge_tasks.detectors.score_columns import ScoreColumns

    if further is None:
        return scorer.score(finished.answer_sets)
    scores = ScoreColumns(scorer.score(finished.answer_sets))
    for part in further:
        scores.extend(scorer.score(part.answer_sets))
    return scores


def _summary(
    finished: Run, scorer: Scorer, arguments: argparse.Namespace, further: Iterator[Run] | None
) -> tuple[Sequence[Scores], dict[str, Any]]:
    from dataclasses import replace

    from hedge_tasks.detectors.pipeline import summarise
    from hedge_tasks.measures.audited import auroc_by_experts, whose_labels
    from hedge_tasks.runs.audit_files import audit_of

    if arguments.alpha is not None:
        scorer = replace(scorer, alpha=arguments.alpha)
    scorer = replace(scorer, detectors=chosen_detectors(arguments, scorer.detectors))
    scores = _scores(finished, scorer, further)
    settings = scorer.settings()
    settings.pop("detectors", None)  # the table below names them
    facts = {"with_question": settings.pop("with_question"), "alpha": settings.pop("alpha")}
    summary = {"clustering": settings, **facts, "clusters_given": 0, **summarise(scores)}
    audit = audit_of(finished)
    summary["labels"] = whose_labels(finished, audit)
    if audit is not None:
        summary["experts"] = {name: auroc_by_experts(scores, name, audit) for name in summary["auroc"]}
    return scores, summary

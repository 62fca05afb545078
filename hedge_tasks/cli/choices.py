"""Options that choose a run and a clustering, shared by the commands that work on finished runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.runs.run_files import Run


def add_run(parser: argparse.ArgumentParser, name: str = "run", metavar: str = "RUN") -> None:
    parser.add_argument(
        name, type=Path, metavar=metavar, help="lmms-eval's output folder, a run file, or a JSONL file of answers"
    )
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust-run",
        action="store_true",
        help="load the models and data sets that the run names, even if no installed task has them",
    )


def add_task(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", help="which task, where the folder holds runs of several")


def add_scorer(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("clustering (default: the first of the run's own)")
    group.add_argument("--filter", metavar="NAME", help="one of the run's filters, such as nli or embed_qa")
    group.add_argument("--clustering", metavar="NAME", help="another clustering: exact, embed, nli or hybrid")
    group.add_argument(
        "--model",
        help="model of the clustering, for hybrid the one for NLI: hub id or folder (default: HEDGE_NLI_MODEL or "
        "HEDGE_EMBEDDING_MODEL, else what the run used)",
    )
    group.add_argument("--threshold", help="cosine threshold; for embed also tuned, cross-fit or oracle")
    group.add_argument("--rule", help="rule of nli and hybrid: relaxed or strict")
    group.add_argument("--with-question", action="store_true", help="put the question in front of each answer")
    group.add_argument("--alpha", type=float, help="weight of the clean-noisy gap in VASE (default: 1)")


def add_detectors(parser: argparse._ActionsContainer, default: str) -> None:
    parser.add_argument(
        "--detectors", metavar="all|NAMES", help=f"which detectors, such as se,kle,msp (default: {default})"
    )


def chosen_detectors(arguments: argparse.Namespace, default: Sequence[str]) -> tuple[str, ...]:
    """The detectors of `add_detectors`; `all` are those that are not experimental.

    Raises:
        ConfigError: there is no such detector; names the nearest one.
    """
    from hedge_tasks.detectors.registry import named

    return tuple(default) if arguments.detectors is None else named(arguments.detectors)


def chosen_run(arguments: argparse.Namespace) -> Run:
    from hedge_tasks.runs.run_files import load_run

    return load_run(arguments.run, arguments.task, trust=arguments.trust_run)


def chosen_scorer(arguments: argparse.Namespace, run: Run) -> Scorer:
    """The scorer that the options of `add_scorer` describe.

    Raises:
        ConfigError: options that do not go together, or values that make no sense.
    """
    from dataclasses import replace

    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.scoring.scorers import model_options, scorer_of, with_kept_outputs

    # Hybrid has two models; the one for embeddings is seldom another.
    options = {"model": "nli_model" if arguments.clustering == "hybrid" else "model", "rule": "rule"}
    named = {name: value for key, name in options.items() if (value := getattr(arguments, key)) is not None}
    if arguments.threshold is not None:
        named["threshold"] = threshold_of(arguments.threshold)
    if arguments.clustering is None:
        if named or arguments.with_question:
            names = ", ".join(f"--{name}" for name in (*named, *(["with-question"] if arguments.with_question else [])))
            raise ConfigError(f"{names}: only with --clustering; the run's own filters come with their settings")
        scorer = scorer_of(run, arguments.filter)
    elif arguments.filter is not None:
        raise ConfigError("choose one of --filter and --clustering")
    else:
        name = arguments.clustering
        options = {**model_options(run, name, named), **named}
        scorer = Scorer.build(name, name, options, with_question=arguments.with_question)
        scorer = with_kept_outputs(scorer, run)
    return scorer if arguments.alpha is None else replace(scorer, alpha=arguments.alpha)


def threshold_of(text: str) -> float | str:
    """A threshold of the command line: a number, or the name of a way to choose one."""
    try:
        return float(text)
    except ValueError:
        return text

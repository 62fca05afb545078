"""The `hedge` command. A wrong path or option gives one clear line and exit code 2."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loguru import logger

from hedge_tasks import __version__
from hedge_tasks.errors import HedgeError

USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `hedge`. Returns the exit code."""
    arguments = _parser().parse_args(argv)
    logger.remove()
    logger.add(sys.stderr, level="INFO" if arguments.verbose else "WARNING", format="{level}: {message}")
    try:
        return arguments.run(arguments)
    except (HedgeError, ValueError, OSError) as error:
        _say(f"hedge: {' '.join(str(error).split())}", sys.stderr)
        return USAGE_ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hedge", description="Hallucination detection from a model's own answers.")
    parser.add_argument("--version", action="version", version=f"hedge-tasks {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    score = _command(commands, "score", _score, "score sampled answers from a JSONL file, without lmms-eval or a model")
    score.add_argument("answers", type=Path, metavar="ANSWERS.jsonl")
    score.add_argument("--clustering", default="embed", metavar="exact|embed|nli", help="default: embed")
    score.add_argument("--model", help="model of the clustering (hub id or folder)")
    score.add_argument("--threshold", type=float, help="cosine threshold of embed")
    score.add_argument("--with-question", action="store_true", help="put the question in front of each answer")
    score.add_argument("--alpha", type=float, default=1.0, help="weight of the clean-noisy gap in VASE (default: 1)")
    score.add_argument("--out", type=Path, metavar="SCORES.jsonl", help="write the scores of every line")

    _command(commands, "list", _list, "list the tasks of this package")
    _command(commands, "path", _path, "print the folder of the tasks, for lmms-eval's --include_path")
    return parser


def _command(commands: Any, name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what is being done")
    parser.set_defaults(run=run)
    return parser


def _score(arguments: argparse.Namespace) -> int:
    from hedge_tasks.answer_files import read_answer_sets, write_scores
    from hedge_tasks.clustering import build_backend
    from hedge_tasks.pipeline import cluster_answer_sets, score_clustered, summarise

    options = {key: value for key in ("model", "threshold") if (value := getattr(arguments, key)) is not None}
    backend = build_backend(arguments.clustering, **options)
    answer_sets = read_answer_sets(arguments.answers)
    given = [a for a in answer_sets if a.cluster_ids is not None]
    open_sets = [a for a in answer_sets if a.cluster_ids is None]
    clustered = {
        a.id: a for a in (*given, *cluster_answer_sets(open_sets, backend, with_question=arguments.with_question))
    }
    scores = [score_clustered(clustered[a.id], alpha=arguments.alpha) for a in answer_sets]
    if arguments.out:
        write_scores(arguments.out, scores)
    summary = {
        "answers": str(arguments.answers),
        "clustering": {**backend.settings(), "backend": backend.name} if open_sets else "given",
        "with_question": arguments.with_question,
        "alpha": arguments.alpha,
        "clusters_given": len(given),
        **summarise(scores),
    }
    _say(_as_json(summary) if arguments.json else _as_text(summary))
    return 0


def _as_json(summary: dict[str, Any]) -> str:
    tables = {key: {name: asdict(e) for name, e in summary[key].items()} for key in ("auroc", "auroc_within_strata")}
    return json.dumps({**summary, **tables}, indent=2)


def _as_text(summary: dict[str, Any]) -> str:
    n, labelled, rate = summary["n"], summary["n_labelled"], summary["hallucination_rate"]
    clustering, given = summary["clustering"], summary["clusters_given"]
    how = clustering if isinstance(clustering, str) else ", ".join(f"{k}={v}" for k, v in clustering.items())
    lines = [
        f"{n} questions, {labelled} labelled"
        + (f", {rate:.1%} of them hallucinated" if rate is not None else " (no labels, so no AUROC)"),
        f"clustering: {how}" + (f"; {given} questions came with cluster ids" if given else ""),
        f"weights: {summary['weighting']}",
        "",
        f"{'score':<14}{'ROC-AUC':>9}{'stderr':>9}{'within strata':>15}",
    ]
    for name, estimate in summary["auroc"].items():
        if estimate.value is None:
            lines.append(f"{name:<14}undefined: {estimate.reason}")
        else:
            within = summary["auroc_within_strata"][name].value
            lines.append(f"{name:<14}{estimate.value:>9.4f}{_cell(estimate.stderr):>9}{_cell(within):>15}")
    return "\n".join(lines if labelled else lines[:3])


def _cell(value: float | None) -> str:
    return "N/A" if value is None else f"{value:.4f}"


def _list(arguments: argparse.Namespace) -> int:
    from hedge_tasks.catalogue import list_tasks

    tasks = list_tasks()
    if arguments.json:
        _say(json.dumps(tasks, indent=2))
    else:
        width = max(len(task["task"]) for task in tasks)
        _say("\n".join(f"{task['task']:<{width}}  {task['title']}" for task in tasks))
    return 0


def _path(arguments: argparse.Namespace) -> int:
    from hedge_tasks.catalogue import task_folder

    _say(json.dumps({"path": str(task_folder())}) if arguments.json else str(task_folder()))
    return 0


def _say(text: str, stream: Any = None) -> None:
    (stream or sys.stdout).write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())

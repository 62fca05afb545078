"""Options that several commands take: each is declared here once, with the function that reads it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import say, show

if TYPE_CHECKING:
    from hedge_tasks.detectors.probes.base import FittedDetector
    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.numbers import Table
    from hedge_tasks.runs.run_files import Run

RUN_HELP = "lmms-eval's output folder, a run file, or a JSONL file of answers"


def add_run(parser: argparse.ArgumentParser, name: str = "run", metavar: str = "RUN") -> None:
    parser.add_argument(name, type=Path, metavar=metavar, help=RUN_HELP)
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust-run",
        action="store_true",
        help="load the models and data sets that the run names, even if no installed task has them",
    )


def add_task(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", help="which task, where the folder holds runs of several")


def add_scored_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of a command that scores one run."""
    add_run(parser)
    add_task(parser)
    add_scorer(parser)


def add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget",
        type=int,
        metavar="N",
        help="most samples per question: each detector gets what it can pay, such as 20 clean for se, 10 + 10 for vase",
    )


def add_label_field(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--label-field", default="label", metavar="COLUMN", help="column of the label (default: label)")


def add_label_columns(parser: argparse._ActionsContainer, example: str) -> None:
    """Add the options that say which columns of a table of labels hold what.

    Args:
        example: One `KEY=COLUMN`.
    """
    add_label_field(parser)
    parser.add_argument("--column", action="append", default=[], metavar="KEY=COLUMN", help=f"such as {example}")
    parser.add_argument(
        "--images", type=Path, metavar="DIR", help="folder of the pictures that the column `image` names"
    )


def key_and_value(option: str, text: str, form: str = "KEY=VALUE", *, empty: bool = False) -> tuple[str, str]:
    """Split what was given to an option.

    Args:
        option: Its name, for the error.
        text: `key=value`.
        form: What to expect, for the error.
        empty: Whether the value may be empty.

    Raises:
        ConfigError: A key or a value is missing.
    """
    from hedge_tasks.errors import ConfigError

    key, equals, value = (part.strip() for part in text.partition("="))
    if not key or not equals or not (value or empty):
        raise ConfigError(f"{option}: expected {form}, got {text!r}")
    return key, value


def add_contents(parser: argparse.ArgumentParser) -> None:
    """Add the options that leave parts out of the reports on runs."""
    parser.add_argument("--no-pictures", action="store_true", help="leave the questions' pictures out")
    parser.add_argument(
        "--no-curves", action="store_true", help="leave out the curves that cluster again (n, threshold)"
    )


def add_listener(parser: argparse.ArgumentParser, port: int) -> None:
    """Add the options that say where a server listens."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: this machine only)")
    parser.add_argument("--port", type=int, default=port, help="0 takes a free one (default: %(default)s)")


def add_trust_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--trust-policy",
        action="store_true",
        help="load the models, functions and packages that the policy names, also where no installed task uses them",
    )


def add_adapter(parser: argparse.ArgumentParser, default: str | None, settings: str) -> None:
    """Add the options that name an adapter and its settings.

    Args:
        default: The adapter without `--model`; None where it has to be named.
        settings: What `--model_args` takes, in words.
    """
    names = "adapter, such as hedge_hf, hedge_vllm or hedge_openai" + (f" (default: {default})" if default else "")
    parser.add_argument("--model", required=default is None, default=default, metavar="ADAPTER", help=names)
    how = f"of the adapter, as for lmms-eval: {settings}"
    parser.add_argument("--model_args", default="", metavar="KEY=VALUE,...", help=how)


def add_policy(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a policy and the model that is asked under it."""
    parser.add_argument("--policy", type=Path, required=True, metavar="FILE", help="of `hedge calibrate`")
    add_adapter(parser, "hedge_openai", "base_url=...; the model is the policy's where it is left out")
    add_trust_policy(parser)
    parser.add_argument("--at-once", action="store_true", help="all draws in one wave: sooner, but more of them")


def add_scorer(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("clustering (default: the first of the run's own)")
    group.add_argument("--filter", metavar="NAME", help="one of the run's filters, such as nli or embed_qa")
    add_clustering(
        group,
        "exact, embed, nli or hybrid, in place of the run's own",
        model=", else what the run used; of hybrid the one for NLI",
        threshold="; for embed also tuned, cross-fit or oracle",
    )
    group.add_argument("--rule", help="rule of nli and hybrid: relaxed or strict")


def add_clustering(
    parser: argparse._ActionsContainer, names: str, default: str | None = None, *, model: str = "", threshold: str = ""
) -> None:
    """Add the options that describe a clustering and the scores under it.

    Args:
        names: Clusterings to choose from, in words.
        default: The one without `--clustering`.
        model, threshold: What the help says further of these options.
    """
    parser.add_argument("--clustering", metavar="NAME", default=default, help=f"how answers are compared: {names}")
    variables = "HEDGE_NLI_MODEL or HEDGE_EMBEDDING_MODEL"
    parser.add_argument("--model", help=f"model of the clustering: hub id or folder (default: {variables}{model})")
    parser.add_argument("--threshold", help=f"cosine threshold{threshold}")
    parser.add_argument("--with-question", action="store_true", help="put the question in front of each answer")
    parser.add_argument("--alpha", type=float, help="weight of the clean-noisy gap in VASE (default: 1)")


def add_csv(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--csv", action="store_true", help="print the table as CSV")


def show_table(
    arguments: argparse.Namespace, table: Table, facts: object, *parts: object, only_parts: bool = False
) -> None:
    """Print a command's table as text, as CSV or, with all facts, as JSON.

    Args:
        parts: further texts and tables of the text.
        only_parts: whether they are all of the text.
    """
    if arguments.csv:
        say(table.to_csv().rstrip("\n"))
    else:
        show(arguments, facts, *([] if only_parts else [table]), *parts)


def add_detectors(parser: argparse._ActionsContainer, default: str) -> None:
    parser.add_argument(
        "--detectors", metavar="all|NAMES", help=f"which detectors, such as se,kle,msp (default: {default})"
    )


def chosen_detectors(arguments: argparse.Namespace, default: Sequence[str]) -> tuple[str, ...]:
    """Return the detectors of `add_detectors`; `all` are those that are not experimental.

    Raises:
        ConfigError: There is no such detector; names the nearest one.
    """
    from hedge_tasks.detectors.registry import named

    return tuple(default) if arguments.detectors is None else named(arguments.detectors)


def with_fitted(names: Sequence[str]) -> tuple[tuple[str, ...], list[FittedDetector]]:
    """Return named detectors, those of them apart that are fitted.

    Raises:
        ConfigError: There is no such detector; names the nearest one.
    """
    from hedge_tasks.detectors.probes.registry import fitted_detectors
    from hedge_tasks.detectors.registry import named

    fitted = fitted_detectors()
    others = [name for name in names if name not in fitted]
    return named(",".join(others)) if others else (), [fitted[name] for name in names if name in fitted]


def listed(text: str) -> list[str]:
    """Return the names of an option, which commas separate."""
    return [name.strip() for name in text.split(",")]


def label_store_of(run: Run) -> Path | None:
    """Return the folder of the judge's kept replies beside a run; None for a run that lies nowhere."""
    from hedge_tasks.judging.config import LABELS
    from hedge_tasks.runs.run_files import FOLDER

    if run.path is None:
        return None
    folder = run.path.parent
    return (folder.parent if folder.name == FOLDER else folder) / LABELS


def chosen_run(arguments: argparse.Namespace) -> Run:
    from hedge_tasks.runs.run_files import load_run

    return load_run(arguments.run, arguments.task, trust=arguments.trust_run)


def chosen_scorer(arguments: argparse.Namespace, run: Run) -> Scorer:
    """Return the scorer that the options of `add_scorer` describe.

    Raises:
        ConfigError: The options do not go together, or a value makes no sense.
    """
    from dataclasses import replace

    from hedge_tasks.detectors.scorer import Scorer
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.runs.scorers import model_options, scorer_of, with_kept_outputs

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


def takes_all_filters(arguments: argparse.Namespace, run: Run) -> bool:
    """Whether the options of `add_scorer` choose no clustering, and the run has filters of its own."""
    return arguments.filter is None and arguments.clustering is None and bool(run.settings.get("filters"))


def chosen_scorers(arguments: argparse.Namespace, run: Run) -> dict[str, Scorer]:
    """Return the scorer of `chosen_scorer`, or those of all the run's filters where none is chosen, by name."""
    from dataclasses import replace

    from hedge_tasks.runs.scorers import scorers_of

    if not takes_all_filters(arguments, run):
        scorer = chosen_scorer(arguments, run)
        return {scorer.name: scorer}
    scorers = scorers_of(run)
    if arguments.alpha is None:
        return scorers
    return {name: replace(scorer, alpha=arguments.alpha) for name, scorer in scorers.items()}


def threshold_of(text: str) -> float | str:
    """Read a threshold of the command line: a number, or the name of a way to choose one."""
    try:
        return float(text)
    except ValueError:
        return text

"""Shared by the commands that make data sets: options, the run of a pipeline, estimates, and output."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io import options
from hedge_tasks.io.commands import show

if TYPE_CHECKING:
    from hedge_tasks.llm.account import Account
    from hedge_tasks.llm.template import Template
    from hedge_tasks.making.gate.people import PeopleVerdicts
    from hedge_tasks.making.production import Production

MODEL = "model=NAME,url=..."
_CHARACTERS_A_TOKEN = 4

# --- options ----------------------------------------------------------------------------------------------------------


def add_models(parser: argparse._ActionsContainer, option: str, text: str) -> None:
    """Add an option that names models, one each time it is given."""
    parser.add_argument(option, action="append", default=[], metavar=MODEL, help=text)


def add_floor(parser: argparse._ActionsContainer, share_of: str = "the set") -> None:
    """Add --floor.

    Args:
        share_of: What the share is of.
    """
    text = f"of {share_of} that solvers without skill may get right; 1 for any (default: halfway from guessing to 1)"
    parser.add_argument("--floor", type=float, metavar="SHARE", help=text)


def add_people(parser: argparse._ActionsContainer) -> None:
    """Add --labels and --review: what people look at, and what they said."""
    text = "labels that people gave: on the pages in review/ (repeat for several people)"
    parser.add_argument("--labels", action="append", default=[], metavar="LABELS", help=text)
    parser.add_argument("--review", type=int, default=100, metavar="N", help="rows that people look at (default: 100)")


def add_run(parser: argparse._ActionsContainer, unit: str, *, seed: str, licence: str) -> None:
    """Add the options of every making: --licence, --worker, --seed, --concurrency, --dry-run, --push.

    Args:
        unit: What is under way at a time, in the singular.
        seed, licence: What they are of.
    """
    parser.add_argument("--licence", help=licence)
    parser.add_argument(
        "--worker", metavar="K/N", help=f"only every Nth {unit}, from the Kth on: one of several workers"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help=f"{seed} (default: 0)")
    parser.add_argument("--concurrency", type=int, default=16, metavar="N", help=f"{unit}s under way (default: 16)")
    parser.add_argument("--dry-run", action="store_true", help="say what it will cost, and make nothing")
    parser.add_argument("--push", metavar="OWNER/NAME", help="upload the set to the Hugging Face hub in the end")


def check_counts(arguments: argparse.Namespace, *names: str) -> None:
    """Refuse options that are given and are no numbers from 1 on.

    Raises:
        ConfigError: One is none; names it.
    """
    for name in names:
        if (value := getattr(arguments, name)) is not None:
            options.count(f"--{name.replace('_', '-')}", value, at_least=1)


# --- running ----------------------------------------------------------------------------------------------------------


def run_pipeline(arguments: argparse.Namespace, sources: Sequence[Any], pipeline: Callable[..., Any]) -> Production:
    """Make the records of some sources, or a worker's share of them; replies are kept in the folder of --out."""
    from hedge_tasks.llm.log import ReplyLog
    from hedge_tasks.making.output import LEDGER
    from hedge_tasks.making.production import produce, share, worker_of

    mine = share(sources, worker_of(arguments.worker))
    with ReplyLog(arguments.out / LEDGER) as log:
        return produce(mine, pipeline, log, seed=arguments.seed, concurrency=arguments.concurrency)


def read_labels(arguments: argparse.Namespace) -> PeopleVerdicts | None:
    """Return what people said of the set that was made before; None where no labels are named."""
    from hedge_tasks.making.gate.people import FOLDER, read_people

    files = [Path(file) for file in arguments.labels]
    return read_people(arguments.out / FOLDER, files) if files else None


# --- output -----------------------------------------------------------------------------------------------------------


def stage_template(room: str, stage: str) -> Template:
    """Return the prompt of a stage: verifiers are asked with the gate's, everybody else with the room's own."""
    from hedge_tasks.llm.template import load_template

    if stage in ("verify", "control"):
        return load_template("hedge_tasks.making.gate", "verify")
    return load_template(room, stage)


def estimate_tokens(template: Template, characters: float, requests: tuple[int, int]) -> tuple[list[int], int]:
    """Return fewest and most prompt tokens at four characters each, and most completion tokens.

    Args:
        characters: Of what fills the template, in the mean of the requests.
        requests: Fewest and most.
    """
    prompt = (len(template.system) + characters) / _CHARACTERS_A_TOKEN
    fewest, most = requests
    return [round(fewest * prompt), round(most * prompt)], round(most * template.decoding["max_tokens"])


def summary_text(
    report: Mapping[str, Any],
    account: Account,
    unit: str,
    *,
    contents: str = "",
    steps: Mapping[str, int] | None = None,
) -> str:
    """Return how much was accepted, how often each step was taken, and what the asking cost.

    Args:
        report: As `Production.report`.
        unit: What was accepted, in the plural.
        contents: What the accepted ones hold.
        steps: By default those of the report, and its reasons of rejection.
    """
    from hedge_tasks.making.output import cost_lines
    from hedge_tasks.numbers import Table

    line = f"{report['accepted']} of {report['records']} {unit} accepted{contents and f', {contents}'}"
    if report["unfinished"]:
        line += f"; PARTIAL: {report['unfinished']} are unfinished, run again"
    if steps is None:
        steps = {**report["steps"], **{f"rejected: {reason}": n for reason, n in report["rejected"].items()}}
    table = Table.of(("step", "times"), [[name, str(n)] for name, n in steps.items()])
    return "\n".join([line, "", str(table), *cost_lines(account)])


def show_share(arguments: argparse.Namespace, facts: Mapping[str, Any], summary: str) -> None:
    """Show what one worker of several has made."""
    show(arguments, facts, f"{summary}\nOnce all workers are done, the same command without --worker writes the set.")


def upload_lines(arguments: argparse.Namespace, files: Sequence[str]) -> list[str]:
    """Upload the files of a set where --push asks for it, and say where it is."""
    from hedge_tasks.making.output import push_set

    return [f"Uploaded: {push_set(arguments.out, arguments.push, files=files)}"] if arguments.push else []

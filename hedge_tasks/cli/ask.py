"""`hedge ask`: one question to a model, answered only where a policy lets the answer through."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.guard import GuardVerdict


def add(commands: Parser) -> None:
    parser = command(commands, "ask", run, "ask a model one question, and say whether its answer is safe to use")
    parser.add_argument("question", metavar="QUESTION")
    parser.add_argument("--policy", type=Path, required=True, metavar="FILE", help="of `hedge calibrate`")
    parser.add_argument("--image", type=Path, action="append", default=[], metavar="FILE", help="may be given again")
    add_model(parser)
    parser.add_argument("--within", type=float, metavar="SECONDS", help="after that the answer is undecided")
    parser.add_argument("--at-once", action="store_true", help="all draws in one wave: sooner, but more of them")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Options that name the model to ask."""
    parser.add_argument("--model", default="hedge_openai", metavar="NAME", help="adapter (default: hedge_openai)")
    how = "as for lmms-eval: base_url=...; the model is the policy's where it is left out"
    parser.add_argument("--model_args", default="", metavar="ARGS", help=how)
    add_trust(parser)


def add_trust(parser: argparse.ArgumentParser) -> None:
    """The user's word that what a policy names may be loaded."""
    how = "load the models, functions and packages that the policy names, also where no installed task uses them"
    parser.add_argument("--trust-policy", action="store_true", help=how)


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.pictures import open_picture
    from hedge_tasks.guard import Guard

    images = [open_picture(path) for path in arguments.image]
    options = {"within": arguments.within, "at_once": arguments.at_once, "trust": arguments.trust_policy}
    with Guard.load(arguments.policy, model=arguments.model, model_args=arguments.model_args, **options) as guard:
        verdict = guard.ask(images, arguments.question)
    show(arguments, verdict.to_dict(), _text(verdict))
    return 0 if verdict.accepted else PROBLEMS_FOUND


def _text(verdict: GuardVerdict) -> str:
    from hedge_tasks.numbers import WHOLE_PERCENT, Format

    lines = [verdict.answer if verdict.answer is not None else "(no answer in time)", ""]
    lines.append(f"{verdict.words}: {verdict.reason}")
    if len(verdict.clusters) > 1 or not verdict.accepted:
        lines += ["Its draws say:", *(f"  {WHOLE_PERCENT(one.share):>5}  {one.text}" for one in verdict.clusters)]
    lines.append(f"{verdict.draws} of {verdict.all_draws} draws; {Format(digits=1)(verdict.seconds)} s")
    return "\n".join(lines)

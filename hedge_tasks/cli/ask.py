"""`hedge ask`: one question to a model, answered only where a policy lets the answer through."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hedge_tasks.cli.choices import add_policy
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, command, show

if TYPE_CHECKING:
    from hedge_tasks.guard import GuardVerdict


def add(commands: Parser) -> None:
    parser = command(commands, "ask", run, "ask a model one question, and say whether its answer is safe to use")
    parser.add_argument("question", metavar="QUESTION")
    parser.add_argument("--image", type=Path, action="append", default=[], metavar="FILE", help="may be given again")
    add_policy(parser)
    parser.add_argument("--within", type=float, metavar="SECONDS", help="after that the answer is undecided")


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
        lines += [
            "Its draws say:",
            *(f"  {WHOLE_PERCENT(cluster.share):>5}  {cluster.text}" for cluster in verdict.clusters),
        ]
    lines.append(f"{verdict.draws} of {verdict.all_draws} draws; {Format(digits=1)(verdict.seconds)} s")
    return "\n".join(lines)

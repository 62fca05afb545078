"""`hedge ask`: one question to a model, answered only where a policy lets the answer through."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import PROBLEMS_FOUND, command, number, show

if TYPE_CHECKING:
    from hedge_tasks.guard.ask import Verdict
    from hedge_tasks.guard.policy import Policy


def add(commands: Any) -> None:
    parser = command(commands, "ask", run, "ask a model one question, and say whether its answer is safe to use")
    parser.add_argument("question", metavar="QUESTION")
    parser.add_argument("--policy", type=Path, required=True, metavar="FILE", help="of `hedge calibrate`")
    parser.add_argument("--image", type=Path, action="append", default=[], metavar="FILE", help="may be given again")
    parser.add_argument("--model", default="hedge_openai", metavar="NAME", help="adapter (default: hedge_openai)")
    parser.add_argument("--model_args", default="", metavar="ARGS", help="as for lmms-eval: base_url=...,model=...")


def run(arguments: argparse.Namespace) -> int:
    from hedge_tasks.data.pictures import open_picture
    from hedge_tasks.guard.ask import Guard
    from hedge_tasks.guard.policy import load_policy

    policy = load_policy(arguments.policy)
    images = [open_picture(path) for path in arguments.image]
    verdict = Guard(policy, _adapter(arguments, policy)).ask(arguments.question, images)
    show(arguments, asdict(verdict), _text(verdict))
    return 0 if verdict.accepted else PROBLEMS_FOUND


def _adapter(arguments: argparse.Namespace, policy: Policy) -> Any:
    """The adapter, which must be of the model that the policy was calibrated on.

    Raises:
        ConfigError: it is another one.
    """
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.lmms.identity import display_name
    from hedge_tasks.lmms.plugin import adapter_class

    name = display_name(SimpleNamespace(model=arguments.model, model_args=arguments.model_args))
    if name != policy.circumstances.get("model"):
        raise ConfigError(
            f"--model_args: the policy is about {policy.circumstances.get('model')!r}, and this is {name!r}; its "
            "promise does not hold for another model"
        )
    return adapter_class(arguments.model).create_from_arg_string(arguments.model_args)


def _text(verdict: Verdict) -> str:
    lines = [
        verdict.answer,
        "",
        f"{verdict.words}: score {number(verdict.score)}, accepted up to {verdict.threshold:g}",
    ]
    if len(verdict.meanings) > 1 or not verdict.accepted:
        lines += ["Its samples say:", *(f"  {share:4.0%}  {text}" for text, share in verdict.meanings)]
    saved = f" of {verdict.all_draws}, the rest could not change it" if verdict.draws < verdict.all_draws else ""
    lines.append(f"{verdict.draws} draws{saved}; {verdict.seconds:.1f} s")
    return "\n".join(lines)

"""`hedge ask`: one question to a model, answered only where a policy lets the answer through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hedge_tasks.cli.choices import PolicyChoice
from hedge_tasks.io.commands import PROBLEMS_FOUND


def ask(
    question: str, policy: PolicyChoice, *, image: tuple[Path, ...] = (), within: float | None = None
) -> tuple[dict[str, Any], int]:
    """Ask a model one question, and say whether its answer is safe to use.

    Args:
        question: In the words that the model is to be asked in.
        image: A picture; may be given again.
        within: Seconds after which the answer is undecided.
    """
    from hedge_tasks.data.pictures import open_picture
    from hedge_tasks.guard.ask import check_pictures
    from hedge_tasks.guard.policy import load_policy

    check_pictures(load_policy(policy.policy, trust=policy.trust_policy), len(image))  # before the model is loaded
    images = [open_picture(path) for path in image]
    with policy.guard(within=within) as guard:
        verdict = guard.ask(images, question)
    return verdict.to_dict(), 0 if verdict.accepted else PROBLEMS_FOUND

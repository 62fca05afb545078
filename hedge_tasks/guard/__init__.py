"""An answer with a risk that holds: a threshold calibrated on a labelled run, and questions asked under it.

    from hedge_tasks.guard import Guard
    verdict = Guard.load("policy.json", endpoint="http://localhost:8000/v1").ask("scan.png", "Is there a fracture?")

policy       what is promised, under which circumstances, as a file
seen         what of a run's answers a policy looks at
calibrate    a policy out of a run, and its check on another one
monitoring   whether the promise still holds while it is used
trust        what a policy may make us load
ask          one question, or many: the answer and its verdict
proxy        an OpenAI-compatible server in front of a model that lets through what the policy does
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hedge_tasks.guard.ask import Guard as Guard
    from hedge_tasks.guard.verdict import GuardVerdict as GuardVerdict

__all__ = ["Guard", "GuardVerdict"]

_HOMES = {"Guard": "ask", "GuardVerdict": "verdict"}


def __getattr__(name: str) -> Any:
    """Importing the package alone stays cheap."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

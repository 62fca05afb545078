"""What every judge takes and gives: cases in, verdicts out, in the same order.

A judge answers one question: is this baseline answer a hallucination, given the reference? It may decline
(``label=None``), and a caller must expect that: a declined case is left out of the statistics and counted, never given
a default label.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from hedge_tasks.errors import unknown

__all__ = ["Case", "Judge", "Verdict", "build_judge", "judge_names", "register_judge"]

HALLUCINATED = 1
SUPPORTED = 0


@dataclass(frozen=True)
class Case:
    """One answer to judge. ``image`` and ``description`` are for judges that can look at more than the texts."""

    id: str
    question: str
    reference: str
    answer: str
    description: str | None = None
    image: Any = None


@dataclass(frozen=True)
class Verdict:
    """The judgement of one case.

    Parameters
    ----------
    label
        1 = hallucinated, 0 = supported, None = this judge cannot tell.
    reason
        For a person; a rule judge starts it with the id of the rule, as in ``"polar: ..."``.
    judge, version
        Who decided. A change that can change labels raises the version.
    category
        Kind of hallucination, for judges that tell.
    raw
        What the judge said before it was parsed, for judges that say something.
    """

    label: int | None
    reason: str
    judge: str
    version: str
    category: str | None = None
    raw: str | None = None

    def __post_init__(self) -> None:
        if self.label not in (None, HALLUCINATED, SUPPORTED):
            raise ValueError(f"a verdict's label is 1, 0 or None, got {self.label!r}")


@runtime_checkable
class Judge(Protocol):
    """Anything that judges cases. ``settings()`` holds all that can change a verdict, ready for JSON."""

    name: str
    version: str

    def judge(self, cases: Sequence[Case]) -> list[Verdict]: ...

    def settings(self) -> dict[str, Any]: ...


# Given as text, so that looking up one judge does not import the model libraries of another.
_REGISTRY: dict[str, str | Callable[..., Judge]] = {"rule": "hedge_tasks.adjudication.rule:RuleJudge"}


def register_judge(name: str, factory: str | Callable[..., Judge]) -> None:
    """Make a judge known by name. ``factory`` is a callable, or ``"module:attribute"`` to be imported on first use."""
    if _REGISTRY.get(name, factory) != factory:
        raise ValueError(f"a judge named {name!r} is already registered")
    _REGISTRY[name] = factory


def judge_names() -> list[str]:
    """Names that :func:`build_judge` knows."""
    return sorted(_REGISTRY)


def build_judge(name: str, **options: Any) -> Judge:
    """Build a registered judge; a wrong name or option is named together with the nearest valid one."""
    if name not in _REGISTRY:
        raise unknown("judge", name, _REGISTRY)
    factory = _REGISTRY[name]
    if isinstance(factory, str):
        module, _, attribute = factory.partition(":")
        factory = getattr(importlib.import_module(module), attribute)
    parameters = inspect.signature(factory).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        for key in options:
            if key not in parameters:
                raise unknown(f"option of judge {name!r}", key, parameters)
    return factory(**options)

"""Shared by the commands that make data sets: options, and what is said in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io import options
from hedge_tasks.io.commands import PROBLEMS_FOUND

if TYPE_CHECKING:
    from hedge_tasks.making.stages import Made, MakingStage, Models


@dataclass(frozen=True)
class MakingOptions:
    """Options of every making.

    Attributes:
        labels: Labels that people gave on review.html; may be given again.
        review: Rows that people look at.
        floor: Share that solvers without skill may get right, 1 for any; halfway from guessing to 1 if not given.
        licence: Of the set, for its card.
        seed: Another one makes another set.
        dry_run: Say what it will cost, and make nothing.

    Raises:
        ConfigError: A count is none; names it.
    """

    labels: tuple[Path, ...] = ()
    review: int = 100
    floor: float | None = None
    licence: str | None = None
    seed: int = 0
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_counts(review=self.review)

    def settings(self, models: Models, **others: Any) -> dict[str, Any]:
        """Settings that shape a set, for its card: the models by their roles, the seed, and more."""
        named = {role: [dict(model.identity) for model in those] for role, those in models.items()}
        return {**named, "seed": self.seed, **others}


def check_counts(**counts: int | None) -> None:
    """Refuse options that are given and are no numbers from 1 on.

    Raises:
        ConfigError: One is none; names it.
    """
    for name, value in counts.items():
        if value is not None:
            options.count(f"--{name}", value, at_least=1)


def cost_facts(stages: Mapping[str, MakingStage], models: Models, rows: Sequence[Any]) -> tuple[dict[str, Any], int]:
    """The price of a making, as the facts of a command."""
    from hedge_tasks.making.stages import cost

    characters = sum(len(str(part)) for row in rows for part in astuple(row)) / max(1, len(rows))
    return {"rows": len(rows), "stages": cost(stages, models, len(rows), characters)}, 0


def result_facts(
    result: Made, unit: str, files: Sequence[Path], warnings: Sequence[str] = ()
) -> tuple[dict[str, Any], int]:
    """How much was accepted and what it cost, as the facts of a command, and its exit code.

    Args:
        unit: What was accepted, in the plural.
        files: Of the set.
    """
    report = result.report()
    line = f"{report['accepted']} of {report['records']} {unit} accepted"
    if result.unfinished:
        line += f"; PARTIAL: {report['unfinished']} are unfinished, run again"
    notes = [line, *(f"Warning: {warning}" for warning in warnings)]
    facts = {**report, "warnings": list(warnings), "files": [str(file) for file in files], "notes": notes}
    return facts, PROBLEMS_FOUND if result.unfinished else 0

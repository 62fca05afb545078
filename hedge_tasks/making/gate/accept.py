"""The one gate: what of a making may stay, whether its verifiers can be believed, and whether it needs skill."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.making.gate.attack import Attack, AttackedItem, attack, check_floors
from hedge_tasks.making.gate.refuse import STOCK_PHRASE, Written, repeated
from hedge_tasks.making.gate.verify import check_controls
from hedge_tasks.making.stages import Made


@dataclass(frozen=True)
class AcceptedSet:
    """A making behind the gate.

    Attributes:
        made: With the rows that may stay.
        attacks: What solvers without skill get right of them.
    """

    made: Made
    attacks: Sequence[Attack]


def accept(
    result: Made,
    written: Callable[[Any], Written | None],
    attacked: Callable[[Sequence[Any]], Sequence[AttackedItem]],
    *,
    frames: bool = True,
    alone: bool = False,
    bound: float | None = None,
) -> AcceptedSet:
    """Let a making through the gate.

    Args:
        written: The text that a model wrote of a row, beside what it was made for; None where none did.
        attacked: Rows as solvers see them.
        frames: Whether texts that follow one frame are refused, and not stock phrases alone.
        alone: Whether a source row makes a single row.
        bound: Share that a solver may get right; None: halfway between guessing and everything.

    Raises:
        DataError: A verifier cannot be believed, nothing is left (says why), or a solver is above its bound.
    """
    check_controls(result.controls)
    texts: dict[Written, list[int]] = {}
    for place, row in enumerate(result.rows):
        if (text := written(row)) is not None:
            texts.setdefault(text, []).append(place)
    places = list(texts.values())
    reasons = {at: why for at, why in repeated(list(texts)).items() if frames or why == STOCK_PHRASE}
    passed = result.without({place: why for at, why in reasons.items() for place in places[at]}, alone=alone)
    check_some(passed)
    attacks = attack(attacked(passed.rows), bound=bound)
    check_floors(attacks)
    return AcceptedSet(passed, attacks)


def check_some(result: Made) -> None:
    """Refuse a making that came to nothing.

    Raises:
        DataError: It did; says why, in a line.
    """
    if not result.rows:
        counts = {**result.rejected, **({"unfinished": len(result.unfinished)} if result.unfinished else {})}
        reasons = ", ".join(f"{count} × {reason}" for reason, count in sorted(counts.items()))
        raise DataError(f"nothing is accepted ({reasons or 'there is no source row'}); nothing is written")

"""`hedge data`: build and check local data sets, from what you have downloaded.

Each evaluation brings the command that builds its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hedge_tasks.cli.printing import Details
from hedge_tasks.io.commands import PROBLEMS_FOUND


def attack(
    source: Path,
    *,
    label_field: str = "label",
    group_field: str | None = None,
    stratum_field: str | None = None,
    floor: float | None = None,
) -> tuple[dict[str, Any], int]:
    """Say how much of a data set is solved without skill.

    Args:
        source: A table: MedHallu's columns, or question, answer and label.
        label_field: Column of the label.
        group_field: Column of what belongs together; image or question if not given.
        stratum_field: Column of kinds of rows that get a floor of their own.
        floor: Share of the set that solvers without skill may get right, 1 for any; halfway from guessing to 1 if not
            given.
    """
    from hedge_tasks.making.gate import attack as gate
    from hedge_tasks.making.gate.sets import read_released
    from hedge_tasks.numbers import Table

    items = read_released(source, label=label_field, group=group_field, stratum=stratum_field)
    attacks = gate.attack(items, bound=floor)
    table = Table.of(*gate.floor_rows(attacks), title=gate.FLOOR_TITLE)
    facts = {"solved": table, "floors": Details(gate.floors_by_stratum(attacks))}
    return facts, PROBLEMS_FOUND if any(attacked.open for attacked in attacks) else 0


COMMANDS = {"attack": attack}

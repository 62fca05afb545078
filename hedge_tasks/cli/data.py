"""`hedge data`: local data sets out of what a user has downloaded, and checks of it. Nothing is downloaded here."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.cli.choices import add_label_field
from hedge_tasks.evaluation import evaluation_commands
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, command, show
from hedge_tasks.making.commands import add_floor


def add(commands: Parser) -> None:
    """Each evaluation brings the commands that build its data."""
    parts = commands.add_command("data", "build and check local data sets, from what you have downloaded")
    for add_command in evaluation_commands("data"):
        add_command(parts)
    parser = command(parts, "attack", run_attack, "say how much of a data set is solved without skill")
    parser.add_argument(
        "source", type=Path, metavar="FILE", help="a table: MedHallu's columns, or question, answer and label"
    )
    add_label_field(parser)
    parser.add_argument("--group-field", metavar="COLUMN", help="what belongs together (default: image or question)")
    parser.add_argument("--stratum-field", metavar="COLUMN", help="kinds of rows that get a floor of their own")
    add_floor(parser)


def run_attack(arguments: argparse.Namespace) -> int:
    from hedge_tasks.making.gate.attack import FLOOR_TITLE, attack, floor_rows, floors_by_stratum
    from hedge_tasks.making.gate.sets import read_released
    from hedge_tasks.numbers import Table

    items = read_released(
        arguments.source, label=arguments.label_field, group=arguments.group_field, stratum=arguments.stratum_field
    )
    attacks = attack(items, bound=arguments.floor)
    table = Table.of(*floor_rows(attacks), title=FLOOR_TITLE)
    show(arguments, {"floors": floors_by_stratum(attacks)}, table)
    return PROBLEMS_FOUND if any(attacked.open for attacked in attacks) else 0

"""`hedge data`: local data sets out of what a user has downloaded, and checks of it. Nothing is downloaded here."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from hedge_tasks.cli.choices import add_label_field
from hedge_tasks.evaluation import evaluation_commands
from hedge_tasks.io.commands import PROBLEMS_FOUND, Parser, add_out, command, show
from hedge_tasks.making.commands import add_floor

VOCABULARIES = ("mesh", "radlex", "umls")


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
    parser = command(parts, "synonyms", run_synonyms, "make a table of synonyms for the rule judge from a vocabulary")
    parser.add_argument(
        "source",
        type=Path,
        metavar="FILE",
        help="your copy of MeSH (d2026.bin), RadLex (BioPortal's CSV) or UMLS (MRCONSO.RRF)",
    )
    parser.add_argument("--vocabulary", choices=VOCABULARIES, help="which of them it is (default: by its first line)")
    add_out(parser, "the table, for `judge: {name: rule, synonyms: FILE}`", required=True)


def run_synonyms(arguments: argparse.Namespace) -> int:
    from hedge_tasks.judging.rule.vocabularies import build_table
    from hedge_tasks.numbers import Table

    built = build_table(arguments.source, arguments.out, arguments.vocabulary)
    title = f"Synonyms for the rule judge: {arguments.out}"
    table = Table.of(["what", "value"], [(name, value) for name, value in asdict(built).items()], title=title)
    show(arguments, asdict(built), table)
    return 0


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

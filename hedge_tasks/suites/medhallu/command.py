"""`hedge paper medhallu`: MedHallu's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse

from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.replies.parsing import PARSINGS
from hedge_tasks.suites.paper_command import add_names, add_runs, load_runs_of


def add(commands: Parser) -> None:
    parser = command(commands, "medhallu", _tables, "lay out MedHallu's tables from finished runs, beside its values")
    add_runs(parser)
    parser.add_argument("--parsing", choices=PARSINGS, help="take this reading of the stored replies")
    add_names(parser, "Qwen2.5-7B")
    add_out(parser, "a line for each number, with its interval (CSV)")


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.published import names_given
    from hedge_tasks.suites.medhallu import tables
    from hedge_tasks.suites.medhallu.abstention import abstention_table, abstentions

    names = names_given(arguments.name, list(tables.PATTERNS))
    runs = load_runs_of(arguments.runs, "MedHallu", tables.is_medhallu)
    read = tables.beside_paper(tables.read_runs(runs, arguments.parsing), names)
    changes, without = tables.differences(read), abstentions(read)
    if arguments.out:
        write_whole(arguments.out, tables.rows_of(read).to_csv())
    facts = {
        "runs": [{**run.numbers.to_dict(), **run.variant._asdict()} for run in read],
        "differences": [change.to_dict() for change in changes],
        "abstention": [abstention.to_dict() for abstention in without],
        "published": tables.PUBLISHED,
    }
    laid_out = [*tables.tables_of(read, changes), *([abstention_table(without, read)] if without else [])]
    show(arguments, facts, *laid_out)
    return 0

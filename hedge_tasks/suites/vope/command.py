"""`hedge paper vope`: VOPE's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse

from hedge_tasks.io.commands import Parser, command, show
from hedge_tasks.replies.parsing import PARSINGS
from hedge_tasks.suites.paper_command import add_runs, load_runs_of
from hedge_tasks.suites.vope.presence import PRESENCES


def add(commands: Parser) -> None:
    parser = command(commands, "vope", _tables, "lay out VOPE's tables from finished runs, contrasted ones among them")
    add_runs(parser)
    parser.add_argument("--parsing", choices=PARSINGS, help="read the stored replies this way")
    parser.add_argument("--presence", choices=PRESENCES, help="when an object is in the image (default: as in the run)")
    parser.add_argument(
        "--published", metavar="MODEL", help="the paper's model to stand beside (default: the one of the run's name)"
    )


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.suites.vope.published import check_model
    from hedge_tasks.suites.vope.tables import PLAIN, SHARES, difference, is_vope, numbers_of, tables_of

    if arguments.published:
        check_model(arguments.published)
    runs = load_runs_of(arguments.runs, "VOPE", is_vope)
    stories = [numbers_of(run, arguments.parsing, arguments.presence, arguments.published) for run in runs]
    stories.sort(key=lambda row: row.order)
    contrasted = any(row.decoding != PLAIN for row in stories)
    differences = [
        {measure.name: difference(row, stories, measure.name) if contrasted else None for measure in SHARES}
        for row in stories
    ]
    facts = [{**row.to_dict(), "differences": less} for row, less in zip(stories, differences, strict=True)]
    show(arguments, facts, *tables_of(stories))
    return 0

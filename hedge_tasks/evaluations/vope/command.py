"""`hedge paper vope`: VOPE's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from pathlib import Path

from hedge_tasks.evaluations.vope.presence import PRESENCES
from hedge_tasks.io.commands import Parser, command, show
from hedge_tasks.replies.parsing import PARSINGS


def add(commands: Parser) -> None:
    parser = command(commands, "vope", _tables, "lay out VOPE's tables from finished runs, contrasted ones among them")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="output folder of lmms-eval, or a run file")
    parser.add_argument("--parsing", choices=PARSINGS, help="read the stored replies this way")
    parser.add_argument("--presence", choices=PRESENCES, help="when an object is in the image (default: as in the run)")
    parser.add_argument(
        "--published", metavar="MODEL", help="the paper's model to stand beside (default: the one of the run's name)"
    )


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.evaluations.vope.published import check_model
    from hedge_tasks.evaluations.vope.tables import PLAIN, SHARES, difference, is_vope, numbers_of, tables_of
    from hedge_tasks.runs.run_files import load_runs

    if arguments.published:
        check_model(arguments.published)
    runs = [run for path in arguments.runs for run in load_runs(path) if is_vope(run)]
    if not runs:
        raise DataError(f"no run of VOPE in {', '.join(map(str, arguments.runs))}")
    found = [numbers_of(run, arguments.parsing, arguments.presence, arguments.published) for run in runs]
    found.sort(key=lambda one: one.order)
    swept = any(one.decoding != PLAIN for one in found)
    facts = [
        {**one.to_dict(), "differences": {m.name: difference(one, found, m.name) if swept else None for m in SHARES}}
        for one in found
    ]
    show(arguments, facts, "\n\n".join(table.to_text() for table in tables_of(found)))
    return 0

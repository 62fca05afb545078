"""`hedge paper shale`: SHALE's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hedge_tasks.io.commands import Parser, add_out, command, show
from hedge_tasks.replies.parsing import HEDGE, PARSINGS
from hedge_tasks.suites.paper_command import add_runs, load_runs_of


def add(commands: Parser) -> None:
    parser = command(commands, "shale", _tables, "lay out SHALE's tables from finished runs, beside the published ones")
    add_runs(parser)
    parser.add_argument("--table", type=int, action="append", metavar="N", help="only this one (repeat for several)")
    parser.add_argument(
        "--published",
        metavar="MODEL",
        help="the paper's model to stand beside, or average (default: the one of the run's name, else average)",
    )
    parser.add_argument("--parsing", choices=PARSINGS, default=HEDGE, help="read the replies to closed questions so")
    parser.add_argument(
        "--scores",
        type=Path,
        metavar="OTHERS.csv",
        help="the same models on other benchmarks (columns: model, one a benchmark), to correlate with (Figure 5)",
    )
    add_out(parser, "a line for each cell (CSV)")


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import ConfigError
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.measures.paper_tables import number_rows
    from hedge_tasks.suites.shale.correlation import beside, correlation_table, correlations, read_scores
    from hedge_tasks.suites.shale.published import TABLES
    from hedge_tasks.suites.shale.tables import is_shale, tables_of

    table_numbers = arguments.table or TABLES
    if wrong := [n for n in table_numbers if n not in TABLES]:
        raise ConfigError(f"--table {wrong[0]}: the paper's tables of results are {', '.join(map(str, TABLES))}")
    runs = load_runs_of(arguments.runs, "SHALE", is_shale)
    models = tables_of(runs, arguments.published, arguments.parsing)
    cells = number_rows([model.tables[n] for model in models for n in table_numbers])
    if arguments.out:
        write_whole(arguments.out, cells.to_csv())
    facts = [{"model": m.model, "runs": list(m.runs), "published": m.beside, "notes": list(m.notes)} for m in models]
    value: dict[str, Any] = {"models": facts, "cells": cells.to_records()}
    blocks = [model.to_text(table_numbers) for model in models]
    if arguments.scores:
        pairs = correlations(beside(models, read_scores(arguments.scores)))
        value["correlations"] = [dict(zip(("one", "other", "models", "r"), pair, strict=True)) for pair in pairs]
        blocks.append(correlation_table(pairs).to_text())
    show(arguments, value, *blocks)
    return 0

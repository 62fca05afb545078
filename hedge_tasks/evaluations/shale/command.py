"""`hedge paper shale`: SHALE's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.evaluations.shale.items import NOISY_SCENARIOS, TASKS
from hedge_tasks.io.commands import Parser, add_out, command, number, show, table
from hedge_tasks.replies.parsing import HEDGE, PARSINGS

if TYPE_CHECKING:
    from hedge_tasks.evaluations.shale.tables import Cell, ModelTables

_TITLES = {
    2: "closed questions by scenario: means of YNQ and MCQ; RR = mean resistance rate",
    3: "open questions by scenario: means of FFQ and IC; RR = mean resistance rate",
    5: "clean, by type of question; overall = mean of YNQ, MCQ and FFQ, as the paper's numbers are",
    6: "clean, by aspect of perception, over all types of questions",
    7: "clean, by domain of knowledge, over all types of questions",
}


def add(commands: Parser) -> None:
    parser = command(commands, "shale", _tables, "lay out SHALE's tables from finished runs, beside the published ones")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="output folders of lmms-eval, or run files")
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
    from hedge_tasks.evaluations.shale.correlation import beside, correlations, read_scores
    from hedge_tasks.evaluations.shale.published import TABLES
    from hedge_tasks.evaluations.shale.tables import tables_of
    from hedge_tasks.io.files import write_whole
    from hedge_tasks.io.tables import as_csv
    from hedge_tasks.runs.run_files import load_runs

    wanted = arguments.table or TABLES
    if wrong := [n for n in wanted if n not in TABLES]:
        raise ConfigError(f"--table {wrong[0]}: the paper's tables of results are {', '.join(map(str, TABLES))}")
    runs = [run for path in arguments.runs for run in load_runs(path)]
    found = tables_of(runs, arguments.published, arguments.parsing)
    rows = [row for one in found for row in _rows(one, wanted)]
    if arguments.out:
        write_whole(arguments.out, as_csv([list(rows[0]), *(list(row.values()) for row in rows)]))
    facts = [
        {"model": one.model, "runs": list(one.runs), "published": one.beside, "notes": list(one.notes)} for one in found
    ]
    value: dict[str, Any] = {"models": facts, "cells": rows}
    blocks = [_text(one, wanted) for one in found]
    if arguments.scores:
        pairs = correlations(beside(found, read_scores(arguments.scores)))
        value["correlations"] = [dict(zip(("one", "other", "models", "r"), pair, strict=True)) for pair in pairs]
        cells = [[f"{one} / {other}", str(models), number(r, 3)] for one, other, models, r in pairs]
        blocks.append("Figure 5, Pearson's r between benchmarks\n" + table(["", "models", "r"], cells))
    show(arguments, value, "\n\n".join(blocks))
    return 0


def _rows(one: ModelTables, wanted: Sequence[int]) -> list[dict[str, Any]]:
    """One flat record a cell."""
    return [
        {"model": one.model, "table": n, "column": name, **_flat(cell), "published_model": one.beside}
        for n in wanted
        for name, cell in one.tables[n].items()
    ]


def _flat(cell: Cell) -> dict[str, Any]:
    fields = asdict(cell)
    low, high = fields.pop("interval") or (None, None)
    return {"value": fields.pop("value"), "low": low, "high": high, **fields}


def _text(one: ModelTables, wanted: Sequence[int]) -> str:
    blocks = [f"{one.model or 'unknown model'}:", *(f"- {title}" for title in one.runs)]
    for n in wanted:
        blocks += ["", f"Table {n}, {_TITLES[n]}", _layout(one.tables[n], one.beside)]
    return "\n".join([*blocks, *(["", *(f"Note: {note}." for note in one.notes)] if one.notes else [])])


def _layout(cells: Mapping[str, Cell], beside: str) -> str:
    header = ["", "ours", "95 %", "items", "scenes", f"paper ({beside})", "difference"]
    asked = {name: cell for name, cell in cells.items() if cell.n}
    if not asked:
        return "  nothing of it was asked"
    lines = [table(header, [[_name(name), *_numbers(cell)] for name, cell in asked.items()])]
    lines += [f"  {_name(name)}: {cell.reason}" for name, cell in asked.items() if cell.reason]
    if left := [_name(name) for name, cell in cells.items() if not cell.n and not name.startswith("rr_")]:
        lines.append(f"  not asked: {', '.join(left)}")
    return "\n".join(lines)


def _numbers(cell: Cell) -> list[str]:
    apart = None if cell.value is None or cell.published is None else cell.value - cell.published
    between = "" if cell.interval is None else f"{cell.interval[0]:.3f}-{cell.interval[1]:.3f}"
    return [
        *(number(cell.value, 3), between, str(cell.n), str(cell.scenes)),
        *("" if cell.published is None else f"{cell.published:.3f}", "" if apart is None else f"{apart:+.3f}"),
    ]


def _name(name: str) -> str:
    """A column as the paper writes it.

    Example:
        >>> _name("rr_sty_p"), _name("ffq"), _name("scene_text")
        ('RR-STY-P', 'FFQ', 'scene text')
    """
    short = name.removeprefix("rr_") in ("rr", *TASKS, *NOISY_SCENARIOS)
    return name.upper().replace("_", "-") if short else name.replace("_", " ")

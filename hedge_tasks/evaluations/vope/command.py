"""`hedge vope`: VOPE's tables out of finished runs."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.io.commands import command, number, show, table
from hedge_tasks.replies.parsing import PARSINGS

if TYPE_CHECKING:
    from hedge_tasks.evaluations.vope.tables import TaskNumbers
    from hedge_tasks.runs.run_files import Run

_NAMES = {"hal_d": "Hal-D", "hal_i": "Hal-I", "exp": "Exp", "chair_i": "CHAIR_i", "chair_s": "CHAIR_s"}


def add(commands: Any) -> None:
    parser = command(commands, "vope", _tables, "lay out VOPE's tables, with the sweep over alpha, from finished runs")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="output folder of lmms-eval, or a run file")
    parser.add_argument("--parsing", choices=PARSINGS, help="read the stored replies this way")


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.evaluations.vope.tables import SHARES, difference, numbers_of
    from hedge_tasks.runs.run_files import load_runs

    runs = [run for path in arguments.runs for run in load_runs(path) if _is_vope(run)]
    if not runs:
        raise DataError(f"no run of VOPE in {', '.join(map(str, arguments.runs))}")
    found = [numbers_of(run, arguments.parsing) for run in runs]
    found.sort(key=lambda n: (n.model, n.task, n.prompts, n.alpha))
    swept = any(n.alpha for n in found)  # or every row would be compared with itself
    changes = [{name: difference(n, found, name) if swept else None for name in SHARES} for n in found]
    facts = [{**asdict(n), "differences": change} for n, change in zip(found, changes, strict=True)]
    show(arguments, facts, _text(found, changes))
    return 0


def _is_vope(run: Run) -> bool:
    return any("objects" in verdict for verdict in run.verdicts.values())


def _text(found: list[TaskNumbers], changes: list[dict[str, float | None]]) -> str:
    header = ["model", "task", "alpha", *_NAMES.values(), "objects", "unread", "parsers differ"]
    rows = [
        [
            *(n.model, n.task, f"{n.alpha:g}"),
            *(_share(n, name, change[name]) for name in _NAMES),
            *map(str, (n.objects, n.unread, n.parsers_differ)),
        ]
        for n, change in zip(found, changes, strict=True)
    ]
    behind = (
        "; behind them the difference to alpha = 0, where there is such a run" if any(n.alpha for n in found) else ""
    )
    lines = [table(header, rows), f"Shares in %{behind}."]
    for n in found:
        lines += [
            f"{n.task}, alpha {n.alpha:g}: {_NAMES[name]} is undefined: {cell.reason}"
            for name, cell in n.shares.items()
            if cell.reason
        ]
    rated = [n for n in found if any(map(sum, n.relevance.values()))]
    if rated:
        header = ["model", "task", "alpha", "objects", "score 1", "score 2", "score 3", "kappa (linear)"]
        rows = [
            [n.model, n.task, f"{n.alpha:g}", kind, *map(str, counts), number(n.kappa["linear"].value, 2)]
            for n in rated
            for kind, counts in n.relevance.items()
        ]
        lines += ["", "Relevance of objects that are not in the image:", table(header, rows)]
    return "\n".join(lines)


def _share(numbers: TaskNumbers, name: str, change: float | None) -> str:
    value = numbers.shares[name].value
    if value is None:
        return "undefined"
    return f"{100 * value:.1f}" + ("" if change is None else f" {100 * change:+.1f}")

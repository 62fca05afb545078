"""`hedge paper vope`: VOPE's tables out of finished runs, beside the published values."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedge_tasks.evaluations.vope.presence import PRESENCES
from hedge_tasks.io.commands import Parser, command, number, show, table
from hedge_tasks.replies.parsing import PARSINGS

if TYPE_CHECKING:
    from hedge_tasks.evaluations.vope.tables import TaskNumbers
    from hedge_tasks.runs.run_files import Run

_NAMES = {
    **{"hal_d": "Hal-D", "hal_i": "Hal-I", "exp": "Exp"},
    **{"chair_i": "CHAIR_i", "chair_s": "CHAIR_s", "cover": "Cover"},
}


def add(commands: Parser) -> None:
    parser = command(commands, "vope", _tables, "lay out VOPE's tables, with the sweep over alpha, from finished runs")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="output folder of lmms-eval, or a run file")
    parser.add_argument("--parsing", choices=PARSINGS, help="read the stored replies this way")
    parser.add_argument("--presence", choices=PRESENCES, help="when an object is in the image (default: as in the run)")
    parser.add_argument(
        "--published", metavar="MODEL", help="the paper's model to stand beside (default: the one of the run's name)"
    )


def _tables(arguments: argparse.Namespace) -> int:
    from hedge_tasks.errors import DataError
    from hedge_tasks.evaluations.vope.published import check_model
    from hedge_tasks.evaluations.vope.tables import SHARES, beside, difference, numbers_of
    from hedge_tasks.runs.run_files import load_runs

    if arguments.published:
        check_model(arguments.published)
    runs = [run for path in arguments.runs for run in load_runs(path) if _is_vope(run)]
    if not runs:
        raise DataError(f"no run of VOPE in {', '.join(map(str, arguments.runs))}")
    found = [numbers_of(run, arguments.parsing, arguments.presence) for run in runs]
    found.sort(key=lambda n: (n.model, n.task, n.prompts, n.alpha))
    swept = any(n.alpha for n in found)  # or every row would be compared with itself
    changes = [{name: difference(n, found, name) if swept else None for name in SHARES} for n in found]
    published = [beside(n, arguments.published) for n in found]
    facts = [
        {**asdict(n), "differences": change, "published": values}
        for n, change, values in zip(found, changes, published, strict=True)
    ]
    show(arguments, facts, _text(found, changes, published))
    return 0


def _is_vope(run: Run) -> bool:
    return any("objects" in verdict for verdict in run.verdicts.values())


def _text(found: list[TaskNumbers], changes: list[dict[str, float | None]], published: Sequence[dict[str, Any]]) -> str:
    header = ["model", "task", "alpha", *_NAMES.values(), "objects", "unread", "by a model", "parsers differ"]
    rows = [
        [
            *(n.model, n.task, f"{n.alpha:g}"),
            *(_share(n, name, change[name]) for name in _NAMES),
            *map(str, (n.objects, n.unread, n.by_model, n.parsers_differ)),
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
    lines += ["", "95 % intervals over images, and the paper's Table 1:"]
    header = ["model", "task", "alpha", "", "ours", "95 %", "paper", "difference", "paper's model"]
    lines.append(table(header, [row for n, v in zip(found, published, strict=True) for row in _intervals(n, v)]))
    lines += ["", "ROC-AUC of an object's score against its label, and of a story's (wrong about any of its objects):"]
    rows = [
        [n.model, n.task, f"{n.alpha:g}", name, *(_auroc(n.aurocs[level][name]) for level in n.aurocs)]
        for n in found
        for name in n.aurocs["object"]
    ]
    lines.append(table(["model", "task", "alpha", "", "object", "story"], rows))
    undefined = {(level, cell.reason) for n in found for level in n.aurocs for cell in n.aurocs[level].values()}
    reasons = sorted(f"  {level}: {reason}" for level, reason in undefined if reason)
    return "\n".join([*lines, *reasons, *_relevance(found, published)])


def _intervals(n: TaskNumbers, published: dict[str, Any]) -> list[list[str]]:
    rows = []
    for name, title in _NAMES.items():
        cell, theirs = n.shares[name], published["shares"].get(name)
        between = "" if cell.interval is None else f"{100 * cell.interval[0]:.1f}-{100 * cell.interval[1]:.1f}"
        apart = None if cell.value is None or theirs is None else 100 * (cell.value - theirs)
        ours = "undefined" if cell.value is None else f"{100 * cell.value:.1f}"
        paper = ["" if theirs is None else f"{100 * theirs:.1f}", "" if apart is None else f"{apart:+.1f}"]
        who = published["model"] or "" if theirs is not None else ""
        rows.append([n.model, n.task, f"{n.alpha:g}", title, ours, between, *paper, who])
    return rows


def _auroc(cell: Any) -> str:
    if cell.value is None:
        return "undefined"
    return number(cell.value, 3) + ("" if cell.stderr is None else f" ± {cell.stderr:.3f}")


def _relevance(found: list[TaskNumbers], published: Sequence[dict[str, Any]]) -> list[str]:
    """Tables 4 to 6, and the numbers of Figures 7 and 8."""
    rated = [(n, p) for n, p in zip(found, published, strict=True) if any(map(sum, n.relevance.values()))]
    if not rated:
        return []
    header = ["model", "task", "alpha", "objects", "score 1", "score 2", "score 3", "kappa (linear)"]
    rows = [
        [n.model, n.task, f"{n.alpha:g}", kind, *map(str, counts), number(n.kappa["linear"].value, 2)]
        for n, _ in rated
        for kind, counts in n.relevance.items()
    ]
    theirs = {(p["model"], p["task"]): p["relevance"] for _, p in rated if p["relevance"]}
    rows += [
        [f"paper: {model}", task, "", kind, *map(str, counts), ""]
        for (model, task), of in theirs.items()
        for kind, counts in of.items()
    ]
    return ["", "Relevance of objects that are not in the image:", table(header, rows)]


def _share(numbers: TaskNumbers, name: str, change: float | None) -> str:
    value = numbers.shares[name].value
    if value is None:
        return "undefined"
    return f"{100 * value:.1f}" + ("" if change is None else f" {100 * change:+.1f}")

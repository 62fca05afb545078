"""The pages of a task: one for each measure, with places, intervals, and any two entries compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hedge_tasks.leaderboard.blind import best_of, not_better
from hedge_tasks.leaderboard.board import Board, BoardNumber, EntryNumber, by_value, cell_of, choices_of, task_page
from hedge_tasks.leaderboard.comparison import Pairs
from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.leaderboard.entry_page import PACKAGE
from hedge_tasks.leaderboard.protocol import parameters_of, protocol_of, weights_of
from hedge_tasks.report.pages import asset, render
from hedge_tasks.report.texts import clean, script_json
from hedge_tasks.statistics.base import FloatArray

_UNIT = 1e4
"""Numbers of comparisons are whole ten-thousandths: they are a million characters otherwise."""


def task_pages(
    task: str, entries: Sequence[Entry], boards: Mapping[BoardNumber, Board], common: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Names and texts of a task's pages.

    Args:
        entries: all of the task, ranked or not.
        boards: by measure, the ranked entries.
        common: values that all pages share.
    """
    measures = list(boards)
    pages = {measure: task_page(task, measure if i else None) for i, measure in enumerate(measures)}
    choices = choices_of(pages)
    aside = [entry for entry in entries if not entry.findings.ranked]
    manifest = max((e.findings.coverage.of or 0 for e in entries if e.findings.coverage), default=0)
    for measure, board in boards.items():
        others = [cell for entry in aside if (cell := cell_of(entry, measure)) is not None]
        yield (
            pages[measure],
            render(
                "task.html.j2",
                scripts=[asset("page.js"), asset("compare.js", PACKAGE)],
                styles=[asset("board.css", PACKAGE)],
                package=PACKAGE,
                title=f"{task}, {measure.title}: HEDGE leaderboard",
                task=task,
                measure=measure,
                choices=choices,
                current=pages[measure],
                column="ROC-AUC" if measure.kind == "auroc" else measure.title,
                documents=manifest or None,
                rows=[_row(cell, measure) for cell in board.cells],
                aside=_groups([_row(c, measure) for c in sorted(others, key=lambda cell: by_value(cell, measure))]),
                edition=_edition_of(entries),
                audited=any(cell.audited for cell in [*board.cells, *others]),
                priced=measure.kind == "auroc",
                compared=_compared(board),
                **common,
            ),
        )


def _edition_of(entries: Sequence[Entry]) -> str | None:
    """Return the hash of the edition that the entries were compared with; None where none is known."""
    editions = (entry.findings.standing.edition for entry in entries if entry.findings.standing is not None)
    return next((edition for edition in editions if edition is not None), None)


def _groups(rows: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Group entries without a place under headings: those of each other edition together, after all others."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        standing = row["entry"].findings.standing
        is_other = standing is not None and standing.edition is not None and standing.hash != standing.edition
        groups.setdefault(f"Another edition: {standing.hash}" if is_other else "Not ranked", []).append(row)
    return sorted(groups.items(), key=lambda group: (group[0] != "Not ranked", group[0]))


def _row(cell: EntryNumber, measure: BoardNumber) -> dict[str, Any]:
    content = cell.entry.content
    return {
        "cell": cell,
        "blind": best_of(content, measure.clustering),
        "not_better": not_better(content, measure.clustering, measure.name),
        "entry": cell.entry,
        "created": content["entry"]["created"][:10],
        "protocol": protocol_of(content),
        "weights": weights_of(content),
        "parameters": parameters_of(content),
    }


def _compared(board: Board) -> Any:
    """Return the comparison of any two entries as JSON for a script element; None where there is none."""
    from markupsafe import Markup

    if board.pairs is None or len(board.cells) < 2:
        return None
    table = {"entries": [clean(cell.entry.name, 100) for cell in board.cells], "unit": _UNIT, **_upper(board.pairs)}
    # Safe: nothing in it can end the script element it stands in.
    return Markup(script_json(table))


def _upper(pairs: Pairs) -> dict[str, Any]:
    """Return what is above the diagonal, row by row; one number where all are the same."""
    place = np.triu_indices(len(pairs.n), 1)
    columns = {
        "difference": pairs.difference,
        "half": pairs.half_widths,
        "p": pairs.p_values,
        "adjusted": pairs.adjusted,
    }
    counts = pairs.n[place].tolist()
    n = counts[0] if len(set(counts)) == 1 else counts
    return {**{name: _whole(matrix[place]) for name, matrix in columns.items()}, "n": n}


def _whole(values: FloatArray) -> list[int | None]:
    rounded = np.rint(values * _UNIT).tolist()
    return [int(value) if value == value else None for value in rounded]  # nan is no number, and not itself

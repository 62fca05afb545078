"""The front page: models by tasks, one page for each number that the cells may show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.leaderboard.board import (
    PRICE,
    RATE,
    SUPPORTED,
    Board,
    BoardNumber,
    EntryNumber,
    auroc_measures,
    board_of,
    cell_of,
    choices_of,
    task_page,
)
from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.leaderboard.entry_page import PACKAGE
from hedge_tasks.leaderboard.protocol import parameters_of, protocol_of, size_of, weights_of
from hedge_tasks.report.pages import asset, render

Boards = Mapping[str, Mapping[BoardNumber, Board]]
"""By task and measure."""

SUITE = BoardNumber("suite", "the suite's own number", True)
MOST = 24
"""Detectors that have a page."""

_SHADES = 6


@dataclass(frozen=True)
class ShownNumber:
    """A cell of the front page.

    Attributes:
        cell: the number.
        measure: what it is, for the suite's number another one in each task.
        shade: 0 to 5, the strongest is the best; None where nothing is better than another.
        more: further entries of this model on this task.
    """

    cell: EntryNumber
    measure: BoardNumber
    shade: int | None
    more: int


@dataclass(frozen=True)
class ModelRow:
    """A model.

    Attributes:
        name: of its entries.
        model: that they are of; empty where that is the name.
        cells: by task, in the order of the columns; None where it has no entry there.
        mean_place: mean of its places, with the means of the best and the worst they may be; None unless it is ranked
            in every task.
        badges: how its entries came about.
    """

    name: str
    model: str
    cells: Sequence[ShownNumber | None]
    mean_place: tuple[float, float, float] | None
    badges: Sequence[tuple[str, str]]
    weights: str
    parameters: float | None
    size: str


def front_pages(entries: Sequence[Entry], boards: Boards, common: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and texts of the front pages."""
    measures = _measures(entries)
    pages = {measure: f"models-{measure.slug}.html" if i else "index.html" for i, measure in enumerate(measures)}
    aside = [entry for entry in entries if not entry.findings.ranked]
    with_places = {entry.task for entry in entries if entry.findings.ranked}
    for measure in measures or [SUPPORTED]:
        tasks = {task: own for task, own_boards in boards.items() if (own := _in_task(measure, own_boards)) is not None}
        columns = {task: own for task, own in tasks.items() if task in with_places}
        rows = _rows(entries, boards, columns)
        yield (
            pages.get(measure, "index.html"),
            render(
                "front.html.j2",
                scripts=[asset("page.js"), asset("filters.js", PACKAGE)],
                styles=[asset("board.css", PACKAGE)],
                package=PACKAGE,
                title="HEDGE leaderboard",
                measure=measure,
                choices=choices_of(pages),
                current=pages.get(measure),
                tasks=[(task, _page(task, own, boards[task]), own) for task, own in columns.items()],
                rows=rows,
                ranks=any(row.mean_place is not None for row in rows),
                aside=[(entry, cell_of(entry, own) if (own := tasks.get(entry.task)) else None) for entry in aside],
                n_entries=len(entries),
                n_tasks=len(boards),
                n_models=len({(entry.name, entry.model) for entry in entries}),
                **common,
            ),
        )


def _measures(entries: Sequence[Entry]) -> list[BoardNumber]:
    """Return what the front page can show: shares of answers, the suites' numbers, detectors, the price."""
    measures = [SUPPORTED, RATE] if any(entry.rate is not None for entry in entries) else []
    measures += [SUITE] if any(entry.content["suite"] for entry in entries) else []
    measures += auroc_measures(entries)[:MOST]
    return [*measures, PRICE] if entries else []


def _in_task(measure: BoardNumber, boards: Mapping[BoardNumber, Board]) -> BoardNumber | None:
    """A measure as a task has it: of a suite's numbers the first."""
    if measure.kind == "suite":
        return next((own for own in boards if own.kind == "suite"), None)
    if measure.kind == "price":
        return measure
    return next((own for own in boards if own.key == measure.key), None)


def _page(task: str, measure: BoardNumber, boards: Mapping[BoardNumber, Board]) -> str:
    has_own_page = measure in boards and measure != next(iter(boards))
    return task_page(task, measure if has_own_page else None)


def _rows(entries: Sequence[Entry], boards: Boards, tasks: Mapping[str, BoardNumber]) -> list[ModelRow]:
    by_model: dict[tuple[str, str], dict[str, list[ShownNumber]]] = {}
    for task, measure in tasks.items():
        mine = [entry for entry in entries if entry.task == task]
        board = boards[task][measure] if measure in boards[task] else board_of(mine, measure)
        for cell in board.cells:
            key = cell.entry.name, cell.entry.model
            by_model.setdefault(key, {}).setdefault(task, []).append(
                ShownNumber(cell, measure, _shade(cell, measure), 0)
            )
    ranked = {task for cells in by_model.values() for task in cells}
    rows = [_row(key, cells, list(tasks), len(ranked)) for key, cells in by_model.items()]
    return sorted(rows, key=lambda row: (row.mean_place is None, row.mean_place or (), row.name))


def _row(
    key: tuple[str, str], cells: Mapping[str, Sequence[ShownNumber]], tasks: Sequence[str], n_ranked: int
) -> ModelRow:
    """The row of a model; a mean place needs a place in each of the `n_ranked` tasks that have ranked entries."""
    numbers = [_newest(cells.get(task, ())) for task in tasks]
    places = [number.cell.place for number in numbers if number is not None and number.cell.place is not None]
    mean = None
    if places and len(places) == n_ranked:
        n = len(places)
        mean = (sum(p.rank for p in places) / n, sum(p.rank for p in places) / n, sum(p.worst for p in places) / n)
    contents = [number.cell.entry.content for number in numbers if number is not None]
    protocol: dict[str, dict[str, None]] = {}
    for content in contents:
        for what, how in protocol_of(content):
            protocol.setdefault(what, {})[how] = None
    badges = [(what, next(iter(how)) if len(how) == 1 else f"{len(how)} different") for what, how in protocol.items()]
    parameters = next((p for content in contents if (p := parameters_of(content)) is not None), None)
    weights = next((w for content in contents if (w := weights_of(content)) != "unknown"), "unknown")
    name, model = key
    return ModelRow(
        name, "" if model == name else model, numbers, mean, badges, weights, parameters, size_of(parameters)
    )


def _newest(numbers: Sequence[ShownNumber]) -> ShownNumber | None:
    """Of several entries of a model on one task the newest, and not the best."""
    if not numbers:
        return None
    last = max(numbers, key=lambda number: (number.cell.entry.content["entry"]["created"], number.cell.entry.file))
    return ShownNumber(last.cell, last.measure, last.shade, len(numbers) - 1)


def _shade(cell: EntryNumber, measure: BoardNumber) -> int | None:
    if cell.value is None or measure.kind == "price":
        return None
    low, high = measure.bounds
    share = min(max((cell.value - low) / (high - low), 0.0), 1.0)
    return min(_SHADES - 1, int(_SHADES * (share if measure.higher_is_better else 1 - share)))

"""The second board: detectors over the answers of all ranked entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hedge_tasks.detectors.pipeline import name_of
from hedge_tasks.detectors.registry import get
from hedge_tasks.leaderboard.board import slug
from hedge_tasks.leaderboard.detector_ranks import PRICES, DetectorBoard, Priced, detector_board
from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.leaderboard.entry_page import PACKAGE
from hedge_tasks.measures.blind import TITLES
from hedge_tasks.report.pages import WITH_FIGURES, asset, render
from hedge_tasks.report.plots.figures import ranks_chart
from hedge_tasks.report.svg import picture
from hedge_tasks.report.texts import clean

PAGE = "detectors.html"
MOST = 8
"""Clusterings that have pages: those of most entries."""


def detector_pages(entries: Sequence[Entry], common: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names and texts of the pages, one a clustering and price."""
    counted = [entry for entry in entries if entry.findings.ranked]
    having: dict[str, int] = {}
    for entry in counted:
        for name in entry.detectors[PRICES[0]]:
            having[name] = having.get(name, 0) + 1
    clusterings = sorted(having, key=lambda name: (-having[name], name))[:MOST]
    views = [(clustering, price) for clustering in clusterings for price in PRICES]
    pages = {view: f"detectors-{slug('-'.join(view), str(view))}.html" if i else PAGE for i, view in enumerate(views)}
    for view in views or [("", PRICES[0])]:
        clustering, price = view
        board = detector_board(
            [
                (entry.task, entry.model or entry.name, entry.detectors[price][clustering])
                for entry in counted
                if clustering in entry.detectors[price]
            ]
        )
        tasks = list(dict.fromkeys(task for rows in board.rows.values() for task, _, _ in rows))
        yield (
            pages.get(view, PAGE),
            render(
                "detector_board.html.j2",
                scripts=[*map(asset, WITH_FIGURES)],
                styles=[asset("board.css", PACKAGE)],
                package=PACKAGE,
                title="Detectors: HEDGE leaderboard",
                price=price,
                choices=[(f"Clusters of {clean(c, 60)}", _choices(c, pages)) for c in clusterings],
                current=pages.get(view, PAGE),
                board=board,
                models=len({model for rows in board.rows.values() for _, model, _ in rows}),
                tasks=tasks,
                rows=[_row(rank, board, tasks) for rank in board.ranks],
                blind=_blind([entry for entry in counted if clustering in entry.detectors[price]], clustering, tasks),
                chart=picture(ranks_chart(board.ranks)),
                **common,
            ),
        )


def _choices(clustering: str, pages: Mapping[tuple[str, str], str]) -> list[tuple[str, str]]:
    titles = {"equal": "at one price", "all": "all answers"}
    return [(title, pages[clustering, price]) for price, title in titles.items()]


def _row(rank: Any, board: DetectorBoard, tasks: Sequence[str]) -> dict[str, Any]:
    numbers = board.rows[rank.detector]
    draws = sorted({priced.draws for _, _, priced in numbers})
    return {
        "rank": rank,
        "title": name_of(rank.detector),
        "source": get(rank.detector).source,
        "draws": str(draws[0]) if len(draws) == 1 else f"{draws[0]} to {draws[-1]}",
        "mean": _mean([priced for _, _, priced in numbers]),
        "by_task": [_mean([priced for own_task, _, priced in numbers if own_task == task]) for task in tasks],
    }


def _blind(entries: Sequence[Entry], clustering: str, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """Return the blind baselines as rows: mean ROC-AUC over the entries that have them, and by task."""
    by_name: dict[str, list[tuple[str, float]]] = {name: [] for name in TITLES}
    for entry in entries:
        for row in entry.content["blind"].get(clustering, {"rows": ()})["rows"]:
            by_name[row["name"]].append((entry.task, row["auroc"]))
    return [
        {
            "title": f"{name}: {TITLES[name]}",
            "mean": _mean_of([value for _, value in rows]),
            "by_task": [_mean_of([value for own, value in rows if own == task]) for task in tasks],
        }
        for name, rows in by_name.items()
        if rows
    ]


def _mean_of(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _mean(numbers: Sequence[Priced]) -> float | None:
    return _mean_of([priced.auroc for priced in numbers])

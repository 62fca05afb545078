"""A static site of a board: models by tasks, a page for each task with paired comparisons, a page for each entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hedge_tasks import __version__
from hedge_tasks.errors import DataError
from hedge_tasks.leaderboard.board import Board, PlacedEntry, ShownNumber, compared
from hedge_tasks.leaderboard.entry import slug
from hedge_tasks.report.pages import asset, render
from hedge_tasks.runs.run_files import now
from hedge_tasks.statistics import Comparison, max_t

PACKAGE = "hedge_tasks.leaderboard"

_SURE = 0.05


@dataclass(frozen=True)
class RankedEntry:
    """An entry with its place among those that are replayed like it, or that are not.

    Attributes:
        entry: whose place it is.
        rank: 1 is the best; None without a number.
    """

    entry: PlacedEntry
    rank: int | None


@dataclass(frozen=True)
class PairedRow:
    """An entry compared with the best one of a number.

    Attributes:
        entry: that is compared.
        number: its own value.
        comparison: the best one's less this one's.
        p: corrected for all comparisons of the number (max-T).
    """

    entry: PlacedEntry
    number: ShownNumber
    comparison: Comparison | None
    p: float | None

    @property
    def apart(self) -> bool:
        """Whether the difference is more than chance."""
        return self.p is not None and self.p < _SURE


def build_site(board: Board, out: Path) -> list[Path]:
    """Write the site into a folder, which is made if missing. Returns the files written.

    Raises:
        DataError: the folder cannot be written.
    """
    files = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in _pages(board.entries):
            (out / name).write_text(text, "utf-8")
            files.append(out / name)
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror}") from error
    return files


def _pages(entries: Sequence[PlacedEntry]) -> Iterator[tuple[str, str]]:
    by_task: dict[str, list[PlacedEntry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.task, entry.title)):
        by_task.setdefault(entry.task, []).append(entry)
    yield "index.html", _page("board.html.j2", "HEDGE leaderboard", **_front(by_task))
    for task, own in by_task.items():
        yield task_page(task), _page("task.html.j2", task, **_task(own))
    for entry in entries:
        title = f"{entry.title} on {entry.task}"
        yield entry_page(entry), _page("entry.html.j2", title, entry=entry, task=entry.task)


def _page(template: str, title: str, **values: Any) -> str:
    values |= {"title": title, "version": __version__, "written": now()[:10]}
    values |= {"task_page": task_page, "entry_page": entry_page}
    styles = [asset("board.css", PACKAGE)]
    return render(template, scripts=[asset("page.js")], styles=styles, package=PACKAGE, **values)


def task_page(task: str) -> str:
    """Name of a task's page."""
    return f"task-{slug(task)}.html"


def entry_page(entry: PlacedEntry) -> str:
    """Name of an entry's page."""
    return f"entry-{entry.name}.html"


def _front(by_task: Mapping[str, Sequence[PlacedEntry]]) -> dict[str, Any]:
    cells = {(entry.title, task): entry for task, own in by_task.items() for entry in own}
    models = dict.fromkeys(title for title, _ in sorted(cells, key=lambda key: key[0].lower()))
    leads = {task: next((e.measured.lead for e in own if e.measured.lead), None) for task, own in by_task.items()}
    rows = [(title, [cells.get((title, task)) for task in by_task]) for title in models]
    return {"leads": leads, "rows": rows, "n_entries": len(cells)}


def _task(own: Sequence[PlacedEntry]) -> dict[str, Any]:
    lead = next((entry.measured.lead for entry in own if entry.measured.lead), None)
    numbers = {shown.key: shown for entry in own for shown in entry.measured.numbers}
    return {
        "lead": lead,
        "ranked": [(replayed, _ranked(own, lead, replayed)) for replayed in (True, False)],
        "unmeasured": [entry for entry in own if entry.measured.why_none],
        "pairs": [(shown, rows) for shown in numbers.values() if (rows := paired(own, shown))],
    }


def _ranked(own: Sequence[PlacedEntry], lead: ShownNumber | None, replayed: bool) -> list[RankedEntry]:
    """Return the entries that are replayed, or those that are not, the best first."""
    if lead is None:
        return []
    rows = by_value([entry for entry in own if entry.replayed == replayed and not entry.measured.why_none], lead)
    values = [value for value, _ in rows if value is not None]
    better = max if lead.higher_is_better else min
    return [
        RankedEntry(entry, None if value is None else 1 + sum(v != value and better(v, value) == v for v in values))
        for value, entry in rows
    ]


def by_value(own: Sequence[PlacedEntry], shown: ShownNumber) -> list[tuple[float | None, PlacedEntry]]:
    """Return entries with their value of a number, the best first and those without one last."""
    sign = -1 if shown.higher_is_better else 1
    rows = [(own_number.number.value if (own_number := e.measured.number(shown.key)) else None, e) for e in own]
    return sorted(rows, key=lambda row: (row[0] is None, sign * (row[0] or 0.0), row[1].title))


def paired(own: Sequence[PlacedEntry], shown: ShownNumber) -> list[PairedRow]:
    """Return every entry compared with the best one of a number, paired by document; nothing where there are no two."""
    entries = [entry for value, entry in by_value(own, shown) if value is not None]
    if len(entries) < 2:
        return []
    comparisons = [compared(entries[0].measured, entry.measured, shown.key) for entry in entries[1:]]
    rows = zip(entries[1:], comparisons, max_t(comparisons), strict=True)
    first = PairedRow(entries[0], _number(entries[0], shown), None, None)
    return [first, *(PairedRow(entry, _number(entry, shown), pair, p) for entry, pair, p in rows)]


def _number(entry: PlacedEntry, shown: ShownNumber) -> ShownNumber:
    return entry.measured.number(shown.key) or shown

"""A static site of the entries: models by tasks, detectors, a page for each task and measure, a page for each entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hedge_tasks import __version__
from hedge_tasks.errors import DataError
from hedge_tasks.leaderboard.board import ABOUT, board_of, entry_page_name, measures_of
from hedge_tasks.leaderboard.detector_pages import detector_pages
from hedge_tasks.leaderboard.entries import ReadEntries
from hedge_tasks.leaderboard.entry import Entry
from hedge_tasks.leaderboard.front import front_pages
from hedge_tasks.leaderboard.task_pages import task_pages
from hedge_tasks.runs.run_files import now


def build_site(built: ReadEntries, out: Path, progress: Callable[[str], None] = lambda text: None) -> list[Path]:
    """Write the site into a folder, which is made if missing. Returns the files written.

    Raises:
        DataError: the folder cannot be written.
    """
    files = []
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in _pages(built.entries, progress):
            path = out / name
            if path in files:
                raise DataError(f"{name}: two entries have one page")
            path.write_text(text, "utf-8")
            files.append(path)
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror}") from error
    return files


def _pages(entries: Sequence[Entry], progress: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    common = {"version": __version__, "written": now()[:10], "page_of": entry_page_name, "about": ABOUT}
    by_task: dict[str, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.task, entry.name)):
        by_task.setdefault(entry.task, []).append(entry)
    boards = {}
    for task, mine in by_task.items():
        progress(task)
        boards[task] = {measure: board_of(mine, measure) for measure in measures_of(mine)}
        yield from task_pages(task, mine, boards[task], common)
    yield from front_pages(entries, boards, common)
    yield from detector_pages(entries, common)
    for entry in entries:
        yield entry_page_name(entry.content), entry.html

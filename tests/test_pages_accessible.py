"""Every kind of page under axe-core, in light and dark, at a desk and on a phone: nothing serious, nothing critical.

A new page is a line in `PAGES`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from finished_runs import suite_run

pytest.importorskip("playwright.sync_api", reason="pip install playwright")
pytestmark = pytest.mark.slow

GRAVE = ("serious", "critical")
# Contrast is a matter of the theme, and what scrolls of the width.
VIEWS = {"light, at a desk": ("light", 1280), "dark, on a phone": ("dark", 400)}


def report(folder: Path) -> Path:
    from test_report_browser import RUN

    from hedge_tasks.report import ReportOptions, build_report

    return written(folder / "report.html", build_report([RUN], options=ReportOptions(pictures=False, curves=False)))


def report_of_two(folder: Path) -> Path:
    from hedge_tasks.report import ReportOptions, build_report

    runs = [suite_run(40, seed=i, model=f"model {i}") for i in range(2)]
    return written(folder / "report.html", build_report(runs, options=ReportOptions(pictures=False)))


def claims(folder: Path) -> Path:
    from test_report_browser import write_claims

    return write_claims(folder, images=6)


def leaderboard(page: str) -> Callable[[Path], Path]:
    """A page of a site of three entries, by a pattern of its path."""

    def write(folder: Path) -> Path:
        from board_tasks import entry, own_run, rules_of

        from hedge_tasks.leaderboard.board import read_board
        from hedge_tasks.leaderboard.entry import write_entry
        from hedge_tasks.leaderboard.site import build_site

        for i in range(3):
            write_entry(folder / f"{i}.json", entry(i))
        build_site(read_board(folder, folder / "kept", rules=rules_of(own_run())), folder / "site")
        found = sorted((folder / "site").glob(page))
        assert found, f"no page {page} among {sorted((folder / 'site').rglob('*.html'))}"
        return found[0]

    return write


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def review(folder: Path) -> Path:
    from PIL import Image

    from hedge_tasks.judging.review import ReviewItem, write_review

    items = [
        ReviewItem(str(i), {"Question": "What is it?"}, "Is it so?", [Image.new("RGB", (64, 64))]) for i in range(2)
    ]
    write_review(folder / "review.html", "Made records", items)
    return folder / "review.html"


PAGES: dict[str, Callable[[Path], Path]] = {
    "review of made records": review,
    "report of one run": report,
    "report of two runs": report_of_two,
    "claims": claims,
    "leaderboard, front": leaderboard("index.html"),
    "leaderboard, a task": leaderboard("task*.html"),
    "leaderboard, an entry": leaderboard("entr*.html"),
}
"""What writes a page, or pages, into a folder, and returns the one to open."""


@pytest.fixture(scope="module")
def axe() -> str:
    """The code of axe-core, out of the package that brings it."""
    found = importlib.util.find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is in: pip install axe-playwright-python")
    return (Path(found.origin).parent / "axe.min.js").read_text("utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_a_grave_finding(name: str, axe: str, tmp_path: Path, open_page: Any) -> None:
    path = PAGES[name](tmp_path)
    found = []
    for view, (theme, width) in VIEWS.items():
        # The pages run no script but their own: axe goes in from outside.
        page = open_page(path, color_scheme=theme, viewport={"width": width, "height": 900}, bypass_csp=True)
        if name != "claims":
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.wait_for_timeout(50)
        page.evaluate(axe)
        findings = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        found += [line for one in findings if one["impact"] in GRAVE for line in told(one, view)]
        page.context.close()
    assert not found, "\n".join(found)


def told(finding: Any, view: str) -> list[str]:
    what = f"{finding['impact']} {finding['id']} ({view})"
    return [f"{what}: {node['html'][:160]} {node['failureSummary'][:300]}" for node in finding["nodes"][:3]]

"""The leaderboard in a real browser, opened from disk: filters, comparisons, links, themes, a phone, no script."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_runs import board_rules, finished_run, on_board, suite_run

from hedge_tasks.leaderboard import build_site, make_submission, read_entries, read_submission, write_submission

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
playwright = pytest.importorskip(
    "playwright.sync_api", reason="the pages are opened with playwright: pip install playwright"
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here (Debian: apt install chromium)"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    (folder / "in").mkdir()
    for i in range(3):
        judge = {"judge": {"judge": "rule", "version": "1"}}
        run = on_board(finished_run(40, seed=i, model=f"model {i}", documents=judge))
        about = {"weights": ("open", "closed")[i == 2], "parameters": (3.0, 7.0, None)[i]}
        write_submission(folder / "in" / f"s{i}.json", make_submission(run, **about))
    other = on_board(finished_run(40, seed=3, model="model 3", documents={"judge": {"judge": "llm", "version": "1"}}))
    write_submission(folder / "in" / "s3.json", make_submission(other))
    short, f1 = (
        on_board(finished_run(20, seed=9, model="short", documents=judge)),
        on_board(suite_run(40, model="model 0")),
    )
    write_submission(folder / "in" / "short.json", make_submission(short, name="</script><b>x"))
    write_submission(folder / "in" / "f1.json", make_submission(f1))
    rules = board_rules(*(read_submission(folder / "in" / name) for name in ("s0.json", "f1.json")))
    built = read_entries(folder / "in", **rules)
    assert built.refused == {}
    build_site(built, folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Opens a file; at the end of the test there must have been no error, and no request but for files."""
    contexts, complaints = [], []

    def opened(path: Path, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def models(page: Any) -> list[str]:
    """Names of the rows that are shown."""
    rows = page.locator("table.heat tbody tr:visible th > span.foreign")
    names: list[str] = rows.all_inner_texts()
    return names


def test_the_front_page_is_filtered_and_every_value_links_to_its_entry(site: Path, open_page: Any) -> None:
    page = open_page(site / "index.html")
    assert sorted(models(page)) == ["model 0", "model 1", "model 2"]
    page.get_by_label("weights").select_option("open")
    assert sorted(models(page)) == ["model 0", "model 1"]
    page.get_by_label("judge").select_option("medhallu")
    assert models(page) == ["model 0"]
    assert page.locator("form output").inner_text() == "1 of 3 models"
    page.get_by_label("judge").select_option("")
    page.get_by_label("weights").select_option("closed")
    page.get_by_role("link", name="SE", exact=True).first.click()
    assert models(page) == ["model 2"]
    assert "models-" in page.url
    page.get_by_label("recomputed only").check()
    assert models(page) == []
    page.get_by_label("recomputed only").uncheck()
    page.locator("table.heat tbody tr:visible td a").first.click()
    assert page.locator("h1").inner_text() == "model 2"


def test_a_table_is_sorted_and_any_two_entries_are_compared(site: Path, open_page: Any) -> None:
    page = open_page(site / "index.html")
    page.get_by_role("link", name="hedge_x", exact=True).click()
    page.get_by_role("link", name="SE", exact=True).click()
    board = page.locator("table.board").first

    def column(at: int) -> list[str]:
        texts: list[str] = board.locator(f"tbody tr td:nth-child({at})").all_inner_texts()
        return [text.split("\n")[0] for text in texts]

    values = column(3)
    assert values == sorted(values, key=float, reverse=True)
    board.locator("th:nth-child(2) button").click()
    assert column(2) == ["model 0", "model 1", "model 2"]
    by_name = dict(zip(column(2), map(float, column(3)), strict=True))
    first, second = page.get_by_label("first entry"), page.get_by_label("second entry")
    names = {text.split(". ")[1]: text for text in first.locator("option").all_inner_texts()}
    for a, b in (("model 2", "model 1"), ("model 1", "model 2")):
        first.select_option(label=names[a])
        second.select_option(label=names[b])
        cells = page.locator(".compare tbody td").all_inner_texts()
        assert float(cells[0].replace("−", "-")) == pytest.approx(by_name[a] - by_name[b], abs=0.0011)
        assert cells[4] == "40"
    assert page.locator("h2", has_text="Not ranked").count() == 1
    assert "partial: 20 of 40 documents" in page.locator("table.board").nth(1).inner_text()
    other = page.locator("h2", has_text="Another edition")
    assert other.count() == 1
    assert "judge llm, where the edition has rule" in page.locator("table.board").nth(2).inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_numbers_in_shaded_cells_have_contrast(scheme: str, site: Path, open_page: Any) -> None:
    page = open_page(site / "index.html", color_scheme=scheme)
    script = """() => [0, 1, 2, 3, 4, 5].map(i => {
        const cell = document.querySelector('table.heat tbody tr').insertCell();
        cell.className = `s${i}`;
        const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        return ['backgroundColor', 'color'].map(name => {
            canvas.fillStyle = getComputedStyle(cell)[name];
            canvas.fillRect(0, 0, 1, 1);
            return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
        });
    })"""
    found = page.evaluate(script)
    assert len({tuple(ground) for ground, _ in found}) == 6
    for ground, ink in found:
        lighter, darker = sorted((_luminance(ground), _luminance(ink)), reverse=True)
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5  # WCAG 2.1 AA


def _luminance(rgb: list[int]) -> float:
    linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_no_page_scrolls_sideways_on_a_phone(site: Path, open_page: Any) -> None:
    page = open_page(site / "index.html", viewport={"width": 360, "height": 740})
    kinds = {path.name.split("-")[0]: path for path in sorted(site.glob("*.html"), reverse=True)}
    assert set(kinds) == {"index.html", "detectors.html", "detectors", "models", "task", "entry"}
    for path in kinds.values():
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 360, path.name


def test_without_scripts_every_number_can_be_read(site: Path, open_page: Any) -> None:
    page = open_page(site / "index.html", java_script_enabled=False)
    assert page.locator("form.filters").is_hidden()
    assert page.locator("table.heat td a").count() == 4
    page.get_by_role("link", name="RadFlag", exact=True).first.click()
    assert page.locator("table.heat td a").count() == 3
    page.get_by_role("link", name="Detectors", exact=True).click()
    assert page.locator("table.detectors tbody tr").count() > 10
    page.get_by_role("link", name="all answers").first.click()
    assert page.locator("table.detectors tbody tr").count() > 10


def test_a_hostile_name_stays_a_name(site: Path, open_page: Any) -> None:
    page = open_page(site / "index.html")
    assert page.get_by_text("</script><b>x").count() == 1
    assert "x" not in page.locator("b").all_inner_texts()

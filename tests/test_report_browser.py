"""The pages in a real browser: no errors, themes, sorting, filtering, and hostile texts that stay texts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run, hostile_run
from test_report import DEMO

from hedge_tasks.data.splits import load_split
from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.runs.run_files import Run

playwright = pytest.importorskip(
    "playwright.sync_api", reason="the pages are opened with playwright: pip install playwright"
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    runs = [finished_run(60, seed=i, model=f"model {i}") for i in range(2)]
    unlabelled = tuple(a.with_label(None) if i < 5 else a for i, a in enumerate(runs[0].answer_sets))
    path.write_text(
        build_report([replace(runs[0], answer_sets=unlabelled), runs[1]], options=ReportOptions(pictures=False)),
        "utf-8",
    )
    return path


def column(page: Any, table: str, at: int) -> list[str]:
    texts: list[str] = page.locator(f"{table} tbody tr td:nth-child({at})").all_inner_texts()
    return [text.split("\n")[0] for text in texts]


def test_a_table_is_sorted_by_a_click_and_back(report: Path, open_page: Any) -> None:
    page = open_page(report)
    table = "#run-0 table.strata"
    before = column(page, table, 4)
    page.locator(f"{table} th:nth-child(4) button").click()
    assert column(page, table, 4) == sorted(before, key=float, reverse=True)
    page.locator(f"{table} th:nth-child(4) button").click()
    assert column(page, table, 4) == sorted(before, key=float)
    page.locator(f"{table} th:nth-child(1) button").click()
    assert column(page, table, 1) == sorted(column(page, table, 1))


def test_both_themes_are_there_and_remembered_by_a_button(report: Path, open_page: Any) -> None:
    def background(page: Any) -> str:
        colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return colour

    light, dark = open_page(report, color_scheme="light"), open_page(report, color_scheme="dark")
    assert background(light) == "rgb(255, 255, 255)"
    assert background(dark) == "rgb(20, 23, 28)"
    light.get_by_text("Theme: auto").click()
    light.get_by_text("Theme: light").click()
    assert background(light) == "rgb(20, 23, 28)"
    light.reload()
    assert background(light) == "rgb(20, 23, 28)"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast_in_both_themes(theme: str, report: Path, open_page: Any) -> None:
    page = open_page(report, color_scheme=theme)
    names = ["ink", "quiet", "link", "bad", "good", "c0", "c1", "c2"]
    script = r"""names => names.map(name => {
        const probe = document.body.appendChild(document.createElement('i'));
        probe.style.color = `var(--${name})`;
        probe.style.backgroundColor = 'var(--panel)';
        const style = getComputedStyle(probe);
        return [style.color, style.backgroundColor].map(c => c.match(/\d+/g).slice(0, 3).map(Number));
    })"""
    for name, (text, ground) in zip(names, page.evaluate(script, names), strict=True):
        lighter, darker = sorted((_luminance(text), _luminance(ground)), reverse=True)
        least = 3.0 if name.startswith("c") else 4.5  # WCAG 2.1: graphics and text
        assert (lighter + 0.05) / (darker + 0.05) >= least, name


def _luminance(rgb: list[int]) -> float:
    linear = [v / 255 / 12.92 if v <= 10 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_a_phone_shows_the_page_without_sideways_scrolling(report: Path, open_page: Any) -> None:
    page = open_page(report, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_without_scripts_the_numbers_are_there(report: Path, open_page: Any) -> None:
    page = open_page(report, java_script_enabled=False)
    table = page.locator("#run-0 table.metrics")
    assert table.locator("td").first.inner_text() == "SE"
    assert "exact" in table.inner_text()
    assert "model 1" in page.locator("#side-by-side table.heat").inner_text()
    assert "needs JavaScript" in page.locator("#run-0 noscript").inner_text()
    assert page.locator("#run-0 table.without-script tbody tr").count() == 60


def test_hostile_texts_stay_texts(tmp_path: Path, open_page: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text(build_report([hostile_run()], options=ReportOptions(pictures=False, curves=False)), "utf-8")
    page = open_page(path, viewport={"width": 360, "height": 740})
    for _ in range(17):
        page.keyboard.press("j")
        for summary in page.locator(".detail summary").all():
            summary.click()
    assert page.locator(".detail .head").inner_text().startswith("17 ")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.evaluate("[...document.links].every(link => link.getAttribute('href').startsWith('#'))")
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    page.locator(".canvas").focus()
    page.keyboard.press("Home")
    assert "window.hacked = 1</script>" in page.locator(".detail").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    # An override of direction inside an answer leaves the words around it as they are.
    assert page.evaluate("getComputedStyle(document.querySelector('.foreign')).unicodeBidi") == "isolate"


def with_pictures(n: int) -> Run:
    """A run of many questions with the demo's pictures, all of them different questions of one data set."""
    rows = load_split(DEMO, None, "demo-test").select(range(n)).remove_columns("image")
    run = finished_run(n)
    sets = [replace(a, id=r["question_id"], question=r["question"]) for a, r in zip(run.answer_sets, rows, strict=True)]
    columns = {"id": "question_id", "question": "question", "images": ["image"]}
    return replace(run, task="hedge_demo", answer_sets=tuple(sets), settings={**run.settings, "documents": columns})


def test_pictures_are_shown(tmp_path: Path, open_page: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text(build_report([with_pictures(8)], options=ReportOptions(curves=False)), "utf-8")
    page = open_page(path)
    assert page.locator("img.small").count() == 8
    for image in page.locator("img.small").all():
        image.scroll_into_view_if_needed()
        playwright.expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.naturalWidth") > 0


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from test_claim_table import scored_run, scripted

    from hedge_tasks.measures.unit_table import unit_table
    from hedge_tasks.report.claim_page import build_claim_page

    sets = scripted(0, images=6)
    hostile = scored_run(sets)
    judged = tuple(replace(a, label=i % 2) for i, a in enumerate(sets))
    run = Run("</script><script>window.hacked = 1</script>", "script", judged)
    hostile = replace(
        hostile, answers=tuple(replace(one, answers=a) for one, a in zip(hostile.answers, judged, strict=True))
    )
    path = tmp_path_factory.mktemp("claims") / "claims.html"
    path.write_text(build_claim_page(hostile, unit_table(hostile), run), "utf-8")
    return path


def test_a_click_on_a_claim_opens_what_draws_say_and_the_slider_flags(claims: Path, open_page: Any) -> None:
    page = open_page(claims)
    claim = page.locator("a.claim[href]").nth(7)
    draws = page.locator(f"details{claim.get_attribute('href')}")
    assert draws.get_attribute("open") is None
    claim.click()
    assert draws.get_attribute("open") is not None
    assert draws.locator("li").count() == 8
    slider, told = page.locator("#threshold"), page.locator(".threshold output")
    slider.evaluate("slider => { slider.value = '0'; slider.dispatchEvent(new Event('input')); }")
    assert "flags 100.0 %" in told.inner_text()
    assert "recall 1.000" in told.inner_text()
    assert page.locator("a.claim.flagged").count() == 36
    slider.evaluate("slider => { slider.value = slider.max; slider.dispatchEvent(new Event('input')); }")
    assert 0 < page.locator("a.claim.flagged").count() < 36
    assert page.evaluate("window.hacked") is None


def test_answers_of_the_claim_page_are_found_by_words_verdict_and_address(claims: Path, open_page: Any) -> None:
    page = open_page(claims, "#q=3-0")
    shown = page.locator("article.answer:visible")
    assert shown.count() == 6
    assert page.locator("article[data-question='3-0']").evaluate("e => e.getBoundingClientRect().top") < 900
    page.locator(".by-verdict").select_option("hallucinated")
    assert {e.get_attribute("data-verdict") for e in shown.all()} == {"hallucinated"}
    assert shown.count() == 3
    page.locator(".by-verdict").select_option("")
    word = page.locator("article.answer a.claim").first.inner_text().split(".")[0]
    page.locator(".search-answers").fill(f"{word} 0-0")
    assert shown.count() <= 1
    page.locator(".search-answers").fill("")
    page.locator(".by-claim").select_option("missed")
    for answer in shown.all():
        assert answer.locator(".claim.hallucinated:not(.flagged)").count() > 0
    assert page.locator("article.answer h3 a").first.get_attribute("href").startswith("#q=")


def test_claims_are_readable_without_script(claims: Path, open_page: Any) -> None:
    page = open_page(claims, java_script_enabled=False)
    assert not page.locator(".threshold").is_visible()
    assert page.locator("#flag table tbody tr").count() >= 2
    page.locator("details.claims-of-answer > summary").first.click()
    page.locator("details.claim-draws summary").first.click()
    assert page.locator("details.claim-draws li").first.is_visible()

"""Figures that are saved, terms that explain themselves, and models side by side, in a real browser."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run, hostile_run

from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.report.analysis import analyse
from hedge_tasks.report.plots.figures import roc_chart

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
pytestmark = pytest.mark.slow

QUICK = ReportOptions(pictures=False, curves=False)
MODELS = ("/very/long/path/of/some/machine/models/model-zero (hedge_hf)", "org/model-one (hedge_vllm)")
RUNS = [finished_run(60, seed=i, model=model) for i, model in enumerate(MODELS)]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(build_report(RUNS, options=QUICK), "utf-8")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    model = "=1+1</script><img src=x onerror='window.hacked = 1'>"
    runs = [replace(hostile_run(), model=model), replace(hostile_run(), model="other")]
    path.write_text(build_report(runs, options=QUICK), "utf-8")
    return path


def saved(page: Any, figure: str, kind: str) -> tuple[str, bytes]:
    """What a figure is saved as: the name of the file and what is in it."""
    with page.expect_download() as started:
        page.locator(f"{figure} .save button", has_text=kind).first.click()
    return started.value.suggested_filename, Path(started.value.path()).read_bytes()


ROC = "#run-0 figure:has(button[aria-label^='Save ROC curves'])"


def test_a_figure_is_saved_with_its_numbers(several: Path, open_page: Any) -> None:
    page = open_page(several, accept_downloads=True)
    name, content = saved(page, ROC, "CSV")
    assert name == "hedge-x-model-zero_exact_roc.csv"
    [analysis] = analyse(RUNS[:1], curves=False)
    assert content.decode() == roc_chart(analysis.scores["exact"]).to_csv()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_saved_figure_stands_alone_and_is_light(theme: str, several: Path, open_page: Any) -> None:
    page = open_page(several, accept_downloads=True, color_scheme=theme)
    _, content = saved(page, ROC, "SVG")
    text = content.decode()
    root = ET.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert not re.search(r"class=|var\(|currentcolor|light-dark|color\(srgb", text, re.IGNORECASE)
    strokes = {path.get("stroke") for path in root.iter(f"{SVG}path")}
    assert {"rgb(0, 114, 178)", "rgb(213, 94, 0)", "rgb(0, 128, 92)"} <= strokes
    texts = [part.text or "" for part in root.iter(f"{SVG}text")]
    assert texts[0] == "ROC curves"
    assert any(one.startswith("RadFlag (0.") for one in texts)
    assert root.find(f"{SVG}rect").get("fill") == "rgb(255, 255, 255)"  # type: ignore[union-attr]


def test_a_figure_is_saved_as_a_picture(several: Path, open_page: Any) -> None:
    page = open_page(several, accept_downloads=True)
    name, content = saved(page, "#run-0 figure.lead", "PNG")
    assert name.endswith("_detectors.png")
    from PIL import Image

    image = Image.open(io.BytesIO(content)).convert("RGB")
    assert image.width == 3 * 720
    colours = {colour for _, colour in image.getcolors(1 << 20) or []}
    assert {(255, 255, 255), (0, 114, 178)} <= colours


def test_every_figure_has_a_caption_and_can_be_saved(several: Path, open_page: Any) -> None:
    page = open_page(several)
    script = """() => [...document.querySelectorAll('figure')].filter((f) => !f.textContent.includes('Nothing to draw'))
        .map((f) => [f.querySelector('figcaption')?.textContent ?? '', f.querySelectorAll('.save button').length])"""
    found = page.evaluate(script)
    assert len(found) > 10
    # An answer with its samples is no chart: it says whose samples they are and leads to the question.
    charts = [(caption, ways) for caption, ways in found if not caption.startswith("Samples by meaning")]
    assert len(charts) > 10
    assert [(caption, ways) for caption, ways in charts if len(caption.split()) <= 15 or ways != 3] == []


@pytest.mark.parametrize(("width", "columns"), [(1280, 3), (800, 2), (400, 1)])
def test_figures_leave_no_column_empty(width: int, columns: int, several: Path, open_page: Any) -> None:
    page = open_page(several, viewport={"width": width, "height": 800})
    script = """() => [...document.querySelectorAll('.charts')].filter((c) => c.offsetParent).map((c) => {
        const rows = {};
        for (const figure of c.children) {
            const box = figure.getBoundingClientRect();
            (rows[Math.round(box.top)] ??= []).push([box.left, box.right]);
        }
        const outer = c.getBoundingClientRect();
        return Object.values(rows).map((boxes) => [boxes.length,
            Math.min(...boxes.map((b) => b[0])) - outer.left, outer.right - Math.max(...boxes.map((b) => b[1]))]);
    })"""
    rows = [row for chart in page.evaluate(script) for row in chart]
    assert max(count for count, _, _ in rows) == columns
    assert all(abs(left) < 1.5 and abs(right) < 1.5 for _, left, right in rows)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_term_explains_itself_to_mouse_keyboard_and_finger(several: Path, open_page: Any) -> None:
    page = open_page(several)
    term, tip = page.locator("figure.lead a.term", has_text="ROC-AUC").first, page.locator("#tip")
    means = page.locator("#term-roc-auc + dd").inner_text()
    term.scroll_into_view_if_needed()
    term.hover()
    playwright.expect(tip).to_have_text(means)
    page.keyboard.press("Escape")
    playwright.expect(tip).to_be_hidden()
    term.focus()
    playwright.expect(tip).to_be_visible()
    assert term.get_attribute("aria-describedby") == "tip"
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#term-roc-auc"
    touched = open_page(several, has_touch=True, viewport={"width": 390, "height": 800})
    finger = touched.locator("figure.lead a.term", has_text="ROC-AUC").first
    finger.scroll_into_view_if_needed()
    finger.tap()
    playwright.expect(touched.locator("#tip")).to_be_visible()
    assert touched.evaluate("location.hash") == ""
    box = touched.locator("#tip").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    finger.tap()
    assert touched.evaluate("location.hash") == "#term-roc-auc"


def test_every_term_leads_to_its_entry(several: Path, open_page: Any) -> None:
    page = open_page(several, java_script_enabled=False)
    links = page.locator("a.term").all()
    assert len(links) > 30
    targets = {link.get_attribute("href") for link in links}
    for target in targets:
        assert page.locator(f"dt{target}").count() == 1, target
    assert all(link.get_attribute("title") for link in links)


def test_a_head_with_a_term_still_sorts(several: Path, open_page: Any) -> None:
    page = open_page(several)
    head = page.locator("table.heat th", has_text="RadFlag").first
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert page.locator("th button a").count() == 0


def test_a_cell_leads_to_its_run_and_names_stay_short(several: Path, open_page: Any) -> None:
    page = open_page(several)
    heads = page.locator("table.heat tbody th")
    assert heads.all_inner_texts() == ["model-zero", "model-one"]
    assert heads.first.get_attribute("title") == MODELS[0]
    page.locator("table.heat tbody tr").nth(1).locator("a").first.click()
    assert page.evaluate("location.hash") == "#run-1"


def test_of_several_tasks_one_number_is_shown_at_a_time(tmp_path: Path, open_page: Any) -> None:
    path = tmp_path / "report.html"
    runs = [*(finished_run(20, seed=i, model=MODELS[i]) for i in range(2)), finished_run(20, task="hedge_y")]
    path.write_text(build_report(runs, options=QUICK), "utf-8")
    page = open_page(path)
    panels = page.locator("#side-by-side [data-tabs] > [data-name]")
    assert [panel.is_visible() for panel in panels.all()] == [True, False, False, False]
    page.locator("#side-by-side [data-tabs] select").select_option(label="exact, VASE")
    assert [panel.is_visible() for panel in panels.all()] == [False, False, False, True]
    assert panels.nth(3).locator("tbody tr").last.locator("td").first.inner_text() == "no run"
    plain = open_page(path, java_script_enabled=False)
    assert all(panel.is_visible() for panel in plain.locator("#side-by-side [data-tabs] > [data-name]").all())


def expected(a: int, b: int) -> list[str]:
    """Questions whose answers two models have with these labels."""
    first, second = ({s.id: s.label for s in run.answer_sets} for run in RUNS)
    return [id for id in first if first[id] == a and second[id] == b]


def shown(page: Any) -> list[str]:
    texts: list[str] = page.locator("#answers ol > li .asked-of a").all_text_contents()
    return texts


def test_where_one_model_is_right_and_the_other_wrong(several: Path, open_page: Any) -> None:
    page = open_page(several)
    answers = page.locator(".answers")
    assert answers.locator(".count").inner_text() == "60 of 60 questions"
    answers.get_by_text("A right, B wrong").click()
    assert shown(page) == expected(0, 1)
    assert answers.locator(".count").inner_text() == f"{len(expected(0, 1))} of 60 questions"
    answers.get_by_text("A wrong, B right").click()
    assert shown(page) == expected(1, 0)
    answers.locator("select[name=b]").select_option("0")
    assert shown(page) == []
    answers.locator("select[name=a]").select_option("1")
    assert shown(page) == expected(0, 1)


def test_questions_are_searched_and_sorted_by_any_score(several: Path, open_page: Any) -> None:
    page = open_page(several)
    answers = page.locator(".answers")
    answers.locator("select[name=score]").select_option("vase")
    answers.locator("select[name=order]").select_option("high 1")
    [analysis] = analyse(RUNS[1:], curves=False)
    scores = {s.id: s["vase"] or 0.0 for s in analysis.scores["exact"]}
    order = [scores[id] for id in shown(page)]
    assert len(order) >= 30
    assert order == pytest.approx(sorted(scores.values(), reverse=True)[: len(order)], abs=1e-4)
    answers.locator("input[type=search]").fill("question 17?")
    playwright.expect(answers.locator(".count")).to_have_text("1 of 60 questions")


def test_a_link_opens_its_question_and_keys_step_through(several: Path, open_page: Any) -> None:
    ids = [s.id for s in RUNS[0].answer_sets]
    page = open_page(several, f"#q={ids[45]}")
    assert shown(page) == [ids[45]]
    assert page.locator("#answers").bounding_box()["y"] < 100
    page.keyboard.press("j")
    assert shown(page) == [ids[46]]
    assert page.evaluate("location.hash") == f"#q={ids[46]}"
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert shown(page) == [ids[44]]
    page.keyboard.press("/")
    page.keyboard.type("question 3?")
    playwright.expect(page.locator(".answers .count")).to_have_text("1 of 60 questions")
    page.keyboard.press("Escape")
    page.evaluate(f"location.hash = '#q={ids[3]}'")
    playwright.expect(page.locator(".answers .count")).to_contain_text(
        "One question" if ids[3] != shown(page)[0] else "1 of 1"
    )
    links = page.locator("#answers .said a").all()
    assert [link.get_attribute("href") for link in links] == [f"#q={ids[3]}&run=0", f"#q={ids[3]}&run=1"]


def test_hostile_names_and_answers_stay_texts_and_cells(hostile: Path, open_page: Any) -> None:
    page = open_page(hostile, accept_downloads=True, viewport={"width": 400, "height": 800})
    assert page.locator("#answers ol > li").count() == 18
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    take = partial(saved, page, "figure.heatmap")
    name, content = take("CSV")
    assert re.fullmatch(r"[\w-]+\.csv", name)
    rows = list(csv.reader(io.StringIO(content.decode())))
    assert {len(row) for row in rows} == {7}
    assert all(cell[:1] not in ("=", "+", "@", "-") for row in rows for cell in row[:3])
    drawing = ET.fromstring(take("SVG")[1])
    assert not list(drawing.iter(f"{SVG}script"))
    assert not list(drawing.iter(f"{SVG}img"))
    for first in page.locator("#answers .asked-of a").all()[:3]:
        first.click()
        assert page.locator("#answers ol > li").count() == 1
        page.locator(".answers").get_by_role("button", name="All questions").click()


def test_without_script_the_answers_are_there_to_read(several: Path, open_page: Any) -> None:
    page = open_page(several, java_script_enabled=False)
    table = page.locator("#answers noscript table")
    assert table.locator("thead th").all_inner_texts() == ["question", "reference", "model-zero", "model-one"]
    assert table.locator("tbody tr").count() == 40
    assert page.locator("figure.heatmap table").first.is_visible()

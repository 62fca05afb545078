"""The pages in a real browser: no errors, both themes, sorting, the explorer, and hostile texts that stay texts."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import EXACT, HOSTILE, finished_run, hostile_run

from hedge_tasks.clustering.model_outputs import ModelOutputs, ReusesOutputs
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.report.analysis import Analysis, analyse
from hedge_tasks.runs.evidence import pack_outputs
from hedge_tasks.runs.run_files import Run

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
pytestmark = pytest.mark.slow
QUICK = ReportOptions(pictures=False, curves=False)


def two_clusterings(n: int = 60) -> Run:
    """By the same words, and by cosines that are kept with the run, under which a is as good as b."""
    embed = {"backend": "embed", "threshold": 0.95, "with_question": False, "alpha": 0.5}
    run = finished_run(n, filters={**EXACT, "embed": embed})
    backend = Scorer.from_settings("embed", embed).backend
    assert isinstance(backend, ReusesOutputs)
    outputs = ModelOutputs()
    pairs = list(combinations("abcde", 2))
    outputs.table(backend.sources()[0]).add(pairs, np.array([[0.99 if p == ("a", "b") else 0.1] for p in pairs]))
    run = replace(run, evidence=pack_outputs(outputs, run.answer_sets))
    unlabelled = tuple(a.with_label(None) if i < 5 else a for i, a in enumerate(run.answer_sets))
    return replace(run, answer_sets=unlabelled)


RUN = two_clusterings()


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return analyse([RUN])[0]


def written(folder: Any, page: str) -> Path:
    path: Path = folder / "report.html"
    path.write_text(page, "utf-8")
    return path


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("one"), build_report([RUN], options=ReportOptions(pictures=False)))


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [finished_run(50 - 10 * i, seed=i, model=f"m{i}") for i in range(2)]
    return written(tmp_path_factory.mktemp("two"), build_report(runs, options=QUICK))


def opened(page: Any) -> str:
    """Id of the question that is open."""
    return str(page.locator(".detail .head a").first.inner_text())


def test_a_table_is_sorted_by_a_click_and_back(report: Path, open_page: Any) -> None:
    page = open_page(report)

    def column(at: int) -> list[str]:
        return [str(t) for t in page.locator(f".metrics tbody td:nth-child({at})").all_inner_texts()]

    before = column(3)
    page.locator(".metrics th:nth-child(3) button").click()
    assert column(3) == sorted(before, key=lambda text: float(text.split()[0]), reverse=True)
    page.locator(".metrics th:nth-child(3) button").click()
    assert column(3) == sorted(before, key=lambda text: float(text.split()[0]))
    page.locator(".metrics th:nth-child(1) button").click()
    assert column(1) == sorted(column(1), key=str.lower)


def test_both_themes_are_there_and_remembered(report: Path, open_page: Any) -> None:
    grounds = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}
    for theme, ground in grounds.items():
        page = open_page(report, color_scheme=theme)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == ground
    page.get_by_text("Theme: auto").click()
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == grounds["light"]


@pytest.mark.parametrize("which", ["report", "two_runs"])
def test_a_phone_shows_dots_and_numbers_without_sideways_scrolling(
    which: str, request: pytest.FixtureRequest, open_page: Any
) -> None:
    page = open_page(request.getfixturevalue(which), viewport={"width": 390, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    dots = page.locator("#run-0 .forest circle")
    boxes = [dot.bounding_box() for dot in dots.all()]
    assert len(boxes) > 3
    assert all(box["width"] >= 8 and 0 <= box["x"] <= 382 for box in boxes)
    for value in page.locator("#run-0 .forest .values > span").all():
        assert value.bounding_box()["x"] + value.bounding_box()["width"] <= 390


def test_questions_are_filtered_and_searched(report: Path, open_page: Any) -> None:
    page = open_page(report)
    explorer, count = page.locator(".explorer"), page.locator(".explorer .count")
    for name, value, shown in (
        ("label", "unlabelled", 5),
        ("label", "all", 60),
        ("type", "closed", 30),
        ("type", "", 60),
    ):
        explorer.locator(f"select[name={name}]").select_option(value)
        playwright.expect(count).to_have_text(f"{shown} of 60 questions")
    explorer.locator("input[type=search]").fill("question 17?")
    playwright.expect(count).to_have_text("1 of 60 questions")


def test_only_the_rows_that_can_be_seen_are_there_and_all_can_be_reached(report: Path, open_page: Any) -> None:
    page = open_page(report)
    assert page.locator(".canvas .card").count() < 30
    page.locator(".canvas").focus()
    page.keyboard.press("End")
    playwright.expect(page.locator(".canvas .card[aria-selected=true]")).to_have_attribute("aria-posinset", "60")
    assert opened(page) == "q59"
    active = page.locator(".canvas").get_attribute("aria-activedescendant")
    assert "question 59?" in page.locator(f"#{active}").inner_text()
    page.locator(".rows").evaluate("rows => rows.scrollTop = 20 * 76")
    playwright.expect(page.locator(".canvas .card[aria-posinset='21']")).to_be_visible()


def test_keys_step_search_and_leave(report: Path, open_page: Any) -> None:
    page = open_page(report)
    for key in "jjk":
        page.keyboard.press(key)
    assert opened(page) == "q1"
    assert page.evaluate("location.hash") == "#q=q1"
    page.keyboard.press("/")
    page.keyboard.type("jk 3")
    search = page.locator("input[type=search]")
    assert (search.input_value(), opened(page)) == ("jk 3", "q1")
    page.keyboard.press("Escape")
    assert search.input_value() == ""
    playwright.expect(page.locator(".canvas")).to_be_focused()


def test_a_link_opens_its_question_and_the_run_it_is_of(report: Path, two_runs: Path, open_page: Any) -> None:
    page = open_page(report, "#q=q42")
    assert opened(page) == "q42"
    playwright.expect(page.locator(".detail .head")).to_be_in_viewport()
    page.locator("select[name=label]").select_option("hallucinated")
    page.evaluate("location.hash = '#q=q2'")  # unlabelled: the filter would hide it
    playwright.expect(page.locator(".detail .head a")).to_have_text("q2")
    page.evaluate("location.hash = '#q=nobody'")
    playwright.expect(page.locator(".count")).to_contain_text("nobody is not in this file")
    both = open_page(two_runs, "#q=q7&run=1")
    playwright.expect(both.locator("#run-1 .detail")).to_be_visible()
    assert both.locator("#run-1 .detail .head a").get_attribute("href") == "#q=q7&run=1"
    both.keyboard.press("j")  # the run of the link is the one that keys are about
    assert both.locator("#run-1 .detail .head a").inner_text() == "q8"


@pytest.mark.parametrize("clustering", ["exact", "embed"])
def test_clusters_and_formulas_come_out_at_the_scores(
    clustering: str, report: Path, open_page: Any, analysis: Analysis
) -> None:
    page = open_page(report)
    page.locator("select[name=clustering]").select_option(clustering)
    for scores in analysis.scores[clustering][:10]:
        text = page.locator(".detail").inner_text()
        assert f"({clustering}: {len(set(scores.cluster_ids))} cluster" in text
        for name in ("SE", "VASE"):
            terms = re.search(rf"{name} = .*?−\((.*)\) = ([\d.]+) nats", text)
            assert terms
            shares = [float(a) for a, _ in re.findall(r"([\d.]+) ln ([\d.]+)", terms[1])]
            assert sum(shares) == pytest.approx(1, abs=0.0031)
            value = scores[name.lower()] or 0.0
            assert -sum(a * math.log(a) for a in shares if a) == pytest.approx(value, abs=0.01)
            assert float(terms[2]) == pytest.approx(value, abs=5.1e-4)
        share = re.search(r"RadFlag = (\d+) / (\d+)", text)
        assert share
        assert int(share[1]) / int(share[2]) == pytest.approx(scores["radflag"] or 0.0)
        page.keyboard.press("j")


def test_the_same_question_of_two_runs_stands_side_by_side(two_runs: Path, open_page: Any) -> None:
    page = open_page(two_runs)
    box = page.locator(".answers")
    runs = [finished_run(50 - 10 * i, seed=i, model=f"m{i}") for i in range(2)]
    labels = [[a.label for a in run.answer_sets] for run in runs]
    for shown, (a, b) in {"A right, B wrong": (0, 1), "both wrong": (1, 1)}.items():
        box.locator("select[name=Show]").select_option(shown)
        n = sum(pair == (a, b) for pair in zip(*labels, strict=False))
        playwright.expect(box.locator("[role=status]")).to_have_text(f"{n} of 40 questions that several runs answered")
        assert box.locator("li").count() == min(n, 5)
    box.get_by_text("Show more").click()
    assert box.locator("li").count() == min(n, 10)
    box.locator("input").fill("question 3?")
    box.locator("select[name=Show]").select_option("all questions")
    texts = [run.answer_sets[3].baseline.text for run in runs]
    assert box.locator("li .said > div > p.foreign").all_inner_texts() == texts
    box.get_by_text("all its answers").nth(1).click()
    assert page.locator("#run-1 .detail .head a").inner_text() == "q3"


def test_hostile_texts_stay_texts(tmp_path: Path, open_page: Any) -> None:
    run = hostile_run()
    run = replace(run, answer_sets=run.answer_sets[: len(HOSTILE)])
    page = open_page(written(tmp_path, build_report([run], options=QUICK)), viewport={"width": 360, "height": 740})
    assert "window.hacked = 1</script>" in page.locator(".detail").inner_text()
    for _ in HOSTILE:
        page.keyboard.press("j")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0
    assert page.evaluate("[...document.links].every(link => link.getAttribute('href').startsWith('#'))")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    # An override of direction inside an answer leaves the words around it as they are.
    assert page.evaluate("getComputedStyle(document.querySelector('.foreign')).unicodeBidi") == "isolate"


def test_without_scripts_the_numbers_are_there(report: Path, open_page: Any) -> None:
    page = open_page(report, java_script_enabled=False)
    assert page.locator(".metrics td").first.inner_text() == "SE"
    assert "needs JavaScript" in page.locator("noscript").inner_text()


def write_claims(folder: Path, images: int) -> Path:
    """Of a run with a hostile name; every other answer is wrong."""
    from test_claim_table import scored_run, scripted

    from hedge_tasks.measures.unit_table import unit_table
    from hedge_tasks.report.claim_page import build_claim_page

    sets = tuple(a.with_label(i % 2) for i, a in enumerate(scripted(0, images=images)))
    run = Run("</script><script>window.hacked = 1</script>", "script", sets)
    scored = scored_run(sets)
    return written(folder, build_claim_page(scored, unit_table(scored), run))


@pytest.fixture(scope="module")
def claims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_claims(tmp_path_factory.mktemp("claims"), images=25)


def test_claims_show_the_first_twenty_then_more_and_open_what_draws_say(claims: Path, open_page: Any) -> None:
    page = open_page(claims)
    shown = page.locator("article.answer:visible")
    assert shown.count() == 20
    page.get_by_text("Show more").click()
    assert shown.count() == 25
    claim = page.locator("a.claim[href]").nth(7)
    draws = page.locator(f"details{claim.get_attribute('href')}")
    assert draws.get_attribute("open") is None
    claim.click()
    assert draws.get_attribute("open") is not None
    assert draws.locator("li").count() == 8
    page.locator("input[type=search]").fill("3-0")
    assert shown.count() > 0
    assert {e.get_attribute("data-question") for e in shown.all()} <= {f"{i}3-0" for i in ("", 1, 2)}
    assert page.evaluate("window.hacked") is None

"""The explorer of single questions and the panel of risk, in a real browser."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import EXACT, finished_run
from test_report_questions import related_run

from hedge_tasks.clustering.model_outputs import ModelOutputs, ReusesOutputs
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.report import ReportOptions, build_report
from hedge_tasks.report.analysis import analyse
from hedge_tasks.report.risk import rules_of
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
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(build_report([RUN], options=QUICK), "utf-8")
    return path


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(build_report([finished_run(50, seed=i, model=f"m{i}") for i in range(2)], options=QUICK), "utf-8")
    return path


def count(page: Any) -> str:
    said: str = page.locator(".explorer .count").first.inner_text()
    return said


def opened(page: Any) -> str:
    """Id of the question that is open."""
    said: str = page.locator(".detail .head a").first.inner_text()
    return said


def test_questions_are_filtered_sorted_and_searched(report: Path, open_page: Any) -> None:
    page = open_page(report)
    explorer = page.locator(".explorer")
    assert count(page) == "60 of 60 questions"
    explorer.locator("select[name=label]").select_option("unlabelled")
    assert count(page) == "5 of 60 questions"
    assert set(explorer.locator(".canvas .badge").all_inner_texts()) == {"unlabelled"}
    explorer.locator("select[name=label]").select_option("all")
    explorer.locator("select[name=type]").select_option("closed")
    assert count(page) == "30 of 60 questions"
    explorer.locator("select[name=type]").select_option("")
    explorer.locator("input[type=search]").fill("question 17?")
    playwright.expect(explorer.locator(".count")).to_have_text("1 of 60 questions")
    explorer.locator("input[type=search]").fill("no such thing")
    playwright.expect(explorer.locator(".nothing")).to_be_visible()


@pytest.mark.parametrize("score", ["radflag", "lexical"])
def test_every_score_orders_the_list(score: str, report: Path, open_page: Any) -> None:
    page = open_page(report)
    page.locator("select[name=score]").select_option(score)
    page.locator("select[name=order]").select_option("highest score first")
    [analysis] = analyse([RUN], curves=False)
    values = [s[score] or 0.0 for s in analysis.scores["exact"]]
    expected = sorted(range(60), key=lambda i: (-round(values[i], 5), i))
    page.locator(".canvas").focus()
    seen = []
    page.keyboard.press("Home")
    for _ in range(12):
        seen.append(opened(page))
        page.keyboard.press("j")
    assert seen == [f"q{i}" for i in expected[:12]]


def test_only_the_rows_that_can_be_seen_are_there_and_all_can_be_reached(report: Path, open_page: Any) -> None:
    page = open_page(report)
    assert page.locator(".canvas .card").count() < 30
    assert page.locator(".canvas .card").first.get_attribute("aria-setsize") == "60"
    page.locator(".canvas").focus()
    page.keyboard.press("End")
    playwright.expect(page.locator(".canvas .card[aria-selected=true]")).to_have_attribute("aria-posinset", "60")
    assert opened(page) == "q59"
    active = page.locator(".canvas").get_attribute("aria-activedescendant")
    assert "question 59?" in page.locator(f"#{active}").inner_text()
    page.locator(".rows").evaluate("rows => rows.scrollTop = 20 * 76")
    playwright.expect(page.locator(".canvas .card[aria-posinset='21']")).to_be_visible()
    assert page.locator(".canvas .card").count() < 30


def test_keys_step_search_leave_and_tell(report: Path, open_page: Any) -> None:
    page = open_page(report)
    assert opened(page) == "q0"
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert opened(page) == "q1"
    assert page.evaluate("location.hash") == "#q=q1"
    page.keyboard.press("/")
    page.keyboard.type("jk 3")
    search = page.locator("input[type=search]")
    playwright.expect(search).to_be_focused()
    assert search.input_value() == "jk 3"
    assert opened(page) == "q1"
    page.keyboard.press("Escape")
    assert search.input_value() == ""
    playwright.expect(page.locator(".canvas")).to_be_focused()
    page.keyboard.press("?")
    dialog = page.locator("dialog")
    assert "previous question" in dialog.inner_text()
    page.keyboard.press("j")
    assert opened(page) == "q1"
    page.keyboard.press("Escape")
    playwright.expect(dialog).not_to_be_visible()


def test_a_link_opens_its_question(report: Path, two_runs: Path, open_page: Any) -> None:
    page = open_page(report, "#q=q42")
    assert opened(page) == "q42"
    playwright.expect(page.locator(".detail .head")).to_be_in_viewport()
    page.locator("select[name=label]").select_option("hallucinated")
    page.evaluate("location.hash = '#q=q2'")  # unlabelled: the filter would hide it
    playwright.expect(page.locator(".detail .head a")).to_have_text("q2")
    page.evaluate("location.hash = '#q=nobody'")
    playwright.expect(page.locator(".count")).to_contain_text("nobody is not in this file")
    both = open_page(two_runs, "#q=q7&run=1")
    assert both.locator(".detail .head a").all_inner_texts() == ["q0", "q7"]
    assert both.locator("#run-1 .detail .head a").get_attribute("href") == "#q=q7&run=1"
    both.keyboard.press("j")  # the run of the link is the one that keys are about
    assert both.locator(".detail .head a").all_inner_texts() == ["q0", "q8"]


def test_a_question_has_both_kinds_of_answers_under_two_clusterings(report: Path, open_page: Any) -> None:
    page = open_page(report, "#q=q9")
    detail = page.locator(".detail")
    for part in ("reference", "baseline answer", "rule 1", "equal: the same words", "Cluster 0"):
        assert part in detail.inner_text()
    [analysis] = analyse([RUN], curves=False)
    for i, name in enumerate(("exact", "embed")):
        column = detail.locator(".grouping").nth(i)
        n = len(set(next(s for s in analysis.scores[name] if s.id == "q9").cluster_ids))
        assert column.locator("h5").inner_text().startswith(f"{name}: {n} cluster")
        drawn = column.locator(".kind").all_inner_texts()
        times = {
            kind: sum(int(t.split("×")[1]) if "×" in t else 1 for t in drawn if t.startswith(kind))
            for kind in ("baseline", "clean", "noisy")
        }
        assert times == {"baseline": 1, "clean": 6, "noisy": 6}
    page.locator("select[name=beside]").select_option("")
    assert detail.locator(".grouping").count() == 1


@pytest.mark.parametrize("clustering", ["exact", "embed"])
def test_the_formulas_come_out_at_the_scores(clustering: str, report: Path, open_page: Any) -> None:
    page = open_page(report)
    page.locator("select[name=clustering]").select_option(clustering)
    [analysis] = analyse([RUN], curves=False)
    for scores in analysis.scores[clustering][:10]:
        text = page.locator(".detail").inner_text()
        terms = {name: re.search(rf"{name} = .*?−\((.*)\) = ([\d.]+) nats", text) for name in ("SE", "VASE")}
        for name, found in terms.items():
            assert found
            shares = [(float(a), float(b)) for a, b in re.findall(r"([\d.]+) ln ([\d.]+)", found[1])]
            assert all(a == b for a, b in shares)
            assert sum(a for a, _ in shares) == pytest.approx(1, abs=0.0031)
            value = scores[name.lower()] or 0.0
            assert -sum(a * math.log(a) for a, _ in shares if a) == pytest.approx(value, abs=0.01)
            assert float(found[2]) == pytest.approx(value, abs=5.1e-4)
        share = re.search(r"RadFlag = (\d+) / (\d+)", text)
        assert share
        assert int(share[1]) / int(share[2]) == pytest.approx(scores["radflag"] or 0.0)
        said = re.findall(r"^(\d+) × ", text, re.MULTILINE)
        assert sum(map(int, said)) == int(share[1])
        page.keyboard.press("j")


def test_relations_are_shown_when_asked_for(tmp_path: Path, open_page: Any) -> None:
    run, table = related_run()
    path = tmp_path / "report.html"
    path.write_text(build_report([run], options=QUICK), "utf-8")
    page = open_page(path, f"#q={run.answer_sets[0].id}")
    assert page.locator("table.matrix").count() == 0
    page.locator("details.pairs summary", has_text="NLI").click()
    matrix = page.locator("table.matrix")
    texts = list(dict.fromkeys(run.answer_sets[0].texts))
    assert [t.split(" ", 1)[1] for t in matrix.locator("tbody th").all_inner_texts()] == texts
    for i, premise in enumerate(texts):
        for k, hypothesis in enumerate(texts):
            cell = matrix.locator("tbody tr").nth(i).locator("td").nth(k)
            known = table.get((premise, hypothesis))
            if i == k or known is None:
                assert cell.inner_text() in ("", "·")
            else:
                best = max(range(3), key=known.__getitem__)
                assert cell.inner_text() == f"{'CNE'[best]} {round(known[best] * 250) / 250:.2f}"


def test_noisy_pictures_stand_beside_the_clean_one(tmp_path: Path, open_page: Any) -> None:
    from test_report_noisy import demo_run

    path = tmp_path / "report.html"
    run = demo_run(6)
    path.write_text(build_report([run], options=ReportOptions(curves=False, noisy_pictures=1)), "utf-8")
    page = open_page(path)
    page.locator("select[name=seen]").select_option("noisy")
    assert count(page) == "1 of 6 questions"
    page.locator(".canvas").focus()
    page.keyboard.press("Home")
    images = page.locator(".detail figure.seen img")
    assert images.count() == 1 + 6
    assert len({images.nth(i).get_attribute("src") for i in range(7)}) == 7
    assert all(images.nth(i).get_attribute("alt") for i in range(7))
    for image in images.all():
        playwright.expect(image).not_to_have_js_property("naturalWidth", 0)
    captions = page.locator(".detail figcaption.foreign").all_inner_texts()
    shown = next(a for a in run.answer_sets if a.id == opened(page))
    assert captions == [a.text for a in shown.noisy]


def test_the_panel_reads_what_a_risk_accepts(report: Path, open_page: Any) -> None:
    page = open_page(report)
    panel = page.locator(".risk")
    told = panel.locator("output")
    [analysis] = analyse([RUN], curves=False)
    rules = list(rules_of(analysis))
    for i in (0, len(rules) - 1):
        panel.locator("select").select_option(str(i))
        for risk in (0, 5, 12.5, 30, 100):
            panel.locator("input[type=number]").fill(str(risk))
            point = rules[i].at(risk / 100)
            if point is None:
                playwright.expect(told).to_contain_text("nothing would be accepted")
                continue
            playwright.expect(told).to_contain_text(f"{point.n} of {rules[i].n} answers")
            playwright.expect(told).to_contain_text(f"{point.n_wrong} of them hallucinated")
    panel.locator("input[type=range]").fill("7")
    assert panel.locator("input[type=number]").input_value() == "7"
    assert f"hedge calibrate RUN --risk 0.07 --detectors {rules[-1].detector} --clustering embed" in panel.inner_text()
    assert "This is no promise" in panel.inner_text()


def test_what_is_printed_has_the_list_and_the_open_question(report: Path, open_page: Any) -> None:
    page = open_page(report, "#q=q3")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(".paper").count() == 40
    assert page.locator(".paper").first.is_visible()
    assert "20 more questions are not printed" in page.locator(".printed").inner_text()
    assert "question 3?" in page.locator(".detail").inner_text()
    assert not page.locator(".rows").is_visible()


def test_a_phone_and_a_reader_without_script(report: Path, open_page: Any) -> None:
    phone = open_page(report, "#q=q9", viewport={"width": 400, "height": 800})
    assert phone.evaluate("document.documentElement.scrollWidth") == 400
    plain = open_page(report, java_script_enabled=False)
    rows = plain.locator("table.without-script tbody tr")
    assert rows.count() == 60
    assert {"hallucinated", "supported"} <= {t.split(":")[0] for t in rows.locator("td:nth-child(4)").all_inner_texts()}
    plain.locator(".risk summary").click()
    assert plain.locator(".risk table").is_visible()
    assert not plain.locator(".risk .set").is_visible()

"""Captions, numbers and terms of the pages: every figure has them, and nothing in a run gets out of its place."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from typing import Any

import numpy as np
import pytest
from finished_runs import HOSTILE, finished_run, hostile_run
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from hedge_tasks.detectors.registry import get, names
from hedge_tasks.report.analysis import analyse
from hedge_tasks.report.figures import caption_of, numbers_of, thinned
from hedge_tasks.report.glossary import explain, explain_beside, explain_name, used_terms
from hedge_tasks.report.pages import render
from hedge_tasks.report.plots import figures as charts
from hedge_tasks.report.plots.charts import Chart, Series
from hedge_tasks.report.svg import picture

LINK = re.compile(r'<a class="term"[^>]*>([^<]*)</a>')


def run_of_figures(*drawn: Chart) -> dict[str, Any]:
    """A run of the detectors' page that is nothing but its figures."""
    about = {"name": "x", "clustering": "c", "n": 1, "n_positive": 1, "against": "SE", "rows": [], "left_out": []}
    return {
        **about,
        "pictures": [picture(chart) for chart in drawn],
        "finding": None,
        "fusion": None,
        "claims": None,
        "experts": {},
        "blind": (),
        "notes": (),
    }


def rows_of(chart: Chart) -> list[list[str]]:
    return list(csv.reader(io.StringIO(json.loads(numbers_of(chart))["csv"])))


@pytest.mark.slow
def test_every_chart_that_a_report_draws_has_a_caption() -> None:
    [analysis] = analyse([finished_run(60)], sizes=[1, 6])
    drawn = [*charts.all_charts(analysis.scores["exact"]), *analysis.sweeps.values()]
    drawn += [charts.price_chart([("se", 6, analysis.estimates["exact"]["se"])])]
    drawn += [charts.rates_chart([("a", analysis.run)]), charts.categories_chart([("a", analysis.run)])]
    drawn += [charts.detectors_chart(analysis.estimates), charts.ranks_chart([])]
    for chart in drawn:
        assert len(caption_of(chart).split()) > 15, chart.name
    for name in ("threshold", "cost", "relevance", "draws"):
        assert caption_of(Chart(name, "", "", "")), name
    assert caption_of(Chart("unheard of", "", "", "")) == ""


def test_the_numbers_of_a_figure_are_those_that_hedge_plot_writes() -> None:
    [analysis] = analyse([finished_run(60)], curves=False)
    for chart in charts.all_charts(analysis.scores["exact"]):
        assert json.loads(numbers_of(chart))["csv"] == chart.to_csv()


def test_long_curves_are_thinned_with_both_ends_and_points_are_not() -> None:
    x = tuple(np.linspace(0, 1, 5000).tolist())
    curve, points = Series("a", x, x, x, x, kind="curve"), Series("b", x, x, kind="points")
    short = thinned(curve)
    assert len(short.x) == len(short.y) == len(short.low) == len(short.high) == 400
    assert (short.x[0], short.x[-1]) == (0.0, 1.0)
    assert short.y == short.x
    assert thinned(points) is points
    assert len(picture(Chart("roc", "", "", "", (curve,))).series[0].path.split("L")) == 400


def test_a_curve_of_many_points_is_drawn_to_its_end() -> None:
    x = tuple(np.linspace(0, 1, 5000).tolist())
    page = render(
        "detectors.html.j2",
        scripts=[],
        title="t",
        version="1",
        written="",
        budget=None,
        ranks=[],
        rank_chart=None,
        runs=[run_of_figures(Chart("roc", "R", "", "", (Series("a", x, x, kind="curve"),), (0.0, 1.0), (0.0, 1.0)))],
    )
    [path] = re.findall(r'class="curve d0" d="M([^"]*)"', page)
    assert len(path.split("L")) == 400
    assert path.endswith("L406.0 14.0")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_stay_in_their_cells_and_in_the_script(text: str) -> None:
    chart = Chart(
        "rates", text, "", "", (Series(text, (0.5,), (0.0,), kind="points"),), categories=(text,), forest=True
    )
    numbers = numbers_of(chart)
    assert not set(numbers) & set("<>&\u2028\u2029")
    head, row = rows_of(chart)
    assert head == ["series", "category", "x", "y", "low", "high"]
    assert row[2:] == ["0.5", "0.0", "", ""]
    for cell in row[:2]:
        assert cell[0] not in "=+-@\t\r\n"
        assert len(cell) < 260


def test_terms_are_marked_once_and_everything_else_is_escaped() -> None:
    marked = explain("<b>SE</b> & SE, not USE or SE-like; 95 % intervals")
    assert html.unescape(re.sub(r"<a [^>]*>|</a>", "", marked).replace("&lt;", "<")) == (
        "<b>SE</b> & SE, not USE or SE-like; 95 % intervals"
    )
    assert LINK.findall(marked) == ["SE", "95 % intervals"]
    assert 'href="#term-detector-se"' in marked
    assert "<b>" not in marked
    assert explain(Markup("<b>SE</b>")).startswith("<b><a ")


@pytest.mark.slow
@given(st.text())
def test_whatever_a_text_is_only_our_links_are_in_it(text: str) -> None:
    rest = re.sub(r'<a class="term" href="#term-[a-z0-9-]+" title="[^"<>]*">([^<]*)</a>', r"\1", explain(text))
    assert html.unescape(rest) == html.unescape(html.escape(text))
    assert not set(rest) & set("<>")


def test_detectors_explain_themselves_by_their_own_words() -> None:
    for name in names():
        detector = get(name)
        marked = html.unescape(explain_name(detector.label))
        assert marked.startswith('<a class="term"'), name
        first = " ".join(detector.explanation.split("\n\n")[0].split()).partition(";")[0].rstrip(".")
        assert first in marked
    assert explain_name("nobody's") == "nobody&#39;s"


def test_the_measures_of_a_report_are_all_explained() -> None:
    for title in ("ROC-AUC", "hallucination rate ↓", "Cohen's κ", "p-values", "max-T"):
        assert LINK.findall(explain_beside(title)) == ["?"], title
    assert explain_beside("run 1") == "run 1"


def test_the_glossary_has_what_the_page_marks_and_what_that_mentions() -> None:
    page = explain("AURC") + explain_name("SE")
    ids = [term.id for term in used_terms(page)]
    assert {"detector-se", "hallucinated", "judge"} <= set(ids)
    assert "kappa" not in ids
    assert used_terms("no terms <a href='#term-se'>SE</a>") == []


def test_every_link_of_a_page_leads_to_an_entry() -> None:
    chart, price = charts.ranks_chart([]), Chart("price", "p", "", "", (Series("a", (1.0,), (0.5,)),))
    page = render(
        "detectors.html.j2",
        scripts=[],
        title="t",
        version="1",
        written="",
        budget=None,
        ranks=[],
        rank_chart=picture(chart),
        runs=[run_of_figures(price)],
    )
    used = set(re.findall(r'href="#(term-[a-z0-9-]+)"', page))
    assert used
    assert used <= set(re.findall(r'<dt id="(term-[a-z0-9-]+)"', page))


@pytest.mark.slow
def test_a_hostile_runs_charts_are_drawn_as_text() -> None:
    [analysis] = analyse([hostile_run()], curves=False)
    for chart in charts.all_charts(analysis.scores["exact"]):
        assert "<" not in numbers_of(chart)

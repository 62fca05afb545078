"""Figures: what they show, and how they are drawn and written."""

from __future__ import annotations

import csv
import io
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from finished_runs import HOSTILE, finished_run
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from printed import json_of
from sklearn.metrics import roc_curve

from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.detectors.pipeline import SCORE_NAMES, name_of
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.tables import as_csv
from hedge_tasks.measures.sweep import sweep
from hedge_tasks.report.analysis import analyse
from hedge_tasks.report.plots import (
    Chart,
    Series,
    categories_chart,
    detectors_chart,
    draw,
    relevance_chart,
    risk_coverage_chart,
    roc_chart,
    sweep_chart,
    threshold_chart,
)
from hedge_tasks.runs.run_files import save_run
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(80)
SCORES = scorer_of(RUN, None).score(RUN.answer_sets)


def test_the_threshold_chart_is_the_clustering_at_each_threshold() -> None:
    vectors = {
        text: [np.cos(angle), np.sin(angle)] for text, angle in zip("abcde", (0, 0.3, 0.5, 0.9, 1.4), strict=True)
    }
    backend = EmbeddingClustering(encoder=lambda texts: [vectors[text] for text in texts])
    chart = threshold_chart(RUN, Scorer("embed", backend), steps=6)
    for i, threshold in enumerate(chart.series[0].x):
        scorer = Scorer("embed", EmbeddingClustering(encoder=backend.encoder, threshold=threshold))
        scores = scorer.score(RUN.answer_sets)
        for series, name in zip(chart.series, SCORE_NAMES, strict=True):
            assert series.y[i] == pytest.approx(detection_auroc(scores, name).value)
    with pytest.raises(ConfigError, match="threshold"):
        threshold_chart(RUN, scorer_of(RUN, None))


def test_categories_are_shares_of_what_the_judge_told() -> None:
    other = finished_run(40, seed=1)
    assert categories_chart([("one", RUN)]).note == "the judge tells no categories"
    told = {f"q{i}": {"category": "minor" if i % 4 else "grave"} for i in range(40)}
    chart = categories_chart([("one", type(RUN)("t", "m", other.answer_sets, told))])
    assert chart.categories == ("grave", "minor")
    assert chart.series[0].y == (0.25, 0.75)


X, Y = (0.0, 1.0, 2.0), (0.2, 0.3, 0.8)


def drawn(kind: str, n: int, patch: pytest.MonkeyPatch) -> Any:
    """The axes of so many equal series."""
    figures: list[Any] = []
    patch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    bounds: Any = {"kind": kind, "low": (0.1, None, 0.5), "high": (0.4, None, 0.9)}
    series = tuple(Series(f"{kind} {i}", X, Y, **bounds) for i in range(n))
    assert [series[0].bounds(i) for i in range(3)] == [(0.1, 0.4), None, (0.5, 0.9)]
    draw(Chart("n", "t", "across", "up", series, x_range=(-1.0, 3.0)), Path("x.svg"))
    [axes] = figures[0].axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("across", "up")
    assert axes.get_xlim() == pytest.approx((-1.04, 3.04))
    return axes


@pytest.mark.parametrize("n", [1, 3])
def test_drawn_series_have_their_points_and_arms_beside_each_other(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("line", "curve"):
        axes = drawn(kind, n, monkeypatch)
        assert [(d.get_xdata().tolist(), d.get_ydata().tolist()) for d in axes.lines] == [([*X], [*Y])] * n
        assert len(axes.collections) == n * (kind == "line"), "a band each"
    dots = [c.lines[0] for c in drawn("points", n, monkeypatch).containers if isinstance(c, ErrorbarContainer)]
    assert [dot.get_xdata().tolist() for dot in dots] == [[*X]] * n
    offsets = [dot.get_ydata()[0] - Y[0] for dot in dots]
    assert offsets == pytest.approx([0.6 * (i - (n - 1) / 2) / n for i in range(n)])
    bars = drawn("bars", n, monkeypatch).patches
    edges = np.array(sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in bars)).reshape(3, n, 2)
    steps = np.linspace(-0.4, 0.4, n + 1)
    assert edges == pytest.approx(np.array(X)[:, None, None] + np.stack([steps[:-1], steps[1:]], axis=1))
    assert [bar.get_height() for bar in bars] == [*Y] * n


def test_charts_of_detectors_are_their_curves_and_areas_the_best_first() -> None:
    [analysis] = analyse([RUN])
    chart = detectors_chart(analysis.estimates)
    values = {name_of(name): n.value for name, n in analysis.estimates["exact"].items() if n.defined}
    assert [*chart.categories] == sorted(values, key=lambda name: -(values[name] or 0))
    assert chart.series[0].x == tuple(values[name] for name in chart.categories)
    lowest = min(v for v in (*chart.series[0].x, *chart.series[0].low) if v is not None)
    assert chart.x_range == (min(0.4, int(10 * lowest) / 10), 1.0)
    labels, kept = [a.label for a in RUN.answer_sets], risk_coverage_chart(SCORES, ["se"], declined=20).series[0]
    false, true, _ = roc_curve(labels, [s["se"] for s in SCORES], drop_intermediate=False)
    assert (roc_chart(SCORES, ["se"]).series[0].x, roc_chart(SCORES, ["se"]).series[0].y) == (tuple(false), tuple(true))
    assert (kept.x[-1], kept.y[-1]) == (80 / 100, pytest.approx(np.mean(labels)))


def test_figures_of_nothing_say_why_and_each_has_a_name_of_its_own() -> None:
    charts = (detectors_chart({}), roc_chart([]), risk_coverage_chart([]), sweep_chart([]))
    for empty in charts:
        assert empty.empty
        assert empty.note
        assert re.fullmatch(r"[a-z-]+", empty.name), "it is part of a file's name"
    assert len({empty.name for empty in charts}) == 4


def test_relevant_objects_are_counted_by_kind_and_score() -> None:
    chance = random.Random(0)
    objects = [{"kind": chance.choice("ab"), "relevance": chance.choice(([], [1], [2, 1], [3]))} for _ in range(40)]
    chart = relevance_chart(
        replace(RUN, verdicts={"q0": {"objects": objects[:9]}, "q1": {"objects": objects[9:]}, "q2": {}})
    )
    for series in chart.series:
        assert series.y == tuple(
            sum(o["kind"] == series.name and o["relevance"][:1] == [score] for o in objects) for score in (1, 2, 3)
        )
    assert [series.name for series in chart.series] == ["a", "b"]
    assert relevance_chart(RUN).note


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_ending_of_a_name_says_what_is_drawn(ending: str, start: bytes, tmp_path: Path) -> None:
    draw(Chart("x", "", "", "", (Series("one", (0.0, 1.0), (0.2, 0.8)),)), tmp_path / f"x.{ending}")
    assert (tmp_path / f"x.{ending}").read_bytes().startswith(start)


def test_names_from_outside_are_text_in_a_figure(tmp_path: Path) -> None:
    names = [text[:60].replace("\x00", "") for text in (HOSTILE["script"], HOSTILE["link"], "$x^{", "a\\frac")]
    series = Series(names[0], (0.0, 1.0, 2.0, 3.0), (0.1, 0.2, 0.3, 0.4), kind="bars")
    draw(
        Chart("x", names[1], names[2], names[3], (series, series), categories=tuple(names)),
        tmp_path / "x.svg",
    )
    text = (tmp_path / "x.svg").read_text("utf-8")
    assert "<script" not in text
    assert "<img" not in text
    assert "$x^{" in text


def test_a_wrong_ending_or_folder_is_one_clear_error(tmp_path: Path) -> None:
    chart = roc_chart(SCORES)
    with pytest.raises(ConfigError, match=r"\.png, \.svg, \.pdf, \.csv"):
        draw(chart, tmp_path / "x.bmp")
    with pytest.raises(DataError, match="cannot write"):
        draw(chart, tmp_path / "nowhere" / "x.png")


def test_a_series_of_unequal_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="2 values of y for 1 of x"):
        Series("s", (1.0,), (1.0, 2.0))


def test_the_numbers_of_a_figure_are_a_table(tmp_path: Path) -> None:
    chart = detectors_chart(analyse([RUN])[0].estimates)
    draw(chart, tmp_path / "x.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text("utf-8"))))
    assert [row["category"] for row in rows] == list(chart.categories)
    assert float(rows[0]["x"]) == chart.series[0].x[0]
    assert float(rows[0]["low"]) == chart.series[0].low[0]


@given(st.text(max_size=20))
def test_no_cell_is_a_formula(text: str) -> None:
    [[cell, number]] = csv.reader(io.StringIO(as_csv([[text, -1.5]]), newline=""))
    assert not cell.lstrip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
    assert not cell.startswith(("\t", "\r", "\n"))
    assert not set(cell) & set(map(chr, range(9)))
    assert number == "-1.5"


@pytest.mark.slow
def test_a_report_draws_the_figures_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = save_run(RUN, tmp_path)
    out = ["--out", str(tmp_path / "report.html"), "--figures", str(tmp_path / "figures")]
    files = [Path(file) for file in json_of(capsys, ["report", str(run), *out, "--json"])["figures"]]
    assert {file.suffix for file in files} == {".pdf", ".csv"}
    kinds = ("roc", "risk-coverage", "detectors")
    assert all(any(file.stem.endswith(f"-{kind}") for file in files) for kind in kinds)
    assert not any("categories" in file.name for file in files)  # the judge tells none
    assert all(file.read_text("utf-8").startswith("series,") for file in files if file.suffix == ".csv")


def test_the_sweep_chart_has_the_points_of_the_sweep() -> None:
    points = list(sweep(RUN.answer_sets, scorer_of(RUN, None), [1, 3, 6]))
    chart = sweep_chart(points)
    assert chart.series[0].x == (3.0, 6.0)  # every entropy of a single answer is 0
    assert [series.x for series in chart.series[1:]] == [(1.0, 3.0, 6.0)] * 2
    assert chart.series[2].y == tuple(p.estimate.value for p in points if p.score == "vase")
    assert chart.series[2].bounds(0) == points[2].estimate.interval

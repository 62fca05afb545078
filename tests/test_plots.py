"""Figures: what they show, and how they are drawn and written."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from finished_runs import HOSTILE, finished_run
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from printed import json_of

from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.detectors.pipeline import SCORE_NAMES
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.io.tables import as_csv
from hedge_tasks.measures.sweep import sweep
from hedge_tasks.report.plots import (
    Chart,
    Series,
    categories_chart,
    draw,
    roc_chart,
    strata_chart,
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


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_ending_of_a_name_says_what_is_drawn(ending: str, start: bytes, tmp_path: Path) -> None:
    draw(Chart("x", "", "", "", (Series("one", (0.0, 1.0), (0.2, 0.8)),)), tmp_path / f"x.{ending}")
    assert (tmp_path / f"x.{ending}").read_bytes().startswith(start)


def test_a_drawn_series_has_its_points_and_arms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: figures.append(self))
    x, y, bounds = (0.0, 0.5, 1.0), (0.2, 0.3, 0.8), {"low": (0.1, None, 0.5), "high": (0.4, None, 0.9)}
    kinds = [Series(kind, x, y, kind=kind, **bounds) for kind in ("line", "points", "bars")]  # type: ignore[arg-type]
    draw(Chart("n", "t", "across", "up", tuple(kinds)), tmp_path / "x.svg")
    [axes] = figures[0].axes
    line, dots = axes.lines[0], next(c for c in axes.containers if isinstance(c, ErrorbarContainer))
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == (list(x), list(y))
    assert dots.lines[0].get_xdata().tolist() == list(x)
    assert [bar.get_height() for bar in axes.patches[:3]] == list(y)
    assert [kinds[0].bounds(i) for i in range(3)] == [(0.1, 0.4), None, (0.5, 0.9)]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("across", "up")


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
    chart = strata_chart(SCORES)
    draw(chart, tmp_path / "x.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text("utf-8"))))
    assert [row["category"] for row in rows[:4]] == list(chart.categories)
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
    kinds = ("roc", "risk-coverage", "question-types", "detectors")
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

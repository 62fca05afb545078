"""Detectors at equal price, fused, and on one page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from finished_runs import finished_run
from markupsafe import escape

from hedge_tasks.cli import main
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.clock import EVIDENCE
from hedge_tasks.detectors.pipeline import Scores, detection_auroc, name_of
from hedge_tasks.detectors.registry import get
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.measures.detector_table import detector_table, mean_ranks
from hedge_tasks.measures.fusion import RANK_MEAN, fuse
from hedge_tasks.measures.priced_scores import truncated
from hedge_tasks.measures.run_finding import finding_of
from hedge_tasks.measures.sweep import sweep, sweep_draws
from hedge_tasks.numbers import Number
from hedge_tasks.report.detector_page import build_detector_page
from hedge_tasks.report.plots.figures import detectors_chart, price_chart, ranks_chart, sweep_chart
from hedge_tasks.runs.run_files import save_run
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(60)
SCORER = scorer_of(RUN, None)
SHOWN = ("se", "vase", "msp", "lexical", "n_clusters", "radflag")


def test_every_row_has_the_seconds_of_its_evidence_and_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(10**9))
    monkeypatch.setattr("hedge_tasks.detectors.clock.perf_counter", lambda: next(ticks))
    rows = {row.detector: row for row in detector_table(RUN, SCORER, SHOWN).rows}
    # A tick for each block: the clustering once, cosines and relations once, each detector once a question.
    assert {name: row.seconds for name, row in rows.items()} == {
        name: 60 + len(get(name).needs & {*EVIDENCE}) for name in SHOWN
    }
    assert rows["se"].seconds == 61
    assert rows["msp"].seconds == 60


def test_a_sweep_over_draws_gives_everybody_what_it_can_pay() -> None:
    points = {(p.n, p.score): p for p in sweep_draws(RUN.answer_sets, SCORER, (0, 1, 4, 5, 12), ("se", "vase", "msp"))}
    assert {key: p.draws for key, p in points.items()} == {
        (0, "msp"): 0,
        **{(n, "msp"): 0 for n in (1, 4, 5, 12)},
        **{(n, "se"): min(n, 6) for n in (1, 4, 5, 12)},
        **{(n, "vase"): 2 * (n // 2) for n in (4, 5, 12)},
    }
    by_hand = SCORER.score([replace(truncated(a, 2), cluster_ids=None) for a in RUN.answer_sets])
    assert points[4, "vase"].estimate == detection_auroc(by_hand, "vase")
    by_hand = SCORER.score([replace(a, clean=a.clean[:4], noisy=(), cluster_ids=None) for a in RUN.answer_sets])
    assert points[4, "se"].estimate == detection_auroc(by_hand, "se")
    chart = sweep_chart(list(points.values()), by="draws")
    [vase] = (s for s in chart.series if s.name == name_of("vase"))
    assert vase.x == (4.0, 12.0)
    assert "samples per question" in chart.x_label


def test_a_sweep_takes_the_scores_of_all_answers_where_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = SCORER.score(RUN.answer_sets)
    expected = list(sweep(RUN.answer_sets, SCORER, (3, 6), ("se",)))
    sizes: list[int] = []
    score = type(SCORER).score

    def counted(self: Scorer, sets: Sequence[AnswerSet]) -> list[Scores]:
        sizes.append(len(sets[0].clean))
        return score(self, sets)

    monkeypatch.setattr(type(SCORER), "score", counted)
    assert list(sweep(RUN.answer_sets, SCORER, (3, 6), ("se",), whole=whole)) == expected
    assert sizes == [3]


def test_two_detectors_are_compared_at_equal_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(RUN, tmp_path)
    assert main(["compare", str(path), "--metric", "vase", "--against", "se", "--draws", "6", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["comparisons"]
    assert found["metric"] == "vase_auroc (6 draws) - se_auroc (6 draws)"
    rows = {row.detector: row for row in detector_table(RUN, SCORER, ("se", "vase"), budget=6).rows}
    assert found["a"] == rows["vase"].estimate.value
    assert found["b"] == rows["se"].estimate.value
    assert found["difference"]["value"] == pytest.approx(rows["vase"].difference.difference)
    assert main(["compare", str(path), "--metric", "vase", "--against", "se", "--draws", "1"]) == 2
    assert "vase cannot be compared: costs more than 1 draws" in capsys.readouterr().err
    assert main(["compare", str(path), str(path), "--metric", "se", "--draws", "4", "--json"]) == 0
    [found] = json.loads(capsys.readouterr().out)["comparisons"]
    assert found["metric"] == "se_auroc (4 draws)"
    assert found["difference"]["value"] == 0


def scored(values: np.ndarray, labels: np.ndarray, groups: int = 2) -> list[Scores]:
    """Scores of made-up detectors, `groups` questions an image."""
    names = ("se", "radflag", "vase", "msp", "lexical", "length")[: values.shape[1]]
    columns = [dict(zip(names, row, strict=True)) for row in values.tolist()]
    return [
        Scores(f"q{i}", int(y), f"image {i // groups}", None, numbers, "", (0,) * 21, n_clean=10)
        for i, (numbers, y) in enumerate(zip(columns, labels, strict=True))
    ]


@pytest.mark.slow
def test_fusion_of_noise_looks_perfect_in_sample_and_is_worth_nothing() -> None:
    dice = np.random.default_rng(0)
    found = fuse(scored(dice.normal(size=(160, 6)), dice.integers(0, 2, 160)))
    ways = {way.name: way for way in found.ways}
    assert ways["gradient boosting"].in_sample == pytest.approx(1.0)
    low, high = ways["gradient boosting"].estimate.interval or (1.0, 0.0)
    assert low < 0.5 < high
    assert found.draws == 20
    assert found.ways[0].name == RANK_MEAN
    assert ways[RANK_MEAN].in_sample is None


@pytest.mark.slow
def test_fusion_does_not_learn_an_image_by_heart() -> None:
    # Each image has a label and a number of its own: who has seen one question knows the others about it.
    dice = np.random.default_rng(1)
    image = np.repeat(np.arange(30), 6)
    labels = dice.integers(0, 2, 30)[image]
    values = np.stack([dice.normal(size=30)[image], dice.normal(size=30)[image]], axis=1)
    grouped = {way.name: way for way in fuse(scored(values, labels, groups=6)).ways}
    alone = {way.name: way for way in fuse(scored(values, labels, groups=1)).ways}
    assert (alone["gradient boosting"].estimate.value or 0) > 0.95
    assert (grouped["gradient boosting"].estimate.value or 1) < 0.75


@pytest.mark.slow
def test_the_mean_of_ranks_is_by_hand_and_infinite_scores_are_the_highest() -> None:
    values = np.array([[1.0, 5.0], [2.0, np.inf], [3.0, 6.0], [4.0, 8.0]] * 3)
    labels = np.array([0, 1, 0, 1] * 3)
    found = fuse(scored(values, labels, groups=1))
    # Ranks of the four kinds: (1, 1), (2, 4), (3, 2), (4, 3): sums 2, 6, 5, 7.
    assert found.ways[0].estimate.value == 1.0
    assert found.best[1].value == 1.0
    assert found.best[0] == "radflag"


@pytest.mark.parametrize(
    ("values", "labels", "told"),
    [
        (np.ones((8, 2)), [0, 1] * 4, "two detectors"),
        (np.arange(16.0).reshape(8, 2), [0] * 8, "two images"),
        (np.arange(16.0).reshape(8, 2), [1, *[0] * 7], "two images"),
    ],
)
def test_what_cannot_be_fused_says_why(values: np.ndarray, labels: list[int], told: str) -> None:
    with pytest.raises(DataError, match=told):
        fuse(scored(values, np.array(labels)))


def estimate(value: float) -> Number:
    return Number(value, stderr=0.05, n=100, n_positive=50, interval=(value - 0.1, value + 0.1))


def test_the_price_chart_names_what_no_cheaper_detector_reaches() -> None:
    rows = [("msp", 0, 0.7), ("length", 0, 0.6), ("se", 10, 0.8), ("kle", 10, 0.65), ("vase", 20, 0.75)]
    chart = price_chart([(name, draws, estimate(value)) for name, draws, value in rows])
    assert [s.name for s in chart.series] == [name_of("msp"), name_of("se"), "the others"]
    assert set(zip(chart.series[-1].x, chart.series[-1].y, strict=True)) == {(0.0, 0.6), (10.0, 0.65), (20.0, 0.75)}
    assert price_chart([]).empty


def test_many_detectors_are_rows_and_few_are_colours() -> None:
    few = {c: {name: estimate(0.7) for name in SHOWN[:3]} for c in ("nli", "embed")}
    assert detectors_chart(few).categories == ("nli", "embed")
    many = {c: {name: estimate(0.6 + 0.01 * i) for i, name in enumerate((*SHOWN, "kle"))} for c in ("nli", "embed")}
    chart = detectors_chart(many)
    assert chart.categories == tuple(name_of(name) for name in ("kle", *SHOWN[::-1]))
    assert [series.name for series in chart.series] == ["nli", "embed"]


@pytest.mark.slow
def test_the_page_has_every_number_and_nothing_of_a_model_runs_in_it() -> None:
    runs = [replace(finished_run(40, seed=i), model=f"<script>alert({i})</script>") for i in range(3)]
    tables = [detector_table(run, scorer_of(run, None), SHOWN) for run in runs]
    ranks = mean_ranks(tables)
    findings = [finding_of(run) for run in runs]
    page = build_detector_page(tables, ranks, findings=findings, fusions=[fuse(table.scores) for table in tables])
    for finding in findings:
        assert str(escape(finding.text.replace(" %", "\N{NO-BREAK SPACE}%"))) in page
        assert f"Trust: {finding.trust.level}" in page
    assert "<script>alert" not in page
    for rank in ranks:
        assert f"{rank.mean:.2f}" in page
    for table in tables:
        for row in table.rows:
            assert f"{row.estimate.value:.3f}" in page
            assert name_of(row.detector) in page
    assert "cross-fitted by image" in page
    assert len(ranks_chart(ranks).series[0].x) == len(ranks)
    with pytest.raises(DataError, match="no runs"):
        build_detector_page([], [])


@pytest.mark.slow
def test_hedge_detectors_writes_page_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(RUN, tmp_path)
    page, figure = tmp_path / "page.html", tmp_path / "price.csv"
    arguments = ["detectors", "--detectors", ",".join(SHOWN), "--fuse", str(path)]
    assert main([*arguments, "--html", str(page), "--plot", str(figure), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    [of_run] = facts["runs"]
    assert {row["detector"] for row in of_run["detectors"]} == {*SHOWN}
    assert all(row["seconds"] > 0 for row in of_run["detectors"])
    assert [way["name"] for way in of_run["fusion"]["ways"]] == [RANK_MEAN, "logistic regression", "gradient boosting"]
    assert facts["against"] == "se"
    assert "Fused" in page.read_text("utf-8")
    assert figure.read_text("utf-8").startswith("series,")
    assert main([*arguments, str(path), "--plot", str(figure)]) == 2
    assert "--html shows all" in capsys.readouterr().err
    assert main([*arguments, "--plot", str(tmp_path / "x.bmp")]) == 2
    assert "a figure's name must end with" in capsys.readouterr().err
    with pytest.raises(ConfigError):
        list(sweep_draws(RUN.answer_sets, SCORER, (-1,)))


@pytest.mark.slow
def test_hedge_sweep_by_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save_run(RUN, tmp_path)
    figure = tmp_path / "figure.svg"
    assert main(["sweep", str(path), "--by", "draws", "--n", "2,6", "--plot", str(figure), "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert {(p["n"], p["score"]): p["draws"] for p in points} == {
        (2, "se"): 2,
        (2, "radflag"): 2,
        (2, "vase"): 2,
        (6, "se"): 6,
        (6, "radflag"): 6,
        (6, "vase"): 6,
    }
    assert figure.exists()
    assert main(["sweep", str(path), "--by", "draws", "--n", "1"]) == 0
    assert "at most" in capsys.readouterr().out


@pytest.mark.slow
def test_an_arena_ranks_over_its_runs_and_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, task in ((1, "hedge_one"), (2, "hedge_other")):
        save_run(finished_run(60, seed=seed, task=task), tmp_path / "arena")
    mine = save_run(finished_run(60, seed=3, task="hedge_mine"), tmp_path / "mine")
    command = ["detectors", "--arena", str(tmp_path / "arena"), "--detectors", "se,radflag", "--json"]
    assert main([*command, str(mine)]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sorted(run["task"] for run in facts["runs"]) == ["hedge_mine", "hedge_one", "hedge_other"]
    assert len(facts["ranks"]["rows"] if isinstance(facts["ranks"], dict) else facts["ranks"]) == 2
    assert main(command) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2

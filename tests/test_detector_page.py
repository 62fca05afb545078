"""Detectors at equal price, and on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from finished_runs import finished_run
from markupsafe import escape

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores, name_of
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.errors import DataError
from hedge_tasks.measures.detector_table import detector_table, mean_ranks
from hedge_tasks.measures.headline import headline
from hedge_tasks.measures.priced_scores import truncated
from hedge_tasks.measures.sweep import sweep, sweep_draws
from hedge_tasks.numbers import Number
from hedge_tasks.report.detector_page import build_detector_page
from hedge_tasks.report.plots.figures import detectors_chart, price_chart, ranks_chart, sweep_chart
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(60)
SCORER = scorer_of(RUN, None)
SHOWN = ("se", "vase", "msp", "lexical", "n_clusters", "radflag")


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
    findings = [headline(run) for run in runs]
    page = build_detector_page(tables, ranks, findings=findings)
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
    assert len(ranks_chart(ranks).series[0].x) == len(ranks)
    with pytest.raises(DataError, match="no runs"):
        build_detector_page([], [])

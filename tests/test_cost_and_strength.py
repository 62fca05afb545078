"""What stages cost, runs of several strengths of the perturbation, and two clusterings of one question side by side."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from finished_runs import EXACT, finished_run

from hedge_tasks.cli import main
from hedge_tasks.cli.sweep import parse_strengths
from hedge_tasks.clustering import EmbeddingClustering, NliClustering
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.errors import ConfigError
from hedge_tasks.measures.cost import measured
from hedge_tasks.measures.run_variants import by_strength, strength_of
from hedge_tasks.measures.sweep import _without_memory, prices
from hedge_tasks.runs.run_files import Run, save_run
from hedge_tasks.sampling.plan import SamplingPlan


@pytest.fixture
def hedge(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    def call(*arguments: object) -> Any:
        assert main([*map(str, arguments), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def at(strength: float, seed: int = 0, **changes: Any) -> Run:
    sampling = {**SamplingPlan(strength=strength).settings(), **changes}
    run = finished_run(40, sampling=sampling)
    return replace(run, answer_sets=finished_run(40, seed=seed).answer_sets, created=f"2026-01-01T00:00:0{seed}")


# --- strengths --------------------------------------------------------------------------------------------------------


def test_runs_that_differ_in_the_strength_alone_belong_together() -> None:
    run, newer, half = at(1), at(1, seed=2), at(0.5, seed=1)
    others = [at(2, seed=1, seed_of="x"), at(2, temperature=0.7), replace(at(2), model="another")]
    assert strength_of(half) == 0.5
    assert by_strength(run, [newer, run, half, *others]) == {1.0: newer, 0.5: half}


def test_strengths_are_compared_and_missing_ones_planned(
    tmp_path: Path, hedge: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    for one in (at(1), at(2, seed=1)):
        save_run(one, tmp_path / "hedge_runs")
    facts = hedge("sweep", tmp_path, "--strength", "0,1,2")
    assert (facts["base"], facts["missing"]) == (1.0, [0.0])
    rows = {(row["strength"], row["score"]): row for row in facts["rows"]}
    assert set(rows) == {(s, name) for s in (1.0, 2.0) for name in ("se", "radflag", "vase")}
    two = rows[2.0, "vase"]
    assert two["difference"]["value"] == pytest.approx(two["auroc"]["value"] - rows[1.0, "vase"]["auroc"]["value"])
    labels = [each.label for each in at(1).answer_sets]
    assert (two["difference"]["n"], two["difference"]["n_positive"]) == (len(labels), labels.count(1))
    assert "difference" not in rows[1.0, "vase"]
    assert main(["sweep", str(tmp_path), "--strength", "0,1"]) == 0
    assert f"--gen_kwargs strength=0 --output_path {tmp_path}" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "1,x", "-1", "nan", "1,,2"])
def test_a_strength_is_a_number(text: str) -> None:
    with pytest.raises(ConfigError, match="--strength"):
        parse_strengths(text)


# --- cost -------------------------------------------------------------------------------------------------------------


def test_a_stage_is_measured() -> None:
    with measured() as cost:
        sum(range(2_000_000))
    assert 0 < cost.cpu_seconds <= cost.seconds * 1.5 + 0.05
    assert cost.peak_mb > 20
    assert set(cost.to_dict()) >= {"seconds", "cpu_seconds", "peak_mb"}


def test_a_price_is_that_of_clustering_from_nothing() -> None:
    asked: list[int] = []

    def encoder(texts: list[str]) -> list[list[float]]:
        asked.append(len(texts))
        return [[float(sum(map(ord, text))), 1.0] for text in texts]

    run = finished_run(5)
    scorer = Scorer("embed", EmbeddingClustering(encoder=encoder))
    scorer.score(run.answer_sets)
    once = sum(asked)
    asked.clear()
    found = list(prices(run.answer_sets, {"embed": scorer}, [6, 6]))
    assert [price.n for price in found] == [6, 6]
    assert sum(asked) > 2 * once, "nothing is taken from an earlier clustering"
    nli = Scorer("nli", NliClustering(classifier=lambda pairs: []))
    assert _without_memory(nli).backend.cache is False  # type: ignore[attr-defined]


@pytest.mark.slow
def test_costs_over_n_as_table_figure_and_numbers(tmp_path: Path, hedge: Callable[..., Any]) -> None:
    stages = {"labels": {"seconds": 1.5, "peak_mb": 100}, "answers": {"seconds": 9}}
    save_run(finished_run(10, cost=stages), tmp_path)
    out, figure = tmp_path / "cost.csv", tmp_path / "cost.svg"
    facts = hedge("sweep", tmp_path, "--cost", "--n", "1,3,6", "--out", out, "--plot", figure)
    assert [(price["n"], price["clustering"]) for price in facts["prices"]] == [(n, "exact") for n in (1, 3, 6)]
    assert facts["stages"] == stages
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["n"] for row in rows] == ["1", "3", "6"]
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert figure.stat().st_size > 1000


# --- two clusterings of one question ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_clusterings_stand_side_by_side(
    tmp_path: Path, hedge: Callable[..., Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    filters = {**EXACT, "embed": Scorer.build("embed", "embed", {"threshold": 0.5}).settings()}
    run = finished_run(3, filters=filters, task="hedge_demo")
    save_run(run, tmp_path)
    name = run.answer_sets[0].id
    facts = hedge("show", tmp_path, "--id", name, "--clustering", "exact", "--against", "embed")
    assert (facts["clustering"]["backend"], facts["against"]["clustering"]["backend"]) == ("exact", "embed")
    assert len(facts["cluster_ids"]) == len(facts["against"]["cluster_ids"]) == 13
    words = ["show", str(tmp_path), "--id", name, "--clustering", "exact", "--against"]
    assert main([*words, "embed"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["exact", "embed"])
    rows = [line.split() for line in lines[head + 1 : head + 14]]
    assert [int(row[0]) for row in rows] == sorted(facts["cluster_ids"])
    assert sorted(int(row[1]) for row in rows) == sorted(facts["against"]["cluster_ids"])
    assert main([*words, "exact"]) == 2
    assert "beside itself" in capsys.readouterr().err

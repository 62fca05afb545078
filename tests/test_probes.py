"""What is fitted has not seen what it scores."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from printed import json_of

from hedge_tasks.data.answers import Answer, AnswerSet
from hedge_tasks.data.inside import HEADS, PLACES
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.probes.base import FittedDetector, settled
from hedge_tasks.detectors.probes.builtin import mahalanobis
from hedge_tasks.detectors.probes.crossfit import INFLATION, cross_fitted
from hedge_tasks.detectors.probes.folds import cross_fitting_folds
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.detectors.units import compare_columns
from hedge_tasks.errors import DataError
from hedge_tasks.measures.fitted import ProbeData, best_split
from hedge_tasks.statistics import auroc

# --- fitting --------------------------------------------------------------------------------------------------------


def test_no_document_is_scored_by_what_has_seen_its_image() -> None:
    seen: list[set[int]] = []

    def fit(states: Any, targets: Any, groups: Any) -> Any:
        seen.append(set(groups.tolist()))
        return {"of": states[:, 0, 0]}

    def score(arrays: Any, states: Any) -> Any:
        scored = set(states[:, 0, 0].tolist())
        assert not scored & set(arrays["of"].tolist())
        return states[:, 0, 0]

    groups = [f"image {i // 3}" for i in range(60)]
    states = np.repeat(np.arange(20.0), 3)[:, None, None]
    labels = np.arange(60) % 2
    detector = FittedDetector("n", "n", "last", fit=fit, score=score)
    found = cross_fitted(detector, states, labels, labels, groups, repeats=3)
    assert len(seen) == 15
    assert all(len(of) == 16 for of in seen)
    assert ((found > 0) & (found < 1)).all()


@pytest.mark.slow
def test_labels_that_follow_from_the_states_are_found_and_useless_states_are_worth_nothing() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(120, 2, 16))
    groups = [str(i // 2) for i in range(120)]
    labels = (states[:, 1, 3] + 0.3 * rng.normal(size=120) > 0).astype(int)
    for name in ("linear_probe", "relative_mahalanobis"):
        one = fitted_detectors()[name]
        # A distance from the supported tells classes of different place, not of a linear order.
        moved = states + 2.0 * labels[:, None, None] if name == "relative_mahalanobis" else states
        good = cross_fitted(one, moved, labels, labels, groups, repeats=1)
        assert auroc(good.tolist(), labels.tolist()) > 0.85
    areas = []
    for seed in range(20):
        labels = np.random.default_rng(seed).integers(0, 2, 120)
        areas.append(
            auroc(cross_fitted(fitted_detectors()["linear_probe"], states, labels, labels, groups, repeats=1), labels)
        )
    assert abs(np.mean(areas) - 0.5) < 3 * np.std(areas) / np.sqrt(20)


def test_scores_of_folds_are_put_together_by_their_mean_rank() -> None:
    rng = np.random.default_rng(0)
    labels, groups, states = np.arange(40) % 2, [str(i // 2) for i in range(40)], rng.normal(size=(40, 1, 1))
    detector = FittedDetector("n", "n", "last", fit=lambda *_: {}, score=lambda arrays, x: x[:, 0, 0])
    ranks = np.empty((3, 40))
    for r in range(3):
        for _, test in cross_fitting_folds(labels, groups, 7 * 3 + r):
            ranks[r, test] = [(states[test, 0, 0] < x).mean() + 0.5 / len(test) for x in states[test, 0, 0]]
    found = cross_fitted(detector, states, labels, labels, groups, repeats=3, seed=7)
    assert found == pytest.approx(ranks.mean(axis=0), abs=1e-9)
    values = rng.normal(size=9)
    assert settled(values) == pytest.approx((values - values.min()) / np.ptp(values), abs=1e-9)
    assert settled(np.ones(3)).tolist() == [0, 0, 0]
    assert settled(np.array([])).tolist() == []
    for n, width in ((8, 9), (40, 4), (300, 70)):
        arrays = mahalanobis.fit(rng.normal(size=(n, 1, width)), np.zeros(n, dtype=int), np.arange(n))
        assert arrays["axes"].shape[1] == min(64, width, n // 4)
    for scale, kept in ((1e-5, 2), (1e-7, 1)):  # of the variance 1e-12 is nothing
        flat = rng.normal(size=(40, 1, 2)) * [1, scale]
        assert mahalanobis.fit(flat, np.zeros(40, dtype=int), np.arange(40))["axes"].shape[1] == kept


def test_a_relative_distance_is_what_its_formula_says() -> None:
    rng = np.random.default_rng(2)
    states = rng.normal(size=(80, 1, 5)) @ rng.normal(size=(5, 5))
    labels = rng.integers(0, 2, 80)
    arrays = mahalanobis.fit(states, labels, np.arange(80))
    x = (states[:, -1] - states[:, -1].mean(0)) @ arrays["axes"]
    np.testing.assert_allclose(arrays["axes"].T @ arrays["axes"], np.eye(5), atol=1e-12)
    from sklearn.covariance import LedoitWolf

    def squared(of: Any) -> Any:
        covariance = LedoitWolf().fit(of).covariance_
        return np.array([(v - of.mean(0)) @ np.linalg.solve(covariance, v - of.mean(0)) for v in x])

    np.testing.assert_allclose(mahalanobis.score(arrays, states), squared(x[labels == 0]) - squared(x), rtol=1e-8)


def test_distances_are_those_of_lm_polygraph() -> None:
    """It takes roots, and covariances as they are; the formula is the same."""
    golden = json.loads((Path(__file__).parent / "golden" / "inside.json").read_text("utf-8"))
    draws = [np.array(question["states"]) for question in golden["questions"]]
    width = draws[0].shape[1]
    arrays = {"center": np.zeros(width), "axes": np.eye(width)}
    for name, of in {"supported": np.concatenate(draws[::2]), "all": np.concatenate(draws)}.items():
        arrays |= {f"mean_{name}": of.mean(axis=0), f"precision_{name}": np.linalg.inv(np.cov(of.T))}
    states = np.array([of[:1] for of in draws])
    alone = mahalanobis.score_alone(arrays, states)
    background = alone - mahalanobis.score(arrays, states)
    np.testing.assert_allclose(np.sqrt(alone), golden["values"]["mahalanobis"], rtol=1e-5)
    np.testing.assert_allclose(
        np.sqrt(alone) - np.sqrt(background), golden["values"]["relative_mahalanobis"], atol=1e-5
    )


def test_the_best_split_has_the_least_squares_within() -> None:
    values = np.random.default_rng(3).exponential(size=40).round(2)

    def within(cut: float) -> float:
        return sum(((of - of.mean()) ** 2).sum() for of in (values[values <= cut], values[values > cut]) if len(of))

    assert within(best_split(values)) == min(within(cut) for cut in values[values < values.max()])
    with pytest.raises(DataError, match="same semantic entropy"):
        best_split(np.ones(4))


def data(n: int = 80, width: int = 6, *, shift: float = 2.0) -> ProbeData:
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, n)
    states = rng.normal(size=(n, 3, len(PLACES), width)).astype(np.float16)
    states[:, 2, :, 0] += shift * labels[:, None]
    sets = [
        AnswerSet(str(i), Answer("yes", -0.1, 1), (Answer("no"),), question=f"q {i}", label=int(y), group=str(i // 2))
        for i, y in enumerate(labels)
    ]
    scores = [Scores(a.id, a.label, a.group, None, {"se": float(rng.random())}, "uniform", (0, 1)) for a in sets]
    heads = rng.random((n, 2, 3, len(HEADS))).astype(np.float32)
    heads[..., HEADS.index("lookback")] += labels[:, None, None]
    arrays = zip(sets, states, heads, strict=True)
    return ProbeData.of(scores, {a.id: {"states": s, "heads": h} for a, s, h in arrays if a.id != "7"})


def test_the_error_of_fitting_is_in_the_interval_and_in_the_comparison() -> None:
    one = data(shift=0.0)
    assert (one.missing, len(one.labels)) == (1, 79)
    probe = fitted_detectors()["relative_mahalanobis"]
    assert one.columns([probe]) == ({}, {probe.name: "1 of 80 answers have no such score"})
    column = replace(one, missing=0).columns([probe])[0][probe.name]
    plain = replace(column, inflation=1.0)
    bare = plain.auroc().stderr or 0.0
    assert column.auroc().stderr == pytest.approx(bare * INFLATION**0.5)
    other = replace(plain, values=np.random.default_rng(0).random(len(plain.values)))
    wide, narrow = compare_columns(column, other), compare_columns(plain, other)
    assert wide is not None
    assert narrow is not None
    assert wide.stderr == pytest.approx(math.hypot(narrow.stderr or 0, bare * (INFLATION - 1) ** 0.5))


@pytest.mark.slow
@pytest.mark.framework
def test_an_evaluation_keeps_states_and_the_command_fits_on_them(tmp_path: Path, capsys: Any) -> None:
    from evaluation import evaluate

    more = ["--gen_kwargs", "inside=all,n=4,n_noisy=1", "--limit", "64"]
    # A run is shown under another name than the one that the model has among keys where it has arguments.
    model = ("--model", "hedge_tiny", "--model_args", "dtype=float32")
    run = evaluate(tmp_path / "a", *model, "--tasks", "hedge_demo", *more)
    capsys.readouterr()
    told = json_of(capsys, ["detectors", str(run.output), "--probes", "--json"])[0]
    assert {row["detector"] for row in told["detectors"]} >= {"question_probe (fitted)", "se", "blind_text (blind)"}
    told = json_of(capsys, ["detectors", str(run.output), "--json", "--detectors", "se,rauq,inside,lookback_lens"])[0]
    rows = {row["detector"]: row for row in told["detectors"]}
    assert rows["lookback_lens (fitted)"]["labels"] == round(64 * 0.8)
    assert {name: row["passes"] for name, row in rows.items()} == {
        **{"se": None, "rauq": 1, "inside": 4, "lookback_lens (fitted)": 1}
    }

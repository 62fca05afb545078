"""Numbers of finished runs by plain formulas, what is missing, and thresholds at their borders."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from at_border import at_border
from finished_runs import finished_run, suite_run
from sklearn.metrics import roc_auc_score
from sklearn.metrics import roc_curve as sklearn_roc_curve
from test_claim_table import scored_run, scripted

from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.data.inside import HEADS, PLACES
from hedge_tasks.detectors import names
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.thresholds.choice import ThresholdChoice
from hedge_tasks.detectors.units import Labelled, Unit, UnitsOfAnswer, compare_columns, detection_auroc, labelled
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.judging.designed import ExpertAudit, ExpertLabels
from hedge_tasks.measures import headline as headlines
from hedge_tasks.measures.audit_plan import make_plan, write_plan
from hedge_tasks.measures.audited import (
    AuditedDifference,
    audited_differences,
    audited_numbers,
    auroc_by_experts,
    differences_table,
    judge_table,
    rate_by,
)
from hedge_tasks.measures.blind import BLIND_TEXT, CLAIM_TEXT, LENGTH, beats, lengths, text_scores, turned_to_best
from hedge_tasks.measures.claim_finding import claim_finding
from hedge_tasks.measures.comparisons import Overlap, check_same_documents, compare_two_runs, compare_two_scores
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.measures.curves import roc_curve, within_strata
from hedge_tasks.measures.detector_table import DetectorNumbers, detector_rows, detector_table, facts_of
from hedge_tasks.measures.fitted import ProbeData, best_split
from hedge_tasks.measures.forced_options import forced_measures, option_shares
from hedge_tasks.measures.headline import Lead, headline
from hedge_tasks.measures.measure import Mean, Rate, by_name
from hedge_tasks.measures.run_measures import compare_documents, documents_of
from hedge_tasks.measures.seed_spread import draws_shares
from hedge_tasks.measures.standard_measures import (
    BLIND,
    HALLUCINATION_RATE,
    DetectorAuroc,
    UnitAuroc,
    detector_auroc,
    known_measures,
    looks_at_samples,
    of_question_type,
    unit_auroc,
)
from hedge_tasks.measures.sweep import sweep, sweep_draws, sweep_table, usual_sizes
from hedge_tasks.measures.threshold_report import threshold_table
from hedge_tasks.measures.trust_state import pooled_less_within, trust_of
from hedge_tasks.measures.unit_numbers import flagged, is_blind, top_unit, units_by_answer, with_text
from hedge_tasks.measures.unit_table import FLAGGED, KeptNumbers, has_labels, kept_numbers, unit_table
from hedge_tasks.numbers import Number
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics import Comparison, max_t
from hedge_tasks.statistics.base import two_sided_p
from hedge_tasks.statistics.placements import degrees_of_freedom

RUN = finished_run(40)
SCORER = scorer_of(RUN, None)
SCORES = SCORER.score(RUN.answer_sets)
SUITE = suite_run(40)


def difference(value: float | None = 0.1, p: float | None = 0.01) -> Comparison:
    interval = None if value is None else (value - 0.1, value + 0.1)
    return Comparison(0.7, 0.6, value, 0.05, interval, p, 100, "test")


def column(values: Sequence[float], labels: Sequence[int], **more: Any) -> Labelled:
    ids = tuple(map(str, range(len(values))))
    return Labelled(np.array(values, dtype=float), np.array(labels), more.get("groups"), more.get("strata"), ids)


# --- experts ----------------------------------------------------------------------------------------------------------


def audit_of(verdicts: Sequence[str | None], **fields: Any) -> ExpertAudit:
    """Of the first answers of a run."""
    said = {a.id: word for a, word in zip(RUN.answer_sets, verdicts, strict=False) if word is not None}
    return ExpertAudit(dict.fromkeys((a.id for a in RUN.answer_sets), 0), said, **fields)


def test_a_plan_is_a_table_of_what_people_judge(tmp_path: Path) -> None:
    sets = tuple(
        replace(a, question="x" * (20_000 + i), baseline=replace(a.baseline, text=f"answer {a.id}"))
        for i, a in enumerate(RUN.answer_sets[:2])
    )
    run = replace(RUN, answer_sets=sets)
    plan = make_plan(run, n=2)
    assert (plan, sorted(plan.codes)) == (make_plan(run, n=2, seed=0), ["a1", "a2"])
    page, table = (file.read_text() for file in write_plan(plan, run, tmp_path, {})[1:])
    rows = {plan.codes[row["code"]]: row for row in csv.DictReader(table.splitlines())}
    for a, question in zip(sets, ["x" * 20_000, "x" * 20_000 + " [... 1 characters more]"], strict=True):
        shown = (question, a.baseline.text, a.reference, "")
        assert tuple(rows[a.id][name] for name in ("question", "answer", "reference", "label")) == shown
    assert all(f'"code": "{code}"' in page or f'"{code}"' in page for code in plan.codes)
    bare = write_plan(plan, run, tmp_path / "bare", {}, reference=False)[2].read_text()
    assert sets[0].reference not in [row["reference"] for row in csv.DictReader(bare.splitlines())]


def test_experts_agree_with_the_judge_by_what_it_says() -> None:
    words = ["hallucinated" if a.label else "supported" for a in RUN.answer_sets[:20]]
    words[0] = "supported" if words[0] == "hallucinated" else "hallucinated"
    run = replace(RUN, verdicts={a.id: {"basis": "json"} for a in RUN.answer_sets[1:]})
    table = judge_table(run, audit_of(words))
    rows: dict[Any, Any] = {row["part"]: row for row in table.rows}
    first = "hallucinated" if RUN.answer_sets[0].label else "supported"
    n = sum(a.label == RUN.answer_sets[0].label for a in RUN.answer_sets[:20])
    assert (rows[first]["labels"], rows[first]["agree"].value) == (n, pytest.approx((n - 1) / n))
    assert (rows["read from: json"]["labels"], rows["read from: json"]["agree"].value) == (19, 1.0)


def test_differences_by_experts_are_of_what_they_labelled() -> None:
    words = ["hallucinated" if a.label else "supported" for a in RUN.answer_sets]
    [both] = audited_differences(SCORES, ["se", "radflag"], "se", audit_of(words))
    assert (
        both.judge.difference
        == both.experts.difference
        == pytest.approx((detection_auroc(SCORES, "radflag").value or 0) - (detection_auroc(SCORES, "se").value or 0))
    )
    assert audited_differences(SCORES, ["se", "radflag"], "se", audit_of(["no answer"] * 40)) == []
    two = [AuditedDifference("x", difference(0.1), difference(0.2, 0.5)), both]
    table = differences_table(two)
    assert [row["judge"].value for row in table.rows] == [0.1, both.judge.difference]  # type: ignore[union-attr]
    assert [row["experts_p"] for row in table.rows] == max_t([d.experts for d in two])
    nothing = audited_numbers(replace(SUITE, columns={}), [], [], ExpertAudit(dict.fromkeys(SUITE.verdicts, 0), {}))
    assert [n.experts.defined for n in nothing if n.name == "f1"] == [False]


def test_a_rate_counts_all_documents_where_every_stratum_has_a_label() -> None:
    records = [{"value": i % 2, "group": None} for i in range(10)]

    def rate(verdicts: dict[int, str]) -> Any:
        strata = np.array([0] * 8 + [1] * 2)
        return HALLUCINATION_RATE.estimate(records, None, ExpertLabels(strata, tuple(map(verdicts.get, range(10)))))

    both = {0: "hallucinated", 1: "supported", 8: "hallucinated", 9: "hallucinated"}
    assert rate(both).value == pytest.approx(0.8 * 0.5 + 0.2)
    assert rate({0: "hallucinated", 1: "supported", 2: "supported"}).value == pytest.approx(1 / 3)
    assert rate({**both, 2: "no answer"}).value == pytest.approx(3 / 4)

    class Own(DetectorAuroc):
        def cases(self, record: Any) -> Any:
            return super().cases(record)

    records = [detector_auroc("se").record(s, {}, {}) for s in SCORES]
    labels = audit_of(["hallucinated" if a.label else "supported" for a in RUN.answer_sets]).on([s.id for s in SCORES])
    number = detector_auroc("se").estimate(records, None, labels)
    assert number.value == detection_auroc(SCORES, "se").value
    assert not Own(name="se_auroc", detector="se").estimate(records, None, labels).defined
    assert not MEASURES["unlabelled_rate"].estimate([{"value": 0}] * 40, None, labels).defined
    assert (
        not detector_auroc("se", within=True)
        .estimate([{**r, "question_type": "a"} for r in records], None, labels)
        .defined
    )


# --- blind baselines --------------------------------------------------------------------------------------------------


def test_a_blind_baseline_is_turned_below_one_half() -> None:
    def turned(value: float | None) -> bool:
        either: Any = SimpleNamespace(auroc=lambda: Number(value), turned=True)
        return turned_to_best(either) is True

    at_border(turned, 0.5, "100")
    assert not turned(None)
    at_border(lambda p: beats(difference(0.1, p), p), 0.05, "100")
    at_border(lambda gain: beats(difference(gain), 0.01), 0.0, "001")
    assert not beats(difference(None), 0.01)
    assert not beats(None, 0.01)
    assert not beats(difference(), None)
    pairs = zip(RUN.answer_sets, (7, 4), strict=False)
    sets = [replace(a, baseline=replace(a.baseline, text="a b c", n_tokens=n)) for a, n in pairs]
    assert lengths(sets) == [7.0, 4.0]
    assert lengths([sets[0], replace(sets[1], baseline=replace(sets[1].baseline, n_tokens=0))]) == [3.0, 3.0]
    texts, labels = [f"word{i % 3} and{i}" for i in range(30)], np.array([int(i % 3 == 1) for i in range(30)])
    groups = list(map(str, range(30)))
    assert text_scores(texts, labels, groups) == text_scores(texts, labels, groups, seed=0)
    assert text_scores(texts, labels, groups) != text_scores(texts, labels, groups, seed=1)
    with pytest.raises(DataError, match="no classifier"):
        text_scores(["?"] * 30, labels, groups)
    units = [Unit(str(i), int(y), None, str(i), text=t) for i, (t, y) in enumerate(zip(texts, labels, strict=True))]
    assert with_text(units) == with_text(units, 0) != with_text(units, 1)
    assert (is_blind(LENGTH), is_blind("claim_radflag"), is_blind("claim_linear_probe")) == (True, False, False)


def test_the_finding_about_claims() -> None:
    def of(low: float | None = 0.6, rival: Comparison | None = None, p: float | None = 0.01, missing: int = 0) -> str:
        best: Any = DetectorNumbers("x", "X", 1, Number(0.7, interval=low and (low, 0.9)), Any, rival, p)  # type: ignore[arg-type]
        blind: Any = DetectorNumbers("text", "words", 0, Number(0.55), Any, blind=True)  # type: ignore[arg-type]
        table: Any = SimpleNamespace(
            counted=SimpleNamespace(n_positive=30),
            n_labelled=100,
            scored=SimpleNamespace(labelled_by="people"),
            coverage=Coverage(labelled=100, undecided=missing),
            rows=(best, blind) if low else (blind,),
            against=("text" if rival else None, None),
        )
        return claim_finding(table)

    at_border(lambda low: "better than chance for certain" in of(low), 0.5, "110")
    assert "No detector" in of(None)
    assert "It beats the best blind baseline (words, 55 %)" in of(rival=difference())
    assert "It does not beat" in of(rival=difference(p=0.2), p=0.2)
    assert "With the 20 others it is 25 to 42 %." in of(missing=20)
    assert "others" not in of(missing=5)


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_two_runs_are_compared_on_what_they_have_in_common() -> None:
    first, second = (replace(RUN, answer_sets=RUN.answer_sets[at]) for at in (slice(0, 30), slice(10, 35)))
    assert check_same_documents(first, second) == Overlap(both=20, only_a=10, only_b=5)
    with pytest.raises(DataError, match="no document in common"):
        check_same_documents(first, replace(RUN, answer_sets=RUN.answer_sets[30:]))
    renamed = tuple(replace(a, question="another?") for a in RUN.answer_sets)
    with pytest.raises(DataError, match="not runs on the same questions"):
        check_same_documents(first, replace(RUN, answer_sets=renamed))
    areas = [detection_auroc(SCORES, name).value or 0.0 for name in ("se", "n_clusters")]
    found = compare_two_scores(SCORES, "se", SCORES, "n_clusters")
    assert found is not None
    assert found.difference == pytest.approx(areas[0] - areas[1])
    sides = [documents_of(RUN, HALLUCINATION_RATE)] * 2
    audit = audit_of(["supported"] * 10 + ["hallucinated"] * 5)
    methods = [compare_two_runs(HALLUCINATION_RATE, sides, pair) for pair in ([audit, audit], [audit, None])]
    assert [c is not None and "experts" in c.method for c in methods] == [True, False]


def test_rates_are_compared_also_without_images_and_none_is_no_pair() -> None:
    a, b = ([{"value": v} for v in values] for values in ((1, 0, 1, None), (0, 0, None, 1)))
    found = Rate(name="r").compare(a, b, [None] * 4)
    assert found is not None
    assert (found.a, found.b, found.n) == (0.5, 0.0, 2)
    assert Mean(name="m").compare([], [], []) is None
    halves = Mean(name="m").compare([{"value": v} for v in (0.5, 1.0)], [{"value": 0.25}] * 2, ["x", "y"])
    assert halves is not None
    assert (halves.a, halves.b, halves.difference) == (0.75, 0.25, 0.5)
    se = detector_auroc("se")
    records = [se.record(s, {}, {}) for s in SCORES]
    assert se.compare([{**r, "label": None} for r in records], records, [None] * 40) is None
    with pytest.raises(ConfigError, match="cannot be compared by se_auroc_within"):
        detector_auroc("se", within=True).compare(records, records, [None] * 40)
    with pytest.raises(ConfigError, match="two measures have the name 'm'"):
        by_name([Mean(name="m"), Mean(name="m")])


def test_a_measures_own_fault_is_the_runs() -> None:
    class Faulty(Mean):
        def record(self, *about: Any) -> Any:
            raise ValueError("x" * 101)

    with pytest.raises(DataError, match=r"\(ValueError: x{100}\)$"):
        documents_of(RUN, Faulty(name="m"))

    class Read(Mean):
        def record(self, scores: Any, verdict: Any, document: Any) -> Any:
            return {"value": len(document["reference"])}

    bare = replace(RUN, answer_sets=tuple(replace(a, reference=None) for a in RUN.answer_sets))
    assert Read(name="m").estimate([d.record for d in documents_of(bare, Read(name="m"))]).value == 0.0
    a = documents_of(RUN, HALLUCINATION_RATE)
    assert compare_documents(HALLUCINATION_RATE, a, [d for d in a if d.record["value"]]).n == sum(  # type: ignore[union-attr]
        d.record["value"] for d in a
    )


# --- curves -----------------------------------------------------------------------------------------------------------


def test_a_roc_curve_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    data = column(rng.integers(0, 6, 50).tolist(), rng.integers(0, 2, 50).tolist())
    false, true, _ = sklearn_roc_curve(data.labels, data.values, drop_intermediate=False)
    found = roc_curve(data)
    np.testing.assert_allclose(found[0], false)
    np.testing.assert_allclose(found[1], true)
    with pytest.raises(ValueError, match="hallucinated and supported"):
        roc_curve(column([1, 2], [1, 1]))
    inside = within_strata(SCORES, "se")
    assert inside is not None
    assert inside.value == labelled(SCORES, "se").within().value
    assert rate_by(RUN).value == pytest.approx(np.mean([a.label for a in RUN.answer_sets]))


def test_many_missing_labels_are_more_than_five_per_cent() -> None:
    at_border(lambda n: Coverage(labelled=100 - int(n), undecided=int(n)).partial, 5, "001")
    assert not Coverage(labelled=199, failed=1).partial


# --- detectors --------------------------------------------------------------------------------------------------------


def noisy_columns() -> dict[str, Labelled]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 60)
    strata = tuple(f"s{i % 6}" for i in range(60))
    noise = {"se": 0.5, "radflag": 2.0, LENGTH: 1.5, BLIND_TEXT: 3.0}
    return {
        name: column((labels + scale * rng.normal(size=60)).tolist(), labels.tolist(), strata=strata)
        for name, scale in noise.items()
    }


def test_rows_are_compared_with_the_best_blind_baseline_over_all_and_within() -> None:
    columns = noisy_columns()
    columns[LENGTH] = columns[LENGTH].turned
    columns["msp"] = column([1.0] * 3, [1] * 3)
    facts = {name: facts_of(name, "answer", data, 5, 5) for name, data in columns.items()}
    _, rows, left_out, rivals = detector_rows(columns, facts, {}, flag=0.2)
    by = {row.detector: row for row in rows}
    assert rivals == (LENGTH, LENGTH)
    assert [row.detector for row in rows] == ["se", "radflag", LENGTH, BLIND_TEXT]
    assert list(left_out) == ["msp"]
    assert (by[LENGTH].reversed, by["se"].reversed, by[LENGTH].difference) == (True, False, None)
    turned = columns[LENGTH].turned
    assert by["se"].difference == compare_columns(columns["se"], turned)
    assert by["se"].difference_within == compare_columns(columns["se"], turned, within=True)
    both = max_t([by[name].difference for name in ("se", "radflag")])
    assert [by["se"].p_adjusted, by["radflag"].p_adjusted] == both
    assert by["se"].flagged == flagged(columns["se"], 0.2)
    assert (by[LENGTH].passes, by[LENGTH].labels, by[LENGTH].blind) == (0, 0, True)


def test_detectors_that_nothing_was_kept_for_are_left_out() -> None:
    probe = fitted_detectors("answer")["linear_probe"]
    table = detector_table(RUN, SCORER, ("se", "n_clusters"), fitted=[probe])
    assert "nothing that fitted detectors look at" in table.left_out[probe.name]
    assert {row.detector: row.difference is None for row in table.rows if not row.blind} == {
        "se": True,
        "n_clusters": False,
    }
    audit, any_evidence = audit_of(["hallucinated", "supported"] * 20), SimpleNamespace()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hedge_tasks.measures.detector_table.audit_of", lambda run: audit)
        kept: Any = replace(RUN, evidence=any_evidence)  # type: ignore[arg-type]
        [row] = detector_table(kept, SCORER, ("se",), only_kept=True, blind=False).rows
    by_experts = auroc_by_experts(SCORES, "se", audit)
    assert (row.estimate.value, row.estimate.interval) == (by_experts.value, by_experts.interval)
    assert not row.within.defined
    poor = detector_table(RUN, SCORER, ("se",), budget=0, fitted=[probe])
    assert (poor.rows, list(poor.left_out)) == ((), ["se"])
    with pytest.raises(DataError, match="there are no answers"):
        detector_table(replace(RUN, answer_sets=()), SCORER, ("se",))
    for check in (sweep, sweep_draws):
        with pytest.raises(DataError, match="there are no answers"):
            list(check([], SCORER, (1,)))
        with pytest.raises(DataError, match="baseline answers alone"):
            list(check([replace(a, clean=()) for a in RUN.answer_sets], SCORER, (1,)))


def test_a_sweep_has_the_usual_sizes() -> None:
    assert [usual_sizes(most) for most in (0, 1, 5, 12, 15, 16, 21)] == [
        [],
        [1],
        [1, 2, 3, 5],
        [1, 2, 3, 5, 10, 12],
        [1, 2, 3, 5, 10, 15],
        [1, 2, 3, 5, 10, 15, 16],
        [1, 2, 3, 5, 10, 15, 20, 21],
    ]
    points = list(sweep(RUN.answer_sets, SCORER, (2,), ("se", "vase")))
    assert [(row["score"], row["draws"]) for row in sweep_table(points, "n").rows] == [("se", 2), ("vase", 4)]


def test_thresholds_are_chosen_for_embeddings_with_labels() -> None:
    with pytest.raises(ConfigError, match="only the clustering 'embed'"):
        threshold_table(RUN.answer_sets, SCORER, ThresholdChoice())
    scorer = Scorer("embed", EmbeddingClustering(encoder=lambda texts: np.array([[len(t), 1.0] for t in texts])))
    with pytest.raises(ConfigError, match="no threshold can be chosen"):
        threshold_table([a.with_label(None) for a in RUN.answer_sets], scorer, ThresholdChoice())
    sets = [replace(a, baseline=replace(a.baseline, text="b" * (1 + i % 5))) for i, a in enumerate(RUN.answer_sets)]
    table = threshold_table(sets, scorer, ThresholdChoice(per_class=1))
    assert all(row["lowest"] <= row["highest"] for row in table.rows)  # type: ignore[operator]


# --- fitted detectors -------------------------------------------------------------------------------------------------


def states(ids: Sequence[str], width: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        id: {"states": rng.normal(size=(2, len(PLACES), width)), "heads": rng.random((2, 3, len(HEADS)))} for id in ids
    }


def test_what_nothing_can_be_fitted_to_is_refused() -> None:
    ids = [s.id for s in SCORES]
    with pytest.raises(DataError, match="no answer has a label"):
        ProbeData.of([replace(s, label=None) for s in SCORES], states(ids))
    with pytest.raises(DataError, match=r"inside=states\+heads|inside=\w+"):
        ProbeData.of(SCORES, {})
    with pytest.raises(DataError, match="states of different shapes"):
        ProbeData.of(SCORES, {**states(ids[1:]), **states(ids[:1], width=4)})


@pytest.fixture
def kept() -> ProbeData:
    """Two answers have no arrays, and one has a part of them."""
    ids = [s.id for s in SCORES]
    inside = states(ids[2:])
    del inside[ids[5]]["heads"]
    return ProbeData.of(SCORES, inside)


def test_what_was_not_kept_is_refused(kept: ProbeData) -> None:
    ids = [s.id for s in SCORES]
    assert ([unit.id for unit in kept.units], kept.missing) == ([id for id in ids[2:] if id != ids[5]], 3)
    probe = fitted_detectors("answer")["mahalanobis"]
    entropy = next(p for p in fitted_detectors("answer").values() if p.target == "entropy")
    with pytest.raises(DataError, match="keeps no states"):
        replace(kept, arrays={}).at(probe)
    holed = kept.arrays["states"].copy()
    holed[3] = np.nan
    with pytest.raises(DataError, match="some documents have no states"):
        replace(kept, arrays={"states": holed}).at(probe)
    with pytest.raises(DataError, match="no semantic entropy"):
        replace(kept, units=tuple(replace(u, numbers={}) for u in kept.units)).targets(entropy)


def test_targets_are_labels_or_high_entropies(kept: ProbeData) -> None:
    probe = fitted_detectors("answer")["mahalanobis"]
    entropy = next(p for p in fitted_detectors("answer").values() if p.target == "entropy")
    entropies = np.array([unit.numbers["se"] for unit in kept.units], dtype=float)
    assert kept.targets(entropy).tolist() == [int(value > best_split(entropies)) for value in entropies]
    assert best_split(entropies) in entropies
    assert best_split(np.array([0.0, 1.0])) == 0.0
    assert kept.targets(probe).tolist() == [unit.label for unit in kept.units]
    assert kept.scores(probe).tolist() == kept.scores(probe, seed=0).tolist() != kept.scores(probe, seed=1).tolist()
    _, left_out = kept.columns([probe])
    assert left_out == {probe.name: "3 of 40 answers have no such score"}
    columns, left_out = replace(kept, missing=0).columns([probe])
    assert (list(columns), left_out) == ([probe.name], {})


# --- offered options --------------------------------------------------------------------------------------------------


def test_numbers_of_a_distribution_over_two_orders() -> None:
    assert option_shares({}) is option_shares({"A": -1.0}) is option_shares({"A": -math.inf, "B": -math.inf}) is None
    assert option_shares({"A": math.log(0.3), "B": math.log(0.1)}) == pytest.approx({"A": 0.75, "B": 0.25})
    given, back = {"A": 0.5, "B": 0.3, "C": 0.2, "D": 0.0}, {"A": 0.3, "B": 0.5, "C": 0.2, "D": 0.0}

    def of(right: str | None = "A", label: int | None = 0, category: str = "c", reversed_order: Any = back) -> Any:
        logs = [{k: math.log(v) if v else -math.inf for k, v in x.items()} for x in (given, reversed_order)]
        document = {"offered": logs[0], "offered_reversed": logs[1], "right_option": right}
        verdict = {"label": label, "category": category}
        return {m.name: m.record(SCORES[0], verdict, document)["value"] for m in forced_measures()}  # type: ignore[attr-defined]

    shares = [0.4, 0.4, 0.2, 0.0]
    assert of() == pytest.approx(
        {
            "forced_accuracy": 0.5,
            "forced_gap": 0.5 - 1,
            "forced_differs_rate": 1.0,
            "option_brier": 0.6**2 + 0.4**2 + 0.2**2,
            "option_overconfidence": 0.4 - 0.5,
            "option_entropy_mean": -sum(p * math.log(p) for p in shares if p),
            "option_order_gap": (0.2 + 0.2) / 2,
        }
    )
    assert of(label=1, category="B")["forced_gap"] == 0.5
    assert of(label=1, category="B")["forced_differs_rate"] == 0.0
    for without in ("forced_accuracy", "forced_gap", "option_brier", "option_overconfidence"):
        assert of(right=None)[without] is of(right="X")[without] is None
    assert of(label=None)["forced_gap"] is of(category="none")["forced_differs_rate"] is None
    alone = of(reversed_order={"A": 0.5, "X": 0.5})
    assert (alone["forced_accuracy"], alone["option_order_gap"]) == (1.0, None)


# --- rows of the table ------------------------------------------------------------------------------------------------


MEASURES = known_measures()


def value(name: str, label: int | None, **verdict: Any) -> Any:
    return MEASURES[name].record(replace(SCORES[0], label=label), verdict, {})["value"]


def test_outcomes_are_shares_of_what_is_decided() -> None:
    shares = [f"{name}_share" for name in ("supported", "hallucinated", "declined")]
    answers = ((0, "yes"), (1, "no"), (None, "no_answer"), (None, None))
    found = [[value(name, label, category=category) for name in shares] for label, category in answers]
    assert found == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [None] * 3]
    labels = {name: [MEASURES[name].label_of({"value": v}) for v in (1, 0, None)] for name in shares}  # type: ignore[attr-defined]
    assert list(labels.values()) == [[0, 1, None], [1, 0, None], [None, 0, None]]


def test_what_rows_count_and_look_at() -> None:
    assert [value("unlabelled_rate", label) for label in (None, 0)] == [1, 0]
    assert [value("read_by_model_rate", 0, basis=b) for b in ("model", "json")] == [1, 0]
    both = SCORES[0], replace(SCORES[0], held_out=True)
    assert [MEASURES["auroc_documents"].record(s, {}, {})["value"] for s in both] == [1, 0]
    for name, samples in {"se_auroc": True, "msp_auroc": False, "hallucination_rate": False}.items():
        assert looks_at_samples(MEASURES[name]) is samples
    assert looks_at_samples(unit_auroc(BLIND))
    open_only = of_question_type(detector_auroc("se"), "open")
    records = [open_only.record(s, {}, {}) for s in SCORES]
    of_kind = [s for s in SCORES if s.parent == "open"]
    assert open_only.estimate(records).value == detection_auroc(of_kind, "se").value
    assert "no document is of the kind" in str(of_question_type(HALLUCINATION_RATE, "x").estimate(records).reason)


def claim_records(of: Any, unlabelled: str = "", infinite: bool = False) -> list[Any]:
    rng, found = np.random.default_rng(2), []
    for i in range(20):
        scores = [math.inf if infinite and k else k + rng.random() * 2 for k in range(3)]
        units = [Unit("", k % 2, str(i), str(i), {"claim_radflag": x}) for k, x in enumerate(scores)]
        parts = UnitsOfAnswer(() if unlabelled else tuple(units), {}, unlabelled)
        found.append(of.record(Scores(str(i), None, parts=parts), {}, {}))
    return found


def test_rows_of_claims() -> None:
    measure, within = unit_auroc("claim_radflag"), unit_auroc("claim_radflag", within=True)
    assert sum(isinstance(m, UnitAuroc) for m in MEASURES.values()) == 2 * (len(names("claim")) + 1)
    facts = claim_records(measure)
    units = [unit for record in facts for unit in measure.cases(record)]
    values = [unit.numbers["claim_radflag"] for unit in units]
    assert measure.estimate(facts).value == pytest.approx(roc_auc_score([unit.label for unit in units], values))
    assert isinstance(facts[0]["units"][0]["claim_radflag"], float)
    assert claim_records(measure, infinite=True)[0]["units"][1]["claim_radflag"] == "inf"
    wins = [values[i + 1] > values[k] for i in range(0, 60, 3) for k in (i, i + 2)]
    assert within.estimate(facts).value == pytest.approx(np.mean(wins))
    with pytest.raises(ConfigError, match="cannot be compared by radflag_claim_auroc"):
        measure.compare(facts, facts, [None] * 20)


def test_rows_of_claims_without_a_number_say_why() -> None:
    measure, within = unit_auroc("claim_radflag"), unit_auroc("claim_radflag", within=True)
    facts = claim_records(measure)
    blind, inside = unit_auroc(BLIND), unit_auroc(BLIND, within=True)
    lone = [UnitsOfAnswer((Unit("", i % 2, str(i), str(i), {CLAIM_TEXT: float(i % 3)}),)) for i in range(20)]
    alone = [blind.record(Scores(str(i), None, parts=parts), {}, {}) for i, parts in enumerate(lone)]
    area = float(roc_auc_score([i % 2 for i in range(20)], [i % 3 for i in range(20)]))
    assert blind.estimate(alone).value == pytest.approx(max(area, 1 - area))
    assert not inside.estimate(alone).defined
    assert measure.estimate(claim_records(measure, "nobody was asked")).reason == "nobody was asked"
    assert measure.estimate([]).reason == "no claim has a label"
    none = [{**r, "units": [{**u, "label": 1} for u in r["units"]]} for r in facts]
    assert "answer" in str(within.estimate(none).reason)
    assert "stratum" not in str(within.estimate(none).reason)


def test_nothing_is_flagged_or_on_top_of_one_class() -> None:
    assert FLAGGED == 0.2
    data = column([5, 4, 3, 2, 1], [0, 1, 0, 1, 0])
    at_border(lambda share: getattr(flagged(data, share), "share", 0) == 0.4, 0.2, "001")
    assert flagged(column([1, 2], [0, 0]), 0.5) is None
    assert top_unit(column([1, 2], [0, 1])) is None


def test_claims_without_labels_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    scored = scored_run(scripted(0, images=12, n=2, k=4), elsewhere=False)
    bare = replace(scored, answers=tuple(replace(a, labels=(None,) * 4) for a in scored.answers))
    for why, told in (("", "no claim has a label"), ("nobody was asked", "nobody was asked")):
        units = units_by_answer(bare, silent="unlabelled", errors="all", text=True, why_unlabelled=why)
        assert {u.unlabelled for u in units.values()} == {told}
        assert not any(CLAIM_TEXT in u.left_out or u.units for u in units.values())
    by_answer = units_by_answer(scored, silent="unlabelled", errors="all")
    assert [len(u.units) for u in by_answer.values()] == [4] * 12
    assert unit_table(scored).columns[CLAIM_TEXT].values.tolist() == pytest.approx(
        unit_table(scored, seed=0).columns[CLAIM_TEXT].values.tolist()
    )
    monkeypatch.setattr("hedge_tasks.measures.unit_table.score_kept_claims", lambda run: bare)
    assert kept_numbers(RUN) == KeptNumbers(bare, None, "no claim is labelled")


# --- the headline -----------------------------------------------------------------------------------------------------


def leads(free: float | None, best: float = 0.99, draws: float = 6.0) -> list[Lead]:
    low = None if free is None else (free, 0.9)
    noise = [replace(s, numbers={"se": (i * 7) % 11, "msp": (i * 5) % 13}) for i, s in enumerate(SCORES)]
    return [
        Lead("msp", "", Number(0.7, interval=low), 0.0, None, noise),
        Lead("se", "exact", Number(best, interval=(0.6, 1.0)), draws, None, noise),
    ]


def test_what_is_free_leads_unless_sampling_adds_or_it_may_be_chance() -> None:
    chosen = headlines._chosen
    at_border(lambda low: chosen(leads(low), None)["lead"].detector == "msp", 0.5, "001")
    assert chosen(leads(None), None)["lead"].detector == "se"
    assert chosen(leads(0.6, best=0.7), None)["free"].detector == "msp"
    fields = chosen(leads(0.6), None)
    assert (fields["n_family"], fields["adds"], fields["sampling"].detector) == (1, False, "se")
    assert fields["gain"] is not None
    assert chosen(leads(0.6)[1:], None) == {
        "lead": leads(0.6)[1], "free": None, "sampling": leads(0.6)[1], "adds": False, "gain": None, "n_family": 0,
    }  # fmt: skip
    assert chosen(leads(0.6), audit_of(["no answer"] * 40))["gain"] is None


def test_a_headline_in_json() -> None:
    audit = audit_of(["hallucinated" if a.label else "supported" for a in RUN.answer_sets])
    sets = tuple(a.with_label(None if i % 2 else a.label) for i, a in enumerate(RUN.answer_sets))
    half = replace(RUN, answer_sets=sets, verdicts={})
    found = headline(half)
    facts = found.to_dict()
    assert found.rate is not None
    assert json.loads(json.dumps(facts))["lead"]["name"] == (found.lead and found.lead.name)
    assert facts["hallucination_rate"] == {**found.rate.to_dict(), "bounds": found.bounds}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(headlines, "audit_of", lambda run: audit)
        assert headline(half).bounds is None


def test_a_clustering_of_nothing_kept_is_left_out_without_a_model() -> None:
    filters = {"nli": {"with_question": False, "backend": "nli", "alpha": 1.0}, **RUN.settings["filters"]}
    found = headline(replace(RUN, settings={"filters": filters}))
    assert any("Left out is the clustering nli: the run does not keep" in text for text in found.trust.objections)


# --- trust ------------------------------------------------------------------------------------------------------------


def test_pooled_less_within_is_a_jackknife_over_groups() -> None:
    rng = np.random.default_rng(5)
    labels, kind = rng.integers(0, 2, 40), np.arange(40) % 2
    values = labels + 2.0 * kind + rng.normal(size=40)
    strata = tuple("ab"[k] for k in kind)
    for groups in (None, tuple(f"g{i // 2}" for i in range(40))):
        data = column(values.tolist(), labels.tolist(), strata=strata, groups=groups)

        def both(at: Any, data: Labelled = data) -> tuple[float, float]:
            part = data.only(list(at))
            within = part.within().value
            assert within is not None
            return float(roc_auc_score(part.labels, part.values)), within

        pooled, within = both(range(40))
        found = pooled_less_within(data)
        assert found[:2] == pytest.approx((pooled, pooled - within))
        places = range(40) if groups is None else sorted(set(groups))
        left = [both([i for i in range(40) if (i if groups is None else groups[i]) != g]) for g in places]
        spread = math.sqrt((len(left) - 1) / len(left) * sum((a - b - pooled + within) ** 2 for a, b in left))
        degrees = degrees_of_freedom(labels == 1, None if groups is None else np.arange(40) // 2)
        assert found[2] == pytest.approx(two_sided_p((pooled - within) / spread, degrees))
    assert pooled_less_within(column([1, 2, 3, 4], [0, 1, 0, 1]))[2] is None


def test_few_answers_and_chosen_thresholds_are_said() -> None:
    def text(run: Any, scorers: Any = None) -> str:
        return " ".join(reason.text for reason in trust_of(run, scorers or {}, {}, None, None, ()).reasons)

    for method, told in {"oracle": True, "tuned": False}.items():
        scorer: Any = SimpleNamespace(choice=SimpleNamespace(method=method))
        assert ("tuned on the reported documents" in text(RUN, {"embed": scorer})) is told
    parts = [{"reason": None}, {"reason": "few"}, {"reason": "more"}]
    run = replace(RUN, settings={"filters": {"x": {"chosen": {"parts": parts}}, "y": {}}})
    assert "The threshold of x could not be chosen (few)" in text(run)
    assert "(more)" not in text(run)
    judges = {a.id: {"judge": f"llm:{i % 3}"} for i, a in enumerate(RUN.answer_sets)}
    assert "a model's (llm:0, llm:1), and" in text(replace(RUN, verdicts=judges))


def test_claims_have_labels_where_anything_is_said_of_them() -> None:
    def labels(*of: Any) -> bool:
        return has_labels(SimpleNamespace(answers=[SimpleNamespace(labels=of)]))  # type: ignore[arg-type]

    silent, known, unknown = (SimpleNamespace(label=x, silent=y) for x, y in ((None, True), (0, False), (None, False)))
    assert [labels(silent), labels(known), labels(None, known)] == [True] * 3
    assert [labels(unknown), labels(None), labels()] == [False] * 3


def test_draws_share_nothing_where_a_place_left_out_leaves_no_number() -> None:
    two = [replace(a, clean=a.clean[:2], noisy=()) for a in RUN.answer_sets]
    assert detection_auroc(replace(SCORER, detectors=("lexical",)).score(two), "lexical").defined
    assert draws_shares(two, SCORER, ("lexical",)) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_the_length_is_free_whichever_way_round(sign: int) -> None:
    sets = [replace(a, baseline=replace(a.baseline, n_tokens=9 + sign * int(i % 3 == 0 or bool(a.label))))
            for i, a in enumerate(RUN.answer_sets)]  # fmt: skip
    free = headlines._free_scores(sets, None)
    area = roc_auc_score([a.label for a in sets], [a.baseline.n_tokens for a in sets])
    assert list(free) == ["msp", LENGTH]
    assert detection_auroc(free[LENGTH], LENGTH).value == pytest.approx(max(area, 1 - area))

    def turned(value: float) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(headlines, "detection_auroc", lambda scores, name: Number(value))
            return (headlines._free_scores(sets, None)[LENGTH][0][LENGTH] or 0) < 0

    at_border(turned, 0.5, "100")

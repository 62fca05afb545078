"""Borders of what verdicts rest on, and numbers by hand of what stands beside a result."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from at_border import at_border
from finished_runs import finished_run

from hedge_tasks.detectors.probes.folds import FOLDS, cross_fitting_folds
from hedge_tasks.detectors.units import Labelled, detection_auroc
from hedge_tasks.errors import DataError
from hedge_tasks.measures import trust_state
from hedge_tasks.measures.coverage import Coverage
from hedge_tasks.measures.curves import risk_coverage
from hedge_tasks.measures.seed_spread import by_seed, draws_shares, jackknifed, share_of, spread_of
from hedge_tasks.measures.trust_state import TrustReason, TrustState, trust_of
from hedge_tasks.measures.unit_table import UnitTable
from hedge_tasks.numbers import Number
from hedge_tasks.runs.scorers import scorer_of

RUN = finished_run(80)


def test_claims_of_unknown_support_have_failed_and_the_others_are_undecided() -> None:
    table = SimpleNamespace(n_labelled=3, counted=SimpleNamespace(n_unknown=2, units=range(10)))
    coverage = UnitTable.coverage.fget(table)  # type: ignore[attr-defined]
    assert coverage == Coverage(labelled=3, undecided=5, failed=2)
    assert Coverage() == Coverage(labelled=0, declined=0, undecided=0, failed=0)
    assert coverage.bounds(1) == (0.1, 0.8)


# --- trust ------------------------------------------------------------------------------------------------------------


def reasons_of(lead: Any = None, run: Any = RUN) -> str:
    return " ".join(reason.text for reason in trust_of(run, {}, {}, None, lead, ()).reasons)


@pytest.fixture
def about_types(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Reasons where the test of pooled less within says so; no data have a p-value at the border."""

    def reasons(difference: float = 0.1, p: float | None = 0.01, low: float = 0.6) -> str:
        monkeypatch.setattr(trust_state, "pooled_less_within", lambda column: (0.8, difference, p))
        lead = SimpleNamespace(strata=("a",), within=lambda: Number(0.7, interval=(low, 0.9)))
        return reasons_of(lead)

    return reasons


def test_where_a_few_questions_tell_right_from_wrong_it_is_said_whether_or_not_their_kinds_are_given() -> None:
    labels, ids = np.arange(80) % 2, tuple(a.id for a in RUN.answer_sets)
    lead = Labelled(np.linspace(0, 1, 80), labels, None, None, ids)

    def told(kinds: int) -> list[bool]:
        kind = [f"what {i % 2} {i % kinds}?" for i in range(80)]
        worded = replace(
            RUN, answer_sets=tuple(replace(a, question=k) for a, k in zip(RUN.answer_sets, kind, strict=True))
        )
        return [
            "question alone" in reasons_of(*of) for of in ((lead, worded), (replace(lead, strata=tuple(kind)), RUN))
        ]

    assert [told(kinds) for kinds in (2, 4, 8, 80)] == [[True] * 2, [True] * 2, [False] * 2, [False] * 2]


def test_question_types_explain_what_is_higher_without_them_by_more_than_chance(about_types: Any) -> None:
    at_border(lambda p: "question type" in about_types(p=p), 0.05, "100")
    at_border(lambda difference: "question type" in about_types(difference), 0.0, "001")
    at_border(lambda low: "All of the lead" in about_types(low=low), 0.5, "110")
    assert "question type" not in about_types(p=None)


def test_fewer_than_twenty_of_a_class_are_a_reservation() -> None:
    def few(n: float) -> bool:
        sets = tuple(a.with_label(int(i < n)) for i, a in enumerate(RUN.answer_sets))
        return "intervals are wide" in reasons_of(run=replace(RUN, answer_sets=sets))

    at_border(few, 20, "100")
    assert few(0)


def test_experts_contradict_where_the_intervals_do_not_meet() -> None:
    audit: Any = SimpleNamespace(on=lambda _: {})

    def contradicted(high: float) -> bool:
        judge, experts = Number(0.5, interval=(0.5, 0.6)), Number(0.4, interval=(0.3, high))
        both = [[("AUROC", experts, judge)], [("AUROC", judge, experts)]]
        found = {"Experts contradict" in str(trust_of(RUN, {}, {}, audit, None, pairs)) for pairs in both}
        assert len(found) == 1, "whichever is higher"
        return found.pop()

    at_border(contradicted, 0.5, "100")
    pairs = [("rate", Number(0.4, interval=(0.3, 0.4)), Number(0.5)), ("rate", Number(0.4), Number(0.5))]
    assert "Experts contradict" not in str(trust_of(RUN, {}, {}, audit, None, pairs))


def test_the_gravest_reason_is_the_state() -> None:
    notes, warned, grave = TrustReason("n", "note"), TrustReason("One. Two."), TrustReason("Bad. Very.", "red")
    assert [TrustState(r).level for r in ((notes,), (warned, notes), (grave, warned))] == ["green", "yellow", "red"]
    assert (warned.head, warned.rest, grave.head) == ("One", "Two.", "Bad. Very")
    assert TrustState((grave, warned, notes)).short.endswith("Bad. Very (and 1 more, see hedge health)")
    assert TrustState((warned, notes)).short.endswith(": One")
    assert TrustState((notes,)).short == "green, no objection"


# --- spread over seeds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.05, 0.3, 0.9])
def test_enough_draws_are_the_fewest_with_a_tenth_of_the_variance(share: float) -> None:
    n = 7
    found = share_of("se", math.sqrt(share) * 0.2, n, 0.2)
    assert found.share == pytest.approx(share)
    assert found.enough is not None

    def at(draws: int) -> float:
        return (of := share * n / draws) / (of + 1 - share)

    assert at(found.enough) <= 0.1 + 1e-12
    assert found.enough == 1 or at(found.enough - 1) > 0.1
    alone = share_of("se", 0.3, n, 0.2)
    assert (alone.share, alone.enough) == (1.0, None)
    assert share_of("se", 0.3, n, 0.0).share is share_of("se", 0.3, n, None).share is None


def test_a_number_over_seeds() -> None:
    found = spread_of("x", {1: Number(0.5, 0.3), 2: Number(0.9, 0.4), 3: Number.undefined("few")})
    assert found is not None
    assert (found.values, found.mean) == ({1: 0.5, 2: 0.9}, 0.7)
    assert found.stated == pytest.approx(math.sqrt((0.09 + 0.16) / 2))
    assert found.deviation == pytest.approx(0.4 / math.sqrt(2))
    assert spread_of("x", {3: Number.undefined("few")}) is None
    alone = spread_of("x", {1: Number(0.5)})
    assert alone is not None
    assert alone.deviation is alone.stated is None


def test_the_draws_part_is_the_jackknife_over_places_of_draws() -> None:
    scorer = scorer_of(RUN, None)
    [found] = draws_shares(RUN.answer_sets, scorer, ("radflag",))
    left = [
        [
            replace(a, clean=(*a.clean[:i], *a.clean[i + 1 :]), noisy=(*a.noisy[:i], *a.noisy[i + 1 :]))
            for a in RUN.answer_sets
        ]
        for i in range(6)
    ]
    areas = [detection_auroc(scorer.score(sets), "radflag").value or 0.0 for sets in left]
    assert (found.detector, found.n) == ("radflag", 6)
    assert found.stderr == pytest.approx(jackknifed(areas))

    def shares(n: int) -> int:
        return len(
            draws_shares([replace(a, clean=a.clean[:n], noisy=()) for a in RUN.answer_sets], scorer, ("radflag",))
        )

    assert [shares(n) for n in (1, 2)] == [0, 1]


def test_runs_that_differ_in_the_seed_alone_are_together() -> None:
    def seeded(seed: Any, created: str = "2026-01-01", **changes: Any) -> Any:
        return replace(RUN, settings={**RUN.settings, "sampling": {"n": 6, "seed": seed}}, created=created, **changes)

    first, second, again = seeded(1), seeded(2), seeded(2, "2026-01-02")
    others = [seeded(3, model="another"), seeded(True), RUN, replace(seeded(4), answer_sets=RUN.answer_sets[1:])]
    assert by_seed(second, [again, first, *others]) == {1: first, 2: again}
    assert list(by_seed(second, [first])) == [1, 2]
    assert by_seed(RUN, [first]) == by_seed(seeded(True), [first]) == {}


# --- curves and folds -------------------------------------------------------------------------------------------------


def test_declined_answers_are_covered_by_no_threshold() -> None:
    data = Labelled(np.array([0.1, 0.2, 0.3]), np.array([0, 1, 1]), None, None)
    curve, declined = risk_coverage(data), risk_coverage(data, 1)
    assert (curve.x[-1], declined.x[-1]) == (1.0, 0.75)
    assert curve.y.tolist() == declined.y.tolist()
    assert curve.y[-1] == pytest.approx(2 / 3)


def test_folds_are_shuffled_by_their_seed_and_keep_images_whole() -> None:
    labels, image = np.array([0, 1] * 20), np.arange(40) // 4
    of_seed = [[test for _, test in cross_fitting_folds(labels, list(map(str, image)), seed)] for seed in range(4)]
    assert len({str(folds) for folds in of_seed}) == 4
    for folds in of_seed:
        assert len(folds) == FOLDS
        assert sorted(np.concatenate(folds)) == list(range(40))
        assert sum(len(set(image[fold])) for fold in folds) == 10


@pytest.mark.parametrize(("rarer", "n"), [(2, 2), (3, 3), (FOLDS, FOLDS), (FOLDS + 1, FOLDS)])
def test_folds_are_as_many_as_the_rarer_class_allows(rarer: int, n: int) -> None:
    few = np.array([1] * rarer + [0] * 20)
    assert len(cross_fitting_folds(few, list(map(str, range(len(few)))), 0)) == n
    with pytest.raises(DataError, match="two images"):
        cross_fitting_folds(few, ["one image"] * rarer + list(map(str, range(20))), 0)

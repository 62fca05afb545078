"""Measures: one declaration gives number, error, reason and paired difference; tables of papers lay them out."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from sklearn.metrics import roc_auc_score

from hedge_tasks.errors import ConfigError
from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.measures.measure import Count, Mean, Measure, Rate
from hedge_tasks.measures.run_measures import Document, compare_documents
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE, detector_auroc, of_question_type
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import compare_rates, estimate_mean


def values_at_random(seed: int, n: int = 40) -> list[dict[str, Any]]:
    choice = random.Random(seed)
    return [{"value": choice.choice((None, choice.random())), "group": f"g{i // 3}"} for i in range(n)]


@pytest.mark.parametrize("seed", range(3))
def test_a_mean_has_the_clustered_standard_error_of_its_definition(seed: int) -> None:
    records = values_at_random(seed)
    known = [record for record in records if record["value"] is not None]
    expected = estimate_mean([r["value"] for r in known], [r["group"] for r in known])
    number = Mean(name="m").estimate(records)
    assert number.value == pytest.approx(expected.value, abs=1e-15)
    assert number.stderr == pytest.approx(expected.stderr, rel=1e-8)
    assert (number.n, number.n_groups) == (len(known), len({r["group"] for r in known}))


def test_a_document_without_a_group_is_alone() -> None:
    records = [{"value": v, "group": None} for v in (0.0, 1.0, 1.0, 0.5)]
    assert Mean(name="m").estimate(records).n_groups == 4
    assert Mean(name="m").estimate(records, groups=["a", "a", "b", "b"]).n_groups == 2


def test_a_number_says_why_it_is_undefined_and_lmms_eval_shows_it() -> None:
    measure = Mean(name="m", nothing="nobody was asked", unit="report")
    number = measure.estimate([{"value": None, "group": "a"}])
    assert (number.value, number.reason, number.unit) == (None, "nobody was asked", "report")
    assert Aggregation(measure)([]) == "undefined: nobody was asked"
    assert Aggregation(measure).stderr([]) == "N/A"
    assert Aggregation(measure).stderr([{"value": 1.0, "group": "a"}]) == "N/A"  # a single group
    assert Count(name="n").estimate([{"value": 2}, {"value": 3}]) == Number(5.0, n=2)
    with pytest.raises(TypeError, match="Measure is abstract"):
        Measure(name="m").estimate([])
    with pytest.raises(ConfigError, match="cannot be compared by m"):
        Measure(name="m").compare([], [], [])


def test_value_and_error_of_a_row_are_of_one_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates: list[int] = []
    original = Mean.estimate
    monkeypatch.setattr(Mean, "estimate", lambda self, *given: estimates.append(1) or original(self, *given))
    row, records = Aggregation(Mean(name="m")), [{"value": v, "group": None} for v in (0.0, 1.0, 1.0)]
    assert (row(records), row.stderr(records)) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert len(estimates) == 1
    assert row(records[:2]) == 0.5


def test_a_rate_takes_zeros_and_ones_alone() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        Rate(name="r").estimate([{"value": v, "group": None} for v in (0.7, 1)])


def test_titles_are_names_with_blanks_unless_declared() -> None:
    assert (Mean(name="a_b").title, Mean(name="a_b", title="A").title) == ("a b", "A")
    assert of_question_type(detector_auroc("se"), "closed").title == "se auroc, closed"


# --- paired -----------------------------------------------------------------------------------------------------------


def documents(records: Sequence[Mapping[str, Any]]) -> list[Document]:
    return [Document(str(i), record["group"], record) for i, record in enumerate(records)]


def test_rates_are_compared_on_documents_with_a_label_in_both() -> None:
    choice = random.Random(3)
    sides = [[{"value": choice.choice((0, 1, None)), "group": f"g{i // 2}"} for i in range(60)] for _ in range(2)]
    both = [(a, b) for a, b in zip(*sides, strict=True) if None not in (a["value"], b["value"])]
    labels = [[pair[side]["value"] for pair in both] for side in (0, 1)]
    expected = compare_rates(*labels, groups=[a["group"] for a, _ in both])
    mixed = random.Random(4).sample(documents(sides[1]), 60)
    assert compare_documents(HALLUCINATION_RATE, documents(sides[0]), mixed) == expected
    nothing = [{"value": None, "group": "g"}]
    assert compare_documents(Rate(name="r"), documents(nothing), documents(nothing)) is None
    assert compare_documents(Rate(name="r"), documents(nothing), []) is None


def test_aurocs_are_compared_on_documents_with_score_and_label_in_both() -> None:
    choice = random.Random(5)
    sides = [
        [{"se": choice.choice((None, choice.random())), "label": choice.choice((0, 1, None)), "group": None}
         for _ in range(80)]
        for _ in range(2)
    ]  # fmt: skip
    measure = detector_auroc("se")
    found = compare_documents(measure, *(documents(side) for side in sides))
    assert found is not None
    both = [p for p in zip(*sides, strict=True) if all(None not in (r["se"], r["label"]) for r in p)]
    expected = [roc_auc_score([p[i]["label"] for p in both], [p[i]["se"] for p in both]) for i in (0, 1)]
    assert [found.a, found.b] == pytest.approx(expected)
    assert found.n == len(both)

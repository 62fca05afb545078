"""Measures: one declaration gives number, error, reason and paired difference; tables of papers lay them out."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from hedge_tasks.errors import ConfigError
from hedge_tasks.lmms.rows import Aggregation
from hedge_tasks.measures.measure import Count, Mean, Measure, Rate
from hedge_tasks.measures.run_measures import Document, compare_documents
from hedge_tasks.measures.standard_measures import HALLUCINATION_RATE
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import compare_rates


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


def test_value_and_error_of_a_row_are_of_the_same_records() -> None:
    row, records = Aggregation(Mean(name="m")), [{"value": v, "group": None} for v in (0.0, 1.0, 1.0)]
    assert (row(records), row.stderr(records)) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert row(records[:2]) == 0.5

"""Units of any level: columns of scores, comparisons on what both have, and which detectors serve a level."""

from __future__ import annotations

import random

import pytest

from hedge_tasks.detectors import get, names
from hedge_tasks.detectors.units import Unit, columns_of, compare_columns, labelled
from hedge_tasks.errors import ConfigError
from hedge_tasks.statistics import compare_scores


def units(seed: int, n: int = 60) -> list[Unit]:
    """Two to an answer, two answers to an image; every fifth has no label."""
    dice = random.Random(seed)
    made = []
    for i in range(n):
        label = None if i % 5 == 4 else int(dice.random() < 0.4)
        numbers = {"a": dice.random() + (label or 0) / 2, "b": dice.random(), "same": 1.0}
        numbers |= {} if i == 7 else {"lacking": dice.random()}
        made.append(Unit(f"{i}", label, f"image {i // 4}", f"answer {i // 2}", numbers, level="claim"))
    return made


def pairs_won(those: list[tuple[float, int]]) -> tuple[float, int]:
    wrong, right = ([v for v, label in those if label == y] for y in (1, 0))
    return sum((a > b) + (a == b) / 2 for a in wrong for b in right), len(wrong) * len(right)


def test_columns_are_of_labelled_units_and_say_what_is_wrong() -> None:
    made = units(0)
    columns, left_out = columns_of(made, ["a", "b", "same", "lacking"])
    assert list(columns) == ["a", "b"]
    assert left_out["same"] == "every claim has the same score"
    assert left_out["lacking"] == "1 of 48 claims have no such score"
    counted = [unit for unit in made if unit.label is not None]
    won, pairs = pairs_won([(unit.numbers["a"] or 0.0, unit.label or 0) for unit in counted])
    assert columns["a"].auroc().value == pytest.approx(won / pairs)
    inside = [
        pairs_won([(u.numbers["a"] or 0.0, u.label or 0) for u in counted if u.parent == parent])
        for parent in {unit.parent for unit in counted}
    ]
    assert columns["a"].within().value == pytest.approx(sum(w for w, _ in inside) / sum(n for _, n in inside))
    assert columns["a"].turned.auroc().value == pytest.approx(1 - won / pairs)


def test_columns_are_compared_on_the_units_that_both_have() -> None:
    made = units(1)
    a, b = labelled(made, "a"), labelled(made[10:][::-1], "b")
    both = [unit for unit in made[10:] if unit.label is not None]
    wanted = compare_scores(
        *([unit.numbers[name] for unit in both] for name in ("a", "b")),
        [unit.label for unit in both],
        groups=[unit.group for unit in both],
    )
    found = compare_columns(a, b)
    assert found is not None
    assert (found.difference, found.stderr) == pytest.approx((wanted.difference, wanted.stderr))
    assert found.n == len(both)
    assert compare_columns(labelled(made[:5], "a"), labelled(made[5:], "b")) is None


def test_a_level_has_the_detectors_that_its_evidence_allows() -> None:
    for level in ("object", "story"):
        assert all(get(name).needs - {"clean", "noisy"} == {"clusters"} for name in names(level))
    assert {"se", "radflag", "vase", "radflag_dse"} <= set(names("object")) < set(names("verdict"))
    assert {"msp", "clean_nll", "baseline_nll"} <= set(names("verdict"))
    assert not {"lexical", "kle", "option_entropy", "claim_radflag"} & set(names("verdict"))
    with pytest.raises(ConfigError, match="did you mean 'object'"):
        names("objekt")

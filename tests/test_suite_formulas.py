"""Every number of a suite is its plain formula on random records, and undefined exactly where nothing is divided by."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.evaluation import evaluation_measures
from hedge_tasks.measures.measure import by_name
from hedge_tasks.suites.medhallmark.measures import MEDIHALL
from hedge_tasks.suites.medhallu.documents import CATEGORIES
from hedge_tasks.suites.medhallu.mesh import MESH
from hedge_tasks.suites.shale.items import ASPECTS, CLEAN, DISCRIMINATIVE, NOISY_SCENARIOS, SCENARIOS
from hedge_tasks.suites.vope.judge import SETS

Row = Mapping[str, Any]
"""Verdict and document in one."""

Ratio = tuple[float, float]
"""What is divided, and by what."""

Formula = Callable[[list[Row]], Ratio]


def medhallu(chance: random.Random) -> Row:
    said = chance.choice(("factual", "hallucinated", "not_sure", None))
    official = chance.choice(("factual", "hallucinated"))
    kinds = {"difficulty": ("easy", "medium", "hard"), "kind": [*CATEGORIES], "mesh": [*MESH]}
    return {
        **{column: chance.choice(values) for column, values in kinds.items()},
        "category": said,
        "votes": [{"judge": "medhallu:hedge", "category": said}, {"judge": "medhallu:official", "category": official}],
        "truth": str(chance.randrange(2)),
        "row": str(chance.randrange(9)),
        "official": official,
    }


def detection(name: str, key: str = "category", **where: str) -> tuple[str, Formula]:
    formula = name.partition("_")[0]

    def value(rows: list[Row]) -> Ratio:
        stated = [
            (int(r[key] == "hallucinated"), int(r["truth"])) for r in rows if r[key] in ("factual", "hallucinated")
        ]
        tp, fp, fn, tn = (stated.count(pair) for pair in ((1, 1), (1, 0), (0, 1), (0, 0)))
        parts = {"f1": (2 * tp, 2 * tp + fp + fn), "precision": (tp, tp + fp), "recall": (tp, tp + fn)}
        part, whole = {**parts, "accuracy": (tp + tn, len(stated))}[formula]
        # scikit-learn's zero_division=0, as in the reference code: undefined only where nothing is stated.
        return (part, whole) if whole or not stated else (0, 1)

    return name, lambda rows: value([r for r in rows if all(r[column] == text for column, text in where.items())])


MEDHALLU = dict(
    [
        *(detection(name) for name in ("f1", "precision", "recall", "accuracy")),
        *(detection(f"{name}_official", "official") for name in ("f1", "precision", "recall", "accuracy")),
        *(detection(f"{f}_{v}", difficulty=v) for f in ("f1", "recall", "accuracy") for v in ("easy", "hard")),
        *(detection(f"accuracy_{kind}", kind=kind) for kind in CATEGORIES),
        *(detection(f"accuracy_mesh_{name}", mesh=letter) for letter, name in MESH.items()),
    ]
)


def vope(chance: random.Random) -> Row:
    objects = []
    for _ in range(chance.randrange(4)):
        present, said = chance.random() < 0.5, chance.choice((True, False, None))
        kind = None if said is None else SETS[present, said]
        soft = kind or SETS[present, chance.random() < 0.5]
        objects.append({"present": present, "kind": kind, "kind_soft": soft, "category": chance.choice(("dog", "car"))})
    return {"objects": objects, "truth": chance.choice(("dog", "dog, car", "")), "said": None}


def in_sets(key: str, part: tuple[str, ...], whole: tuple[str, ...]) -> Formula:
    def value(rows: list[Row]) -> Ratio:
        kinds = [entry[key] for row in rows for entry in row["objects"] if entry[key]]
        return tuple(sum(any(kind.startswith(t) for t in sets) for kind in kinds) for sets in (part, whole))  # type: ignore[return-value]

    return value


def absent(rows: list[Row]) -> Ratio:
    objects = [entry for row in rows for entry in row["objects"]]
    return sum(not entry["present"] for entry in objects), len(objects)


def covered(rows: list[Row]) -> Ratio:
    pairs = [({*filter(None, row["truth"].split(", "))}, {e["category"] for e in row["objects"]}) for row in rows]
    return sum(len(truth & said) for truth, said in pairs), sum(len(truth) for truth, _ in pairs)


_D = ("true_description", "hallucinated_description")
_I = ("true_imagination", "hallucinated_imagination")
VOPE: dict[str, Formula] = {
    "chair_i": absent,
    "chair_s": lambda rows: (sum(any(not e["present"] for e in row["objects"]) for row in rows), len(rows)),
    "cover": covered,
    **{
        f"{name}{ending}": in_sets(f"kind{ending}", part, whole)
        for ending in ("", "_soft")
        for name, part, whole in (("hal_d", _D[1:], _D), ("hal_i", _I[1:], _I), ("exp", _I, (*_D, *_I)))
    },
}


def shale(chance: random.Random) -> Row:
    texts = {"scenario": SCENARIOS[:4], "task": DISCRIMINATIVE, "aspect": ASPECTS[:3]}
    return {
        **{column: chance.choice(values) for column, values in texts.items()},
        "category": chance.choice(("yes", None)),
        "label": chance.choice((0, 1, None)),
        "pair": str(chance.randrange(6)),
        "group": str(chance.randrange(5)),
    }


def right(row: Row) -> int | None:
    return int(row["label"] == 0) if row["label"] is not None or row["category"] is not None else None


def share(**where: str) -> Formula:
    def value(rows: list[Row]) -> Ratio:
        counted = [right(r) for r in rows if all(r[column] == text for column, text in where.items())]
        judged = [r for r in counted if r is not None]
        return sum(judged), len(judged)

    return value


def resistance(scenario: str) -> Formula:
    def value(rows: list[Row]) -> Ratio:
        clean = {r["pair"]: right(r) for r in rows if r["scenario"] == CLEAN and right(r) is not None}
        noisy = {r["pair"]: right(r) for r in rows if r["scenario"] == scenario and right(r) is not None}
        both = [still for pair, still in noisy.items() if clean.get(pair)]
        return sum(still or 0 for still in both), len(both)

    return value


def mean_of_defined(rows: list[Row]) -> Ratio:
    rates = [part / whole for part, whole in (resistance(name)(rows) for name in NOISY_SCENARIOS) if whole]
    return sum(rates), len(rates)


def mean_of_shares(shares: list[Ratio]) -> Ratio:
    parts = [part / whole if whole else 0 for part, whole in shares]
    return sum(parts), len(parts) if all(whole for _, whole in shares) else 0


SHALE: dict[str, Formula] = {
    "accuracy_clean": share(scenario=CLEAN),
    **{f"accuracy_{s}": share(scenario=s) for s in SCENARIOS[1:]},
    "accuracy_average": lambda rows: mean_of_shares([share(scenario=CLEAN, task=t)(rows) for t in DISCRIMINATIVE]),
    "accuracy_perception": share(scenario=CLEAN),
    **{f"resistance_{s}": resistance(s) for s in NOISY_SCENARIOS},
    "resistance_rate": mean_of_defined,
}


def medhallmark(chance: random.Random) -> Row:
    category = chance.choice([*MEDIHALL, None])
    return {"judge": "llm", "category": category, "label": None if category is None else int(category != "correct")}


def mean_of(value: Callable[[Row], float | None]) -> Formula:
    def formula(rows: list[Row]) -> Ratio:
        values = [v for row in rows if (v := value(row)) is not None]
        return sum(values), len(values)

    return formula


MEDHALLMARK: dict[str, Formula] = {
    "medihall": mean_of(lambda row: MEDIHALL.get(row["category"])),
    "accuracy": mean_of(lambda row: None if row["label"] is None else 1 - row["label"]),
    "accuracy_unread_wrong": mean_of(lambda row: float(row["label"] == 0)),
    **{
        f"share_{k}": mean_of(lambda r, k=k: None if r["category"] is None else float(r["category"] == k))
        for k in MEDIHALL
    },
}

SUITES: dict[str, tuple[Callable[[random.Random], Row], dict[str, Formula]]] = {
    "medhallu": (medhallu, MEDHALLU),
    "vope": (vope, VOPE),
    "shale": (shale, SHALE),
    "medhallmark": (medhallmark, MEDHALLMARK),
}


def rows_at_random(suite: str, seed: int) -> Iterator[Row]:
    """Yield none to many rows; in SHALE a question is asked once a scenario."""
    chance = random.Random(seed)
    seen = set()
    for _ in range(chance.choice((0, 1, 2, 5, 60))):
        row = SUITES[suite][0](chance)
        place = (row.get("scenario"), row.get("pair"))
        if place == (None, None) or place not in seen:
            seen.add(place)
            yield row


@pytest.mark.parametrize("suite", SUITES)
def test_every_number_is_its_formula_and_undefined_where_nothing_is_divided_by(suite: str) -> None:
    named, undefined = by_name(evaluation_measures(suite)), 0
    for seed in range(40):
        rows = list(rows_at_random(suite, seed))
        for name, formula in SUITES[suite][1].items():
            scores = [Scores(str(i), r.get("label"), None, None, {}, "", ()) for i, r in enumerate(rows)]
            records = [named[name].record(s, r, r) for s, r in zip(scores, rows, strict=True)]
            part, whole = formula(rows)
            number = named[name].estimate(records)
            assert number.defined == (whole > 0), (seed, name, number)
            undefined += not number.defined
            if number.defined:
                assert number.value == pytest.approx(part / whole, abs=1e-12), (seed, name)
    assert undefined > 40

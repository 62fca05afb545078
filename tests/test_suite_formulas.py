"""Every number of a suite is its plain formula on random records, and undefined exactly where nothing is divided by."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from hedge_tasks.detectors import names
from hedge_tasks.detectors.pipeline import Scores
from hedge_tasks.evaluation import evaluation_measures
from hedge_tasks.judging.by_sentence import SENTENCES
from hedge_tasks.judging.designed import MEANINGS, NO_ANSWER, ExpertLabels
from hedge_tasks.measures.forced_options import forced_measures
from hedge_tasks.measures.measure import by_name
from hedge_tasks.suites.medhallmark import wording
from hedge_tasks.suites.medhallmark.measures import MEDIHALL
from hedge_tasks.suites.medhallu.documents import CATEGORIES
from hedge_tasks.suites.medhallu.mesh import MESH
from hedge_tasks.suites.shale import items
from hedge_tasks.suites.shale.items import CLEAN, CONTROLS, DISCRIMINATIVE, NOISY_SCENARIOS
from hedge_tasks.suites.vope.judge import SETS

Row = Mapping[str, Any]
"""Verdict and document in one."""

Ratio = tuple[float, float]
"""What is divided, and by what."""

Formula = Callable[[list[Row]], Ratio]
Value = Callable[[Row], float | None]


def mean_of(value: Value) -> Formula:
    def formula(rows: list[Row]) -> Ratio:
        values = [v for row in rows if (v := value(row)) is not None]
        return sum(values), len(values)

    return formula


def auroc_of(pairs: Callable[[Row], list[tuple[float | None, Any]]]) -> Formula:
    """Of scores and labels; none below five of a class."""

    def formula(rows: list[Row]) -> Ratio:
        known = [(score, label) for row in rows for score, label in pairs(row) if score is not None]
        labels = [bool(label) for _, label in known]
        enough = min(labels.count(True), labels.count(False)) >= 5
        return (float(roc_auc_score(labels, [score for score, _ in known])), 1) if enough else (0, 0)

    return formula


def readings(chance: random.Random, *categories: str | None) -> dict[str, Any]:
    """What our reading and the official one make of a reply, at random."""
    ours, official = chance.choice(categories), chance.choice(categories[:-1])
    votes = [{"judge": "x:hedge", "category": ours}, {"judge": "x:official", "category": official, "label": 0}]
    return {"category": ours, "votes": votes, "official": official}


def differ(row: Row) -> float:
    return float(row["category"] != row["official"])


# --- MedHallu ---------------------------------------------------------------------------------------------------------

LEVELS = ("easy", "medium", "hard")


def medhallu(chance: random.Random) -> Row:
    kinds = {"difficulty": LEVELS, "kind": [*CATEGORIES], "mesh": [*MESH]}
    logs = [-chance.random() if chance.random() < 0.9 else -math.inf for _ in range(2)]
    return {
        **{column: chance.choice(values) for column, values in kinds.items()},
        **readings(chance, "factual", "hallucinated", "not_sure", None),
        "truth": str(chance.randrange(2)),
        "row": str(chance.randrange(9)),
        "sampled": chance.choices(("factual", "hallucinated", "not_sure", "unreadable"), k=chance.randrange(4)),
        "digits": dict(zip("01", logs, strict=False)) if chance.random() < 0.9 else {"1": -0.5},
        "label": chance.choice((0, 1, None)),
    }


def detection(name: str, key: str = "category", *, unread_wrong: bool = False, **where: str) -> tuple[str, Formula]:
    formula = name.partition("_")[0]

    def value(rows: list[Row]) -> Ratio:
        said = [(r["truth"] == "0" if r[key] is None and unread_wrong else r[key], int(r["truth"])) for r in rows]
        stated = [(int(s in ("hallucinated", True)), t) for s, t in said if s not in ("not_sure", None)]
        tp, fp, fn, tn = (stated.count(pair) for pair in ((1, 1), (1, 0), (0, 1), (0, 0)))
        parts = {"f1": (2 * tp, 2 * tp + fp + fn), "precision": (tp, tp + fp), "recall": (tp, tp + fn)}
        part, whole = {**parts, "accuracy": (tp + tn, len(stated))}[formula]
        # scikit-learn's zero_division=0, as in the reference code: undefined only where nothing is stated.
        return (part, whole) if whole or not stated else (0, 1)

    return name, lambda rows: value([r for r in rows if all(r[column] == text for column, text in where.items())])


def hallucinated_share(row: Row) -> float | None:
    said = [name == "hallucinated" for name in row["sampled"] if name in ("factual", "hallucinated")]
    return sum(said) / len(said) if said else None


def p_hallucinated(row: Row) -> float | None:
    p = {digit: math.exp(value) for digit, value in row["digits"].items()}
    return p["1"] / (p["0"] + p["1"]) if len(p) == 2 and sum(p.values()) else None


def not_sure(row: Row, level: str = "") -> float | None:
    return float(row["category"] == "not_sure") if level in ("", row["difficulty"]) else None


def truth_auroc(score: Value) -> Formula:
    return auroc_of(lambda row: [(score(row), row["truth"] == "1")])


MEDHALLU = {
    **dict(
        [
            *(detection(name) for name in ("f1", "precision", "recall", "accuracy")),
            *(detection(f"{name}_official", "official") for name in ("f1", "precision", "recall", "accuracy")),
            *(detection(f"{name}_unread_wrong", unread_wrong=True) for name in ("f1", "accuracy")),
            *(detection(f"{f}_{v}", difficulty=v) for f in ("f1", "precision", "recall", "accuracy") for v in LEVELS),
            *(detection(f"accuracy_{kind}", kind=kind) for kind in CATEGORIES),
            *(detection(f"recall_{kind}", kind=kind, truth="1") for kind in CATEGORIES),
            *(detection(f"accuracy_mesh_{name}", mesh=letter) for letter, name in MESH.items()),
        ]
    ),
    "not_sure_rate": mean_of(not_sure),
    **{f"not_sure_rate_{level}": mean_of(partial(not_sure, level=level)) for level in LEVELS},
    "response_rate": mean_of(lambda row: float(row["category"] in ("factual", "hallucinated"))),
    "unreadable_rate": mean_of(lambda row: float(row["category"] is None)),
    "sampled_unreadable_rate": mean_of(lambda row: float("unreadable" in row["sampled"])),
    "parsers_differ": mean_of(differ),
    "hallucinated_share_auroc": truth_auroc(hallucinated_share),
    "hallucinated_probability_auroc": truth_auroc(p_hallucinated),
    **{
        f"verdict_wrong_{name}_auroc": auroc_of(
            lambda r, n=name: [(r["numbers"][n], r["label"])] if r["label"] in (0, 1) else []
        )
        for name in names("verdict")
    },
}


# --- VOPE -------------------------------------------------------------------------------------------------------------


def vope(chance: random.Random) -> Row:
    objects = []
    for _ in range(chance.randrange(4)):
        present, said = chance.random() < 0.5, chance.choice((True, False, None))
        kind = None if said is None else SETS[present, said]
        others = {f"kind_{name}": SETS[present, chance.random() < 0.5] for name in ("official", "forced")}
        objects.append(
            {
                **{"present": present, "kind": kind, "kind_soft": kind or others["kind_forced"], **others},
                **{
                    "category": chance.choice(("dog", "car")),
                    "relevance": chance.choices((1, 2, 3, None), k=chance.randrange(3)),
                },
                **{name: chance.random() < 0.5 for name in ("readings_differ", "by_model")},
                **{name: chance.randrange(9) for name in names("object")},
            }
        )
    story = {name: chance.randrange(9) for name in names("story")}
    truth = chance.choice(("dog", "dog, car", ""))
    return {"objects": objects, "truth": truth, "story": story, "label": chance.choice((0, 1, None))}


def share_of_objects(part: Value, whole: Value = lambda entry: 1) -> Formula:
    def value(rows: list[Row]) -> Ratio:
        objects = [entry for row in rows for entry in row["objects"] if whole(entry)]
        return sum(part(entry) or 0 for entry in objects), len(objects)

    return value


def count_of_objects(counts: Value) -> Formula:
    return lambda rows: (share_of_objects(counts)(rows)[0], 1)


def in_sets(key: str, part: tuple[str, ...], whole: tuple[str, ...], unread: str = "") -> Formula:
    """Objects by their set; unread ones may count as the wrong reply where they are of that set."""

    def kind(entry: Row) -> str:
        wrong = SETS[entry["present"], not entry["present"]]
        return entry[key] or (wrong if wrong == unread else "")

    return share_of_objects(lambda entry: kind(entry) in part, lambda entry: kind(entry) in whole)


def covered(rows: list[Row]) -> Ratio:
    pairs = [({*filter(None, row["truth"].split(", "))}, {e["category"] for e in row["objects"]}) for row in rows]
    return sum(len(truth & said) for truth, said in pairs), sum(len(truth) for truth, _ in pairs)


def kappa(weights: str) -> Formula:
    def value(rows: list[Row]) -> Ratio:
        rated = [e["relevance"] for row in rows for e in row["objects"] if len(e["relevance"]) > 1]
        pairs = [pair for pair in rated if None not in pair]
        if len({score for pair in pairs for score in pair}) < 2:
            return 0, 0
        return cohen_kappa_score(*zip(*pairs, strict=True), labels=[1, 2, 3], weights=weights), 1

    return value


def first_rating(kind: str, entry: Row) -> int | None:
    return entry["relevance"][0] if entry["kind"] == kind and entry["relevance"] else None


_D = ("true_description", "hallucinated_description")
_I = ("true_imagination", "hallucinated_imagination")
_RATED = {"hallucinated": partial(first_rating, _D[1]), "imagined": partial(first_rating, _I[0])}
VOPE: dict[str, Formula] = {
    "chair_i": share_of_objects(lambda entry: not entry["present"]),
    "chair_s": mean_of(lambda row: float(any(not e["present"] for e in row["objects"]))),
    "cover": covered,
    **{
        f"{name}{ending}": in_sets(f"kind{ending}", part, whole)
        for ending in ("", "_soft", "_official", "_forced")
        for name, part, whole in (("hal_d", _D[1:], _D), ("hal_i", _I[1:], _I), ("exp", _I, (*_D, *_I)))
    },
    "hal_d_unread_wrong": in_sets("kind", _D[1:], _D, _D[1]),
    "hal_i_unread_wrong": in_sets("kind", _I[1:], _I, _I[1]),
    "objects": count_of_objects(lambda entry: 1),
    "unread_rate": share_of_objects(lambda entry: entry["kind"] is None),
    "parsers_differ": count_of_objects(lambda entry: entry["readings_differ"]),
    "read_by_model": count_of_objects(lambda entry: entry["by_model"]),
    **{
        f"object_{name}_auroc": auroc_of(
            lambda r, n=name: [(e[n], e["kind"].startswith("hall")) for e in r["objects"] if e["kind"]]
        )
        for name in names("object")
    },
    **{
        f"story_{name}_auroc": auroc_of(lambda r, n=name: [(r["story"][n], r["label"])] if r["label"] in (0, 1) else [])
        for name in names("story")
    },
    **{f"relevance_{name}": share_of_objects(rating, rating) for name, rating in _RATED.items()},
    **{
        f"relevance_{name}_{score}": count_of_objects(lambda entry, rating=rating, score=score: rating(entry) == score)
        for name, rating in _RATED.items()
        for score in (1, 2, 3)
    },
    "relevance_unrated": share_of_objects(
        lambda entry: None in (entry["relevance"] or [None]), lambda entry: not entry["present"]
    ),
    **{f"relevance_kappa_{weights}": kappa(weights) for weights in ("linear", "quadratic")},
}


# --- SHALE ------------------------------------------------------------------------------------------------------------

_ASKED = (CLEAN, "sty", "syn", "syn_right", "pfx", "pfx_true", "pfx_neutral", "sty_p", "sty_p_true")


def shale(chance: random.Random) -> Row:
    texts = {"scenario": _ASKED, "task": DISCRIMINATIVE, "aspect": (*items.PERCEPTION[:2], *items.KNOWLEDGE[:2])}
    return {
        **{column: chance.choice(values) for column, values in texts.items()},
        **readings(chance, "yes", "unreadable", None),
        "label": chance.choice((0, 1, None)),
        "pair": str(chance.randrange(6)),
        "group": str(chance.randrange(5)),
        "sampled": chance.choices(("yes", "unreadable"), k=2),
        "blind_right": chance.randrange(2),
    }


def right(row: Row) -> int | None:
    return int(row["label"] == 0) if row["label"] is not None or row["category"] is not None else None


def share(value: Value = right, **where: Any) -> Formula:
    """Mean over the rows whose columns have a value each, or one of several."""
    return lambda rows: mean_of(value)(
        [r for r in rows if all(r[c] in (v, *(v if isinstance(v, tuple) else ())) for c, v in where.items())]
    )


def resistance(scenario: str, controls: tuple[str, ...] = ()) -> Formula:
    """An item resists where it is right in every form that it was judged in."""

    def value(rows: list[Row]) -> Ratio:
        clean = {r["pair"] for r in rows if r["scenario"] == CLEAN and right(r)}
        forms: dict[str, list[int]] = {}
        for row in rows:
            if row["scenario"] in (scenario, *controls) and row["pair"] in clean and (still := right(row)) is not None:
                forms.setdefault(row["pair"], []).append(still)
        return sum(map(min, forms.values())), len(forms)

    return value


def mean_of_defined(formulas: list[Formula]) -> Formula:
    def value(rows: list[Row]) -> Ratio:
        rates = [part / whole for part, whole in (formula(rows) for formula in formulas) if whole]
        return sum(rates), len(rates)

    return value


def mean_of_all(formulas: list[Formula]) -> Formula:
    def value(rows: list[Row]) -> Ratio:
        ratios = [formula(rows) for formula in formulas]
        whole = all(whole for _, whole in ratios)
        return (sum(part / whole for part, whole in ratios), len(ratios)) if whole else (0, 0)

    return value


def controlled(rows: list[Row]) -> Ratio:
    """Of the scenarios that any control was asked of."""
    asked = {CONTROLS[r["scenario"]] for r in rows if r["scenario"] in CONTROLS}
    forms = {name: tuple(c for c, of in CONTROLS.items() if of == name) for name in sorted(asked)}
    return mean_of_defined([resistance(name, controls) for name, controls in forms.items()])(rows)


_CLEAN = {task: share(scenario=CLEAN, task=task) for task in DISCRIMINATIVE}
_KINDS = {"image": items.IMAGE_SCENARIOS, "instruction": items.INSTRUCTION_SCENARIOS}
SHALE: dict[str, Formula] = {
    "accuracy_clean": share(scenario=CLEAN),
    "non_hallucination_clean": share(scenario=CLEAN),
    **{f"accuracy_{s}": share(scenario=s) for s in NOISY_SCENARIOS},
    **{f"accuracy_{task}": formula for task, formula in _CLEAN.items()},
    "accuracy_average": mean_of_all([*_CLEAN.values()]),
    "accuracy_perception": share(scenario=CLEAN, aspect=items.PERCEPTION),
    "accuracy_knowledge": share(scenario=CLEAN, aspect=items.KNOWLEDGE),
    "accuracy_clean_read": share(lambda row: None if row["category"] == "unreadable" else right(row), scenario=CLEAN),
    "accuracy_clean_official": share(lambda row: 1, scenario=CLEAN),
    **{f"resistance_{s}": resistance(s) for s in NOISY_SCENARIOS},
    "resistance_rate": mean_of_defined([*map(resistance, NOISY_SCENARIOS)]),
    **{
        f"resistance_{name}": mean_of_defined([*map(resistance, scenarios)])
        for name, scenarios in {**_KINDS, "combination": items.COMBINED_SCENARIOS}.items()
    },
    "resistance_controlled": controlled,
    "unreadable_rate": mean_of(lambda row: float(row["category"] == "unreadable")),
    "sampled_unreadable_rate": mean_of(lambda row: float("unreadable" in row["sampled"])),
    "parsers_differ": mean_of(differ),
    "unclear_rate": mean_of(lambda row: None if right(row) is None else float(row["label"] is None)),
    "accuracy_blind": mean_of(lambda row: row["blind_right"]),
    "multimodal_gain": mean_of(lambda row: None if (seen := right(row)) is None else seen - row["blind_right"]),
}


# --- Med-HallMark -----------------------------------------------------------------------------------------------------


def medhallmark(chance: random.Random) -> Row:
    """An answer, or a report of up to three sentences."""

    def judged() -> dict[str, Any]:
        category = chance.choice([*MEDIHALL, None])
        return {"category": category, "label": None if category is None else int(category != "correct")}

    if chance.random() < 0.5:
        return {"judge": "llm", **judged()}
    return {**judged(), "judge": f"{SENTENCES}llm", "votes": [judged() for _ in range(chance.randrange(4))]}


def of_categories(worth: Callable[[str], float]) -> Formula:
    """Mean over reports of the mean over what was judged of each."""

    def value(row: Row) -> float | None:
        named = [vote["category"] for vote in row.get("votes", [row]) if vote["category"]]
        return sum(map(worth, named)) / len(named) if named else None

    return mean_of(value)


def of_sentences(row: Row, worth: Callable[[int | None], float | None]) -> float | None:
    values = [v for vote in row.get("votes", ()) if (v := worth(vote["label"])) is not None]
    return sum(values) / len(values) if values else None


MEDHALLMARK: dict[str, Formula] = {
    "medihall": of_categories(MEDIHALL.__getitem__),
    **{f"share_{kind}": of_categories(kind.__eq__) for kind in MEDIHALL},
    "accuracy": mean_of(lambda row: None if row["label"] is None else 1 - row["label"]),
    "accuracy_unread_wrong": mean_of(lambda row: float(row["label"] == 0)),
    "wrong_sentences": mean_of(lambda row: of_sentences(row, lambda label: label)),
    "unjudged_sentences": mean_of(lambda row: of_sentences(row, lambda label: float(label is None))),
}

SUITES: dict[str, tuple[Callable[[random.Random], Row], dict[str, Formula]]] = {
    "medhallu": (medhallu, MEDHALLU),
    "vope": (vope, VOPE),
    "shale": (shale, SHALE),
    "medhallmark": (medhallmark, MEDHALLMARK),
}
ELSEWHERE = {measure.name for measure in (*forced_measures(), *wording.MEASURES)}
"""Distributions over options, and what libraries count in words."""


def rows_at_random(suite: str, seed: int, n: int) -> Iterator[Row]:
    """Yield as many rows at most; in SHALE a question is asked once a scenario."""
    chance = random.Random(seed)
    seen = set()
    for _ in range(n):
        row = {**SUITES[suite][0](chance), "numbers": {name: chance.randrange(9) for name in names("verdict")}}
        place = (row.get("scenario"), row.get("pair"))
        if suite != "shale" or place not in seen:
            seen.add(place)
            yield row


@pytest.mark.parametrize("suite", SUITES)
def test_every_number_is_its_formula_and_undefined_where_nothing_is_divided_by(suite: str) -> None:
    named, undefined = by_name(evaluation_measures(suite)), 0
    assert SUITES[suite][1].keys() == named.keys() - ELSEWHERE
    for seed, n in enumerate((0, 1, 2, 2, 5, 5, 9, 30, 60)):
        rows = list(rows_at_random(suite, seed, n))
        scores = [Scores(str(i), r.get("label"), None, None, r["numbers"], "", ()) for i, r in enumerate(rows)]
        for name, formula in SUITES[suite][1].items():
            records = [named[name].record(s, r, r) for s, r in zip(scores, rows, strict=True)]
            part, whole = formula(rows)
            number = named[name].estimate(records)
            assert number.defined == (whole > 0), (seed, name, number)
            undefined += not number.defined
            if number.defined:
                assert number.value == pytest.approx(part / whole, abs=1e-12), (seed, name)
    assert undefined > 9


def under_labels(suite: str, row: Row, label: int | None) -> Row:
    """The row as it were had its answer this label; None: experts find no answer in it."""
    said = ("factual", "hallucinated")[int(row["truth"]) ^ (label or 0)] if suite == "medhallu" else "unreadable"
    changed = {**row, "label": label, "category": None if suite == "medhallu" and label is None else said}
    return row if suite == "shale" and right(row) is None else changed


@pytest.mark.parametrize(
    ("suite", "n"), [("medhallu", 6), ("shale", 10), ("medhallmark", 2), ("vope", 0)], ids=lambda v: str(v)
)
def test_where_experts_label_every_answer_a_number_is_that_of_their_labels_or_none(suite: str, n: int) -> None:
    chance, rows = random.Random(3), list(rows_at_random(suite, 3, 60))
    labels = [chance.choice((0, 1, None)) for _ in rows]
    said = tuple(NO_ANSWER if label is None else MEANINGS[1 - label] for label in labels)
    experts = ExpertLabels(np.zeros(len(rows), dtype=np.int64), said)
    corrected = [under_labels(suite, row, label) for row, label in zip(rows, labels, strict=True)]
    found = 0
    for measure in evaluation_measures(suite):
        if measure.name in ELSEWHERE:
            continue
        scores = [Scores(str(i), r.get("label"), None, None, r["numbers"], "", ()) for i, r in enumerate(rows)]
        records = [measure.record(s, r, r) for s, r in zip(scores, rows, strict=True)]
        number = measure.estimate(records, None, experts)
        if number.defined:
            part, whole = SUITES[suite][1][measure.name](corrected)
            assert number.value == pytest.approx(part / whole), measure.name
            found += 1
    assert found >= n

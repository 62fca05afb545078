"""MedHallu's semantic analysis (section 4.3) against a brute force that shares no code with it."""

from __future__ import annotations

import csv
import itertools
import json
import math
import random
import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedge_tasks.cli import main
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.errors import DataError
from hedge_tasks.making.medhallu.candidates import (
    ALONE,
    BEYOND,
    CHANCE,
    METRICS,
    UNIFORM,
    CandidateQuestion,
    analyse,
    cluster_candidates,
    nli_backend,
    read_candidates,
)
from hedge_tasks.numbers import Number

WORDS = ("the", "drug", "lowers", "raises", "pressure", "heart", "rate", "slowly")


def row(seed: int, candidates: int = 9) -> dict[str, Any]:
    """A question with random candidates, copies among them."""
    chance = random.Random(seed)

    def text() -> str:
        return " ".join(chance.choice(WORDS) for _ in range(chance.randint(2, 4)))

    texts = [text() for _ in range(candidates)]
    texts.append(texts[0])
    made = [{"answer": one, "fooled": chance.choice([True, False, False, None])} for one in texts]
    return {"id": f"q{seed}", "question": "Does it?", "truth": text(), "candidates": made}


def entails(premise: str, hypothesis: str) -> float:
    """How many words of the second stand in the first."""
    words = hypothesis.split()
    return sum(word in premise.split() for word in words) / len(words)


def embedded(texts: Sequence[str]) -> list[list[float]]:
    return [[float(text.split().count(word)) for word in WORDS] for text in texts]


@pytest.fixture(autouse=True)
def scripted_nli(monkeypatch: pytest.MonkeyPatch) -> None:
    def probabilities(self: NliClustering, pairs: Sequence[tuple[str, str]]) -> Any:
        said = [entails(*pair) for pair in pairs]
        return np.array([[(1 - p) / 2, (1 - p) / 2, p] for p in said], dtype=np.float64).reshape(len(pairs), 3)

    monkeypatch.setattr(NliClustering, "probabilities", probabilities)


def numbers(rows: Sequence[Mapping[str, Any]], threshold: float = 0.75) -> dict[tuple[str, str], Number]:
    questions = [CandidateQuestion.read(one) for one in rows]
    table = analyse(cluster_candidates(questions, nli_backend(threshold=threshold), embedded))
    return {(str(line["part"]).rpartition(" ")[2], str(line["what"])): line["value"] for line in table.rows}  # type: ignore[misc]


# --- the brute force --------------------------------------------------------------------------------------------------


def components(texts: Sequence[str], threshold: float) -> list[set[str]]:
    parts = [{text} for text in dict.fromkeys(texts)]
    for one, other in itertools.combinations(dict.fromkeys(texts), 2):
        if min(entails(one, other), entails(other, one)) >= threshold:
            a, b = (next(part for part in parts if text in part) for text in (one, other))
            if a is not b:
                parts.remove(b)
                a |= b
    return parts


def rouge_f1(kind: str, text: str, truth: str) -> float:
    a, b = (re.findall("[a-z0-9]+", each.lower()) for each in (text, truth))
    if kind == "rougeL":
        best = 0
        for size in range(1, len(a) + 1):
            for chosen in itertools.combinations(range(len(a)), size):
                rest = iter(b)
                if all(a[place] in rest for place in chosen):
                    best = size
        shared, of_a, of_b = best, len(a), len(b)
    else:
        n = int(kind[-1])
        grams = [Counter(tuple(each[i : i + n]) for i in range(len(each) - n + 1)) for each in (a, b)]
        shared, of_a, of_b = (grams[0] & grams[1]).total(), grams[0].total(), grams[1].total()
    return 2 * shared / (of_a + of_b) if shared else 0.0


def metric_of(kind: str, text: str, truth: str) -> float:
    if kind.startswith("rouge"):
        return rouge_f1(kind, text, truth)
    x, y = embedded([text, truth])
    if kind == METRICS[0]:
        return math.dist(x, y)
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.hypot(*x) / math.hypot(*y)


def distinct(one: Mapping[str, Any]) -> dict[str, bool | None]:
    said: dict[str, set[bool | None]] = {}
    for candidate in one["candidates"]:
        said.setdefault(candidate["answer"], set()).add(candidate["fooled"])
    return {text: labels.pop() if len(labels) == 1 else None for text, labels in said.items()}


def dealt(labels: Sequence[bool], size: int) -> float:
    """Share of all ways to draw that many labels that are alike."""
    drawn = list(itertools.combinations(labels, size))
    return sum(len(set(each)) == 1 for each in drawn) / len(drawn)


def by_hand(rows: Sequence[Mapping[str, Any]], threshold: float) -> dict[tuple[str, str], float]:
    uniform, chance, alone = [], [], []
    near: dict[tuple[str, str], list[float]] = {}
    for one in rows:
        labels = distinct(one)
        known = [label for label in labels.values() if label is not None]
        parts = components([one["truth"], *labels], threshold)
        alone.append(not next(part for part in parts if one["truth"] in part) & set(labels))
        clusters = [[text for text in labels if text in part and labels[text] is not None] for part in parts]
        for mine in clusters:
            if len(mine) > 1 and len(set(known)) == 2:
                uniform.append(len({labels[text] for text in mine}) == 1)
                chance.append(dealt(known, len(mine)))
        for kind in METRICS:
            values = {text: metric_of(kind, text, one["truth"]) for text in labels}
            members = [(m, sum(labels[t] is True for t in m) > len(m) / 2) for m in clusters if m]
            sides = [
                [statistics.fmean(values[text] for text in texts) for texts, fools in members if fools is side]
                for side in (True, False)
            ]
            if all(sides):
                difference = statistics.fmean(sides[0]) - statistics.fmean(sides[1])
                near.setdefault(("clusters", kind), []).append(difference)
    means = {name: statistics.fmean(values) for name, values in near.items()}
    shares = {UNIFORM: uniform, CHANCE: chance}
    return {
        **means,
        **{("kinds", name): statistics.fmean(values) for name, values in shares.items()},
        ("isolation", ALONE): statistics.fmean(alone),
    }


@pytest.mark.parametrize("threshold", [0.4, 0.75])
def test_every_number_is_that_of_a_brute_force(threshold: float) -> None:
    rows = [row(seed) for seed in range(12)]
    found, expected = numbers(rows, threshold), by_hand(rows, threshold)
    assert found.pop(("kinds", BEYOND)).value == pytest.approx(expected["kinds", UNIFORM] - expected["kinds", CHANCE])
    assert {name for name, number in found.items() if number.value is not None} == set(expected)
    for name, value in expected.items():
        assert found[name].value == pytest.approx(value, abs=1e-6), name  # cosines have single precision


def question(truth: str, *candidates: tuple[str, bool | None], name: str = "q") -> dict[str, Any]:
    return {
        "id": name,
        "question": "?",
        "truth": truth,
        "candidates": [{"answer": text, "fooled": fooled} for text, fooled in candidates],
    }


def test_copies_count_once_and_contradicting_ones_have_no_label() -> None:
    texts = question("the drug", ("heart", True), ("heart", True), ("rate", True), ("rate", False))
    [one] = cluster_candidates([CandidateQuestion.read(texts)], nli_backend(), embedded)
    assert one.fooled == (True, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"candidates": [{"answer": "x", "fooled": "yes"}]}, "candidates[0].fooled: expected"),
        ({"candidates": [{"answer": "x", "foled": True}]}, "did you mean 'fooled'"),
    ],
)
def test_the_door_names_line_and_key(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "c.jsonl"
    good = question("the drug", ("heart", True))
    path.write_text("\n".join(json.dumps(each) for each in (good, {**good, "id": "r", **change})), "utf-8")
    with pytest.raises(DataError, match=re.escape(f"{path}:2")) as error:
        read_candidates(path)
    assert said in str(error.value)


def test_ids_are_unique_and_files_are_there(tmp_path: Path) -> None:
    path = tmp_path / "candidates.jsonl"
    with pytest.raises(DataError, match="no file"):
        read_candidates(tmp_path)
    path.write_text("", "utf-8")
    with pytest.raises(DataError, match="no question"):
        read_candidates(tmp_path)
    path.write_text("\n".join([json.dumps(question("the drug", ("heart", True)))] * 2), "utf-8")
    with pytest.raises(DataError, match="2 lines have the id 'q'"):
        read_candidates(tmp_path)


def test_the_command_prints_the_findings_beside_the_papers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hedge_tasks.making.medhallu.candidates.load_encoder", lambda *_: embedded)
    path, out = tmp_path / "c.jsonl", tmp_path / "numbers.csv"
    path.write_text("\n".join(json.dumps(row(seed)) for seed in range(12)), "utf-8")
    assert main(["paper", "candidates", str(path), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "near-uniform" in shown
    assert "rarely, if ever" in shown
    with out.open(encoding="utf-8", newline="") as lines:
        written = {r["what"]: r["value"] for r in csv.DictReader(lines) if r["part"] == "isolation"}
    assert float(written[ALONE]) == pytest.approx(by_hand([row(seed) for seed in range(12)], 0.75)["isolation", ALONE])

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
    UNIFORM,
    CandidateQuestion,
    SemanticAnalysis,
    analyse,
    cluster_candidates,
    nli_backend,
    read_candidates,
)

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


def analysis(rows: Sequence[Mapping[str, Any]], threshold: float = 0.75) -> SemanticAnalysis:
    questions = [CandidateQuestion.read(one) for one in rows]
    return analyse(cluster_candidates(questions, nli_backend(threshold=threshold), embedded))


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
    if kind == "euclidean":
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


def by_hand(rows: Sequence[Mapping[str, Any]], threshold: float) -> dict[str, Any]:
    uniform, uniform_mixed, chance, alone, with_truth, fooling_with_truth, sizes = [], [], [], [], [], [], []
    near: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for one in rows:
        labels = distinct(one)
        known = [label for label in labels.values() if label is not None]
        parts = components([one["truth"], *labels], threshold)
        sizes.append(len(parts))
        home = next(part for part in parts if one["truth"] in part)
        alone.append(not home & set(labels))
        with_truth += [text in home for text in labels]
        fooling_with_truth += [text in home for text, label in labels.items() if label]
        means: dict[str, dict[str, list[float]]] = {}
        for part in parts:
            mine = [label for text, label in labels.items() if text in part and label is not None]
            if len(mine) > 1:
                uniform.append(len(set(mine)) == 1)
                if len(set(known)) == 2:
                    uniform_mixed.append(len(set(mine)) == 1)
                    chance.append(dealt(known, len(mine)))
            for kind in ("euclidean", "cosine", "rouge1", "rouge2", "rougeL"):
                values = [metric_of(kind, text, one["truth"]) for text in labels if text in part]
                if mine:
                    side = "fooling" if sum(mine) > len(mine) / 2 else "others"
                    means.setdefault(f"clusters {kind}", {}).setdefault(side, []).append(statistics.fmean(values))
        for kind in ("euclidean", "cosine", "rouge1", "rouge2", "rougeL"):
            for text, label in labels.items():
                if label is not None:
                    side = "fooling" if label else "others"
                    value = metric_of(kind, text, one["truth"])
                    means.setdefault(f"candidates {kind}", {}).setdefault(side, []).append(value)
        for name, sides in means.items():
            if len(sides) == 2:
                unit, kind = name.split()
                pair = (statistics.fmean(sides["fooling"]), statistics.fmean(sides["others"]))
                near.setdefault((unit, kind), []).append(pair)
    return {
        "uniform": statistics.fmean(uniform),
        "uniform_mixed": statistics.fmean(uniform_mixed),
        "n": len(uniform_mixed),
        "chance": statistics.fmean(chance),
        "alone": statistics.fmean(alone),
        "with_truth": statistics.fmean(with_truth),
        "fooling_with_truth": statistics.fmean(fooling_with_truth),
        "clusters": statistics.fmean(sizes),
        "near": near,
    }


@pytest.mark.parametrize("threshold", [0.4, 0.75, 1.0])
def test_every_number_is_that_of_a_brute_force(threshold: float) -> None:
    rows = [row(seed) for seed in range(12)]
    found, expected = analysis(rows, threshold), by_hand(rows, threshold)
    assert found.uniformity["uniform, all questions"].value == pytest.approx(expected["uniform"])
    assert found.uniformity[UNIFORM].value == pytest.approx(expected["uniform_mixed"])
    assert found.uniformity[UNIFORM].n == expected["n"]
    assert found.uniformity[CHANCE].value == pytest.approx(expected["chance"])
    assert found.uniformity[BEYOND].value == pytest.approx(expected["uniform_mixed"] - expected["chance"])
    assert found.isolation[ALONE].value == pytest.approx(expected["alone"])
    assert found.isolation["candidates in the truth's cluster"].value == pytest.approx(expected["with_truth"])
    assert found.isolation["deceiving candidates in it"].value == pytest.approx(expected["fooling_with_truth"])
    assert found.counts["clusters a question, with the truth's"].value == pytest.approx(expected["clusters"])
    assert found.counts["candidates a question"].value == 10
    assert {(p.unit, p.metric) for p in found.proximity if p.difference.value is not None} == set(expected["near"])
    for p in found.proximity:
        if p.difference.value is None:  # at a low threshold everything is one cluster
            continue
        pairs = expected["near"][p.unit, p.metric]
        mine, theirs = (statistics.fmean(values) for values in zip(*pairs, strict=True))
        assert (p.fooling.value, p.others.value) == pytest.approx((mine, theirs)), p
        assert p.difference.value == pytest.approx(mine - theirs, abs=1e-6)  # cosines have single precision
        assert p.difference.n == len(pairs)
        spread = statistics.stdev([a - b for a, b in pairs]) / math.sqrt(len(pairs))
        assert p.difference.stderr == pytest.approx(spread, abs=1e-6)


def question(truth: str, *candidates: tuple[str, bool | None], name: str = "q") -> dict[str, Any]:
    return {
        "id": name,
        "question": "?",
        "truth": truth,
        "candidates": [{"answer": text, "fooled": fooled} for text, fooled in candidates],
    }


def test_a_planted_effect_is_found_and_its_absence_too() -> None:
    planted, dealt_out = [], []
    for number in range(30):
        near, far = ["drug lowers pressure slowly", "slowly lowers drug pressure"], ["heart rate", "rate heart"]
        planted.append(question("the drug lowers pressure", *((t, t in near) for t in near + far), name=str(number)))
        labels = [(True, False, True, False), (False, True, False, True)][number % 2]
        texts = zip(near + far, labels, strict=True)
        dealt_out.append(question("the drug lowers pressure", *texts, name=str(number)))
    strong, none = analysis(planted, 0.8), analysis(dealt_out, 0.8)
    assert strong.uniformity[UNIFORM].value == 1
    assert strong.uniformity[CHANCE].value == pytest.approx(1 / 3)  # of six pairs out of four labels two are alike
    assert strong.isolation[ALONE].value == 1
    distance = next(p for p in strong.proximity if (p.unit, p.metric) == ("clusters", "euclidean"))
    assert distance.difference.value < 0
    assert none.uniformity[UNIFORM].value == 0
    assert none.uniformity[BEYOND].interval[1] < 0
    assert all(p.difference.value is None for p in none.proximity if p.unit == "clusters")


def test_copies_count_once_and_contradicting_ones_have_no_label() -> None:
    [one] = cluster_candidates(
        [
            CandidateQuestion.read(
                question("the drug", ("heart", True), ("heart", True), ("rate", True), ("rate", False))
            )
        ],
        nli_backend(),
        embedded,
    )
    assert (one.n_written, one.fooled) == (4, (True, None))


def test_what_is_undefined_says_why() -> None:
    found = analysis([question("the drug", ("heart", None))])
    assert "no cluster" in str(found.uniformity[UNIFORM].reason)
    assert found.isolation["deceiving candidates in it"].reason == "no candidate deceives"
    assert {p.difference.reason for p in found.proximity} == {
        "no question has candidates of both kinds",
        "no question has clusters of both kinds",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"truth": " "}, "truth"),
        ({"candidates": []}, "candidates"),
        ({"candidates": [{"answer": "x", "fooled": "yes"}]}, "candidates[0].fooled: expected"),
        ({"candidates": [{"answer": "x", "foled": True}]}, "did you mean 'fooled'"),
        ({"question": None}, "question"),
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
    monkeypatch.setattr("hedge_tasks.llm.encoders.load_encoder", lambda *_: embedded)
    path, out = tmp_path / "c.jsonl", tmp_path / "numbers.csv"
    path.write_text("\n".join(json.dumps(row(seed)) for seed in range(12)), "utf-8")
    assert main(["paper", "medhallu", "candidates", str(path), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "near-uniform" in shown
    assert "rarely, if ever" in shown
    assert "threshold: 0.75" in shown
    assert main(["paper", "medhallu", "candidates", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    expected = by_hand([row(seed) for seed in range(12)], 0.75)
    assert facts["uniformity"][UNIFORM]["value"] == pytest.approx(expected["uniform_mixed"])
    with out.open(encoding="utf-8", newline="") as lines:
        written = {(r["part"], r["what"], r["of"]): r["value"] for r in csv.DictReader(lines)}
    assert float(written["isolation", ALONE, ""]) == pytest.approx(expected["alone"])


def test_runs_and_candidates_have_commands_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["medhallu"], ["medhallu", "candidates"], ["medhallu", str(tmp_path), "--threshold", "0.5"]):
        with pytest.raises(SystemExit) as exit:
            main(["paper", *arguments])
        assert exit.value.code == 2
    assert "--threshold" in capsys.readouterr().err

"""MedHallu's semantic analysis (section 4.3): a planted effect by hand, and candidates that are none."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hedge_tasks.cli import main
from hedge_tasks.clustering.nli import NliClustering
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
)
from hedge_tasks.numbers import Number

WORDS = ("the", "drug", "lowers", "raises", "pressure", "heart", "rate", "slowly")


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


def question(truth: str, *candidates: tuple[str, bool | None], name: str = "q") -> dict[str, Any]:
    return {
        "id": name,
        "question": "?",
        "truth": truth,
        "candidates": [{"answer": text, "fooled": fooled} for text, fooled in candidates],
    }


def planted(number: int, *, mixed: bool = False) -> dict[str, Any]:
    """Two candidates near the truth, which deceive, and two far from it; mixed: one of either kind deceives."""
    near, far = ["drug lowers pressure slowly", "slowly lowers drug pressure"], ["heart rate", "rate heart"]
    deceives = [near[number % 2], far[number % 2]] if mixed else near
    return question("the drug lowers pressure", *((t, t in deceives) for t in near + far), name=str(number))


def test_a_planted_effect_is_found_and_its_absence_too() -> None:
    strong, none = (numbers([planted(i, mixed=mixed) for i in range(30)], 0.8) for mixed in (False, True))
    # Of six pairs out of four labels two are alike. Against the truth a near candidate shares three words of four, of
    # bigrams two of three or none, of the longest sequence three of four or two; a far one nothing.
    expected = {("kinds", UNIFORM): 1, ("kinds", CHANCE): 1 / 3, ("kinds", BEYOND): 2 / 3, ("isolation", ALONE): 1}
    by_metric = zip(METRICS, (2**0.5 - 6**0.5, 0.75, 0.75, 1 / 3, 0.625), strict=True)
    expected |= {("clusters", metric): value for metric, value in by_metric}
    assert {name: number.value for name, number in strong.items()} == pytest.approx(expected, abs=1e-6)
    assert none["kinds", UNIFORM].value == 0
    assert none["clusters", METRICS[0]].reason == "no question has both kinds, or rouge-score is not installed"
    assert numbers([planted(0)], 0.75)["isolation", ALONE].value == 0, "three words of four are at this threshold"


def test_copies_count_once_and_contradicting_ones_have_no_label() -> None:
    texts = question("the drug", ("heart", True), ("heart", True), ("rate", True), ("rate", False))
    [one] = cluster_candidates([CandidateQuestion.read(texts)], nli_backend(), embedded)
    assert one.fooled == (True, None)


def test_the_command_prints_the_findings_beside_the_papers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hedge_tasks.making.medhallu.candidates.load_encoder", lambda *_: embedded)
    path, out = tmp_path / "c.jsonl", tmp_path / "numbers.csv"
    path.write_text("\n".join(json.dumps(planted(i)) for i in range(12)), "utf-8")
    assert main(["paper", "candidates", str(path), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "near-uniform" in shown
    assert "rarely, if ever" in shown
    with out.open(encoding="utf-8", newline="") as lines:
        written = {r["what"]: r["value"] for r in csv.DictReader(lines) if r["part"] == "isolation"}
    assert float(written[ALONE]) == 0

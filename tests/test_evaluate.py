"""Detectors and detection AUROC as modules of Hugging Face's `evaluate`, and Med-HallMark's wording through its own."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from finished_runs import finished_run
from sklearn.metrics import roc_auc_score

from hedge_tasks import AnswerSet
from hedge_tasks.detectors import radflag, semantic_entropy, vase
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.runs.scorers import scorer_of
from hedge_tasks.statistics import estimate_auroc

ours: Any = None


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """No network at all, nobody that asks for it, and a cache of its own."""
    global ours
    from hedge_tasks.measures import evaluate as ours  # not before: it takes seconds

    monkeypatch.setattr("evaluate.config.HF_METRICS_CACHE", str(tmp_path / "metrics"))
    asked = []

    def refused(*to: Any, **_: Any) -> None:
        asked.append(to)
        raise OSError("there is no network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    yield
    assert not asked or "meteor" in request.node.name, "evaluate's METEOR looks for nltk's data whenever it is loaded"


RUN = finished_run(40)
LABELS = [a.label or 0 for a in RUN.answer_sets]
SETS = [a.with_label(None) for a in scorer_of(RUN, None).cluster(RUN.answer_sets)]


def expected(name: str, a: AnswerSet) -> float:
    """By the functions that take arrays."""
    baseline, *ids = a.cluster_ids or ()
    clean, noisy = ([answer.mean_logprob for answer in draws] for draws in (a.clean, a.noisy))
    if name == "radflag":
        return radflag(baseline, ids[:6])
    both = vase(ids[:6], ids[6:], clean, noisy, baseline_id=baseline)
    return semantic_entropy(ids[:6], clean) if name == "se" else both


@pytest.mark.parametrize("name", ["se", "radflag", "vase"])
@pytest.mark.parametrize("keep_in_memory", [True, False])
def test_a_detector_equals_its_function_to_the_digit(name: str, keep_in_memory: bool) -> None:
    metric = ours.load(name, keep_in_memory=keep_in_memory)
    result, values = metric.compute(predictions=SETS, references=LABELS), [expected(name, a) for a in SETS]
    assert result[name] == values
    assert result[f"{name}_mean"] == math.fsum(values) / 40
    assert result[f"{name}_auroc"] == pytest.approx(roc_auc_score(LABELS, values), abs=1e-15)
    stderr = estimate_auroc(values, LABELS, groups=[a.group for a in SETS]).stderr
    assert result[f"{name}_auroc_stderr"] == pytest.approx(stderr, abs=1e-15)
    json.dumps(result)
    assert metric.name == name
    assert set(metric.features) == {"predictions", "references"}
    assert ".. math::" in metric.description
    assert f"{name}_auroc" in metric.inputs_description


ONE = {"baseline": "left", "clean": ["left"]}


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("detection_auroc", {"predictions": [0.5], "references": [0.7]}, r"references\[0\].*0\.7"),
        ("detection_auroc", {"predictions": [True], "references": [1]}, r"predictions\[0\]: expected a number"),
        ("detection_auroc", {"predictions": [0.5, 0.1], "references": [1]}, "2 predictions and 1 references"),
        ("detection_auroc", {"predictions": [0.5, 0.1]}, "needs labels"),
        ("detection_auroc", {"predictions": [0.5], "references": [1], "groups": ["a", "b"]}, "1 predictions and 2 gr"),
        ("se", {"predictions": [ONE, {"baseline": "left"}]}, r"predictions\[1\]: clean: missing"),
        ("se", {"predictions": [{**ONE, "label": 1}], "references": [0]}, r"label 1, references\[0\] is 0"),
        ("se", {"predictions": [ONE], "alpha": math.inf}, "alpha: expected a finite number"),
        ("se", {"predictions": [ONE], "with_question": 2}, "with_question"),
        ("se", {"predictions": [5]}, r"predictions\[0\]: expected the answers to a question"),
        ("se", {"predictions": [{**ONE, "cleen": []}]}, "did you mean 'clean'"),
        ("detection_auroc", {"predictions": "0.5", "references": [1]}, "predictions: expected a list"),
        ("detection_auroc", {"predictions": ["0.5"], "references": [1]}, r"predictions\[0\]: expected a number"),
        ("detection_auroc", {"references": [1]}, "references without predictions"),
        ("detection_auroc", {}, "there is nothing to score"),
        ("detection_auroc", {"predictions": [0.5], "references": [1], "confidenc": 0.9}, "did you mean 'confidence'"),
        ("detection_auroc", {"predictions": [0.5], "references": [1], "confidence": 2}, "confidence"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, given: dict[str, Any], says: str) -> None:
    metric = ours.load(name)
    with pytest.raises((ConfigError, DataError, ValueError), match=says):
        metric.compute(**given)
    sound = [0.1, 0.9] if name == "detection_auroc" else SETS[:2]
    assert metric.compute(predictions=sound * 5, references=[0, 1] * 5)[f"{name.removeprefix('detection_')}"], (
        "and goes on"
    )


def test_what_is_added_one_by_one_is_scored_and_what_has_no_number_is_left_out() -> None:
    metric = ours.load("detection_auroc")
    scores, labels = [0.1, 0.9, 0.4, None] * 5, [0, 1, math.nan, None] * 5
    for score, label in zip(scores, labels, strict=True):
        metric.add(prediction=score, reference=label)
    result = metric.compute()
    assert (result["auroc"], result["auroc_n"], result["auroc_n_hallucinated"]) == (1.0, 10, 5)
    assert "auroc_reason" not in result
    vase = ours.load("vase")
    bare = {"baseline": "left", "clean": ["left", "right"]}
    both = vase.compute(predictions=[bare, {**bare, "noisy": ["left", "up"]}], clustering="exact")
    assert (both["vase"][0], list(both["vase_left_out"])) == (None, [0])
    assert both["vase_mean"] == both["vase"][1]
    assert "vase_auroc" not in both
    alone = vase.compute(predictions=[{**bare, "noisy": ["left", "up"]}], references=[None], clustering="exact")
    assert alone.keys() == {"vase", "vase_mean"}

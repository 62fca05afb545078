"""What makes no sense is refused by its name before any work, whatever room it comes to; and borders of small rules."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from at_border import at_border
from requested import FakeModel
from test_hook import requests

from hedge_tasks.claims.base import Claim, ClaimEvidence
from hedge_tasks.clustering import build_backend
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.clustering.nli import NliClustering
from hedge_tasks.data.answers import Answer
from hedge_tasks.detectors import Evidence, get, names, radflag, semantic_entropy, vase
from hedge_tasks.detectors.distribution import as_ids, as_logprobs, semantic_distribution
from hedge_tasks.detectors.probes.base import FittedDetector
from hedge_tasks.detectors.probes.builtin import mahalanobis
from hedge_tasks.detectors.probes.crossfit import cross_fitted
from hedge_tasks.detectors.probes.registry import fitted_detectors
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.thresholds import take_choice
from hedge_tasks.detectors.units import Labelled, compare_columns
from hedge_tasks.errors import HedgeError, first_line, unknown
from hedge_tasks.models import adapter_class
from hedge_tasks.models.contrast import Contrast
from hedge_tasks.models.mitigations import mitigation
from hedge_tasks.models.weights import doubled_fits
from hedge_tasks.numbers import Column, Number, format_p
from hedge_tasks.sampling.definition import Definition
from hedge_tasks.sampling.hook import generate_samples
from hedge_tasks.sampling.plan import SamplingPlan
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.statistics.betting import MeanTest

NAN = math.nan
CLUSTERED = {"backend": "exact", "with_question": False}
DEFINED = Definition.of("m", "t", Prompt("p", "{question}"), SamplingPlan()).model_dump()


def fitted(targets: list[int]) -> object:
    never = FittedDetector("n", "n", "last", fit=lambda *_: {}, score=lambda *_: None)
    labels = np.arange(len(targets)) % 2
    return cross_fitted(never, np.zeros((len(targets), 1, 1)), np.array(targets), labels, list(map(str, labels)))


def adapter(name: str, **options: Any) -> object:
    return adapter_class(name)(**options)


def without_tokens() -> object:
    return generate_samples(FakeModel(lambda draw: Answer("a")), requests(alternatives=2))


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Scorer.from_settings("x", {**CLUSTERED, "model": "custom:y"}), "not a model on disk or hub"),
    (lambda: Scorer.from_settings("x", {**CLUSTERED, "backend": 3}), "x: no clustering is recorded"),
    (lambda: Scorer.from_settings("x", {**CLUSTERED, "with_question": 1}), "x: no clustering is recorded"),
    (lambda: Scorer.from_settings("x", {**CLUSTERED, "backend": "embd"}), "x: the recorded settings make no clus"),
    (lambda: Scorer.from_settings("x", {**CLUSTERED, "backend": "nli", "batch_size": 2}), "'batch_size' is no setting"),
    (lambda: Scorer.from_settings("x", {**CLUSTERED, "detectors": "se"}), "detectors: expected a list of names"),
    (lambda: NliClustering(rule="strickt"), "did you mean 'strict'"),
    (lambda: build_backend("embedd"), "unknown clustering backend 'embedd', did you mean 'embed'"),
    (lambda: build_backend("embed", treshold=0.9), "clustering backend 'embed' 'treshold', did you mean 'threshold'"),
    (lambda: build_backend("embed", threshold=1.1), r"threshold must be a number in \[-1, 1\].* got 1.1"),
    (lambda: build_backend("embed", batch_size=0), "batch_size: expected .* got 0"),
    (lambda: build_backend("nli", veto="yes"), "veto: expected true or false, got 'yes'"),
    (lambda: take_choice("embed", {"threshold": "tunned"}), "did you mean 'tuned'"),
    (lambda: take_choice("embed", {"threshold": "tuned", "tuning": {"folds": 1}}), "tuning: folds: expected"),
    (lambda: take_choice("embed", {"threshold": "tuned", "tuning": {"low": 0.9, "high": 0.8}}), "low must be below"),
    (lambda: take_choice("embed", {"threshold": "tuned", "tuning": {"share": 1}}), "tuning: share: expected"),
    (lambda: take_choice("embed", {"threshold": 0.9, "tuning": {}}), "only beside a threshold that is chosen"),
    (lambda: take_choice("nli", {"threshold": "tuned"}), "only embed chooses one"),
    (lambda: NliClustering(dtype="int8"), "dtype must be one of .*, got 'int8'"),
    (lambda: NliClustering(max_characters=0), "max_characters"),
    (lambda: EmbeddingClustering(cache={}), "cache must be an EmbeddingCache"),  # type: ignore[arg-type]
    (lambda: Evidence("ab", 1), "2 texts"),  # type: ignore[arg-type]
    (lambda: Evidence(("a",), 1), "1 texts cannot be a baseline answer and 1 clean"),
    (lambda: Evidence(("a", "b"), 1, cluster_ids=(0,)), "cluster_ids must have shape"),
    (lambda: Evidence(("a", "b"), 1, mean_logprobs=np.zeros(3)), r"mean_logprobs must have shape \(2,\)"),
    (lambda: Evidence(("a", "b"), 1, relations=np.zeros((2, 2))), r"relations must have shape \(2, 2, 3\)"),
    (lambda: Evidence(("a", "b"), 1, cosines=np.zeros((3, 3))), r"cosines must have shape \(2, 2\)"),
    (lambda: semantic_distribution([]), "cluster_ids is empty"),
    (lambda: semantic_distribution([0, 1], [-1.0]), "mean_logprobs has length 1, but there are 2"),
    (lambda: semantic_distribution([0, 1], [-1.0, NAN]), r"mean_logprobs\[1\] is NaN"),
    (lambda: semantic_distribution([0, 1], [None, -1.0]), r"mean_logprobs\[0\] is NaN or missing"),
    (lambda: semantic_entropy([0, 1], [-1.0, math.inf]), r"mean_logprobs\[1\] is \+inf"),
    (lambda: semantic_entropy([0, 1], [-math.inf, -math.inf]), "all -inf"),
    (lambda: semantic_distribution([0, 1], support=[0]), r"support lacks the ids \[1\]"),
    (lambda: semantic_distribution([0, 1], support=[0, 1, 1]), "support has duplicate"),
    (lambda: semantic_distribution([0, NAN]), r"cluster_ids\[1\] is NaN"),
    (lambda: radflag(NAN, [0]), "baseline_id.* is NaN"),
    (lambda: vase([0], []), "noisy_ids is empty"),
    (lambda: vase([0], [0], alpha=NAN), "alpha must be a finite number"),
    (lambda: as_ids([0, [1]], "ids"), r"ids\[1\] is not hashable"),  # type: ignore[list-item]
    (lambda: as_logprobs(["a"], "lps"), "lps must be numbers"),  # type: ignore[list-item]
    (lambda: as_logprobs([[0.0]], "lps"), "lps must have one dimension"),  # type: ignore[list-item]
    (lambda: fitted([0] * 11 + [1]), "two images|both targets"),
    (lambda: mahalanobis.fit(np.zeros((9, 1, 2)), np.repeat([0, 1], [3, 6]), np.arange(9)), "four supported"),
    (lambda: mahalanobis.fit(np.ones((9, 1, 2)), np.zeros(9), np.arange(9)), "alike"),
    (lambda: MeanTest(0.0), r"in \(0, 1\]"),
    (lambda: MeanTest(1.01), r"in \(0, 1\]"),
    (lambda: adapter("hedge_h"), "did you mean 'hedge_hf'"),
    (lambda: adapter("hedge_tiny", writes="answer"), "did you mean 'answers'"),
    (lambda: adapter("hedge_tiny", dtype="float23"), "did you mean 'float32'"),
    (lambda: adapter("hedge_tiny", device_map="auto", device="cuda:1"), "device, device_map: give one of them"),
    (lambda: adapter("hedge_tiny", max_pixels="many"), "max_pixels: expected an integer"),
    (lambda: adapter("hedge_tiny", max_pixels=1000), "max_pixels: .* cannot be told how many pixels it may read; CLIP"),
    (lambda: adapter("hedge_tiny", min_pixel=1000), "unknown model argument 'min_pixel', did you mean 'min_pixels'"),
    (lambda: mitigation("vdc"), "did you mean 'vcd'"),
    (lambda: mitigation("pure"), "belongs to --gen_kwargs"),
    (lambda: mitigation(None, alpha=1), "alpha: belongs to decoding=vcd or dola"),
    (lambda: mitigation("dola", alpha=1), "unknown key 'alpha'.*layers"),
    (lambda: mitigation("vcd", alpha="much"), "alpha: expected a number, got 'much'"),
    (lambda: mitigation("vcd", alpha=-1), "alpha: expected"),
    (lambda: mitigation("vcd", beta=1), "beta: expected"),
    (lambda: mitigation("vcd", noise_step=1000), "noise_step: expected"),
    (lambda: mitigation("dola", layers="hihg"), "layers: expected"),
    (lambda: mitigation("dola", layers="-1"), "layers: expected"),
    (lambda: SamplingPlan.from_generation_kwargs({"temperatur": 1}), "'temperatur', did you mean 'temperature'"),
    (lambda: SamplingPlan(n=0, n_noisy=2), "n_noisy: 2 noisy answers have no clean ones"),
    (lambda: adapter("hedge_ray", of="hedge_tiny", replicas=0), "replicas and draws_per_task are at least 1"),
    (lambda: adapter("hedge_ray", of="hedge_tiny", draws_per_task=0), "replicas and draws_per_task are at least 1"),
    *((lambda n=n: adapter(n, of="x", pretrained="x", model="x", decoding="vcd"), "which only hedge_hf can")
      for n in ("hedge_ray", "hedge_vllm")),
    (lambda: adapter("hedge_openai", model="x", num_concurent=4), "'num_concurent', did you mean 'num_concurrent'"),
    (lambda: adapter("hedge_openai", model=""), "the model argument 'model' is missing"),
    (lambda: adapter("hedge_openai", model="x", num_concurrent=0), "num_concurrent: expected a number of at least 1"),
    (lambda: adapter("hedge_openai", model="x", timeout=0), "timeout: expected a number above 0, got 0"),
    (lambda: adapter("hedge_openai", model="x", base_url="localhost:8000/v1"), "base_url: expected something"),
    (lambda: adapter("hedge_openai", model="x", base_url="http://host:port/v1"), "base_url: expected something like"),
    (lambda: adapter("hedge_openai", model="x", base_url="http://h/v1/completions"), "leave out the end of"),
    (lambda: adapter("hedge_openai", model="x", decoding="vcd"), "which only hedge_hf can"),
    (lambda: Contrast.parse("plain/question:1"), "contrast: .*; got 'plain/question:1'"),
    (lambda: Contrast.parse("plain/question: plain/question:1"), "cannot be contrasted with itself"),
    (lambda: Definition.read({**DEFINED, "prompt": {}}), "prompt.user: missing"),
    (lambda: Definition.read({**DEFINED, "sampling": {}}), r"sampling\.\w+: missing"),
    (without_tokens, "alternatives: FakeModel does not tell its tokens"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_makes_no_sense_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises((HedgeError, ValueError), match=message):
        call()


@pytest.mark.parametrize(("user", "told"), [("why?", "no {question}"), ("{question}<image><image>", "more than one")])
def test_a_prompt_has_its_question_once_and_one_place_for_pictures(tmp_path: Path, user: str, told: str) -> None:
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"prompts": {"a": {"user": user}}}))
    with pytest.raises(HedgeError, match=told):
        load_prompt(f"{file}/a")


# --- borders ----------------------------------------------------------------------------------------------------------


def test_borders_of_small_rules() -> None:
    at_border(lambda p: format_p(p).startswith("<"), 1e-4, "100")
    at_border(lambda n: " more" in str(unknown("x", "?", map(str, range(int(n))))), 31, "011")
    at_border(lambda n: len(first_line(OSError("x" * int(n)))) == 9 + n, 300, "110")
    at_border(lambda room: doubled_fits(300, 100, int(room)), 625, "011")


def test_what_claims_are_supported_by_at_ties() -> None:
    one = (Claim("a#0", "a", "x", 0, 1, "sentence"),)

    def said(entailed: float, neutral: float, contradicted: float) -> str:
        [(_, verdict, _)] = ClaimEvidence(one, "", np.array([[[contradicted, neutral, entailed]]])).verdicts(0)
        return verdict

    at_border(lambda x: said(x, 0.4, 0.1) == "supporting", 0.4, "001")
    at_border(lambda x: said(x, 0.1, 0.4) == "supporting", 0.4, "011")
    at_border(lambda x: said(0.1, 0.4, x) == "contradicting", 0.4, "001")


@pytest.mark.parametrize("show", ["value", "interval", "stderr", "n", "p"])
def test_cells_of_every_kind_under_every_column(show: str) -> None:
    column = Column("a", show=show)  # type: ignore[arg-type]
    number = Number(0.5, stderr=0.25, interval=(0.25, 0.75), n=7)
    told = {"value": "0.500", "interval": "[0.250, 0.750]", "stderr": "0.250", "n": "7", "p": "-"}
    assert column.text(number) == told[show]
    assert column.text(None) == "-"
    assert column.text(0.25) == {"value": "0.250", "p": "0.2500"}.get(show, "")  # a published value has no counts
    assert column.text("x") == {"p": "-"}.get(show, "x")


def test_columns_without_strata_are_one_stratum() -> None:
    rng = np.random.default_rng(0)
    labels, ids = np.arange(40) % 2, tuple(map(str, range(40)))
    a, b = (Labelled(rng.normal(size=40) + labels, labels, None, None, ids) for _ in range(2))
    within, pooled = compare_columns(a, b, within=True), compare_columns(a, b)
    assert within is not None
    assert pooled is not None
    assert within.difference == pytest.approx(pooled.difference)


def test_names_are_for_commands_and_titles_for_people() -> None:
    named = [(name, get(name).title) for name in names()]
    named += [(p.name, p.title) for level in ("answer", "claim") for p in fitted_detectors(level).values()]
    assert [(name, title) for name, title in named if not name.islower() or " " in name or "_" in title] == []

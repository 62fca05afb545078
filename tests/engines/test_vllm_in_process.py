"""hedge_vllm on a real vLLM: sixty-four documents in one call, every answer against the model's own log-probability."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from engines.forced import OPTIONS, deviation, reply_logprob
from engines.in_process import AGAIN
from engines.servers import HERE, VLLM_VARIABLES, export_for_vllm, require
from hedge_tasks.sampling.behaviour import MOST_REQUESTS
from hedge_tasks.sampling.probe import DRAWS

pytestmark = pytest.mark.framework

DOCUMENTS, N = 64, 2
PROBE = DRAWS + 1 + DRAWS // 2 + MOST_REQUESTS
"""Draws of the probe, on one document: seeds, one of them again, half the temperature; and single settings."""
MODEL = "pretrained={},dtype=float32,max_model_len=512,max_num_batched_tokens=32768,enforce_eager=True"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("in_process") / "draws.jsonl"


@pytest.fixture(scope="module")
def outcome(record: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Forced replies and every draw, and the table of the evaluation."""
    folder = record.parent
    export_for_vllm(folder / "model")
    arguments = [
        *("--model", "hedge_vllm", "--model_args", MODEL.format(folder / "model"), "--tasks", "hedge_demo"),
        *("--limit", str(DOCUMENTS), "--gen_kwargs", f"n={N}", "--output_path", str(folder / "out"), "--log_samples"),
    ]
    log = folder / "log"
    variables = {**VLLM_VARIABLES, "HEDGE_STORE": str(folder / "store"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [str(require("vllm")), str(HERE / "in_process.py"), sysconfig.get_path("purelib"), str(record)]
    with log.open("wb") as output:
        done = subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env={**os.environ, **variables},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=1500,
        )
    assert done.returncode == 0, log.read_text("utf-8", "replace")[-6000:]
    [results] = (folder / "out").rglob("*_results.json")
    draws = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    return draws, json.loads(results.read_text("utf-8"))["results"]["hedge_demo"]


def test_every_draw_of_many_documents_is_answered_in_one_call(outcome: tuple[list[dict[str, Any]], Any]) -> None:
    [_, *draws], _ = outcome
    assert len(draws) == DOCUMENTS * (1 + 2 * N) + PROBE
    assert len({draw["answer"]["text"] for draw in draws}) > 10


def test_log_probabilities_equal_the_models_own(outcome: tuple[list[dict[str, Any]], Any]) -> None:
    [_, *draws], _ = outcome
    told = ((draw["messages"], draw["answer"]) for draw in draws)
    off = [deviation(_with_pictures(m), a["text"], a["mean_logprob"], a["n_tokens"]) for m, a in told]
    assert max(off) < 1e-5  # half of which is the rounding of what is stored


def test_whole_replies_are_those_of_a_plain_forward_pass(outcome: tuple[list[dict[str, Any]], Any]) -> None:
    [forced, *_], _ = outcome
    own = [reply_logprob(_with_pictures(forced["messages"]), option) for option in OPTIONS]
    assert [one["mean_logprob"] * one["n_tokens"] for one in forced["replies"]] == pytest.approx(own, abs=5e-5)


def test_a_draw_that_is_asked_for_alone_is_the_one_of_the_request_for_several(
    outcome: tuple[Any, Any], record: Path
) -> None:
    """What is missing after a killed run is asked for so."""
    again = [json.loads(line) for line in record.with_suffix(".again").read_text("utf-8").splitlines()]
    assert len(again) == AGAIN
    assert [together["text"] for together, _ in again] == [singly["text"] for _, singly in again]
    assert len({singly["text"] for _, singly in again}) > 1
    for together, singly in again:
        assert together["mean_logprob"] == pytest.approx(singly["mean_logprob"], abs=1e-5)


def test_the_evaluation_has_plausible_numbers(outcome: tuple[Any, dict[str, Any]]) -> None:
    _, table = outcome
    assert 0.5 < table["se_auroc,nli"] <= 1  # sixty-four documents: far from chance for this model
    assert 0 < table["hallucination_rate,nli"] < 1


def _with_pictures(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**turn, "content": [_part(part) for part in turn["content"]]} for turn in messages]


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] != "image":
        return part
    return {"type": "image", "url": Image.open(io.BytesIO(base64.b64decode(part["png"]))).convert("RGB")}

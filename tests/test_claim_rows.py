"""Rows about claims in lmms-eval's table: the numbers of `hedge claims`, options at the door, several processes."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from evaluation import Run as Evaluated
from evaluation import evaluate
from openai_server import serve, texts_of
from scipy.stats import binom
from test_claim_table import FINDINGS, SUPPORTED, UNSUPPORTED


def closed_form(n: int) -> float:
    """P(a wrong claim has fewer supporting draws than a right one), ties by half."""
    x = np.arange(n + 1)
    wrong, right = binom(n, UNSUPPORTED).pmf(x), binom(n, SUPPORTED).pmf(x)
    return float(sum(wrong[i] * (right[i + 1 :].sum() + right[i] / 2) for i in x))


# --- from a server to the table ---------------------------------------------------------------------------------------

N, IMAGES, CLAIMS = 4, 36, 6


def truth(image: str) -> set[str]:
    dice = random.Random(f"truth {image}")
    return {finding for finding in FINDINGS if dice.random() < 0.5}


def report(body: dict[str, Any], image: str) -> str:
    """The baseline answer says six findings; a draw each finding with the probability that its truth gives it."""
    dice, there = random.Random(f"{image} {body['temperature']} {body['seed']}"), truth(image)
    said = (
        dice.sample(FINDINGS, CLAIMS)
        if body["temperature"] < 0.5
        else [f for f in FINDINGS if dice.random() < (SUPPORTED if f in there else UNSUPPORTED)]
    )
    return " ".join(f"{finding.capitalize()}." for finding in said)


def reply(body: dict[str, Any]) -> str:
    text = texts_of(body)[-1]
    if text.startswith("Image "):
        return report(body, text.removeprefix("Image ").removesuffix("?"))
    shown = json.loads(text)
    if "claims" in shown:
        return json.dumps({n: "yes" if claim in shown["text"] else "no" for n, claim in shown["claims"].items()})
    there = shown["claim_to_judge"].removesuffix(".").lower() in shown["reference"]
    return json.dumps({"reason": "so", "verdict": "supported" if there else "hallucinated"})


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    """Reports, support and labels by a scripted server."""
    root = tmp_path_factory.mktemp("claims")
    rows = [{"id": f"{i}", "question": f"Image {i}?", "answer": " ".join(sorted(truth(str(i))))} for i in range(IMAGES)]
    (root / "reports.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.MonkeyPatch.context() as patch, serve(reply) as url:
        patch.setenv("OPENAI_API_KEY", "none")
        patch.setenv("HEDGE_CACHE", str(root / "cache"))
        judge = {"name": "llm", "model": "judge", "url": url, "prompt": "claim", "asks": 1}
        claims = {"unit": "sentence", "support": {"name": "judge", "model": "reader", "url": url}, "judge": judge}
        listed = ("radflag_claim_auroc", "radflag_claim_auroc_within", "elsewhere_claim_auroc", "blind_claim_auroc")
        listed += ("contradiction_claim_auroc", "claims_radflag_mean_auroc")
        (root / "scripted_reports.yaml").write_text(
            "include: hedge_tasks\ntask: scripted_reports\ndataset_path: json\n"
            "dataset_kwargs: {data_files: {test: reports.jsonl}}\ntest_split: test\n"
            f"hedge: {{prompt: plain/question, images: [], id: id, claims: {claims}}}\n"
            f"generation_kwargs: {{n: {N}, n_noisy: 0, probe: false, until: []}}\n"
            "filter_list:\n- name: exact\n  filter:\n  - {function: hedge_score, backend: exact}\n"
            "metric_list: [" + ", ".join(f"{{metric: {name}}}" for name in listed) + "]\n",
            "utf-8",
        )
        model = f"model=tiny,base_url={url}"
        arguments = ("--model", "hedge_openai", "--model_args", model, "--tasks", "scripted_reports")
        return evaluate(root / "out", *arguments, "--include_path", str(root))


@pytest.mark.slow
@pytest.mark.framework
def test_a_server_with_known_probabilities_gives_the_closed_form_in_the_table(evaluated: Evaluated) -> None:
    cells = evaluated.results["results"]["scripted_reports"]
    for row, wanted in (
        ("radflag_claim_auroc", closed_form(N)),
        ("radflag_claim_auroc_within", closed_form(N)),
        ("elsewhere_claim_auroc", 0.5),  # the draws of another image
    ):
        value, stderr = cells[f"{row},exact"], cells[f"{row}_stderr,exact"]
        assert 0.01 < stderr < 0.06, row
        assert abs(value - wanted) < 2.5 * stderr, row
    assert cells["radflag_claim_auroc,exact"] - cells["blind_claim_auroc,exact"] > 0.05
    assert cells["contradiction_claim_auroc,exact"] == "undefined: every claim has the same score"
    assert str(cells["claims_radflag_mean_auroc,exact"]).startswith("undefined")  # no whole report is right
    settings = evaluated.results["configs"]["scripted_reports"]["hedge"]["claims"]
    assert settings["asked"]["model"] == "reader"
    assert settings["labels"]["judge"]["prompt"] == "claim/1"

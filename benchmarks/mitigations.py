"""The embedded model on drawn scans, decoded plainly, with VCD and DoLa: what changes, and what it costs.

    python benchmarks/mitigations.py [--scans 480] [--draws 10] [--price]

New scans as hard as those of `hedge_demo`, every question that has one answer; the same questions in every row, answers
by exact meaning. Intervals: bootstrap over scans, differences paired. VOPE's shares are those of the questions whether
there is a lesion: Hal-D of the affirmed, Hal-I of the denied, Exp the denied. At the end `hedge_vope_demo` itself.

The model has 0.9 million parameters and two layers: nothing here says what a real model would do.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaForConditionalGeneration

from hedge_tasks.models.decoding import SharedPrefill
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.models.mitigations import DISTORTED, Dola, Vcd, distorted_pixels
from hedge_tasks.runs.run_files import load_runs
from hedge_tasks.sampling import Draw, SamplingPlan
from hedge_tasks.sampling.prompts import load_prompt
from hedge_tasks.sampling.requests import DrawRequest, SampleRequest
from hedge_tasks.suites.vope.paper import PAPER
from training import demo_set, phantom
from training.evaluate import Item, semantic_entropy

Floats = npt.NDArray[np.float64]

DECODINGS: Mapping[str, dict[str, Any]] = {
    "plain": {},
    "vcd": {"decoding": "vcd"},
    "vcd, alpha 0.5": {"decoding": "vcd", "alpha": 0.5},
    "vcd, step 999": {"decoding": "vcd", "noise_step": 999},
    "dola": {"decoding": "dola"},
    "dola, layer 0": {"decoding": "dola", "layers": 0},
}
SEED = 11
RESAMPLINGS = 1000
DEMO = "hedge_vope_demo"


@dataclass(frozen=True)
class Asked:
    """A question about a scan."""

    scan: int
    item: Item


@dataclass(frozen=True)
class Answered:
    """Of each question whether it was answered wrongly, the entropy of the draws, and what it cost.

    Attributes:
        said: whether the greedy answer affirms a lesion; NaN of other questions and other replies.
        passes: rows that went through the model to write a token.
        cpu_ms: for each token.
    """

    wrong: Floats
    entropy: Floats
    said: Floats
    passes: float
    cpu_ms: float


def questions(n_scans: int) -> list[Asked]:
    """Every question about new scans of the demo's difficulty."""
    counts = demo_set.LESION_COUNTS * (n_scans // len(demo_set.LESION_COUNTS))
    rng, found = np.random.default_rng(SEED), []
    for i, (scan, picture) in enumerate(demo_set.draw_scans(SEED, counts)):
        for kind, value in phantom.true_values(scan).items():
            text = str(rng.choice(phantom.QUESTIONS[kind]))
            found.append(Asked(i, Item(phantom.to_pil(picture), text, kind, value)))
    return found


def answered(options: dict[str, Any], asked: Sequence[Asked], n_draws: int) -> Answered:
    """Greedy answers and draws to all questions."""
    model = HedgeTiny(batch_size=8, **options)
    passes = 0

    def count(_: Any, __: Any, inputs: Mapping[str, Any]) -> None:
        nonlocal passes
        passes += len(inputs["input_ids"])

    model._model.register_forward_pre_hook(count, with_kwargs=True)
    plan = SamplingPlan(n=n_draws, n_noisy=0, max_new_tokens=24)
    draws = []
    for i, one in enumerate(asked):
        request = SampleRequest(f"q{i}", f"q{i}", one.item.question, load_prompt("plain/question"), plan, _pictures)
        kinds = [Draw("baseline", 0, 0.0, i), *(Draw("clean", k, 1.0, 1000 * i + k) for k in range(n_draws))]
        fetch = _Fetch(one.item)
        draws += [DrawRequest(request, draw, fetch, ("task", "test", i)) for draw in kinds]
    began = time.process_time()
    by_place = dict(pair for batch in model.generate_draws(draws) for pair in batch)
    seconds = time.process_time() - began
    answers = [by_place[i] for i in range(len(draws))]
    tokens = sum((answer.n_tokens or 0) + 1 for answer in answers)
    each = [answers[i : i + n_draws + 1] for i in range(0, len(answers), n_draws + 1)]
    return Answered(
        np.array([not one.item.is_answered_by(of[0].text) for one, of in zip(asked, each, strict=True)], dtype=float),
        np.array([semantic_entropy(answer.text for answer in of[1:]) for of in each]),
        np.array([_affirms(one.item, of[0].text) for one, of in zip(asked, each, strict=True)]),
        passes / tokens,
        1000 * seconds / tokens,
    )


def _pictures(row: Mapping[str, Any]) -> list[Any]:
    return [row["image"]]


@dataclass(frozen=True)
class _Fetch:
    item: Item

    def __call__(self) -> dict[str, Any]:
        return {"image": self.item.picture}


def _affirms(item: Item, text: str) -> float:
    meaning = phantom.meaning_of(text)
    if item.question_type != "presence" or meaning is None or meaning.question_type != "presence":
        return float("nan")
    return float(meaning.value == "yes")


def measures(of: Answered, there: Floats, weights: Floats) -> dict[str, Floats]:
    """Each measure under each weighting of the questions, shape (weightings,)."""
    wrong, right = of.wrong == 1, of.wrong == 0
    above = np.sign(of.entropy[wrong][:, None] - of.entropy[right]) / 2 + 0.5
    pairs = np.einsum("bi,ij,bj->b", weights[:, wrong], above, weights[:, right], optimize=True)
    known = ~np.isnan(of.said)
    yes, no = known & (of.said == 1), known & (of.said == 0)
    return {
        "wrong": weights @ of.wrong / weights.sum(1),
        "SE AUROC": pairs / (weights[:, wrong].sum(1) * weights[:, right].sum(1)),
        "Hal-D": weights[:, yes & (there == 0)].sum(1) / weights[:, yes].sum(1),
        "Hal-I": weights[:, no & (there == 1)].sum(1) / weights[:, no].sum(1),
        "Exp": weights[:, no].sum(1) / weights[:, known].sum(1),
    }


def _interval(values: Floats) -> str:
    low, high = np.nanpercentile(values[1:], [2.5, 97.5])
    return f"[{low:+.3f}, {high:+.3f}]"


def vope_demo(options: dict[str, Any]) -> str:
    """How many objects the model's stories in VOPE's demo name."""
    arguments = ",".join(f"{name}={value}" for name, value in options.items())
    with tempfile.TemporaryDirectory() as folder:
        command = ["lmms-eval", "--model", "hedge_tiny", "--tasks", DEMO, "--output_path", folder]
        command += ["--gen_kwargs", "n=0,n_noisy=0,baseline_temperature=0"]
        command += ["--model_args", arguments] if arguments else []
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        [run] = load_runs(Path(folder))
        [(row, _)] = PAPER.rows_of([run])
        return f"{row.numbers['objects'].value:g}"


def prices(n_draws: int = 11, n_tokens: int = 24) -> dict[str, float]:
    """CPU ms a token of a random LLaVA of 16 layers, width 512 and 32,000 tokens; a prompt of 600, best of three."""
    text = LlamaConfig(
        vocab_size=32_000, hidden_size=512, intermediate_size=1408, num_attention_heads=8, num_hidden_layers=16
    )
    vision = CLIPVisionConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2, image_size=336, patch_size=14
    )
    torch.manual_seed(0)
    model = LlavaForConditionalGeneration(
        LlavaConfig(vision_config=vision, text_config=text, image_token_index=31_999, vision_feature_layer=-1)
    ).eval()
    ids = torch.tensor([[1, *[31_999] * 576, *range(10, 33)]])
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": torch.randn(1, 3, 336, 336)}
    noisy = {**inputs, DISTORTED: distorted_pixels(inputs, 500)}
    wrapped = {"plain": model, "vcd": Vcd().wrap(model), "dola": Dola().wrap(model)}
    found = {}
    for name, of in wrapped.items():
        model.set_attn_implementation("sdpa")
        times = []
        for _ in range(3):
            began = time.process_time()
            with torch.inference_mode():
                shared = SharedPrefill(of)
                state, cache = shared.prefill(noisy if name == "vcd" else inputs, [0] * n_draws)
                for _ in range(n_tokens):
                    state = shared.advance(state, cache, state.logits.argmax(dim=1))
            times.append(1000 * (time.process_time() - began) / (n_draws * n_tokens))
        found[name] = min(times)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scans", type=int, default=480)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--price", action="store_true", help="CPU time on a larger random model, and nothing else")
    given = parser.parse_args(arguments)
    if given.price:
        print("CPU ms a token: " + ", ".join(f"{name} {value:.1f}" for name, value in prices().items()))
        return
    asked = questions(given.scans)
    scans = np.array([one.scan for one in asked])
    there = np.array([float(one.item.answer == "yes") for one in asked])
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(scans.max() + 1, np.full(scans.max() + 1, 1 / (scans.max() + 1)), RESAMPLINGS)
    weights = np.vstack([np.ones(len(asked)), drawn[:, scans]]).astype(float)  # the first is the sample itself
    found = {name: answered(options, asked, given.draws) for name, options in DECODINGS.items()}
    told = {name: measures(of, there, weights) for name, of in found.items()}
    print(f"{len(asked)} questions about {scans.max() + 1} scans, {given.draws} draws each\n")
    names = list(told["plain"])
    print("| decoding | " + " | ".join(names) + " | passes a token | CPU ms a token |")
    print("|---|" + "--:|" * (len(names) + 2))
    for name, of in found.items():
        values = [f"{told[name][measure][0]:.3f}" for measure in names]
        print(f"| {name} | " + " | ".join(values) + f" | {of.passes:.2f} | {of.cpu_ms:.2f} |")
    print("\n| minus plain | " + " | ".join(names) + " | right or wrong otherwise |\n|---|" + "--:|" * (len(names) + 1))
    for name in list(found)[1:]:
        apart = {measure: told[name][measure] - told["plain"][measure] for measure in names}
        changed = (found[name].wrong != found["plain"].wrong).mean()
        cells = [f"{values[0]:+.3f} {_interval(values)}" for values in apart.values()]
        print(f"| {name} | " + " | ".join(cells) + f" | {changed:.3f} |")
    objects = {name: vope_demo(DECODINGS[name]) for name in ("plain", "vcd", "dola")}
    print(f"\n{DEMO}, objects in the model's stories: " + ", ".join(f"{name} {n}" for name, n in objects.items()))


if __name__ == "__main__":
    main()

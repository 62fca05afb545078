"""Answers per second of hedge_hf's shared prefill against the usual ways of drawing many answers, in one run.

    python benchmarks/sampling.py                                  # the tiny model and a small Qwen2.5-VL-style one
    python benchmarks/sampling.py --size 7b --device cuda --dtype bfloat16      # the shape of Qwen2.5-VL-7B

Every method makes the same number of answers from the same processed prompts; preprocessing is not measured. Methods
take turns, and the ratios are of medians. All answers of the random model have the same length, so none gains by luck.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from hedge_tasks.models.decoding import PlainGeneration, SharedPrefill
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler
from hedge_tasks.sampling import SamplingPlan

N = 10
CLEAN_OWNERS = [0] * (1 + N)
ALL_OWNERS = [*CLEAN_OWNERS, *range(1, 1 + N)]

SIZES: dict[str, dict[str, Any]] = {
    "small": {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 8},
    "7b": {"hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28},
}
SECTIONS = {"small": [8, 8, 8], "7b": [16, 24, 24]}
# The small vision tower takes about as much time, relative to its language model, as the arithmetic of the real ones
# says (0.36 for 1120 patches and a 300-token prompt): what can be shared is the language model's part.
VISION: dict[str, dict[str, Any]] = {
    "small": {"depth": 2, "hidden_size": 128, "intermediate_size": 256, "num_heads": 4},
    "7b": {"depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16},
}


@dataclass(frozen=True)
class Case:
    """A model with the prompts of some documents: `clean` has one row, `every` the clean one and N noisy ones."""

    name: str
    model: Any
    tokenizer: Any
    clean: list[Mapping[str, Any]]
    every: list[Mapping[str, Any]]
    max_new_tokens: int
    fixed_length: bool


class Words:
    """The little of a tokenizer that reading answers needs."""

    eos_token_id = None
    all_special_ids = ()

    def decode(self, ids: list[int], **_: Any) -> str:
        return " ".join(map(str, ids))


def tiny_case() -> Case:
    """The embedded model on six documents of the demo, one a question type, with its own chat template."""
    from datasets import Dataset

    from hedge_tasks.data.pictures import to_rgb8
    from hedge_tasks.lmms.catalogue import task_folder
    from hedge_tasks.models.hedge_tiny import HedgeTiny
    from hedge_tasks.perturb import perturb_image

    adapter = HedgeTiny()
    rows = Dataset.from_parquet(str(task_folder() / "hedge_demo" / "data" / "demo-test.parquet"))
    clean, every = [], []
    for row in {row["question_type"]: row for row in rows}.values():
        pictures = [to_rgb8(row["image"]), *(perturb_image(row["image"], seed=i) for i in range(N))]
        text = {"type": "text", "text": row["question"]}
        turns = [[{"role": "user", "content": [{"type": "image", "url": p}, text]}] for p in pictures]
        clean.append(adapter._inputs(turns[:1]))
        every.append(adapter._inputs(turns))
    return Case("hedge_tiny (0.9 M parameters)", adapter._model, adapter._tokenizer, clean, every, 24, False)


def qwen_case(size: str, prompt_tokens: int, new_tokens: int, device: str, dtype: torch.dtype) -> Case:
    """Random weights in the shape of Qwen2.5-VL, with one 280-token image in a prompt of `prompt_tokens`."""
    torch.manual_seed(0)
    vocabulary = 152_064 if size == "7b" else 2_000
    image, start, end, video = vocabulary - 4, vocabulary - 3, vocabulary - 2, vocabulary - 1
    shape = SIZES[size]
    text = {
        **shape,
        "vocab_size": vocabulary,
        "num_key_value_heads": 4,
        "max_position_embeddings": 4096,
        "rope_parameters": {"rope_type": "default", "mrope_section": SECTIONS[size], "rope_theta": 1e6},
    }
    vision = {**VISION[size], "patch_size": 14, "out_hidden_size": shape["hidden_size"], "in_chans": 3}
    config = Qwen2_5_VLConfig(
        text_config=text,
        vision_config={**vision, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112},
        image_token_id=image,
        video_token_id=video,
        vision_start_token_id=start,
        vision_end_token_id=end,
    )
    with torch.device(device):
        torch.set_default_dtype(dtype)
        model = Qwen2_5_VLForConditionalGeneration(config).eval()
        model.generation_config = GenerationConfig(pad_token_id=0)
        torch.set_default_dtype(torch.float32)
    grid, image_tokens = [1, 28, 40], 280
    words = list(range(10, 10 + prompt_tokens - image_tokens - 2))
    row = [start, *[image] * image_tokens, end, *words]

    def inputs(n: int) -> dict[str, torch.Tensor]:
        ids = torch.tensor([row] * n, device=device)
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "mm_token_type_ids": (ids == image).long(),
            "image_grid_thw": torch.tensor([grid] * n, device=device),
            "pixel_values": torch.randn(n * 28 * 40, 3 * 2 * 14 * 14, device=device, dtype=dtype),
        }

    millions = sum(p.numel() for p in model.parameters()) / 1e6
    name = f"Qwen2.5-VL shape, random weights ({millions:,.0f} M parameters, {prompt_tokens}-token prompt)"
    return Case(name, model, Words(), [inputs(1)], [inputs(1 + N)], new_tokens, True)


def repeat_rows(inputs: Mapping[str, Any], owners: list[int]) -> dict[str, Any]:
    """One row a draw, as if every draw were asked on its own."""
    rows = {name: value[owners] for name, value in inputs.items() if name != "pixel_values"}
    pixels = inputs["pixel_values"]
    parts = pixels.chunk(len(inputs["input_ids"])) if "image_grid_thw" in inputs else pixels.split(1)
    return {**rows, "pixel_values": torch.cat([parts[owner] for owner in owners])}


def methods(case: Case, owners: list[int]) -> dict[str, Callable[[], None]]:
    """What is compared, by name; each call makes len(owners) answers a document."""
    documents = case.clean if max(owners) == 0 else case.every
    draws = SamplingPlan(n=N).draws("document")[: len(owners)]
    device = case.model.device
    end = case.model.generation_config.eos_token_id
    defaults = GenerationConfig(eos_token_id=None if case.fixed_length else end)
    length = {"max_new_tokens": case.max_new_tokens}
    if case.fixed_length:
        length |= {"min_new_tokens": case.max_new_tokens}
    padding = {"pad_token_id": 0}

    def sampler() -> TokenSampler:
        return TokenSampler(draws, {}, defaults, (), device)

    def reader() -> AnswerReader:
        return AnswerReader(case.tokenizer, defaults, ())

    def shared(prompts: Mapping[str, Any]) -> None:
        SharedPrefill(case.model).decode(prompts, owners, sampler(), reader(), case.max_new_tokens)

    def unshared(prompts: Mapping[str, Any]) -> None:
        PlainGeneration(case.model).decode(repeat_rows(prompts, owners), sampler(), reader(), case.max_new_tokens)

    def generate(inputs: Mapping[str, Any], temperature: float, n: int = 1) -> None:
        case.model.generate(
            **inputs, **length, **padding, do_sample=True, temperature=temperature, top_k=0, num_return_sequences=n
        )

    def return_sequences(prompts: Mapping[str, Any]) -> None:
        generate(repeat_rows(prompts, [0]), 0.1)
        generate(repeat_rows(prompts, [0]), 1.0, N)
        if max(owners):
            generate(repeat_rows(prompts, list(range(1, 1 + N))), 1.0)

    def one_by_one(prompts: Mapping[str, Any]) -> None:
        for owner, draw in zip(owners, draws, strict=True):
            generate(repeat_rows(prompts, [owner]), draw.temperature)

    def for_all(method: Callable[[Mapping[str, Any]], None]) -> Callable[[], None]:
        def run() -> None:
            for prompts in documents:
                method(prompts)

        return run

    return {
        "shared prefill": for_all(shared),
        "same adapter, no sharing": for_all(unshared),
        "num_return_sequences": for_all(return_sequences),
        "separate generate calls": for_all(one_by_one),
    }


@torch.inference_mode()
def measure(compared: Mapping[str, Callable[[], None]], repetitions: int) -> dict[str, float]:
    """Median seconds of each method; they take turns, so that a drifting machine is unfair to none."""
    seconds: dict[str, list[float]] = {name: [] for name in compared}
    for method in compared.values():
        method()
    for _ in range(repetitions):
        for name, method in compared.items():
            started = time.perf_counter()
            method()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(times) for name, times in seconds.items()}


@torch.inference_mode()
def prefill_share(case: Case, repetitions: int) -> float:
    """Share of the prefill in the time of all draws with sharing."""
    shared = SharedPrefill(case.model)
    compared = {
        "prefill": lambda: [shared.prefill(prompts, ALL_OWNERS) for prompts in case.every],
        "all": methods(case, ALL_OWNERS)["shared prefill"],
    }
    medians = measure(compared, repetitions)
    return medians["prefill"] / medians["all"]


def report(case: Case, repetitions: int) -> str:
    lines = [
        f"### {case.name}",
        "",
        "| draws | method | answers/s | shared prefill is faster by |",
        "|---|---|---|---|",
    ]
    for what, owners in (("11 on the clean image", CLEAN_OWNERS), ("all 21", ALL_OWNERS)):
        medians = measure(methods(case, owners), repetitions)
        best = medians["shared prefill"]
        for name, seconds in medians.items():
            ratio = "" if name == "shared prefill" else f"{seconds / best:.2f}×"
            lines.append(f"| {what} | {name} | {len(case.every) * len(owners) / seconds:.1f} | {ratio} |")
    lines += ["", f"Share of the prefill in all 21 draws: {prefill_share(case, repetitions):.0%}."]
    with torch.inference_mode():
        error = SharedPrefill(case.model).error(case.clean[0])
    lines.append(f"Sharing check ({case.model.dtype}): total variation {error:.1e}.")
    if torch.cuda.is_available():
        weights = sum(p.numel() * p.element_size() for p in case.model.parameters()) / 2**30
        peak = torch.cuda.max_memory_allocated() / 2**30
        lines.append(f"Memory: {peak:.1f} GiB at most, {weights:.1f} of it weights.")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=sorted(SIZES), default="small")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--prompt-tokens", type=int, default=300)
    parser.add_argument("--new-tokens", type=int, default=16)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    if options.device == "cpu":
        print(report(tiny_case(), options.repetitions), flush=True)
    dtype = getattr(torch, options.dtype)
    case = qwen_case(options.size, options.prompt_tokens, options.new_tokens, options.device, dtype)
    print(report(case, options.repetitions))


if __name__ == "__main__":
    main()

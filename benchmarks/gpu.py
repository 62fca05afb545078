"""What hedge_hf and the NLI clustering reach on the GPU at hand, beside what its memory and arithmetic allow.

    python benchmarks/gpu.py            # the shapes of Qwen2.5-VL-7B and DeBERTa-v3-large, random weights: four minutes
    python benchmarks/gpu.py --small    # small shapes, on a CPU too: that the script runs

Draws are 21 a document (n = 10), 32 new tokens behind a prompt of 300 with one picture. A step's floor is the time in
which the language model's weights are read once; a prefill's is its language model's products at the measured rate.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import torch
from sampling import ALL_OWNERS, N, qwen_case
from streamed_scores import FINDINGS, FRAMES, PLACES
from transformers import AutoTokenizer, DebertaV2Config, DebertaV2ForSequenceClassification, GenerationConfig

from hedge_tasks.clustering.nli_model import NliModel, pairs_a_pass
from hedge_tasks.models.decoding import SharedPrefill
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.models.tiny import nli_path
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler
from hedge_tasks.sampling import SamplingPlan

NEW_TOKENS, PROMPT = 32, 300
DEBERTA = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}


def seconds(work: Callable[[], object], device: str, repeats: int = 3) -> float:
    """Median time of some work, after one run that is not counted."""
    times = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def floors(device: str, dtype: torch.dtype, small: bool) -> tuple[float, float]:
    """Bytes a second that are read and written, and operations a second of a matrix product."""
    size = 2**24 if small else 2**30
    source = torch.empty(size, dtype=torch.uint8, device=device)
    target, square = torch.empty_like(source), torch.randn(size // 2**17, size // 2**17, dtype=dtype, device=device)
    rate = 2 * size / seconds(lambda: target.copy_(source), device, 5)
    operations = 2 * len(square) ** 3 / seconds(lambda: square @ square, device, 5)
    print(f"copy {rate / 1e12:.2f} TB/s, {dtype} product {operations / 1e12:.1f} TFLOP/s")
    return rate, operations


@torch.inference_mode()
def sampling(device: str, small: bool) -> None:
    """Draws a second by documents a batch."""
    dtype = torch.float32 if small else torch.bfloat16
    rate, operations = floors(device, dtype, small)
    case = qwen_case("small" if small else "7b", PROMPT, NEW_TOKENS, device, dtype)
    language = [p for name, p in case.model.named_parameters() if "visual" not in name]
    step_floor = sum(p.numel() * p.element_size() for p in language) / rate
    prefill = SharedPrefill(case.model)
    defaults = GenerationConfig(eos_token_id=None)
    for documents in (1, 2) if small else (1, 4, 8, 16):
        prompts = documents * (1 + N)
        inputs = {name: value.repeat(documents, *[1] * (value.dim() - 1)) for name, value in case.every[0].items()}
        owners = [d * (1 + N) + owner for d in range(documents) for owner in ALL_OWNERS]
        draws = SamplingPlan(n=N).draws("document") * documents

        def work(inputs: Any = inputs, owners: Any = owners, draws: Any = draws) -> None:
            sampler = TokenSampler(draws, {}, defaults, (), case.model.device)
            prefill.decode(inputs, owners, sampler, AnswerReader(case.tokenizer, defaults, ()), NEW_TOKENS)

        read = seconds(lambda i=inputs, o=owners: prefill.prefill(i, o), device, 2)  # type: ignore[misc]
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        whole = seconds(work, device, 2)
        peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else 0.0
        read_floor = 2 * sum(p.numel() for p in language) * PROMPT * prompts / operations
        print(
            f"documents {documents:2}, rows {len(owners):3}: {len(owners) / whole:6.1f} draws/s; "
            f"prefill {read:.2f} s (floor {read_floor:.2f}), step {(whole - read) / (NEW_TOKENS - 1) * 1e3:.1f} ms "
            f"(floor {step_floor * 1e3:.1f}), peak {peak:.1f} GiB"
        )
        gc.collect()
        if device == "cuda":
            torch.cuda.empty_cache()


def nli(device: str, small: bool) -> None:
    """Pairs a second of distinct answers."""
    tokenizer = AutoTokenizer.from_pretrained(nli_path())
    relations = ("contradiction", "neutral", "entailment")
    config = DebertaV2Config(
        vocab_size=len(tokenizer) if small else 128100,
        **(DEBERTA | ({"num_hidden_layers": 1} if small else {})),
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        type_vocab_size=0,
        id2label=dict(enumerate(relations)),
        label2id={relation: i for i, relation in enumerate(relations)},
    )
    model = DebertaV2ForSequenceClassification(config).to(device, torch.float32 if small else torch.float16).eval()
    texts = [frame.format(finding, place) for frame, finding, place in product(FRAMES, FINDINGS, PLACES)]
    pairs = list(permutations(texts, 2))[: 200 if small else None]
    classifier = NliModel(model, tokenizer)
    for size in dict.fromkeys((256, pairs_a_pass(device))):
        took = seconds(lambda s=size: list(classifier.predict(pairs, batch_size=s)), device, 1)  # type: ignore[misc]
        print(f"NLI, {size} pairs a pass: {len(pairs) / took:.0f} pairs/s ({len(pairs)} distinct pairs)")


def precision(device: str) -> None:
    """How far a forced log-probability of the embedded model depends on the batch and on the device."""
    conversations = [[{"role": "user", "content": [{"type": "text", "text": f"Is there {i} ml?"}]}] for i in range(64)]
    texts = ["no lesion"] * len(conversations)
    logprobs = {}
    for dtype in ("float32", "bfloat16"):
        for place, batch in {("cpu", 1), (device, 1), (device, 64)}:
            model = HedgeTiny(device=place, dtype=dtype, batch_size=batch)
            answers = model.forced_logprobs(conversations, texts)
            logprobs[dtype, place, batch] = torch.tensor([answer.mean_logprob for answer in answers])  # type: ignore[union-attr]
        alone, together = logprobs[dtype, device, 1], logprobs[dtype, device, 64]
        across = (alone - logprobs[dtype, "cpu", 1]).abs().max()
        print(f"{dtype}: batch of 1 against 64 {(alone - together).abs().max():.1e}, against the CPU {across:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(torch.cuda.get_device_name() if device == "cuda" else "CPU", f"torch {torch.__version__}")
    sampling(device, small)
    nli(device, small)
    precision(device)


if __name__ == "__main__":
    main()

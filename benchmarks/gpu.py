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
from streamed_scores import FINDINGS, FRAMES, PLACES
from transformers import (
    AutoTokenizer,
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    GenerationConfig,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
)

from hedge_tasks.clustering.nli_model import NliModel, pairs_a_pass
from hedge_tasks.models.decoding import SharedPrefill
from hedge_tasks.models.hedge_tiny import HedgeTiny
from hedge_tasks.models.tiny import nli_path
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler
from hedge_tasks.sampling import SamplingPlan

N = 10
ALL_OWNERS = [*[0] * (1 + N), *range(1, 1 + N)]
NEW_TOKENS, PROMPT = 32, 300
IMAGE_GRID, IMAGE_TOKENS = [1, 28, 40], 280
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


class Words:
    """The little of a tokenizer that reading answers needs."""

    eos_token_id = None
    all_special_ids = ()

    def decode(self, ids: list[int], **_: Any) -> str:
        return " ".join(map(str, ids))


def qwen(size: str, device: str, dtype: torch.dtype) -> Qwen2_5_VLForConditionalGeneration:
    """A model of random weights in the shape of Qwen2.5-VL."""
    torch.manual_seed(0)
    vocabulary = 152_064 if size == "7b" else 2_000
    image, start, end, video = range(vocabulary - 4, vocabulary)
    text = {
        **SIZES[size],
        "vocab_size": vocabulary,
        "num_key_value_heads": 4,
        "max_position_embeddings": 4096,
        "rope_parameters": {"rope_type": "default", "mrope_section": SECTIONS[size], "rope_theta": 1e6},
    }
    vision = {**VISION[size], "patch_size": 14, "out_hidden_size": SIZES[size]["hidden_size"], "in_chans": 3}
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
    return model


def prompts_of(model: Qwen2_5_VLForConditionalGeneration, rows: int) -> dict[str, torch.Tensor]:
    """So many equal prompts of `PROMPT` tokens with a picture of noise each."""
    config, device = model.config, model.device
    words = range(10, 8 + PROMPT - IMAGE_TOKENS)
    row = [config.vision_start_token_id, *[config.image_token_id] * IMAGE_TOKENS, config.vision_end_token_id, *words]
    ids = torch.tensor([row] * rows, device=device)
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "mm_token_type_ids": (ids == config.image_token_id).long(),
        "image_grid_thw": torch.tensor([IMAGE_GRID] * rows, device=device),
        "pixel_values": torch.randn(rows * 28 * 40, 3 * 2 * 14 * 14, device=device, dtype=model.dtype),
    }


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
    model = qwen("small" if small else "7b", device, dtype)
    language = [p for name, p in model.named_parameters() if "visual" not in name]
    step_floor = sum(p.numel() * p.element_size() for p in language) / rate
    prefill = SharedPrefill(model)
    defaults = GenerationConfig(eos_token_id=None)
    for documents in (1, 2) if small else (1, 4, 8, 16):
        prompts = documents * (1 + N)
        inputs = prompts_of(model, prompts)
        owners = [d * (1 + N) + owner for d in range(documents) for owner in ALL_OWNERS]
        draws = SamplingPlan(n=N).draws("document") * documents

        def work(inputs: Any = inputs, owners: Any = owners, draws: Any = draws) -> None:
            sampler = TokenSampler(draws, {}, defaults, (), model.device)
            prefill.decode(inputs, owners, sampler, AnswerReader(Words(), defaults, ()), NEW_TOKENS)

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

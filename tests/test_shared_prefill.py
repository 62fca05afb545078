"""One prefill for all draws, on small random models of every verified family: the same answers as without."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import torch
from transformers import (
    CLIPVisionConfig,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    LlavaConfig,
    LlavaForConditionalGeneration,
    MllamaConfig,
    MllamaForConditionalGeneration,
    PaliGemmaConfig,
    PaliGemmaForConditionalGeneration,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    SiglipVisionConfig,
)

from hedge_tasks.models import decoding
from hedge_tasks.models.decoding import PlainGeneration, SharedPrefill
from hedge_tasks.models.token_sampling import AnswerReader, TokenSampler
from hedge_tasks.sampling import Draw

VOCABULARY = 100
IMAGE, START, END, VIDEO, PAD, EOS = 90, 91, 92, 93, 0, 1
SPECIAL = {IMAGE, START, END, VIDEO, PAD}
TEXT = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4}
VISION = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
QWEN_VISION = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "out_hidden_size": 64}
QWEN_VISION |= {"patch_size": 14}
PLACES = {"image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START}
TOKENS = {"bos_token_id": 2, "eos_token_id": EOS, "pad_token_id": PAD}


def sharpen(model: Any) -> Any:
    """Random weights give nearly flat distributions that the image hardly moves: errors would not show."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim >= 2:
                weight.mul_(4)
            if "mm_input_projection" in name or "_gate" in name:  # zero at initialisation
                weight.normal_(0, 0.3) if weight.ndim > 1 else weight.fill_(1.0)
    model.generation_config.update(**TOKENS)
    return model.eval()


def text_inputs(rows: list[list[int]]) -> dict[str, torch.Tensor]:
    """Prompts of different length, padded at their left."""
    longest = max(map(len, rows))
    ids = torch.tensor([[PAD] * (longest - len(row)) + row for row in rows])
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


def two_prompts(*, image_tokens: tuple[int, int] = (4, 4), words: tuple[int, int] = (9, 6)) -> dict[str, torch.Tensor]:
    return text_inputs(
        [
            [2, 5, 6, START, *[IMAGE] * tokens, END, *range(10, 10 + n)]
            for tokens, n in zip(image_tokens, words, strict=True)
        ]
    )


def llava() -> tuple[Any, dict[str, torch.Tensor]]:
    vision = CLIPVisionConfig(**VISION, image_size=32, patch_size=16)
    text = LlamaConfig(**TEXT, num_hidden_layers=2)
    config = LlavaConfig(vision_config=vision, text_config=text, image_token_index=IMAGE, vision_feature_layer=-1)
    return LlavaForConditionalGeneration(config), {**two_prompts(), "pixel_values": torch.randn(2, 3, 32, 32)}


def gemma3(window: int = 8) -> tuple[Any, dict[str, torch.Tensor]]:
    heads = {"num_key_value_heads": 2, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": window}
    layers = ["sliding_attention", "full_attention"] * 2
    text = Gemma3TextConfig(**TEXT, **heads, num_hidden_layers=4, layer_types=layers)
    vision = SiglipVisionConfig(**VISION, image_size=56, patch_size=14)
    tokens = {"image_token_index": IMAGE, "boi_token_index": START, "eoi_token_index": END, "mm_tokens_per_image": 4}
    config = Gemma3Config(text_config=text, vision_config=vision, **tokens)
    inputs = two_prompts()
    inputs["token_type_ids"] = (inputs["input_ids"] == IMAGE).long()
    return Gemma3ForConditionalGeneration(config), {**inputs, "pixel_values": torch.randn(2, 3, 56, 56)}


def qwen(version: str) -> tuple[Any, dict[str, torch.Tensor]]:
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    text = {**TEXT, **TOKENS, "num_hidden_layers": 2, "num_key_value_heads": 2, "rope_parameters": rope}
    vision = {**QWEN_VISION, "spatial_merge_size": 2, "temporal_patch_size": 2}
    model: Any
    if version == "2.5":
        vision |= {"window_size": 56, "fullatt_block_indexes": [1], "in_chans": 3}
        config = Qwen2_5_VLConfig(text_config=text, vision_config=vision, vision_end_token_id=END, **PLACES)
        model = Qwen2_5_VLForConditionalGeneration(config)
    else:
        vision |= {"in_channels": 3, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]}
        text |= {"head_dim": 16}
        config3 = Qwen3VLConfig(text_config=text, vision_config=vision, vision_end_token_id=END, **PLACES)
        model = Qwen3VLForConditionalGeneration(config3)
    # Two images of different size, so that the prompts have different numbers of tokens and rotary offsets.
    inputs = two_prompts(image_tokens=(6, 4), words=(9, 9))
    inputs["mm_token_type_ids"] = (inputs["input_ids"] == IMAGE).long()
    inputs["image_grid_thw"] = torch.tensor([[1, 4, 6], [1, 4, 4]])
    return model, {**inputs, "pixel_values": torch.randn(24 + 16, 3 * 2 * 14 * 14)}


def qwen35() -> tuple[Any, dict[str, torch.Tensor]]:
    """Three layers of linear attention, one of full attention."""
    rope = {"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    linear = {"linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 2}
    text = {**TEXT, **TOKENS, **linear, "linear_num_value_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2}
    text |= {"head_dim": 16, "rope_parameters": rope}
    vision = {**QWEN_VISION, "num_position_embeddings": 16}
    config = Qwen3_5Config(text_config=text, vision_config=vision, vision_end_token_id=END, **PLACES)
    return Qwen3_5ForConditionalGeneration(config), qwen("3")[1]


def lfm2() -> tuple[Any, dict[str, torch.Tensor]]:
    """Short convolutions between layers of attention, as in LFM2-VL."""
    layers = ["conv", "conv", "full_attention", "conv"]
    config = Lfm2Config(**TEXT, **TOKENS, num_hidden_layers=4, num_key_value_heads=2, layer_types=layers)
    return Lfm2ForCausalLM(config), text_only()[1]


def mllama() -> tuple[Any, dict[str, torch.Tensor]]:
    """Layers that look at the picture from the side; two tiles, of which the second prompt sees one."""
    text = {**TEXT, **TOKENS, "num_hidden_layers": 4, "num_key_value_heads": 2, "cross_attention_layers": [1, 3]}
    vision = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_global_layers": 1}
    vision |= {"attention_heads": 2, "image_size": 28, "patch_size": 14, "max_num_tiles": 2, "num_channels": 3}
    vision |= {"vision_output_dim": 64, "intermediate_layers_indices": [0]}
    vision |= {"supported_aspect_ratios": [[1, 1], [1, 2], [2, 1]]}
    config = MllamaConfig(text_config=text, vision_config=vision, image_token_index=IMAGE)
    inputs = two_prompts(image_tokens=(1, 1))
    seen = (inputs["input_ids"] == IMAGE).cumsum(1)[:, :, None, None] * torch.tensor([[1, 1], [1, 0]])[:, None, None]
    inputs |= {"aspect_ratio_ids": torch.tensor([[2], [1]]), "aspect_ratio_mask": torch.tensor([[[1, 1]], [[1, 0]]])}
    inputs |= {"cross_attention_mask": seen, "pixel_values": torch.randn(2, 1, 2, 3, 28, 28)}
    return MllamaForConditionalGeneration(config), inputs


def text_only() -> tuple[Any, dict[str, torch.Tensor]]:
    inputs = text_inputs([[2, *range(10, 24)], [2, *range(30, 42)]])
    return LlamaForCausalLM(LlamaConfig(**TEXT, num_hidden_layers=2)), inputs


def paligemma(text: str) -> tuple[Any, dict[str, torch.Tensor]]:
    """A prompt that sees itself whole; the second of the family has sliding windows."""
    shape = {**TEXT, **TOKENS, "model_type": text, "num_hidden_layers": 2, "num_key_value_heads": 2, "head_dim": 16}
    vision = {**VISION, "model_type": "siglip_vision_model", "image_size": 28, "patch_size": 14, "projection_dim": 64}
    config = PaliGemmaConfig(
        text_config=shape, vision_config=vision, image_token_index=IMAGE, projection_dim=64, hidden_size=64
    )
    inputs = two_prompts()
    inputs["token_type_ids"] = torch.zeros_like(inputs["input_ids"])
    return PaliGemmaForConditionalGeneration(config), {**inputs, "pixel_values": torch.randn(2, 3, 28, 28)}


FAMILIES = {
    "llava": llava,
    "gemma3": gemma3,
    "gemma3 with a wide window": lambda: gemma3(1024),
    "qwen2.5-vl": lambda: qwen("2.5"),
    "qwen3-vl": lambda: qwen("3"),
    "qwen3.5": qwen35,
    "lfm2": lfm2,
    "text only": text_only,
    "mllama": mllama,
    "paligemma": lambda: paligemma("gemma"),
    "paligemma 2": lambda: paligemma("gemma2"),
}
TOKENIZER = SimpleNamespace(
    eos_token_id=EOS, all_special_ids=[PAD, EOS], decode=lambda ids, **_: " ".join(map(str, ids))
)


def family(name: str) -> tuple[Any, dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    model, inputs = FAMILIES[name]()
    return sharpen(model), inputs


def repeat_prompts(inputs: dict[str, torch.Tensor], owners: list[int]) -> dict[str, torch.Tensor]:
    """The inputs with one row a draw, as if every draw were asked on its own."""
    repeated = {name: value[owners] for name, value in inputs.items() if name != "pixel_values"}
    if "pixel_values" not in inputs:
        return repeated
    if "image_grid_thw" not in inputs:
        return {**repeated, "pixel_values": inputs["pixel_values"][owners]}
    sizes = inputs["image_grid_thw"].prod(dim=1).tolist()
    images = inputs["pixel_values"].split(sizes)
    return {**repeated, "pixel_values": torch.cat([images[owner] for owner in owners])}


def first_prompt(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The first row alone; it has no padding."""
    return repeat_prompts(inputs, [0])


def sampler_and_reader(model: Any, draws: list[Draw]) -> tuple[TokenSampler, AnswerReader]:
    sampler = TokenSampler(draws, {}, model.generation_config, SPECIAL, torch.device("cpu"))
    return sampler, AnswerReader(TOKENIZER, model.generation_config, ())


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_that_finish_leave_the_batch_and_change_nothing(name: str) -> None:
    model, inputs = family(name)
    shared = SharedPrefill(model)
    assert shared.error(first_prompt(inputs)) < 1e-4  # the check passes where sharing is right
    model.generation_config.eos_token_id = list(range(60, 85))  # every fourth token ends an answer
    owners = [0] * 6 + [1] * 6
    draws = [Draw("clean", i, 1.5 if i % 6 else 0.1, i) for i in range(len(owners))]
    with patch.object(shared, "advance", wraps=shared.advance) as advance:
        answers = shared.decode(inputs, owners, *sampler_and_reader(model, draws), 14)
    plain = PlainGeneration(model).decode(repeat_prompts(inputs, owners), *sampler_and_reader(model, draws), 14)
    assert [answer.text for answer in answers] == [answer.text for answer in plain]
    assert [a.mean_logprob for a in answers] == pytest.approx([a.mean_logprob for a in plain], abs=5e-5)
    assert len({answer.n_tokens for answer in answers}) > 2
    first, *_, last = (len(call.args[2]) for call in advance.call_args_list)
    assert last < first


@pytest.mark.slow
@pytest.mark.parametrize("way", ["shared", "plain"])
@pytest.mark.parametrize("penalty", [1.05, 1.3])
def test_a_repetition_penalty_does_not_count_padding_as_said(penalty: float, way: str) -> None:
    """Where padding is the end token, as in many models, a short prompt would end its answers later beside a long."""
    model, inputs = family("llava")
    model.generation_config.repetition_penalty = penalty
    padding = inputs["attention_mask"] == 0
    inputs["input_ids"] = inputs["input_ids"].masked_fill(padding, EOS)
    long, short = inputs["input_ids"].shape[1], int((~padding[1]).sum())
    assert short < long
    alone = {name: value[1:] for name, value in inputs.items()}
    alone |= {name: alone[name][:, long - short :] for name in ("input_ids", "attention_mask")}
    draws = [Draw("clean", i, 1.0, 100 + i) for i in range(200)]

    def decode(given: dict[str, torch.Tensor], owners: list[int]) -> list[str]:
        parts = sampler_and_reader(model, [draws[0]] * (len(owners) - len(draws)) + draws)
        if way == "shared":
            answers = SharedPrefill(model).decode(given, owners, *parts, 24)
        else:
            answers = PlainGeneration(model).decode(repeat_prompts(given, owners), *parts, 24)
        return [answer.text for answer in answers[-len(draws) :]]

    assert decode(alone, [0] * len(draws)) == decode(inputs, [0, *[1] * len(draws)])


@pytest.mark.parametrize(("name", "forgets"), [("gemma3", True), ("qwen2.5-vl", True), ("qwen2.5-vl", False)])
def test_the_check_finds_what_is_forgotten(name: str, forgets: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Token types that do not reach the prefill, and positions that ignore the image: silent in the literature."""
    model, inputs = family(name)
    shared = SharedPrefill(model)
    prefill = shared.prefill

    def wrong(inputs: dict[str, torch.Tensor], owners: list[int]) -> Any:
        known = {k: v for k, v in inputs.items() if not forgets or k not in decoding._TOKEN_TYPES}
        state, cache = prefill(known, owners)
        if not forgets:
            state.positions = state.mask.sum(dim=1, keepdim=True) - 1  # one axis, an image's tokens all counted
        return state, cache

    monkeypatch.setattr(shared, "prefill", wrong)
    assert shared.error(first_prompt(inputs)) > 1e-2

"""The embedded model's own log-probability of an answer: one forward pass of transformers, none of our sampling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from PIL import Image

from hedge_tasks.models.tiny import vlm_path


@cache
def _model() -> tuple[Any, Any]:
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(vlm_path())
    return AutoModelForImageTextToText.from_pretrained(vlm_path(), dtype=torch.float32).eval(), processor


OPTIONS = ("upper", "upper left", "yes", "no", "small cyst")
"""Offered in the tests: one begins another, one the model never says."""


def deviation(messages: list[dict[str, Any]], text: str, mean_logprob: float | None, n_tokens: int | None) -> float:
    """|an adapter's mean log-probability of an answer - the model's own|, in nats per token.

    Adapters strip answers, and the model often begins with a blank, which is another token; so both spellings count.

    Args:
        messages: lmms-eval's conversation of the draw, with pictures.
        text, mean_logprob, n_tokens: the answer. Infinity is returned where no spelling has as many tokens.
    """
    if mean_logprob is None:
        return math.inf
    spellings = (forced_logprobs(messages, blank + text) for blank in ("", " "))
    own = (sum(logprobs) / len(logprobs) for logprobs in spellings if len(logprobs) == n_tokens)
    return min((abs(mean_logprob - mean) for mean in own), default=math.inf)


@torch.inference_mode()
def forced_logprobs(messages: list[dict[str, Any]], answer: str) -> list[float]:
    """Log-probability of each token of an answer over the raw distribution, in nats, the end token left out.

    Args:
        messages: lmms-eval's conversation of a draw, with pictures.
        answer: its text, which the tokenizer may split in another way than the sampler did.
    """
    model, processor = _model()
    prompt = _read(messages)
    tokens = processor.tokenizer(answer, add_special_tokens=False, return_tensors="pt").input_ids
    length = tokens.shape[1]
    inputs = {
        **prompt,
        "input_ids": torch.cat([prompt["input_ids"], tokens], dim=1),
        "attention_mask": torch.ones(1, prompt["input_ids"].shape[1] + length, dtype=torch.long),
    }
    logits = model(**{name: value for name, value in inputs.items() if name != "token_type_ids"}).logits[
        0, -length - 1 : -1
    ]
    return logits.float().log_softmax(dim=-1).gather(1, tokens[0][:, None])[:, 0].tolist()


@torch.inference_mode()
def reply_logprob(messages: list[dict[str, Any]], option: str) -> float:
    """Log-probability of an option as the whole reply, its end included, in both spellings of its first token."""
    model, processor = _model()
    prompt = _read(messages)
    [end] = [model.generation_config.eos_token_id]
    spellings = {
        (*processor.tokenizer(blank + option, add_special_tokens=False)["input_ids"], end) for blank in ("", " ")
    }
    whole = 0.0
    for tokens in spellings:
        inputs = {
            **prompt,
            "input_ids": torch.cat([prompt["input_ids"], torch.tensor([tokens])], dim=1),
            "attention_mask": torch.ones(1, prompt["input_ids"].shape[1] + len(tokens), dtype=torch.long),
        }
        logits = model(**{name: of for name, of in inputs.items() if name != "token_type_ids"}).logits
        shares = logits[0, -len(tokens) - 1 : -1].double().log_softmax(dim=-1)
        whole += math.exp(shares.gather(1, torch.tensor(tokens)[:, None]).sum().item())
    return math.log(whole)


@torch.inference_mode()
def first_logprobs(messages: list[dict[str, Any]], tokens: Iterable[str]) -> list[float | None]:
    """Log-probability of each text as the first token of the answer, in nats; None for one that is no single token."""
    model, processor = _model()
    known = model(**_read(messages)).logits[0, -1].float().log_softmax(dim=-1)
    ids = [processor.tokenizer(text, add_special_tokens=False)["input_ids"] for text in tokens]
    return [known[of[0]].item() if len(of) == 1 else None for of in ids]


@contextmanager
def class_token_last() -> Iterator[None]:
    """The vision tower as llama.cpp's graph for LLaVA has it: the class token behind the patches, and what stands first
    (a patch) left out in its place (https://github.com/ggml-org/llama.cpp/issues/25814)."""
    from transformers.models.clip.modeling_clip import CLIPVisionEmbeddings

    def forward(self: Any, pixel_values: torch.Tensor, **_: Any) -> torch.Tensor:
        patches = self.patch_embedding(pixel_values.to(self.patch_embedding.weight.dtype)).flatten(2).transpose(1, 2)
        token = self.class_embedding.expand(len(patches), 1, -1)
        return torch.cat([patches, token], dim=1) + self.position_embedding(self.position_ids)

    before = CLIPVisionEmbeddings.forward
    CLIPVisionEmbeddings.forward = forward
    try:
        yield
    finally:
        CLIPVisionEmbeddings.forward = before


def _read(messages: list[dict[str, Any]]) -> Any:
    conversation = [{"role": turn["role"], "content": [_part(part) for part in turn["content"]]} for turn in messages]
    return _model()[1].apply_chat_template(
        conversation, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )


def _part(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "text":
        return part
    assert isinstance(part["url"], Image.Image)
    return {"type": "image", "image": part["url"]}

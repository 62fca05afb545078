"""How much a model looks at its picture while it says each token of a given text (VOPE section 4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from hedge_tasks.errors import ConfigError
from hedge_tasks.models.decoding import continued, positions_of

_FEWEST = 2
"""A single image token is a mark in the text: the picture itself is read elsewhere, by cross-attention."""


@torch.inference_mode()
def image_attention(model: Any, inputs: Mapping[str, Any], tokens: Sequence[int], image_token: int) -> list[float]:
    """Share of the attention that goes to image tokens as each token of a text is said.

    Of the position that says a token, the one before it, the attention on all image tokens is summed, and averaged over
    heads and layers.

    Args:
        model: a transformers model with the eager implementation of attention; no other tells its weights.
        inputs: one processed prompt.
        tokens: that are said after it.
        image_token: id of the placeholder that stands in the prompt once for every embedding of a picture.

    Returns:
        A share in [0, 1] for each token.

    Raises:
        ConfigError: the prompt has no picture, the model reads it by cross-attention, or tells no weights.
    """
    ids = inputs["input_ids"]
    if not tokens:
        return []
    longer, _ = continued(model, inputs, [tokens])
    seen = longer["input_ids"][0] == image_token
    if int(seen.sum()) < _FEWEST:
        raise ConfigError("attention: the prompt has no image tokens (no picture, or one that cross-attention reads)")
    output = model(
        **longer, position_ids=positions_of(model, longer), use_cache=False, output_attentions=True, logits_to_keep=1
    )
    layers = [layer for layer in output.attentions or () if layer is not None]
    if not layers:
        raise ConfigError("attention: the model tells no attention weights")
    first = ids.shape[1] - 1
    # One layer at a time: together they may be gigabytes in single precision.
    shares = [layer[0, :, first:-1, :][..., seen].float().sum(-1).mean(0) for layer in layers]
    return [float(share) for share in torch.stack(shares).mean(0)]


@contextmanager
def eager(model: Any) -> Iterator[None]:
    """The eager implementation of attention for a while.

    Raises:
        ConfigError: the model has none.
    """
    before = model.config._attn_implementation
    try:
        model.set_attn_implementation("eager")
    except ValueError as error:
        raise ConfigError(f"attention: the model has no eager implementation of attention: {error}") from error
    try:
        yield
    finally:
        model.set_attn_implementation(before)

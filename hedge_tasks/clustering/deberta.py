"""Short inputs at the price of short inputs: DeBERTa-v2 (and v3) without the relative positions that cannot occur.

The attention of transformers' DeBERTa-v2 computes, for every token and in every layer, a score for each of its (usually
2 x 256) buckets of relative positions, and then looks up the few that occur: two texts of 10 tokens are never further
than 20 tokens apart. Handing each layer only the embeddings of those buckets leaves every looked-up score as it is.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from loguru import logger

# Lengths at which the sliced model is compared with the whole one: a pair of words, of phrases, of sentences.
_CHECKED_LENGTHS = (6, 19, 70)

# Largest difference of the logits, relative to the largest logit, that rounding may make.
_TOLERANCE = {"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}


def slice_relative_positions(model: Any) -> bool:
    """Make a loaded DeBERTa-v2 compute only the relative positions that its input can have.

    Changes this model object only, and only if its logits on a few inputs stay the same; where they do not, or the
    model is built in another way than expected, it is left as it was, and a warning says so. A model of another
    architecture is left alone without a word.

    Args:
        model: A `DebertaV2ForSequenceClassification` of transformers, in evaluation mode.

    Returns:
        Whether the model now slices.
    """
    if getattr(model.config, "model_type", None) != "deberta-v2" or not model.config.relative_attention:
        return False
    try:
        slicer = _Slicer(model.deberta.encoder)
        difference = _largest_difference(model, slicer)
    except (AttributeError, TypeError, IndexError, RuntimeError) as error:
        logger.warning("DeBERTa is not built as expected ({}): it runs without the short cut for short texts", error)
        return False
    tolerance = _TOLERANCE.get(str(model.dtype).removeprefix("torch."), 0.0)
    if not difference <= tolerance:
        logger.warning(
            "DeBERTa's short cut for short texts changes its logits by {:.1e}: it runs without it", difference
        )
        return False
    slicer.install()
    return True


class _Slicer:
    """Switches the encoder of a model between all buckets and those that occur.

    Raises:
        AttributeError: If the encoder is not built as in transformers.
    """

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._attentions = [layer.attention.self for layer in encoder.layer]
        spans = {attention.pos_ebd_size for attention in self._attentions}
        if len(spans) != 1 or encoder.rel_embeddings.weight.shape[0] != 2 * max(spans):
            raise AttributeError("the layers do not share their relative positions")
        self._whole = int(spans.pop())
        self._current = self._whole
        self._spans: dict[int, int] = {}
        self._hook: Any = None

    def install(self) -> None:
        encoder = self._encoder
        whole_embedding = type(encoder).get_rel_embedding

        def get_rel_embedding(this: Any) -> Any:
            middle, span = self._whole, self._current
            return whole_embedding(this)[middle - span : middle + span]

        encoder.get_rel_embedding = types.MethodType(get_rel_embedding, encoder)
        self._hook = encoder.register_forward_pre_hook(self._before_forward, with_kwargs=True)

    def remove(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            del self._encoder.get_rel_embedding
            self._hook = None
        self._use(self._whole)

    def _before_forward(self, _: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        hidden_states = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
        length = hidden_states.shape[1]
        if length not in self._spans:
            self._spans[length] = min(self._span(hidden_states), self._whole)
        self._use(self._spans[length])

    def _span(self, hidden_states: Any) -> int:
        """Buckets `-span .. span - 1` are kept. The attention clamps to that range: none in use may lie outside."""
        return int(self._encoder.get_rel_pos(hidden_states).abs().max()) + 1

    def _use(self, span: int) -> None:
        self._current = span
        for attention in self._attentions:
            attention.pos_ebd_size = span


def _largest_difference(model: Any, slicer: _Slicer) -> float:
    """Largest difference that slicing makes to the logits, relative to the largest logit."""
    inputs = [_sample(model, length) for length in _CHECKED_LENGTHS if length <= model.config.max_position_embeddings]
    whole = [_logits(model, sample) for sample in inputs]
    slicer.install()
    try:
        sliced = [_logits(model, sample) for sample in inputs]
    finally:
        slicer.remove()
    return max(float((a - b).abs().max() / a.abs().max().clamp_min(1.0)) for a, b in zip(whole, sliced, strict=True))


def _sample(model: Any, length: int) -> dict[str, Any]:
    """Two inputs with all sorts of tokens, the second one padded."""
    import torch

    ids = (torch.arange(2 * length).reshape(2, length) * 7919 + 11) % model.config.vocab_size
    mask = torch.ones_like(ids)
    mask[1, length // 2 :] = 0
    return {"input_ids": ids.to(model.device), "attention_mask": mask.to(model.device)}


def _logits(model: Any, sample: dict[str, Any]) -> Any:
    import torch

    with torch.inference_mode():
        return model(**sample).logits.float()

r"""PAI: every token looks more at the picture while it is chosen (Liu et al. 2024, arXiv 2407.21771, section 4.1).

.. math:: \tilde A_{n, j} = A_{n, j} + \alpha \lvert A_{n, j} \rvert

for scores :math:`A` before the softmax, of the position n that a token is chosen at and the image tokens j, in all
heads of the later layers. The paper's second part, a contrast with the prompt without its picture, is not here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from hedge_tasks.errors import ConfigError, HedgeError
from hedge_tasks.io.options import number
from hedge_tasks.models.contrast import Wrapped
from hedge_tasks.models.decoding import select_rows

_IMPLEMENTATION = "hedge_pai"
FEWEST = 2
"""A single image token is a mark in the text: the picture itself is read elsewhere, by cross-attention."""


@dataclass(frozen=True)
class Pai:
    """Attention to the picture, amplified.

    Attributes:
        alpha: by how much; 0 changes nothing.
        first_layer: from which one on, counted from 0.
    """

    alpha: float = 0.2
    first_layer: int = 2

    name = "pai"
    beta = 0.0
    needs_pictures = True

    def __post_init__(self) -> None:
        number("alpha", self.alpha)
        if self.first_layer < 0:
            raise ConfigError(f"first_layer: expected an integer of at least 0, got {self.first_layer}")

    @property
    def settings(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"name": self.name, **asdict(self)}

    def wrap(self, model: Any) -> PaiModel:
        return PaiModel(model, self)


@dataclass
class _Seen:
    """A cache, and which tokens of each prompt stand for a picture, shape (rows, tokens)."""

    cache: Any
    image: torch.Tensor

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        select_rows(self.cache, indices)
        self.image = self.image[indices.to(self.image.device)]


@dataclass(frozen=True)
class _Looking:
    """Facts of a call that attention reads.

    Attributes:
        image: tokens that stand for a picture, shape (rows, all tokens).
        n_choosing: positions at the end that tokens are chosen at.
    """

    image: torch.Tensor
    n_choosing: int
    settings: Pai


_LOOKING: ContextVar[_Looking | None] = ContextVar("hedge_pai", default=None)


class PaiModel(Wrapped):
    """A model that is called, and asked for anything else, as the one in it; its eager attention is amplified.

    Raises:
        ConfigError: the model has no image tokens, or no such layer.
    """

    def __init__(self, model: Any, settings: Pai) -> None:
        super().__init__(model)
        self._settings, self._token = settings, image_token(model.config)
        if self._token is None:
            raise ConfigError("decoding=pai: the model has no image token")
        if settings.first_layer >= (depth := model.config.get_text_config().num_hidden_layers):
            raise ConfigError(f"first_layer: {settings.first_layer} is behind the last of the model's {depth} layers")
        AttentionInterface.register(_IMPLEMENTATION, _attend)
        AttentionMaskInterface.register(_IMPLEMENTATION, eager_mask)

    def __call__(self, *, past_key_values: _Seen | None = None, **inputs: Any) -> Any:
        if past_key_values is None:
            image = inputs["input_ids"] == self._token
            if bool((image.sum(dim=1) < FEWEST).any()):
                raise HedgeError("decoding=pai: a prompt has no image tokens, or cross-attention reads its picture")
        else:
            image = past_key_values.image
        cache = None if past_key_values is None else past_key_values.cache
        width = inputs["attention_mask"].shape[1] - image.shape[1]
        everything = torch.nn.functional.pad(image, (0, width))
        with self._amplified(_Looking(everything, inputs.get("logits_to_keep", 1), self._settings)):
            output = self._model(past_key_values=cache, **inputs)
        output.past_key_values = _Seen(output.past_key_values, image)
        return output

    @contextmanager
    def _amplified(self, looking: _Looking) -> Iterator[None]:
        # Whoever looks inside the model sets its implementation, and sets it back for all of its parts.
        if self._model.config.get_text_config()._attn_implementation != _IMPLEMENTATION:
            self._model.set_attn_implementation({"text_config": _IMPLEMENTATION})
        before = _LOOKING.set(looking)
        try:
            yield
        finally:
            _LOOKING.reset(before)


def _attend(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, **options: Any
) -> Any:
    """Return the family's own eager attention; what is added to its scores is added to its mask."""
    looking = _LOOKING.get()
    if looking is not None and module.layer_idx >= looking.settings.first_layer:
        bonus = _bonus(looking, query, key, options)
        mask = bonus if mask is None else mask + bonus
    return sys.modules[type(module).__module__].eager_attention_forward(module, query, key, value, mask, **options)


def _bonus(looking: _Looking, query: torch.Tensor, key: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    """To be added to the scores, shape (rows, heads, queries, keys)."""
    rows, heads, n_queries, width = query.shape
    keys = key.repeat_interleave(heads // key.shape[1], dim=1)
    n = min(looking.n_choosing, n_queries)
    scale = options.get("scaling")
    scores = query[:, :, -n:] @ keys.transpose(2, 3) * (width**-0.5 if scale is None else scale)
    if (cap := options.get("softcap")) is not None:
        scores = cap * torch.tanh(scores / cap)
    # Layers with a sliding window have the last keys only.
    image = looking.image[:, None, None, -keys.shape[2] :].to(scores.device)
    bonus = scores.new_zeros(rows, heads, n_queries, keys.shape[2])
    bonus[:, :, -n:] = looking.settings.alpha * scores.abs() * image
    return bonus


def image_token(config: Any) -> int | None:
    """Return the token that stands in a prompt once for every embedding of a picture."""
    named = (getattr(config, name, None) for name in ("image_token_id", "image_token_index"))
    return next((value for value in named if isinstance(value, int)), None)

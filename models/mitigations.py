r"""Decoding against hallucination: VCD and DoLa, as a model whose logits are contrasted.

Wrapped in one of these, a transformers model gives contrasted logits to whoever calls it: the draws, forced passes and
whole replies are all of one distribution, the one that is sampled from at temperature 1. Temperature, top-p and the
model's repetition penalty come after the contrast, as in both releases.

VCD (Leng et al. 2024, arXiv 2311.16922, equations 2 and 3) contrasts the picture with a noisy one; DoLa (Chuang et al.
2024, arXiv 2309.03883, equations 2 to 5) the last layer with an earlier one. VOPE (arXiv 2511.13420) evaluates both in
section 4.7.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import torch
from pydantic import BeforeValidator, Field, NonNegativeInt

from hedge_tasks.errors import ConfigError, HedgeError, unknown
from hedge_tasks.models.contrast import Caches, Method, Wrapped, contrasted, plausible

DISTORTED = "distorted_pixel_values"
"""Input of a wrapped model: the noisy pictures, shaped as `pixel_values`."""

_STEPS = 1000
_DEEP = 40
"""Layers above which the candidates of a half are the 20 next to its outer end, as in DoLa's release."""

_HEAD_TOLERANCE = 1e-2
"""Of the largest logit: how far the last layer through the head may be from the model's own logits."""


Plausibility = Annotated[float, Field(ge=0, lt=1)]
"""Tokens less likely than this share of the likeliest one are never chosen; 0 leaves all of them."""


class Vcd(Method):
    """Visual contrastive decoding.

    Attributes:
        alpha: strength; 0 contrasts nothing.
        beta: the plausibility constraint.
        noise_step: of the 1,000 steps of the diffusion, how many the other picture has gone through, less one.
    """

    alpha: Annotated[float, Field(ge=0)] = 1.0
    beta: Plausibility = 0.1
    noise_step: Annotated[int, Field(ge=0, lt=_STEPS)] = 500

    name: ClassVar[str] = "vcd"

    def wrap(self, model: Any) -> VcdModel:
        return VcdModel(model, self)


def _layer_numbers(layers: object) -> object:
    """Numbers of layers as a command line has them, `2` or `0/2/4`."""
    numbers = str(layers).split("/")
    return tuple(sorted(set(map(int, numbers)))) if all(map(str.isdecimal, numbers)) else layers


class Dola(Method):
    """Decoding by contrasting layers.

    Attributes:
        layers: "low" or "high" half, or numbers of layers such as `0/2/4`; 0 is the embedding of the tokens.
        beta: the plausibility constraint (the paper's alpha).
    """

    layers: Annotated[
        Literal["low", "high"] | Annotated[tuple[NonNegativeInt, ...], Field(min_length=1)],
        BeforeValidator(_layer_numbers),
    ] = "high"
    beta: Plausibility = 0.1

    name: ClassVar[str] = "dola"
    needs_pictures: ClassVar[bool] = False

    def wrap(self, model: Any) -> DolaModel:
        return DolaModel(model, self)


Mitigation: TypeAlias = Vcd | Dola

_METHODS: Mapping[str, type[Vcd] | type[Dola]] = {"vcd": Vcd, "dola": Dola}


def mitigation(decoding: str | None, **options: Any) -> Mitigation | None:
    """Read the model argument `decoding` and those that belong to it; an option that is None is left at its default.

    Raises:
        ConfigError: there is no such decoding, it has no such option, or a value makes no sense.
    """
    settings = {name: value for name, value in options.items() if value is not None}
    if decoding is None:
        if settings:
            raise ConfigError(f"{next(iter(settings))}: belongs to decoding=vcd or dola, and none is set")
        return None
    if decoding in ("pure", "model"):
        raise ConfigError(f"decoding={decoding} says how draws are sampled and belongs to --gen_kwargs")
    if decoding not in _METHODS:
        raise unknown("decoding", decoding, _METHODS)
    return _METHODS[decoding](**settings)


# --- VCD --------------------------------------------------------------------------------------------------------------


class VcdModel(Wrapped):
    """Two passes a call, the second one with the noisy pictures in `DISTORTED` in place of the others."""

    def __init__(self, model: Any, settings: Vcd) -> None:
        super().__init__(model)
        self._settings = settings

    def __call__(self, *, past_key_values: Caches | None = None, **inputs: Any) -> Any:
        distorted = inputs.pop(DISTORTED, None)
        if past_key_values is None and distorted is None:
            raise ConfigError("decoding=vcd contrasts pictures, and there is none in the prompt")
        noisy = inputs if distorted is None else {**inputs, "pixel_values": distorted}
        caches = past_key_values or Caches(None, None)
        output = self._model(past_key_values=caches.main, **inputs)
        noisy_output = self._model(past_key_values=caches.other, **noisy)
        output.logits = contrasted(output.logits, noisy_output.logits, self._settings.alpha, self._settings.beta)
        output.past_key_values = Caches(output.past_key_values, noisy_output.past_key_values)
        return output


def diffused(pixels: torch.Tensor, noise: torch.Tensor, step: int) -> torch.Tensor:
    r"""Return a picture after some steps of the forward diffusion.

    .. math:: \sqrt{a_t}\, v + \sqrt{1 - a_t}\, \epsilon, \quad a_t = \prod_{s \le t} (1 - \beta_s)

    Source: VCD, equation 1; its release has :math:`\beta_s` on a sigmoid from 1e-5 to 5e-3 over 1,000 steps, and noises
    pixels as the model's processor has normalised them.
    """
    rates = torch.sigmoid(torch.linspace(-6, 6, _STEPS, dtype=torch.float64)) * (0.5e-2 - 1e-5) + 1e-5
    share = torch.cumprod(1 - rates, dim=0)[step].item()
    return math.sqrt(share) * pixels + math.sqrt(1 - share) * noise


def distorted_pixels(inputs: Mapping[str, Any], step: int, frames: int = 1) -> torch.Tensor:
    """Return the pictures of processed prompts, noisy, each from its own seed: neither batch nor order changes them.

    Args:
        inputs: of a processor, on the CPU: pictures, tiles or patches.
        step: of the diffusion.
        frames: that each patch repeats a still picture for (Qwen-VL); all of them get the same noise.

    Raises:
        HedgeError: it is not known which of the pixels are a picture.
    """
    if "pixel_values" not in inputs:
        raise HedgeError("decoding=vcd: the model's processor has no pixel_values that could be noised")
    pixels: torch.Tensor = inputs["pixel_values"].float()
    grids, sizes = inputs.get("image_grid_thw"), inputs.get("image_sizes")
    if pixels.ndim == 2 and grids is not None:
        pictures = pixels.split(grids.prod(dim=1).tolist())
        return torch.cat([_noisy_patches(picture, step, frames) for picture in pictures])
    if pixels.ndim < 4:
        raise HedgeError(f"decoding=vcd: pixels of shape {tuple(pixels.shape)} are no pictures that could be noised")
    tiles = pixels.flatten(0, -4).clone()
    own = (
        sizes.tolist() if sizes is not None and pixels.ndim == 4 and len(sizes) == len(pixels) else [None] * len(tiles)
    )
    for tile, size in zip(tiles, own, strict=True):
        # What fills a picture up to the size of others is no part of it, and would make its noise depend on them.
        part = tile if size is None else tile[:, : size[0], : size[1]]
        part.copy_(_noisy(part, step))
    return tiles.reshape(pixels.shape)


def _noisy(picture: torch.Tensor, step: int) -> torch.Tensor:
    """One picture; of zeros alone it only fills a batch up, and stays what it is: models find such ones by that."""
    if not picture.any():
        return picture
    return diffused(picture, _noise(picture, picture.shape), step)


def _noisy_patches(picture: torch.Tensor, step: int, frames: int) -> torch.Tensor:
    """Return one picture of patches with its noise, shape (patches, channels * frames * pixels)."""
    apart = picture.reshape(len(picture), 3, frames, -1)
    noise = _noise(picture, (*apart.shape[:2], 1, apart.shape[3]))
    return diffused(apart, noise, step).reshape(picture.shape)


def _noise(picture: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    # Coarse, so that a rounding in the processor changes nothing. Two pictures of one seed do no harm.
    seen = f"{tuple(picture.shape)}:{picture.mean():.3f}:{picture.std():.3f}"
    seed = int.from_bytes(hashlib.sha256(seen.encode()).digest()[:8], "big")
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(tuple(shape), dtype=np.float32))


# --- DoLa -------------------------------------------------------------------------------------------------------------


class DolaModel(Wrapped):
    """One pass a call, and the head once more for each candidate layer."""

    def __init__(self, model: Any, settings: Dola) -> None:
        super().__init__(model)
        text = model.config.get_text_config()
        self._head = model.get_output_embeddings()
        self._cap: float | None = getattr(text, "final_logit_softcapping", None)
        tied = model.get_input_embeddings().weight is self._head.weight
        self.candidates = candidate_layers(settings.layers, text.num_hidden_layers, tied=tied)
        self._beta, self._checked = settings.beta, False

    def __call__(self, **inputs: Any) -> Any:
        output = self._model(**inputs, output_hidden_states=True)
        layers, n = output.hidden_states, output.logits.shape[1]
        if not self._checked:
            self._check(layers[-1][:, -n:], output.logits)
        earlier = (self._through_head(layers[i][:, -n:]).to(output.logits.device) for i in self.candidates)
        output.logits = layers_contrasted(output.logits, earlier, self._beta)
        output.hidden_states = None
        return output

    def _through_head(self, states: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self._head(states.to(self._head.weight.device))
        return logits if self._cap is None else self._cap * torch.tanh(logits / self._cap)

    def _check(self, states: torch.Tensor, logits: torch.Tensor) -> None:
        error = (self._through_head(states).to(logits.device) - logits).abs().max().item()
        if not error <= _HEAD_TOLERANCE * logits.abs().max().item():
            raise HedgeError(
                "decoding=dola: the model's logits are not its last layer through its head "
                f"(they differ by {error:.2g}), so that earlier layers cannot be read alike"
            )
        self._checked = True


def candidate_layers(layers: str | Sequence[int], depth: int, *, tied: bool) -> tuple[int, ...]:
    """Layers that may be contrasted with the last one: even ones of a half, as in DoLa's release, or those given.

    Args:
        layers: "low", "high", or numbers; 0 is the embedding of the tokens.
        depth: number of layers.
        tied: whether the head is the embedding; a half then leaves out the layers that only say the last token again.

    Raises:
        ConfigError: the model has no such layer before its last one.

    Example:
        >>> candidate_layers("low", 8, tied=False), candidate_layers("high", 8, tied=False)
        ((0, 2), (4, 6))
    """
    if not isinstance(layers, str):
        if beyond := [layer for layer in layers if layer >= depth]:
            raise ConfigError(f"layers: {beyond[0]} is not before the last of the model's {depth} layers")
        return tuple(layers)
    half = depth // 2
    if layers == "high":
        return tuple(range(half if depth <= _DEEP else depth - 20, depth, 2))
    first = min(2, half) if tied else 0
    return tuple(range(first, half if depth <= _DEEP else 20, 2)) or (first,)


def layers_contrasted(mature: torch.Tensor, earlier: Iterable[torch.Tensor], beta: float) -> torch.Tensor:
    r"""Logits of DoLa, float32, shape (..., vocabulary).

    .. math:: \log q_N(y) - \log q_M(y), \quad M = \arg\max_j \operatorname{JSD}(q_N \| q_j)

    at every position and row by itself, where :math:`q_N(y) \ge \beta \max_w q_N(w)`; else minus infinity. The release
    swaps the arguments of both divergences, and chooses one layer for all rows of a batch by their mean; this is the
    paper's equation, by which no answer depends on its batch.

    Args:
        mature: logits of the last layer, shape (..., vocabulary).
        earlier: those of each candidate; of equally distant ones the first counts.
    """
    last = mature.float().log_softmax(-1)
    farthest: torch.Tensor | None = None
    chosen = last
    for logits in earlier:
        premature = logits.float().log_softmax(-1)
        distance = jensen_shannon(last, premature)
        if farthest is None:
            farthest, chosen = distance, premature
            continue
        farther = distance > farthest
        chosen = torch.where(farther[..., None], premature, chosen)
        farthest = torch.where(farther, distance, farthest)
    return plausible(last - chosen, last, beta)


def jensen_shannon(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon divergence in nats between distributions given by their logarithms, over the last dimension."""
    middle = torch.logaddexp(p, q) - math.log(2)
    return ((p.exp() * (p - middle)).sum(-1) + (q.exp() * (q - middle)).sum(-1)) / 2

"""ADV: untargeted projected gradient descent against a vision encoder (Madry et al. 2018; SHALE section 3.2)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from PIL import Image

from hedge_tasks.errors import ConfigError, first_line
from hedge_tasks.llm.loading import resolve_model

# One attack at a time: pictures are made in several threads, and the encoder and its device are shared.
_lock = threading.Lock()


def attack(
    image: Image.Image, encoders: Sequence[str], *, seed: int, epsilon: float, step: float, steps: int
) -> Image.Image:
    r"""The picture with the noise that drives its embeddings furthest from those of the clean one.

    .. math::
        \max_{\|\delta\|_\infty \le \epsilon} \; -\sum_f \cos\bigl(f(x + \delta), f(x)\bigr),

    over all encoders f, from a random start, by `steps` steps along the sign of the gradients' sum, each divided by the
    mean of its absolute values. The noise has the picture's own resolution and goes through the encoders' resizing and
    normalisation, so that it survives being saved and read again.

    Args:
        image: 8-bit RGB.
        encoders: models of transformers (hub id, folder or `package://` address): CLIP, SigLIP, ViT, DINOv2, LLaVA, ...
            Noise that deceives several at a time is more likely to deceive one that was not attacked.
        epsilon, step: where 1 is the full range of a pixel value.

    Returns:
        The picture; no value differs by more than epsilon, rounded to the nearest grey level inside.

    Raises:
        ConfigError: an encoder cannot be loaded.
    """
    import torch

    with _lock:
        embedders = [_embedder(encoder) for encoder in encoders]
        generator = torch.Generator().manual_seed(seed & (2**63 - 1))
        clean = torch.from_numpy(np.array(image, np.float32) / 255).permute(2, 0, 1)[None]
        with torch.no_grad():
            targets = [embed(clean) for embed in embedders]
        noise = (torch.rand(clean.shape, generator=generator) * 2 - 1) * epsilon
        for _ in range(steps):
            noise = ((clean + noise).clamp(0, 1) - clean).requires_grad_(True)
            direction = torch.zeros_like(noise)
            for embed, target in zip(embedders, targets, strict=True):
                similarity = torch.nn.functional.cosine_similarity(embed(clean + noise), target, dim=-1).sum()
                [gradient] = torch.autograd.grad(similarity, noise)
                # Each encoder weighs the same: of a plain sum the one that is easiest to move would decide all signs.
                direction += gradient / gradient.abs().mean().clamp_min(1e-12)
            noise = (noise - step * direction.sign()).clamp(-epsilon, epsilon).detach()
        # Towards zero: rounding must not leave the ball.
        levels = torch.trunc(noise * 255)
        pixels = (clean * 255).round() + levels
        return Image.fromarray(pixels.clamp(0, 255)[0].permute(1, 2, 0).numpy().astype(np.uint8))


@lru_cache(maxsize=8)
def _embedder(name: str) -> Any:
    """A differentiable function: picture of shape (1, 3, h, w) in 0..1 -> embedding of shape (1, d)."""
    import torch
    from transformers import AutoImageProcessor, AutoModel

    try:
        source = resolve_model(name)
        model, processor = AutoModel.from_pretrained(source), AutoImageProcessor.from_pretrained(source)
    except Exception as error:  # network, authorisation, missing files: told apart by the text, helped alike
        raise ConfigError(
            f"perturbation: the vision encoder {name!r} cannot be loaded ({first_line(error)}); name another "
            "one: perturbation: {kind: induction, name: shale_adv, encoder: MODEL}"
        ) from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = model.eval().requires_grad_(False).to(device)
    mean, std = (torch.tensor(_channels(processor, key)).view(1, 3, 1, 1).to(device) for key in ("mean", "std"))
    size = _side(processor, model)

    def embed(picture: Any) -> Any:
        resized = torch.nn.functional.interpolate(
            picture.to(device), (size, size), mode="bilinear", antialias=True, align_corners=False
        )
        pixels = (resized - mean) / std
        out = model.get_image_features(pixels) if hasattr(model, "get_image_features") else model(pixel_values=pixels)
        return _vector(out).to(picture.device)

    return embed


def _vector(out: Any) -> Any:
    """One vector a picture, of what a model gives: a vector, one vector a patch, or an output that holds these."""
    pooled = getattr(out, "pooler_output", None)
    if pooled is None:
        pooled = getattr(out, "last_hidden_state", out)
    vectors = pooled[0] if isinstance(pooled, (list, tuple)) else pooled
    return vectors.reshape(-1, vectors.shape[-1]).mean(0, keepdim=True)


def _channels(processor: Any, key: str) -> list[float]:
    values = getattr(processor, f"image_{key}", None)
    return [float(value) for value in values] if values else [0.5] * 3


def _side(processor: Any, model: Any) -> int:
    crop, size = getattr(processor, "crop_size", None) or {}, getattr(processor, "size", None) or {}
    config = getattr(model.config, "vision_config", model.config)
    sides = (crop.get("height"), size.get("height"), size.get("shortest_edge"), getattr(config, "image_size", None))
    return int(next((side for side in sides if isinstance(side, int)), 224))

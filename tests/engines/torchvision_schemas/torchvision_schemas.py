"""Declares the two operators for which torchvision registers shapes even where its compiled part could not be loaded.

torch calls `declare` as it is imported (entry point `torch.backends`). Only where torch has no CUDA: elsewhere
torchvision declares them itself, and a second declaration would be an error.
"""

from __future__ import annotations

from typing import Any

_KEPT: list[Any] = []
"""A library that is collected takes its operators with it."""


def declare() -> None:
    """Declare `torchvision::nms` and `torchvision::qnms`, without an implementation."""
    import torch

    if torch.version.cuda is None:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _KEPT.append(library)

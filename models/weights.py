"""Weights of hedge_hf: on which devices they lie, in which precision, and what to do when the memory is full."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from loguru import logger
from transformers.utils import is_flash_attn_2_available

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.options import count

DeviceMap = str | Mapping[str, Any]


def default_device() -> str:
    """This rank's GPU, or the CPU.

    Raises:
        ConfigError: there are fewer GPUs than ranks. Every rank of this machine finds that, so that none waits for one
            that has ended.
    """
    if not torch.cuda.is_available():
        return "cpu"
    rank, gpus = int(os.environ.get("LOCAL_RANK", 0)), torch.cuda.device_count()
    if (ranks := max(int(os.environ.get("LOCAL_WORLD_SIZE", 1)), rank + 1)) > gpus:
        has = f"and this machine has only {gpus}: torchrun --nproc-per-node {gpus} ..."
        raise ConfigError(f"{ranks} processes need a GPU each, {has}")
    return f"cuda:{rank}"


def placement(device: str | None, device_map: DeviceMap | None) -> Any:
    """Return the `device_map` that transformers is given.

    Without one the whole model goes to one device: weights are then read straight to it, and never lie in the memory of
    the host as a whole.

    Args:
        device: such as "cuda:1".
        device_map: as transformers takes it.

    Raises:
        ConfigError: both are given.
    """
    if device_map is None:
        return {"": torch.device(device or default_device())}
    if device is not None:
        raise ConfigError(f"device, device_map: give one of them; {device!r} is one device, a map spreads the model")
    return device_map


def input_device(model: Any) -> torch.device:
    """Return where a prompt goes: to the device of the layer that reads it first; the model takes it from there."""
    embeddings = model.get_input_embeddings()
    # Of weights that are fetched when they are needed (offloaded) the hook knows the device.
    device = getattr(getattr(embeddings, "_hf_hook", None), "execution_device", None)
    return embeddings.weight.device if device is None else torch.device(device)


def pixel_limits(least: object, most: object) -> dict[str, int]:
    """Return the arguments of the image processor that are given.

    Raises:
        ConfigError: one is no positive integer.
    """
    values = {"min_pixels": least, "max_pixels": most}
    return {name: count(name, value, at_least=1) for name, value in values.items() if value is not None}


def check_pixel_limits(limits: Mapping[str, int], processor: Any, name: str) -> None:
    """Refuse limits that the processor would ignore.

    Raises:
        ConfigError: there are limits, and this model's images all become equally large.
    """
    images = getattr(processor, "image_processor", None)
    supported = getattr(getattr(images, "valid_kwargs", None), "__annotations__", {})
    for limit in limits:
        if limit not in supported:
            what = "it reads text only" if images is None else f"{type(images).__name__} has no such limit"
            raise ConfigError(f"{limit}: {name} cannot be told how many pixels it may read; {what}")


MOST_DOCUMENTS = 16
"""A batch does not grow beyond: with n = 10 these are 336 rows, where a step has become work and is no waiting."""

_FILLED = 0.8
"""Share of a GPU's memory that a batch may be expected to take."""


class GrowingBatch:
    """How many documents a batch holds: twice as many after each one, as long as the memory of all GPUs allows it.

    The memory above the weights is taken to grow in proportion. On a CPU there is nothing to be gained: one document.

    Args:
        model: whose weights are in their places.

    Attributes:
        documents: of the next batch.
    """

    def __init__(self, model: Any) -> None:
        self.documents = 1
        self._gpus = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})

    @contextmanager
    def watched(self, documents: int) -> Iterator[None]:
        """While a batch of so many documents is made. One that was planned before the last growth tells nothing new."""
        idle = list(map(torch.cuda.memory_allocated, self._gpus))
        for gpu in self._gpus:
            torch.cuda.reset_peak_memory_stats(gpu)
        yield
        for gpu, before in zip(self._gpus, idle, strict=True):
            room = torch.cuda.mem_get_info(gpu)[0] + torch.cuda.memory_reserved(gpu)
            if not doubled_fits(torch.cuda.max_memory_allocated(gpu), before, room):
                return
        if self._gpus and documents == self.documents:
            self.documents = min(2 * self.documents, MOST_DOCUMENTS)


def doubled_fits(peak: int, idle: int, room: int) -> bool:
    """Whether a batch twice as large would take at most `_FILLED` of the memory; all in bytes.

    Args:
        peak: of the batch.
        idle: before it.
        room: that this process can have.
    """
    return idle + 2 * (peak - idle) <= _FILLED * room


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a device had too little memory left; some backends say so in words only."""
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "out of memory" in str(error).lower()
    )


def free_memory() -> None:
    """Give back what a failed batch has left behind."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def tell_of_windows(config: Any, device: torch.device) -> None:
    """Say what pictures cost in a vision tower of windows, as Qwen2.5-VL has, without flash-attention."""
    windows = hasattr(getattr(config, "vision_config", None), "fullatt_block_indexes")
    if windows and device.type == "cuda" and not is_flash_attn_2_available():
        logger.warning(
            "flash-attention is not installed: this vision tower attends to its windows one after the other and takes "
            "about five times as long"
        )

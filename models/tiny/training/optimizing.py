"""Shared by both training scripts: determinism, the optimisation loop, saving."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from loguru import logger

__all__ = ["make_deterministic", "optimize", "save_half"]


def make_deterministic(seed: int, threads: int) -> None:
    """Fix everything that a run's result depends on besides its settings. Changes PyTorch's global state."""
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)


def optimize(
    name: str,
    optimizer: torch.optim.Optimizer,
    losses: Iterator[torch.Tensor],
    steps: int,
    warmup: int,
) -> None:
    """Take `steps` steps down `losses`, with linear warm-up and a cosine decay to 3 % of each group's own rate."""
    peaks = [group["lr"] for group in optimizer.param_groups]
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    began, smooth = time.perf_counter(), float("nan")
    for step in range(steps):
        factor = min(1.0, (step + 1) / warmup) * (0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * step / steps)))
        for group, peak in zip(optimizer.param_groups, peaks, strict=True):
            group["lr"] = peak * factor
        loss = next(losses)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        smooth = loss.item() if step == 0 else 0.97 * smooth + 0.03 * loss.item()
        if (step + 1) % 200 == 0 or step + 1 == steps:
            seconds = time.perf_counter() - began
            logger.info("{} step {}/{}: loss {:.4f}, {:.0f} s", name, step + 1, steps, smooth, seconds)


def save_half(model: Any, save_rest: Callable[[Path], object], folder: Path) -> str:
    """Save weights as float16 and everything else, readable by everyone; return the SHA-256 of the weights file.

    The config says float32, so that a plain `from_pretrained` computes in float32: half precision is for storage only
    (it is slow on a CPU and would change sampled answers from machine to machine).
    """
    model.half().save_pretrained(folder)
    save_rest(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(_with_dtype(config, "float32"), indent=2) + "\n")
    for file in folder.iterdir():
        file.chmod(0o644)  # safetensors writes files that only their owner may read
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def _with_dtype(config: dict, dtype: str) -> dict:
    """`config` with every "dtype" in it, also in nested configs, set to `dtype`."""
    return {
        key: dtype if key == "dtype" else _with_dtype(value, dtype) if isinstance(value, dict) else value
        for key, value in config.items()
    }

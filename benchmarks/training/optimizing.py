"""Shared by the training scripts: their command, determinism, the optimisation loop, saving."""

import argparse
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from loguru import logger

__all__ = ["decay_groups", "make_deterministic", "optimize", "read_settings", "save_half"]


def read_settings(
    description: str, defaults: Any, arguments: Sequence[str] | None, *, out: str, steps: Mapping[str, str | None]
) -> tuple[Any, Path]:
    """Read the command line of a training.

    Args:
        description: Docstring of the command.
        defaults: Settings where the command line has none.
        arguments: Of the command line.
        out: Help of `--out`.
        steps: Settings that count steps -> help of their options.

    Returns:
        Settings, and where the result goes.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help=out)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    for name, text in steps.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name), help=text)
    parser.add_argument("--smoke-test", action="store_true", help="a few steps only, to see that it runs")
    options = parser.parse_args(arguments)
    settings = replace(defaults, seed=options.seed, **{name: getattr(options, name) for name in steps})
    return settings.for_smoke_test() if options.smoke_test else settings, options.out


def decay_groups(parameters: Iterable[torch.nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Return groups of parameters for an optimizer: matrices decay, vectors (biases, norms) do not."""
    listed = list(parameters)
    return [
        {"params": [p for p in listed if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in listed if p.ndim < 2], "weight_decay": 0.0},
    ]


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

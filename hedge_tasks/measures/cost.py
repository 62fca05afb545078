"""Cost of a stage of an evaluation: seconds and memory (HEDGE Appendix B)."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

_KIB = 1024 if sys.platform != "darwin" else 1
"""Bytes in a unit of `ru_maxrss`."""

_MB = 1e6


@dataclass
class Cost:
    """Cost of a stage in this process.

    Attributes:
        seconds: on the clock.
        cpu_seconds: of all its threads; more than `seconds` where several compute.
        peak_mb: most memory that the process has held so far, the stages before included.
        gpu_peak_mb: most memory allocated on the GPU during the stage; None without one.
        gpu_added_mb: that less what was allocated when it began.
    """

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0
    gpu_peak_mb: float | None = None
    gpu_added_mb: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the costs that are known, rounded to milliseconds and kilobytes, for JSON."""
        return {key: round(value, 3) for key, value in asdict(self).items() if value is not None}


@contextmanager
def measured() -> Iterator[Cost]:
    """Measure what happens within; the numbers stand in the cost once it is left."""
    cost, gpu = Cost(), _gpu()
    began, cpu = time.perf_counter(), time.process_time()
    held = 0
    if gpu is not None:
        gpu.synchronize()
        held = gpu.memory_allocated()
        gpu.reset_peak_memory_stats()
    try:
        yield cost
    finally:
        if gpu is not None:
            gpu.synchronize()
            most = gpu.max_memory_allocated()
            cost.gpu_peak_mb, cost.gpu_added_mb = most / _MB, (most - held) / _MB
        cost.seconds, cost.cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        cost.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB / _MB


def _gpu() -> Any:
    """Return PyTorch's CUDA, if PyTorch is loaded and there is a device: importing it may take longer than a stage."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_available() else None

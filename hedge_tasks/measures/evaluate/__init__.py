"""Detectors and their ROC-AUC as modules of Hugging Face's `evaluate`; nothing is downloaded.

    from hedge_tasks.measures.evaluate import load

    vase = load("vase")
    answers = {"baseline": "left", "clean": ["left", "right"], "noisy": ["left"]}
    vase.compute(predictions=[answers, ...], references=[1, ...])

    load("detection_auroc").compute(predictions=[0.7, 0.1, 0.4], references=[1, 0, 0])

`evaluate` brings `datasets` and takes seconds to import: only this package imports it, and nothing imports this one.
"""

from __future__ import annotations

from typing import Any

from hedge_tasks.detectors import registry
from hedge_tasks.errors import unknown
from hedge_tasks.measures.evaluate.auroc import AUROC, DetectionAuroc
from hedge_tasks.measures.evaluate.detector import DetectorMetric

__all__ = ["DetectionAuroc", "DetectorMetric", "load", "names"]


def names() -> list[str]:
    """Return what `load` takes: every detector, also of other packages, and `detection_auroc`."""
    return [*registry.names(), AUROC]


def load(name: str, **options: Any) -> DetectorMetric | DetectionAuroc:
    """Return a metric by name, as `evaluate.load` gives its own.

    Args:
        name: of a detector (`se`, `radflag`, `vase`, ...), or `detection_auroc`.
        options: of every `evaluate.Metric`: `keep_in_memory`, `cache_dir`, `experiment_id`, `num_process`,
            `process_id`.

    Raises:
        ConfigError: there is no such metric; names the nearest one.

    Example:
        >>> se = load("se", keep_in_memory=True)
        >>> said = [{"baseline": "left", "clean": ["left", "Left.", "right"]}, ["up", "up", "up"]]
        >>> [round(score, 4) for score in se.compute(predictions=said, clustering="exact")["se"]]
        [0.6365, 0.0]
    """
    if name == AUROC:
        return DetectionAuroc(**options)
    if name not in registry.names():
        raise unknown("metric", name, names())
    return DetectorMetric(name, **options)

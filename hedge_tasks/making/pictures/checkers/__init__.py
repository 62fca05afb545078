"""Checkers by name: our own, and those that other packages bring."""

from __future__ import annotations

from hedge_tasks.making.pictures.base import Checker
from hedge_tasks.making.pictures.specs import parse_spec
from hedge_tasks.registry import Registry

CHECKERS: Registry[Checker] = Registry(
    "checker",
    "hedge_tasks.checkers",
    {
        "vqascore": f"{__name__}.vqascore:VqaScore",
        "clip": f"{__name__}.similarity:Similarity",
        "detector": f"{__name__}.detector:ObjectDetector",
        "ocr": f"{__name__}.reading:reading_checker",
    },
)


def checker_from(spec: str) -> Checker:
    """A checker from `vqascore:adapter=hedge_hf,pretrained=...`, `clip:MODEL`, `detector:MODEL` or `ocr`.

    Raises:
        ConfigError: The name or an option is unknown (names the nearest one), or a value makes no sense.
    """
    name, settings = parse_spec("checker", spec)
    return CHECKERS.build(name, **settings)

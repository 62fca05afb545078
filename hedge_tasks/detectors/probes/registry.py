"""The fitted detectors by name: those of this package, one method a file in `builtin/`, and those of other packages.

Another package adds its own under the entry-point group `hedge_tasks.detectors.probes`: the entry point names a module,
whose `DETECTORS` are taken.

    [project.entry-points."hedge_tasks.detectors.probes"]
    mine = "my_package.my_probe"
"""

from __future__ import annotations

import pkgutil
from types import ModuleType

from loguru import logger

from hedge_tasks.detectors.probes import builtin
from hedge_tasks.detectors.probes.base import FittedDetector
from hedge_tasks.registry import Registry

MODULES: Registry[ModuleType] = Registry(
    "module with fitted detectors",
    "hedge_tasks.detectors.probes",
    {module.name: f"{builtin.__name__}.{module.name}" for module in pkgutil.iter_modules(builtin.__path__)},
)
"""Every module with fitted detectors, our own and those of other packages."""


def fitted_detectors(level: str = "answer") -> dict[str, FittedDetector]:
    """Return all fitted detectors of whole answers, or of sentences (`level="claim"`), by name; our own first."""
    detectors: dict[str, FittedDetector] = {}
    for name, module in MODULES.each():
        for detector in getattr(module, "DETECTORS", ()):
            if detector.name in detectors:
                logger.warning("fitted detectors of {}: the name {!r} is taken", name, detector.name)
            detectors.setdefault(detector.name, detector)
    return {name: detector for name, detector in detectors.items() if detector.level == level}

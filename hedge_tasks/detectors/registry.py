"""Which detectors there are: those of this package, one a file in `builtin/`, and those of other packages.

What is found by name (`hedge_tasks.registry`) are modules with detectors, since one may hold several. Another package
adds its own under the entry-point group `hedge_tasks.detectors`: the entry point names a module, and importing that
registers its detectors.

    [project.entry-points."hedge_tasks.detectors"]
    mine = "my_package.my_detector"
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Collection
from difflib import get_close_matches
from types import ModuleType
from typing import Any, TypeVar

from hedge_tasks.detectors import builtin
from hedge_tasks.detectors.base import LEVELS, NEEDS, Detector
from hedge_tasks.errors import ConfigError, check_names, unknown
from hedge_tasks.registry import Registry

GROUP = "hedge_tasks.detectors"
"""Entry-point group of detectors in other packages."""

Function = TypeVar("Function", bound=Callable[..., Any])

_OWN = {module.name: f"{builtin.__name__}.{module.name}" for module in pkgutil.iter_modules(builtin.__path__)}
MODULES: Registry[ModuleType] = Registry("module with detectors", GROUP, _OWN)
"""Every module with detectors, our own and those of other packages."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")

_detectors: dict[str, Detector] = {}


def register(
    name: str,
    title: str,
    *,
    needs: Collection[str],
    unit: str = "",
    source: str = "",
    experimental: bool = False,
    short: str = "",
    level: str = "answer",
    blind: bool = False,
) -> Callable[[Function], Function]:
    """Make the decorated function a detector; the arguments are the attributes of `Detector`.

    The function takes the evidence, and options as keyword-only arguments with defaults. It comes back unchanged.

    Raises:
        ConfigError: the name is taken or no name, or a need or the level is unknown.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"a detector's name has lower-case letters, digits and underscores, got {name!r}")
    check_names(f"level of detector {name!r}", [level], LEVELS)
    check_names(f"need of detector {name!r}", needs, NEEDS)

    def add(function: Function) -> Function:
        if name in _detectors:
            raise ConfigError(f"two detectors are called {name!r}")
        described: dict[str, Any] = {"experimental": experimental, "short": short, "level": level, "blind": blind}
        _detectors[name] = Detector(name, title, function, frozenset(needs), unit, source, **described)
        return function

    return add


def names(level: str = "answer") -> list[str]:
    """Return the names of all detectors that serve a level of units, the cheapest first, then by the alphabet."""
    _load()
    serving = [name for name, detector in _detectors.items() if detector.serves(level)]
    return sorted(serving, key=lambda name: (_detectors[name].draws(10, 10), name))


def get(name: str, **options: Any) -> Detector:
    """Return the detector of that name, with options where they are given.

    Raises:
        ConfigError: There is none, or it has no such option; names the nearest one.
    """
    if name not in _detectors and name in _OWN:
        MODULES.get(name)  # a module that is called as its detector is imported alone
    if name not in _detectors:
        _load()
    if name not in _detectors:
        titles = {detector.title.casefold(): key for key, detector in _detectors.items()}  # as tables call them
        for title in get_close_matches(name.casefold(), titles, cutoff=0.8):
            raise ConfigError(f"unknown detector {name!r}, did you mean {titles[title]!r}?")
        raise unknown("detector", name, _detectors)
    return _detectors[name].with_options(**options)


def named(text: str) -> tuple[str, ...]:
    """Return the detectors that a user lists with commas; `all` are those that are not experimental.

    Raises:
        ConfigError: There is none of that name; names the nearest one.
    """
    listed = [name.strip() for name in text.split(",")]
    usual = [name for name in names() if not _detectors[name].experimental] if "all" in listed else []
    return tuple(dict.fromkeys([*usual, *(get(name).name for name in listed if name != "all")]))


def _load() -> None:
    for _ in MODULES.each():
        pass  # a module registers its detectors as it is imported, once

"""Limits on what a policy may make us load: models of installed tasks, plug-ins and this package's own code.

A policy comes from whoever calibrated it. A model, an address inside a package or a function that it names is loaded
only when the user says so (`--trust-policy`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hedge_tasks.io.outside import shown
from hedge_tasks.io.sources import PACKAGE_SCHEME
from hedge_tasks.runs.trust import Untrusted, is_trusted, named_models

_OWN = (f"{PACKAGE_SCHEME}hedge_tasks.", f"{PACKAGE_SCHEME}hedge_tasks/")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def check_trust(clustering: Mapping[str, Any], noise: Any, where: str) -> None:
    """Refuse a policy that names something which nobody here has chosen. Nothing is imported for that.

    Args:
        clustering: the policy's settings of it.
        noise: the policy's perturbation.
        where: put in front of the error.

    Raises:
        Untrusted: names what would be loaded, and how to load it nevertheless.
    """
    if foreign := list(dict.fromkeys(_foreign(clustering, noise))):
        raise Untrusted(
            f"{where}: under this policy {', '.join(foreign)} would be loaded, which no installed task uses; "
            "if you know where the policy comes from, --trust-policy loads it"
        )


def _foreign(clustering: Mapping[str, Any], noise: Any) -> Iterator[str]:
    for model, revision in named_models(clustering):
        if not model.startswith(PACKAGE_SCHEME) and not is_trusted(model, revision):
            yield f"the model {shown(model)}"
    if isinstance(noise, Mapping) and "kind" in noise:
        yield from (f"the perturbation's {key} {shown(value)}" for key, value in noise.items() if key in _LOADS)
    for text in _texts([clustering, noise]):
        if text.startswith(PACKAGE_SCHEME) and not text.startswith(_OWN):
            yield f"the folder {shown(text)}"
        elif _FUNCTION.fullmatch(text):
            yield f"the function {shown(text)}"


_LOADS = frozenset({"encoder", "encoders", "pipeline", "wordings", "model"})
"""Settings of perturbations that name a model, a function or a file."""


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)

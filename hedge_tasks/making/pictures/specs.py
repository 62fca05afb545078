"""Image generators and checkers as a command line names them: `NAME:MODEL,key=value,...`."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.llm.fingerprints import fingerprint
from hedge_tasks.llm.loading import resolve_model


def parse_spec(kind: str, spec: str) -> tuple[str, dict[str, Any]]:
    """The name and the settings of a specification. What stands first without a key is the model.

    Raises:
        ConfigError: It has no name, or a part is no `key=value`.

    Example:
        >>> parse_spec("generator", "diffusers:org/model,steps=4")
        ('diffusers', {'model': 'org/model', 'steps': 4})
    """
    name, _, arguments = spec.partition(":")
    if not name.strip():
        raise ConfigError(f"{kind}: expected NAME:MODEL,key=value,..., got {spec[:40]!r}")
    first, _, other_arguments = arguments.partition(",")
    if first.strip() and "=" not in first:
        model, arguments = {"model": first.strip()}, other_arguments
    else:
        model = {}
    settings = options.pairs(f"{kind} {name.strip()}", arguments)
    if model and "model" in settings:
        raise ConfigError(f"{kind} {name.strip()}: the model is given twice")
    return name.strip(), {**model, **settings}


def spec_name(kind: str, model: str, **settings: object) -> str:
    """The name of an image generator or checker, which is part of its keys: a folder counts by its name and content.

    Args:
        settings: What else shapes its work; None is left out.
    """
    return ",".join(
        [f"{kind}:{model_name(model)}", *(f"{key}={value}" for key, value in settings.items() if value is not None)]
    )


def model_name(model: str) -> str:
    """A hub id as it is; a folder by its name, and its content with that of its subfolders (pipelines have them)."""
    place = Path(resolve_model(model))
    if not place.is_dir():
        return model
    inner = sorted(path for path in place.iterdir() if path.is_dir() and not path.name.startswith("."))
    parts = [fingerprint(place), *(f"{path.name} {fingerprint(path)}" for path in inner)]
    whole = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest() if inner else parts[0]
    return f"{place.name}@{whole}"

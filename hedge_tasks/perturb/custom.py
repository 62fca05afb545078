"""A user's own list of Albumentations transforms: checked when it is read, built once a draw.

A transform is a mapping with the name of its class and the arguments of that class::

    {"class": "GaussianBlur", "blur_limit": [3, 7], "p": 1.0}

What is not given has the library's default, and that of `p` is 0.5 for most transforms.
"""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from hedge_tasks.errors import ConfigError, check_names, lookup

# The base classes draw nothing, and Lambda takes functions, which no settings file can hold.
_NOT_OFFERED = ("BasicTransform", "DualTransform", "ImageOnlyTransform", "Transform3D", "Lambda")

_TRIAL_SIZE = (192, 256)


def albumentations() -> Any:
    """The library, imported on first use: it takes seconds and asks the network for a newer version."""
    os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
    import albumentations as library

    return library


def checked(position: int, spec: object) -> dict[str, Any]:
    """The mapping of one transform as plain JSON values.

    Args:
        position: in the list, for errors.
        spec: as the user wrote it.

    Raises:
        ConfigError: names the transform and the argument that is unknown (with the nearest valid one), missing or
            wrong, or says why the transform cannot be used here.
    """
    where = f"perturbation: transforms[{position}]"
    if not isinstance(spec, Mapping) or not isinstance(spec.get("class"), str):
        raise ConfigError(
            f"{where}: expected a mapping with 'class', the name of an Albumentations class, got {spec!r}"
        )
    where = f"{where} ({spec['class']})"
    plain = {str(key): _plain(f"{where}: {key}", value) for key, value in spec.items()}
    _check(where, json.dumps(plain))
    return plain


def build(spec: Mapping[str, Any], seed: int) -> Any:
    """The transform of a checked mapping, with its own random stream."""
    transform = _construct(_transform_classes()[spec["class"]], {key: spec[key] for key in spec if key != "class"})
    transform.set_random_seed(seed)
    return transform


def apply(spec: Mapping[str, Any], pixels: np.ndarray, seed: int) -> np.ndarray:
    """Apply the transform of a checked mapping.

    Raises:
        ConfigError: the transform cannot take this picture, such as a crop that is larger than it.
    """
    try:
        result = build(spec, seed)(image=pixels)["image"]
    except Exception as error:  # transforms raise what they like
        size = f"{pixels.shape[1]} x {pixels.shape[0]}"
        raise ConfigError(f"perturbation: {spec['class']} failed on an image of {size}: {error}") from error
    if not _is_rgb8(result):
        raise ConfigError(f"perturbation: {spec['class']} does not return an 8-bit RGB image")
    return result


@lru_cache(maxsize=256)
def _check(where: str, encoded: str) -> None:
    """Cached, because a plan asks for its perturbation at every draw."""
    spec = json.loads(encoded)
    name = spec.pop("class")
    transform_class = lookup("Albumentations transform", name, _transform_classes())
    parameters = [key for key in inspect.signature(transform_class).parameters if key != "strict"]
    check_names(f"argument of {name} in perturbation", spec, parameters)
    try:
        transform = _construct(transform_class, spec)
    except Exception as error:
        raise ConfigError(f"{where}: {_reason(error)}") from error
    needed = sorted({*transform.targets_as_params} - {"image"})
    if needed:
        raise ConfigError(f"{where}: needs more than the image ({', '.join(needed)})")
    _try(where, transform_class, spec)


def _try(where: str, transform_class: Any, arguments: Mapping[str, Any]) -> None:
    """Refuse what gives no 8-bit RGB picture, or not the same picture for the same seed."""
    picture = np.random.default_rng(0).integers(0, 256, (*_TRIAL_SIZE, 3), dtype=np.uint8)
    results = []
    for _ in range(2):
        transform = _construct(transform_class, arguments)
        transform.set_random_seed(1)
        try:
            results.append(transform(image=picture.copy(), force_apply=True)["image"])
        except KeyError as error:
            raise ConfigError(f"{where}: needs more than the image ({error.args[0]})") from error
        except Exception:  # a crop larger than the trial picture may well fit the user's
            return
    if not all(map(_is_rgb8, results)):
        raise ConfigError(f"{where}: does not return an 8-bit RGB image")
    if not np.array_equal(*results):
        raise ConfigError(f"{where}: gives different pictures for the same seed")


@lru_cache(maxsize=1)
def _transform_classes() -> dict[str, Any]:
    """Albumentations' transforms of images, by name."""
    library = albumentations()
    kinds = (library.ImageOnlyTransform, library.DualTransform)
    classes = {name: value for name, value in vars(library).items() if inspect.isclass(value)}
    return {name: c for name, c in classes.items() if issubclass(c, kinds) and name not in _NOT_OFFERED}


def _construct(transform_class: Any, arguments: Mapping[str, Any]) -> Any:
    # Without `strict` a wrong value can become a warning and the default. Classes without a schema do not take it.
    strict = {"strict": True} if "InitSchema" in vars(transform_class) else {}
    return transform_class(**{key: _tupled(value) for key, value in arguments.items()}, **strict)


def _reason(error: Exception) -> str:
    """The first problem of a pydantic validation error, by argument; other errors in their own words."""
    problems = getattr(error.__cause__, "errors", None)
    if problems is None:
        return str(error)
    first = problems()[0]
    key = ".".join(map(str, first["loc"][:1]))
    return f"{key}: {first['msg']}" if key else first["msg"]


def _plain(where: str, value: object) -> Any:
    if value is None or isinstance(value, (bool, str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(where, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(where, item) for key, item in value.items()}
    raise ConfigError(f"{where}: expected numbers, text, lists or mappings, got {value!r}")


def _tupled(value: Any) -> Any:
    """Lists as the tuples that Albumentations writes ranges as."""
    if isinstance(value, list):
        return tuple(_tupled(item) for item in value)
    if isinstance(value, dict):
        return {key: _tupled(item) for key, item in value.items()}
    return value


def _is_rgb8(result: object) -> bool:
    return isinstance(result, np.ndarray) and result.dtype == np.uint8 and result.ndim == 3 and result.shape[2] == 3

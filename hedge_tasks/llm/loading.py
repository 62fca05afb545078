"""Where models come from and where they run; shared by the backends that use one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from loguru import logger

from hedge_tasks.errors import HedgeError
from hedge_tasks.io import options
from hedge_tasks.io.sources import MODELS, PACKAGE_SCHEME, inside_package, why_hub_unreachable

Model = TypeVar("Model")


class ModelUnavailableError(HedgeError, RuntimeError):
    """A model can be loaded from none of the places it might be in; the message says what to do."""


def load_or_explain(
    load: Callable[[str], Model],
    model: str,
    revision: str | None,
    *,
    kind: str,
    advice: str = "",
) -> Model:
    """Load a model from a package, a local folder or the hub.

    Args:
        load: Loads the model from a folder or from the hub id.
        model: Folder, hub id, or `package://some.python.package/sub/folder`.
        revision: Revision on the hub.
        kind: What the model is, for the error message.
        advice: A further way to get this model, for the error message.

    Raises:
        ModelUnavailableError: If it cannot be loaded; the message says which ways there are.
    """
    source = resolve_model(model)
    logger.trace("loading the {} model {}", kind, model)
    try:
        if not Path(source).is_dir():
            _check_hub(source, revision)
        return load(source)
    except OSError as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelUnavailableError(
            f"cannot load the {kind} model {model!r}: {reason}.\n"
            f"{advice}{'Otherwise make' if advice else 'Make'} the hub reachable (or fill its cache, HF_HOME), "
            f"or give as `model` (in an evaluation: {MODELS}) a local folder or "
            f"{PACKAGE_SCHEME}some.python.package/sub/folder."
        ) from error


def resolve_model(name: str) -> str:
    """Turn `package://some.python.package/sub/folder` into a folder inside that installed package.

    Any other name (a hub id, a local folder) is returned as it is.

    Raises:
        ModelUnavailableError: If there is no such package, or no such folder in it.
    """
    if not name.startswith(PACKAGE_SCHEME):
        return name
    path = inside_package(name)
    if path is None:
        form = f"{PACKAGE_SCHEME}some.python.package/sub/folder"
        raise ModelUnavailableError(f"model {name!r}: there is no such folder in an installed package ({form})")
    return str(path)


def hub_commit(model: str, revision: str | None, file: str) -> str | None:
    """Return the commit of a model in the cache, or else on the hub; None for folders, and where neither has it.

    Args:
        revision: Branch, tag or commit; None: the default branch.
        file: Every model of its kind has it; it is downloaded where it is not in the cache.
    """
    from huggingface_hub import hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    if Path(resolve_model(model)).is_dir():
        return None
    try:
        path = try_to_load_from_cache(model, file, revision=revision)
        if not isinstance(path, str):
            if why_hub_unreachable():
                return None
            path = hf_hub_download(model, file, revision=revision)
    except (HFValidationError, OSError):  # no hub id, no such model, no access
        return None
    return Path(path).parent.name  # snapshots/COMMIT/FILE


def default_device(device: str | None) -> str:
    """The device asked for, or else the GPU if there is one, or else the CPU."""
    if device is not None:
        return device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def check_model_options(model: object, batch_size: object) -> None:
    """Refuse option values that would fail only after minutes of sampling.

    Args:
        model: Name of a model.
        batch_size: Size of its batches.

    Raises:
        ConfigError: If `model` is no name or `batch_size` no positive whole number.
    """
    options.text("model", model)
    options.count("batch_size", batch_size, at_least=1)


def custom_name(function: Callable[..., Any]) -> str:
    """How a function that replaces a model appears in the settings."""
    described = function if hasattr(function, "__qualname__") else type(function)
    return f"custom:{described.__module__}.{described.__qualname__}"


def _check_hub(model: str, revision: str | None) -> None:
    """Fail at once if the model is not in the cache and the hub cannot be reached.

    Without this the hub's client retries every file of the model, which takes more than a minute before it gives up.
    """
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(model, "config.json", revision=revision)
    except HFValidationError as error:
        raise FileNotFoundError(f"there is no such folder, and it is no hub id either ({error})") from error
    if not isinstance(cached, str) and (reason := why_hub_unreachable()):
        raise ConnectionError(f"it is not in the local cache, and the hub cannot be reached ({reason})")

"""Where models and data come from: the environment, installed packages, the hub if it answers."""

from __future__ import annotations

import importlib.resources
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hedge_tasks.errors import DataError, check_names
from hedge_tasks.io import options

PACKAGE_SCHEME = "package://"
"""`package://some.python.package/sub/folder` is a folder inside an installed package."""

HUB_TIMEOUT_S = 5.0

MODELS = "HEDGE_MODELS"
"""Environment variable: local models in place of others, such as `nli=/models/deberta,embed=/models/minilm`."""

MODEL_KINDS = ("nli", "embed", "bertscore")
"""Kinds of local models that it may name: of the clusterings `nli` and `embed`, and of BERTScore."""


def chosen_models() -> dict[str, str]:
    """The models that the environment names, by kind.

    Raises:
        ConfigError: the variable is no `kind=model,...`, or a kind is unknown; names the nearest one.
    """
    models = options.pairs(MODELS, os.environ.get(MODELS, ""), "nli=model,embed=model")
    check_names(f"model of {MODELS}", models, MODEL_KINDS)
    return {kind: options.text(f"{MODELS}: {kind}", model) for kind, model in models.items()}


def model_option(kind: str) -> dict[str, str]:
    """The model that the environment names for a kind, as the option `model`; empty where it names none."""
    models = chosen_models()
    return {"model": models[kind]} if kind in models else {}


def inside_package(address: str) -> Path | None:
    """The file or folder of a `package://` address; None if it is not there, or the address is malformed."""
    package, _, path = address.removeprefix(PACKAGE_SCHEME).partition("/")
    parts = path.split("/")
    if not package or ".." in parts:
        return None
    try:
        # A package inside a zip archive has no real folders, and nothing could be loaded from there.
        place = Path(str(importlib.resources.files(package).joinpath(*parts)))
    except (ModuleNotFoundError, TypeError):
        return None
    return place if place.exists() else None


def file_at(address: str) -> Path:
    """The file that a path or an address `package://some.package/folder/file` means.

    Raises:
        DataError: the address is malformed, or the package has no such file.
    """
    path = inside_package(address) if address.startswith(PACKAGE_SCHEME) else Path(address).expanduser()
    if path is None:
        raise DataError(f"{address}: no such file in an installed package")
    return path


def why_hub_unreachable() -> str | None:
    """Why the Hugging Face hub cannot be reached, None if it can. One request, a few seconds at most."""
    import huggingface_hub

    try:
        huggingface_hub.get_session().head(huggingface_hub.constants.ENDPOINT, timeout=HUB_TIMEOUT_S)
    except Exception as error:  # of the library that the hub's client uses, which depends on its version
        return str(error)
    return None


@contextmanager
def hub_or_cache() -> Iterator[None]:
    """Use the hub if it answers, else its local cache at once, without the client's half minute of retries."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or why_hub_unreachable() is not None
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before

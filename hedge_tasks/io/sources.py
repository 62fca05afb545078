"""Where models and data come from: addresses inside installed packages, and whether the hub answers."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hedge_tasks.errors import DataError

PACKAGE_SCHEME = "package://"
"""`package://some.python.package/sub/folder` is a folder inside an installed package."""

HUB_TIMEOUT_S = 5.0


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
    if not address.startswith(PACKAGE_SCHEME):
        return Path(address).expanduser()
    path = inside_package(address)
    if path is None:
        raise DataError(f"{address}: no such file in an installed package")
    return path


def why_hub_unreachable() -> str | None:
    """Why the Hugging Face hub cannot be reached, None if it can. One request, a few seconds at most."""
    import huggingface_hub
    from huggingface_hub.errors import OfflineModeIsEnabled

    try:
        huggingface_hub.get_session().head(huggingface_hub.constants.ENDPOINT, timeout=HUB_TIMEOUT_S)
    except OfflineModeIsEnabled:
        return "offline mode is on (HF_HUB_OFFLINE)"
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

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


def package_folder(package: str, folder: str) -> Path | None:
    """A folder inside an installed package; None if the package or the folder is not there."""
    try:
        # A package inside a zip archive has no real folders, and nothing could be loaded from there.
        path = Path(str(importlib.resources.files(package).joinpath(*folder.split("/"))))
    except (ModuleNotFoundError, TypeError):
        return None
    return path if path.is_dir() else None


def package_file(address: str) -> Path | None:
    """The file of a `package://` address; None if it is not there, or the address is malformed."""
    path = _path_inside_package(address)
    return path if path is not None and path.is_file() else None


def _path_inside_package(address: str) -> Path | None:
    """The path of a `package://` address in a folder that exists; None where there is no such folder."""
    package, path = split_address(address) or ("", "")
    folder, _, name = path.rpartition("/")
    parent = package_folder(package, folder) if package and name else None
    return None if parent is None else parent / name


def split_address(address: str) -> tuple[str, str] | None:
    """Package and folder of a `package://` address; None if it is malformed."""
    package, _, folder = address.removeprefix(PACKAGE_SCHEME).partition("/")
    return (package, folder) if package and ".." not in folder.split("/") else None


def file_at(address: str) -> Path:
    """The file that a path or an address `package://some.package/folder/file` means.

    Raises:
        DataError: the address is malformed, or the package has no such folder.
    """
    if not address.startswith(PACKAGE_SCHEME):
        return Path(address).expanduser()
    path = _path_inside_package(address)
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

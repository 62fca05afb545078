"""A Ray cluster (https://docs.ray.io): the extra `[ray]`."""

from __future__ import annotations

from typing import Any

from hedge_tasks.errors import ConfigError


def connect(address: str | None, asker: str) -> Any:
    """Return the module `ray`, connected to a cluster.

    Args:
        asker: Who needs it, for the error.

    Raises:
        ConfigError: Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError(f"{asker} needs Ray: pip install 'hedge-tasks[ray]'") from error
    if not ray.is_initialized():
        ray.init(address=address, include_dashboard=False, configure_logging=False)
    return ray

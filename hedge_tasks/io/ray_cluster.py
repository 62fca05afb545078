"""Work spread over a Ray cluster (https://docs.ray.io): the extra `[ray]`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.records import AtLeast0, AtLeastOne, Settings

T = TypeVar("T")
Item = TypeVar("Item")


class RayOptions(Settings):
    """Workers on a cluster.

    Attributes:
        workers: How many.
        num_gpus, num_cpus: What each of them needs; a share of a GPU is possible.
        address: Of the cluster; `auto` is the one that this machine is part of. By default Ray starts on this machine.
    """

    workers: AtLeastOne = 1
    num_gpus: AtLeast0 = 0
    num_cpus: AtLeast0 = 1
    address: str | None = None


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
        # A worker's lines, and Ray's own, would stand in the standard output among what a command writes there.
        ray.init(address=address, include_dashboard=False, configure_logging=False, log_to_driver=False)
    return ray


def map_on_cluster(
    make: Callable[[], Callable[[Item], T]], items: Sequence[Item], options: RayOptions, asker: str
) -> Iterator[T]:
    """Return the results of workers for items, in the items' order.

    Each worker is an actor of Ray Data that keeps what `make` gave. What a worker had in hand when it or its node died
    is done again by another one.

    Args:
        make: Makes a worker's function, in the worker; everything in it can be pickled.
    """
    connect(options.address, asker)
    import ray.data

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True

    class Worker:
        def __init__(self) -> None:
            self._function = make()

        def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
            return {"result": self._function(row["item"])}

    rows = ray.data.from_items([{"item": item} for item in items], override_num_blocks=max(len(items), 1))
    results = rows.map(
        Worker, num_cpus=options.num_cpus, num_gpus=options.num_gpus or None, concurrency=options.workers
    )
    for row in results.iter_rows():
        yield row["result"]

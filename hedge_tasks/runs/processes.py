"""The processes of one evaluation (`torchrun`, `accelerate launch`): what one of them needs to know of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from hedge_tasks.errors import HedgeError

Item = TypeVar("Item")
Result = TypeVar("Result")


def gather(items: Sequence[Item]) -> list[Item]:
    """The items of all processes, in the order of their ranks; of this process alone where there is only one.

    Every process must call it, as often and in the same order as the others.
    """
    distributed = _distributed()
    if distributed is None:
        return list(items)
    parts: list[list[Item]] = [[]] * distributed.get_world_size()
    distributed.all_gather_object(parts, list(items))
    return [item for part in parts for item in part]


def together(work: Callable[[], Result]) -> Result:
    """Return what this process's part of a work gives; where one process fails, all of them do, and none waits for it.

    Every process must call it, and the work itself must not gather.

    Raises:
        HedgeError: the work failed in another process.
        Exception: what it raised in this one.
    """
    try:
        result = work()
    except Exception as error:
        gather([str(error) or type(error).__name__])
        raise
    if failed := gather(list[str]()):
        raise HedgeError(failed[0])
    return result


def is_first() -> bool:
    """Whether this process writes the files that all of them share."""
    distributed = _distributed()
    return distributed is None or distributed.get_rank() == 0


def _distributed():  # type: ignore[no-untyped-def]  # the module torch.distributed, or None
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()) or distributed.get_world_size() == 1:
        return None
    return distributed

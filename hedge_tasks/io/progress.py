"""Progress bars of long work, with the time that is left, on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from loguru import logger

if TYPE_CHECKING:
    from tqdm import tqdm

_DELAY_S = 2.0
"""Work that is done sooner shows nothing."""


def progress(
    steps: Iterable[Any] | None = None, *, total: int | None = None, name: str, unit: str = "step"
) -> tqdm[Any]:
    """Return a progress bar on the standard error, to be iterated or, as a context, updated.

    Args:
        steps: what is gone through; None for `update()` by hand.
        total: number of steps, where `steps` does not tell.
        name: of the work, such as "Scoring".
        unit: name of one step.
    """
    from tqdm import tqdm

    # None: where the standard error is no terminal. What is done is logged there, for whoever waits to be told.
    bar = tqdm(steps, total=total, desc=name, unit=unit, delay=_DELAY_S, leave=False, disable=None)
    if bar.disable:
        logger.trace("{}: {} 1 of {}", name, unit, bar.total)
    return bar

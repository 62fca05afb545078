"""Draws that one request can ask for: the same prompt several times, the seed of the i-th one being i more.

vLLM draws the i-th of `n` answers with the request's seed plus i. So the clean draws of a document have seeds in a row,
and whatever is missing of them can be asked for together or one by one, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hedge_tasks.sampling.plan import draw_seed
from hedge_tasks.sampling.requests import DrawRequest

SEEDS = 2**31
"""Seeds are folded into [0, 2^31): some servers read 32 bits, and some of those a sign."""

_ROOM = 2**20
"""Seeds behind the last one that a series may begin with; nobody draws more."""

LONGEST = 64
"""Draws in one request: more would keep a server's answer waiting for the slowest of too many."""


def request_seed(draw: DrawRequest) -> int:
    """The seed that a draw is asked for with: of clean draws the first one's and the draw's index, of others their own.

    Args:
        draw: with a seed of its plan; one with a seed of its own (a probe's) keeps that, folded.
    """
    if not _is_in_series(draw):
        return draw.draw.seed % SEEDS
    request = draw.request
    return draw_seed(request.plan.seed, request.key, "clean", 0) % (SEEDS - _ROOM) + draw.draw.index


def series(draws: Sequence[DrawRequest], longest: int = LONGEST) -> list[list[int]]:
    """Positions of the draws of each request: in a row where they may go together, and else one.

    Args:
        longest: most draws in one request.
    """
    groups: list[list[int]] = []
    open_groups: dict[Hashable, list[int]] = {}
    for i, draw in enumerate(draws):
        if not _is_in_series(draw) or draw.alternatives is not None:
            groups.append([i])
            continue
        key = (draw.prompt_key, draw.draw.temperature, str(draw.request.plan.limits()), draw.request.choices)
        group = open_groups.get(key)
        if group and len(group) < longest and draws[group[-1]].draw.index + 1 == draw.draw.index:
            group.append(i)
            continue
        open_groups[key] = [i]
        groups.append(open_groups[key])
    return groups


def _is_in_series(draw: DrawRequest) -> bool:
    request, planned = draw.request, draw.draw
    return (
        planned.condition == "clean"
        and planned.index < _ROOM
        and planned.seed == draw_seed(request.plan.seed, request.key, "clean", planned.index)
    )

"""Painters by name: our own, and those that other packages bring."""

from __future__ import annotations

from hedge_tasks.making.pictures.base import Painter
from hedge_tasks.making.pictures.specs import parsed
from hedge_tasks.registry import Registry

PAINTERS: Registry[Painter] = Registry(
    "painter",
    "hedge_tasks.painters",
    {
        "diffusers": f"{__name__}.diffusion:DiffusionPainter",
        "openai": f"{__name__}.served:ServedPainter",
    },
)


def painter_from(spec: str) -> Painter:
    """A painter from `diffusers:MODEL,steps=28` or `openai:MODEL,url=...`.

    Raises:
        ConfigError: The name or an option is unknown (names the nearest one), or a value makes no sense.
    """
    name, settings = parsed("painter", spec)
    return PAINTERS.build(name, **settings)

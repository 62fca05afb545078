"""Image generators by name: our own, and those that other packages bring."""

from __future__ import annotations

from hedge_tasks.making.pictures.base import ImageGenerator
from hedge_tasks.making.pictures.specs import parse_spec
from hedge_tasks.registry import Registry

GENERATORS: Registry[ImageGenerator] = Registry(
    "generator",
    "hedge_tasks.image_generators",
    {
        "diffusers": f"{__name__}.diffusion:DiffusionGenerator",
        "openai": f"{__name__}.served:ServedGenerator",
    },
)


def generator_from(spec: str) -> ImageGenerator:
    """An image generator from `diffusers:MODEL,steps=28` or `openai:MODEL,url=...`.

    Raises:
        ConfigError: The name or an option is unknown (names the nearest one), or a value makes no sense.
    """
    name, settings = parse_spec("generator", spec)
    return GENERATORS.build(name, **settings)

"""The generator `diffusers`: a text-to-image model in this process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from hedge_tasks.data.pictures import to_rgb8
from hedge_tasks.errors import HedgeError
from hedge_tasks.io import options
from hedge_tasks.llm.loading import hub_commit, resolve_model
from hedge_tasks.making.pictures.base import Order


class DiffusionGenerator:
    """A text-to-image pipeline of diffusers, such as Stable Diffusion 3.5. It is loaded when it is first needed.

    The noise of every picture comes from a generator of its own, on the CPU: its seed decides it, whatever the other
    orders of the batch are. The arithmetic of large and small batches may still differ in the last bit, and with that a
    pixel by one of 256 levels.

    Args:
        model: Hub id, folder, or `package://some.python.package/folder`; a folder counts by its name.
        steps, guidance, size: Of the pipeline: number of denoising steps, guidance scale, side of the (square) picture
            in pixels. None leaves it to the model.
        revision: On the hub. Name and weights are those of the commit that it (or the default branch) is at.

    Raises:
        ConfigError: A value makes no sense.
    """

    def __init__(
        self,
        model: str,
        *,
        steps: int | None = None,
        guidance: float | None = None,
        size: int | None = None,
        revision: str | None = None,
    ) -> None:
        self._model, self._named_revision = options.text("model", model), options.optional_text("revision", revision)
        self._call: dict[str, Any] = {}
        if steps is not None:
            self._call["num_inference_steps"] = options.count("steps", steps, at_least=1)
        if guidance is not None:
            self._call["guidance_scale"] = options.number("guidance", guidance)
        if size is not None:
            self._call |= dict.fromkeys(("width", "height"), options.count("size", size, at_least=8))

    @cached_property
    def name(self) -> str:
        """As `ImageGenerator.name`."""
        settings = {**self._call, "dtype": self._dtype, "revision": self._revision}
        model = self._model.rstrip("/").rpartition("/")[2] if self._revision is None else self._model
        return ",".join([f"diffusers:{model}", *(f"{key}={value}" for key, value in settings.items() if value)])

    @cached_property
    def _dtype(self) -> str:
        import torch

        return "bfloat16" if torch.cuda.is_available() else "float32"

    @cached_property
    def _revision(self) -> str | None:
        """The commit on the hub; what was named where that cannot be told, and then nothing can be loaded either."""
        return hub_commit(self._model, self._named_revision, "model_index.json") or self._named_revision

    def generate(self, orders: Sequence[Order]) -> list[Image.Image]:
        """As `ImageGenerator.generate`."""
        import torch

        generators = [torch.Generator("cpu").manual_seed(order.seed) for order in orders]
        prompts = [order.prompt for order in orders]
        try:
            output = self._pipeline(prompt=prompts, generator=generators, output_type="pil", **self._call)
        except torch.cuda.OutOfMemoryError as error:
            raise HedgeError(f"{self.name}: the GPU's memory is too small for {len(orders)} pictures") from error
        return [to_rgb8(image) for image in output.images]

    @cached_property
    def _pipeline(self) -> Any:
        import torch

        from hedge_tasks.perturb.induction_image import load_diffusers

        loading = {"torch_dtype": getattr(torch, self._dtype), "revision": self._revision}
        pipeline = load_diffusers("AutoPipelineForText2Image", resolve_model(self._model), **loading)
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

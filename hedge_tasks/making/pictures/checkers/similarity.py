"""The checker `clip`: CLIP's or SigLIP's similarity of picture and statement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.llm.loading import default_device, load_or_explain
from hedge_tasks.making.pictures.base import PictureQuestion
from hedge_tasks.making.pictures.specs import spec_name

CONTRAST = "a picture of something else"
"""Statements that CLIP weighs a statement against where the question names no wrong ones."""

_KINDS = ("statement", "existence")
_SIGMOID = ("siglip", "siglip2")


class Similarity:
    """Similarity of picture and statement from 0 to 1, for statements and existence.

    It cannot say anything of counts, relations and written words: these models read a text nearly as a bag of words
    (Yuksekgonul et al. 2023).

    - **CLIP** and its kin have similarities without a zero. The statement is weighed against wrong ones (`instead` of
      the question's `expected`; else `CONTRAST`): the score is its share in the softmax over them, at the model's own
      temperature.
    - **SigLIP** has a bias of its own. The score is its sigmoid, a probability that the two belong together. It is low
      for most pictures (trained on batches of 32,000 pairs), so a threshold for it wants to be looked at on pictures
      that are known to be right. With `instead` it is the softmax here, too.

    Args:
        model: Hub id, folder, or `package://some.python.package/folder`.
        revision: On the hub.
        contrast: What CLIP weighs a statement against where the question names no wrong ones.
        device: Torch device.

    Raises:
        ConfigError: A value makes no sense.
    """

    def __init__(
        self, model: str, *, revision: str | None = None, contrast: str = CONTRAST, device: str | None = None
    ) -> None:
        self._source = options.text("model", model)
        self._revision = options.optional_text("revision", revision)
        self._contrast = options.text("contrast", contrast)
        self._device = default_device(options.optional_text("device", device))

    @cached_property
    def name(self) -> str:
        own = None if self._contrast == CONTRAST else self._contrast
        return spec_name("clip", self._source, revision=self._revision, contrast=own)

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        places = [i for i, question in enumerate(questions) if question.kind in _KINDS]
        scores: list[float | None] = [None] * len(questions)
        if not places:
            return scores
        model, _ = self._loaded
        texts = [self._texts(questions[i], sigmoid=model.config.model_type in _SIGMOID) for i in places]
        logits = self._logits([pictures[i] for i in places], [text for group in texts for text in group])
        start = 0
        for row, (place, group) in enumerate(zip(places, texts, strict=True)):
            own = logits[row, start : start + len(group)]
            scores[place] = float(own.softmax(0)[0] if len(group) > 1 else own.sigmoid()[0])
            start += len(group)
        return scores

    def _texts(self, question: PictureQuestion, *, sigmoid: bool) -> list[str]:
        instead = [str(text) for text in question.expected.get("instead") or ()]
        return [question.statement, *(instead or ([] if sigmoid else [self._contrast]))]

    def _logits(self, pictures: Sequence[Image.Image], texts: Sequence[str]) -> Any:
        """Shape (pictures, texts), scaled as the model was trained, in float64 on the CPU."""
        import torch

        model, processor = self._loaded
        # SigLIP was trained on texts of full length.
        padding = "max_length" if model.config.model_type in _SIGMOID else True
        inputs = processor(
            text=list(texts), images=list(pictures), padding=padding, truncation=True, return_tensors="pt"
        )
        with torch.inference_mode():
            return model(**inputs.to(self._device)).logits_per_image.double().cpu()

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        from transformers import AutoModel, AutoProcessor

        def load(source: str) -> tuple[Any, Any]:
            model = AutoModel.from_pretrained(source, revision=self._revision)
            if not hasattr(model, "logit_scale"):
                raise ConfigError(f"checker clip: {self._source} is none of CLIP's or SigLIP's kin")
            return model.to(self._device).eval(), AutoProcessor.from_pretrained(source, revision=self._revision)

        return load_or_explain(load, self._source, self._revision, kind="similarity", variable=False)

"""The checker `detector`: an open-vocabulary object detector, for existence, count and relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from PIL import Image

from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.llm.loading import default_device, load_or_explain
from hedge_tasks.making.pictures.base import PictureQuestion
from hedge_tasks.making.pictures.checkers.boxes import OVERLAP, Box, distinct, holds, relation_named
from hedge_tasks.making.pictures.specs import spec_name

_THRESHOLDS = {"owlv2": 0.2, "owlvit": 0.1, "grounding-dino": 0.35, "mm-grounding-dino": 0.35}
"""Kinds of models that can be used, each with the score from which on it has found something."""


class ObjectDetector:
    """OWLv2, OWL-ViT or Grounding DINO through transformers: 1 where what is expected is found, else 0.

    Existence: at least one box. Count: exactly so many, where boxes of one object count once. Relation: some box of the
    subject stands so to some box of the object (`boxes.holds`). Of statements, written words and relations that boxes
    do not show (`behind`) it cannot say anything.

    Args:
        model: Hub id, folder, or `package://some.python.package/folder`.
        revision: On the hub.
        threshold: Score from which on a box counts; by default 0.2 (OWLv2), 0.1 (OWL-ViT), 0.35 (Grounding DINO).
        overlap: Intersection over union from which on two boxes are one object.
        device: Torch device.

    Raises:
        ConfigError: A value makes no sense.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        threshold: float | None = None,
        overlap: float = OVERLAP,
        device: str | None = None,
    ) -> None:
        self._source = options.text("model", model)
        self._revision = options.optional_text("revision", revision)
        self._threshold = None if threshold is None else options.share("threshold", threshold)
        self._overlap = options.share("overlap", overlap)
        self._device = default_device(options.optional_text("device", device))

    @cached_property
    def name(self) -> str:
        overlap = None if self._overlap == OVERLAP else self._overlap
        return spec_name("detector", self._source, revision=self._revision, threshold=self._threshold, overlap=overlap)

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        targets = [(i, name) for i, question in enumerate(questions) for name in objects_of(question)]
        boxes: dict[tuple[int, str], list[Box]] = {}
        if targets:
            detections = self._detect([pictures[i] for i, _ in targets], [name for _, name in targets])
            boxes = {pair: distinct(own, most=self._overlap) for pair, own in zip(targets, detections, strict=True)}
        by_question: list[dict[str, list[Box]]] = [{} for _ in questions]
        for (i, name), own in boxes.items():
            by_question[i][name] = own
        return [score(question, own) for question, own in zip(questions, by_question, strict=True)]

    def _detect(self, pictures: Sequence[Image.Image], names: Sequence[str]) -> list[list[Box]]:
        """Boxes of what is named in each picture: one name a picture, so that no two names share a box.

        Only pictures of one size make a batch: what Grounding DINO sees in a picture depends on how far it is padded.
        """
        by_size: dict[tuple[int, int], list[int]] = {}
        for i, picture in enumerate(pictures):
            by_size.setdefault(picture.size, []).append(i)
        by_place: dict[int, list[Box]] = {}
        for places in by_size.values():
            boxes = self._detect_batch([pictures[i] for i in places], [names[i] for i in places])
            by_place |= dict(zip(places, boxes, strict=True))
        return [by_place[i] for i in range(len(pictures))]

    def _detect_batch(self, pictures: Sequence[Image.Image], names: Sequence[str]) -> list[list[Box]]:
        import torch

        model, processor, threshold = self._loaded
        owl = model.config.model_type.startswith("owl")
        texts: list[Any] = [[f"a photo of {name}"] for name in names] if owl else [f"{name.lower()}." for name in names]
        limits = {} if owl else {"padding": True}
        inputs = processor(images=list(pictures), text=texts, truncation=True, return_tensors="pt", **limits)
        with torch.inference_mode():
            outputs = model(**inputs.to(self._device))
        sizes = [(picture.height, picture.width) for picture in pictures]
        read = processor.post_process_grounded_object_detection
        results = read(outputs, threshold=threshold, target_sizes=torch.tensor(sizes).to(self._device))
        pairs = (zip(result["boxes"].tolist(), result["scores"].tolist(), strict=True) for result in results)
        return [[Box(*corners, score) for corners, score in boxes] for boxes in pairs]  # type: ignore[call-arg]

    @cached_property
    def _loaded(self) -> tuple[Any, Any, float]:
        from transformers import AutoConfig, AutoModelForZeroShotObjectDetection, AutoProcessor

        def load(source: str) -> tuple[Any, Any, float]:
            kind = AutoConfig.from_pretrained(source, revision=self._revision).model_type
            if kind not in _THRESHOLDS:
                raise ConfigError(
                    f"checker detector: {self._source} is a {kind} model; there are {', '.join(_THRESHOLDS)}"
                )
            model = AutoModelForZeroShotObjectDetection.from_pretrained(source, revision=self._revision)
            processor = AutoProcessor.from_pretrained(source, revision=self._revision)
            return model.to(self._device).eval(), processor, self._threshold or _THRESHOLDS[kind]

        return load_or_explain(load, self._source, self._revision, kind="detection", variable=False)


def objects_of(question: PictureQuestion) -> list[str]:
    """Return what has to be looked for to answer a question; nothing where boxes cannot answer it."""
    expected = question.expected
    if question.kind == "relation" and relation_named(str(expected.get("relation"))) is None:
        return []
    keys = {"existence": ("object",), "count": ("object",), "relation": ("subject", "object")}.get(question.kind, ())
    names = [expected.get(key) for key in keys]
    if not all(isinstance(name, str) and name.strip() for name in names):
        return []
    return list(dict.fromkeys(str(name).strip() for name in names))


def score(question: PictureQuestion, boxes: Mapping[str, Sequence[Box]]) -> float | None:
    """1 where boxes show what a question expects, else 0; None where they cannot say.

    Args:
        boxes: By object, each object once.

    Example:
        >>> two = [Box(0, 0, 1, 1), Box(2, 0, 3, 1)]
        >>> score(PictureQuestion("two dogs", "count", {"object": "dog", "count": 2}), {"dog": two})
        1.0
    """
    names = objects_of(question)
    if not names:
        return None
    boxes_of = [boxes[name] for name in names]
    if question.kind == "existence":
        return float(bool(boxes_of[0]))
    if question.kind == "count":
        count = question.expected.get("count")
        return None if isinstance(count, bool) or not isinstance(count, int) else float(len(boxes_of[0]) == count)
    relation = relation_named(str(question.expected["relation"]))
    assert relation is not None
    pairs = [(a, b) for a in boxes_of[0] for b in boxes_of[-1] if a is not b]
    return float(any(holds(relation, a, b) for a, b in pairs))

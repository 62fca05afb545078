"""Perturbed wordings: the same question behind another introduction, the same knowledge in another order.

For text tasks, where there is no image to perturb. The answer that is right stays the same.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import Any

from PIL import Image

from hedge_tasks.data.sentences import whole_sentences
from hedge_tasks.errors import ConfigError, check_names, lookup
from hedge_tasks.io import options
from hedge_tasks.perturb.base import Wording

QUESTION = "{question}"

_FOLDER = "wordings"


@dataclass(frozen=True)
class TextPerturbation:
    """Perturbation of the wording of a noisy draw.

    Attributes:
        name: goes into the provenance.
        templates: names of sets of introductions. A draw takes one of the sets, then one of its templates, each with
            the same probability. None leaves the question as it is.
        shuffle_context: put the sentences of the context into another order.
    """

    name: str = "custom"
    templates: tuple[str, ...] = ()
    shuffle_context: bool = False

    def __post_init__(self) -> None:
        options.flag("perturbation: shuffle_context", self.shuffle_context)
        for reference in self.templates:
            load_templates(reference)

    @staticmethod
    def presets() -> Mapping[str, TextPerturbation]:
        return PRESETS

    @classmethod
    def from_config(cls, config: str | Mapping[str, Any] | TextPerturbation) -> TextPerturbation:
        """Build from the name of a preset or a mapping of settings; settings on top of a preset go by its `name`.

        `templates` is one name, a list of names, or a mapping of names to digests as `settings` gives it.

        Raises:
            ConfigError: a name or key is unknown (names the nearest valid one), a value makes no sense, or a set is not
                the one that a digest was made of.
        """
        if isinstance(config, TextPerturbation):
            return config
        if isinstance(config, str):
            return lookup("text perturbation preset", config, PRESETS)
        values = {key: value for key, value in config.items() if key != "kind"}
        check_names("setting of a text perturbation", values, [field.name for field in fields(cls)])
        if "templates" in values:
            values["templates"] = _template_names(values["templates"])
        return replace(PRESETS.get(values.get("name", ""), cls()), **values)

    def check(self, wording: Wording) -> None:
        """Every document can be perturbed so."""

    def perturb_images(self, images: Sequence[Image.Image], wording: Wording, *, seed: int) -> list[Image.Image]:
        """The images as they are."""
        return list(images)

    def perturb_wording(self, wording: Wording, *, seed: int) -> Wording:
        """The wording of one draw; equal seeds give equal wordings, whatever else was drawn."""
        question, context = wording.question, wording.context
        if self.templates:
            chosen = random.Random(f"{seed}/template")
            template = chosen.choice(load_templates(chosen.choice(self.templates)))
            # Not str.format: a question with braces is text.
            question = template.replace(QUESTION, question)
        if self.shuffle_context:
            sentences = whole_sentences(context)
            random.Random(f"{seed}/context").shuffle(sentences)
            context = " ".join(sentences)
        return replace(wording, question=question, context=context)

    def scaled(self, strength: float) -> TextPerturbation:
        """Itself: words have no range that could be stretched.

        Raises:
            ConfigError: the strength is not 1.
        """
        if strength != 1:
            raise ConfigError(f"perturbation {self.name!r}: a wording has no strength, got {strength}; leave it at 1")
        return self

    def settings(self) -> dict[str, Any]:
        """Everything that defines the perturbation, with a digest of each set's wording."""
        digests = {reference: _digest(load_templates(reference)) for reference in self.templates}
        return {"kind": "text", "name": self.name, "templates": digests, "shuffle_context": self.shuffle_context}


@cache
def load_templates(name: str) -> tuple[str, ...]:
    """A set of introductions of this package, each with `{question}` once.

    Raises:
        ConfigError: there is no such set; names the nearest one.
    """
    folder = resources.files("hedge_tasks.perturb") / _FOLDER
    files = {entry.name.removesuffix(".json"): entry for entry in folder.iterdir() if entry.name.endswith(".json")}
    content = json.loads(lookup("set of templates", name, files).read_text("utf-8"))
    return tuple(content["templates"])


def _template_names(templates: object) -> tuple[str, ...]:
    if isinstance(templates, str):
        return (templates,)
    if isinstance(templates, Mapping):
        for name, digest in templates.items():
            if _digest(load_templates(name)) != digest:
                raise ConfigError(f"perturbation: the templates {name!r} are not those of these settings")
        return tuple(templates)
    if isinstance(templates, Sequence) and all(isinstance(name, str) for name in templates):
        return tuple(templates)
    raise ConfigError(f"perturbation: templates must be names, got {templates!r}")


def _digest(templates: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(templates).encode()).hexdigest()[:16]


PRESETS: dict[str, TextPerturbation] = {
    # Med-HallMark §3.4, Figure 4.
    "confidence_weakening": TextPerturbation("confidence_weakening", ("confidence_weakening",)),
    # A control: another wording that weakens nothing.
    "neutral_wording": TextPerturbation("neutral_wording", ("neutral",)),
    "shuffled_context": TextPerturbation("shuffled_context", (), shuffle_context=True),
    "instructions": TextPerturbation("instructions", ("confidence_weakening", "neutral"), shuffle_context=True),
    # For tasks that show an answer to be checked, where "please answer the question" would ask for something else.
    "checking": TextPerturbation("checking", ("confidence_weakening_item", "neutral"), shuffle_context=True),
}

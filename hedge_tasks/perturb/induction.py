"""Hallucination induction: SHALE's noisy scenarios (paper section 3.2) made of any image and question.

    shale_crp   corruption: salt-and-pepper noise, Gaussian blur or JPEG compression
    shale_txt   a wrong answer drawn into the image as scene text
    shale_adv   untargeted PGD against a vision encoder
    shale_sty   another style, by an image-to-image pipeline
    shale_syn   wrong options replaced by ones that are nearer in meaning to the right one
    shale_pfx   a misleading statement in front of the question
    shale_crp_p, shale_txt_p, shale_adv_p, shale_sty_p   the image's and the prefix

The paper prints neither strengths nor templates; the ones here are ours. Everything is drawn from the seed.
"""

from __future__ import annotations

import importlib
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any

from loguru import logger
from PIL import Image

from hedge_tasks.errors import ConfigError, check_names, lookup, unknown
from hedge_tasks.io import options
from hedge_tasks.perturb.base import Wording, bounded_number, number_range

PIPELINE = 2
"""Part of `settings`: raised when the same settings and seed would no longer give the same pictures."""

DEFAULT_ENCODER = "openai/clip-vit-large-patch14"
"""The paper attacks EVA-CLIP ViT-G, which transformers does not offer."""

DRAWN_STYLES = "hedge_tasks.perturb.induction_image:draw_style"
"""Styles as filters, which work anywhere and keep colours. The paper generates its images anew, in the style."""

PREFIXES = (
    "I think the answer is: {distractor}.",
    "Somebody who knows this image says: {distractor}.",
    "It seems clear that this is it: {distractor}.",
    "Most people answer: {distractor}.",
)
"""Ours. The paper's only example, "There seems to be a squirrel in the forest", is a statement of its own."""

_DISTRACTOR = "{distractor}"
_IMAGE_KINDS = ("crp", "txt", "adv", "sty")
_WORDING_KINDS = ("pfx", "syn")
_RANGES = {"salt_pepper": 1.0, "blur": 100.0, "jpeg": 100.0}
_OPTION = re.compile(r"\(([A-Z])\)\s*(.*?)(?=\s*\([A-Z]\)|\s*$)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Induction:
    """One scenario: what is done to the image, to the wording, or to both.

    Attributes:
        name: goes into the provenance.
        image: "crp", "txt", "adv", "sty", or None.
        wording: "pfx", "syn", or None.
        salt_pepper: CRP: smallest and largest share of pixels that become black or white.
        blur: CRP: smallest and largest standard deviation of the blur, in pixels of an image whose shorter side is 512.
        jpeg: CRP: lowest and highest quality.
        text_size: TXT: height of a line, as a share of the image's.
        prefixes: PFX: templates with `{distractor}`. A distractor that ends like a sentence stands for itself.
        texts: TXT and PFX: what to mislead with where a document has no distractor (`hedge.distractor` in a YAML).
        candidates: SYN: what the replacements are taken from. An option stays where none is nearer to the right one.
        embedding_model: SYN: what "semantically near" is measured with; None: the default of the clustering.
        nearest: SYN: the replacements are among so many times as many nearest candidates as there are wrong options.
        too_near: SYN: from this cosine similarity on a candidate may mean the right answer itself, and is left out.
        encoder: ADV: model of transformers with a vision encoder (hub id, folder or `package://` address) to attack, or
            several, which are attacked at a time.
        epsilon, step: ADV: largest change of a pixel value, and that of one step, where 1 is the full range.
        steps: ADV: number of steps.
        pipeline: STY: `module:function` called as `function(image, style=..., seed=...)`, or `diffusers:<model>`.
        styles: STY: one of them is drawn.
        strength: multiplies the ranges of CRP, the size of TXT's text and ADV's epsilon and step.
    """

    name: str = "custom"
    image: str | None = None
    wording: str | None = None
    salt_pepper: tuple[float, float] = (0.02, 0.1)
    blur: tuple[float, float] = (1.5, 4.0)
    jpeg: tuple[float, float] = (5.0, 25.0)
    text_size: float = 0.09
    prefixes: tuple[str, ...] = PREFIXES
    texts: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    embedding_model: str | None = None
    nearest: float = 2.0
    too_near: float = 0.9
    encoder: str | tuple[str, ...] = DEFAULT_ENCODER
    epsilon: float = 8 / 255
    step: float = 2 / 255
    steps: int = 10
    pipeline: str = DRAWN_STYLES
    styles: tuple[str, ...] = ("color sketch", "watercolor", "poster", "mosaic", "color engraving")
    strength: float = 1.0

    def __post_init__(self) -> None:
        if self.image is None and self.wording is None:
            raise ConfigError(
                "perturbation of the kind 'induction': give image (crp, ...), wording (pfx, syn), or both"
            )
        for key, valid in (("image", _IMAGE_KINDS), ("wording", _WORDING_KINDS)):
            if getattr(self, key) not in (None, *valid):
                raise unknown(f"value of {key!r} in an induction", str(getattr(self, key)), valid)
        for key, limit in _RANGES.items():
            object.__setattr__(self, key, number_range(key, getattr(self, key), limit))
        for key in ("text_size", "epsilon", "step", "too_near"):
            bounded_number(key, getattr(self, key), 1.0)
        for key in ("nearest", "strength"):
            bounded_number(key, getattr(self, key), math.inf)
        options.count("perturbation: steps", self.steps, at_least=1)
        for key in ("prefixes", "texts", "candidates", "styles"):
            object.__setattr__(self, key, _texts(key, getattr(self, key)))
        if not isinstance(self.encoder, str):
            object.__setattr__(self, "encoder", _texts("encoder", self.encoder))
        self._check_needs()

    def _check_needs(self) -> None:
        if not self.styles or not self.prefixes or not self.encoder:
            raise ConfigError("perturbation: styles, prefixes and encoder must not be empty")
        for template in self.prefixes:
            if template.count(_DISTRACTOR) != 1:
                raise ConfigError(f"perturbation: a prefix needs {_DISTRACTOR} once, got {template!r}")
        module, colon, name = self.pipeline.partition(":")
        if not (colon and module and name):
            raise ConfigError(
                f"perturbation: pipeline must be module:function or diffusers:<model>, got {self.pipeline!r}"
            )

    @staticmethod
    def presets() -> Mapping[str, Induction]:
        return PRESETS

    @classmethod
    def from_config(cls, config: str | Mapping[str, Any] | Induction) -> Induction:
        """Build from the name of a preset or a mapping of settings; settings on top of a preset go by its `name`.

        Raises:
            ConfigError: a name or key is unknown (names the nearest valid one) or a value makes no sense.
        """
        if isinstance(config, Induction):
            return config
        if isinstance(config, str):
            return lookup("induction preset", config, PRESETS)
        values = {key: value for key, value in config.items() if key != "kind"}
        pipeline = values.pop("version", PIPELINE)
        if pipeline != PIPELINE:
            raise ConfigError(f"induction settings were made by version {pipeline!r}; this one is {PIPELINE}")
        check_names("setting of an induction", values, [field.name for field in fields(cls)])
        base = PRESETS.get(values.get("name", ""))
        return replace(base, **values) if base else cls(**values)

    def settings(self) -> dict[str, Any]:
        """Everything that defines the perturbation, ready for JSON."""
        values = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return {"kind": "induction", **values, "version": PIPELINE}

    def scaled(self, strength: float) -> Induction:
        """Return the same perturbation with another strength.

        Raises:
            ConfigError: nothing here knows a strength, and it is not 1.
        """
        if strength != 1 and self.image not in ("crp", "txt", "adv"):
            raise ConfigError(f"perturbation {self.name!r} has no strength, got {strength}; leave it at 1")
        return replace(self, strength=self.strength * strength)

    def perturb_images(self, images: Sequence[Image.Image], wording: Wording, *, seed: int) -> list[Image.Image]:
        """Perturb each image; the n-th one has a seed of its own.

        Raises:
            ConfigError: TXT has nothing to write; the encoder or the pipeline cannot be had.
        """
        if self.image is None:
            return list(images)
        return [
            self._perturb_image(image, wording, random.Random(f"{seed + i}/image")) for i, image in enumerate(images)
        ]

    def _perturb_image(self, image: Image.Image, wording: Wording, rng: random.Random) -> Image.Image:
        # Heavy libraries behind it: not imported for a wording.
        from hedge_tasks.perturb import induction_image as pictures

        if self.image == "crp":
            return pictures.corrupt(
                image, rng, salt_pepper=self.salt_pepper, blur=self.blur, jpeg=self.jpeg, strength=self.strength
            )
        if self.image == "txt":
            return pictures.write(image, self._misleading(wording, rng), rng, size=self.text_size * self.strength)
        if self.image == "adv":
            from hedge_tasks.perturb.induction_attack import attack

            epsilon, step = self.epsilon * self.strength, self.step * self.strength
            seed = rng.getrandbits(63)
            encoders = (self.encoder,) if isinstance(self.encoder, str) else self.encoder
            return attack(image, encoders, seed=seed, epsilon=epsilon, step=step, steps=self.steps)
        restyled = _pipeline(self.pipeline)(image, style=rng.choice(self.styles), seed=rng.getrandbits(31))
        if not isinstance(restyled, Image.Image):
            raise ConfigError(f"perturbation: {self.pipeline} returned {type(restyled).__name__}, not a PIL image")
        return restyled.convert("RGB")

    def check(self, wording: Wording) -> None:
        """Raise where there is nothing to mislead with (TXT, PFX), or there are no options (SYN).

        Raises:
            ConfigError: what is missing.
        """
        if self.image == "txt" or self.wording == "pfx":
            self._misleading(wording, random.Random(0))
        if self.wording == "syn":
            self._options(wording)

    def perturb_wording(self, wording: Wording, *, seed: int) -> Wording:
        """The wording of one draw.

        Raises:
            ConfigError: PFX has nothing to mislead with, SYN finds no options or too few candidates.
        """
        rng = random.Random(f"{seed}/wording")
        if self.wording == "pfx":
            return replace(wording, question=f"{self._prefix(wording, rng)} {wording.question}")
        return self._with_near_options(wording, rng) if self.wording == "syn" else wording

    def _misleading(self, wording: Wording, rng: random.Random) -> str:
        text = wording.distractor.strip() or (rng.choice(self.texts) if self.texts else "")
        if not text:
            raise ConfigError(
                f"perturbation {self.name!r} needs a wrong answer to every question: name its column in the YAML "
                "(hedge: distractor: COLUMN), or give the perturbation a list `texts`"
            )
        return text

    def _prefix(self, wording: Wording, rng: random.Random) -> str:
        text = self._misleading(wording, rng)
        return text if text[-1] in ".!?" else rng.choice(self.prefixes).replace(_DISTRACTOR, text)

    def _options(self, wording: Wording) -> tuple[dict[str, str], str]:
        """The options of a question by their letters, and the letter of the right one."""
        options = {letter: text.strip() for letter, text in _OPTION.findall(wording.question)}
        right = next((key for key, text in options.items() if _means_option(wording.answer, key, text)), None)
        if len(options) < 2 or right is None:
            raise ConfigError(
                f"perturbation {self.name!r} needs questions with options '(A) ... (B) ...', one of them the answer; "
                f"got {wording.question[:80]!r} with the answer {wording.answer[:40]!r}"
            )
        return options, right

    def _with_near_options(self, wording: Wording, rng: random.Random) -> Wording:
        from hedge_tasks.perturb.induction_words import CANDIDATES, nearer_words

        options, right = self._options(wording)
        wrong = {letter: text for letter, text in options.items() if letter != right}
        nearer = nearer_words(
            options[right],
            list(wrong.values()),
            self.candidates or CANDIDATES,
            rng,
            nearest=self.nearest,
            too_near=self.too_near,
            model=self.embedding_model,
        )
        if nearer == list(wrong.values()):
            _warn_nothing_nearer(self.name, wording.question)
        replacements = dict(zip(wrong, nearer, strict=True))

        def replaced(match: re.Match[str]) -> str:
            return f"({match[1]}) {replacements.get(match[1], match[2])}"

        return replace(wording, question=_OPTION.sub(replaced, wording.question))


@lru_cache(maxsize=1024)
def _warn_nothing_nearer(name: str, question: str) -> None:
    """Once a question, and not once a draw."""
    logger.warning("{}: no candidate is nearer to the answer than the options are, they stay: {}", name, question[:100])


def _means_option(answer: str, letter: str, text: str) -> bool:
    """Whether an answer such as "(B) red", "B" or "red" means this option."""
    plain = answer.strip()
    return plain.startswith(f"({letter})") or plain == letter or plain.casefold() == text.casefold()


def _pipeline(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    if module == "diffusers":
        from hedge_tasks.perturb.induction_image import diffusers_pipeline

        return diffusers_pipeline(function)
    try:
        pipeline = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"perturbation: the pipeline {name!r} cannot be had: {error}") from None
    if not callable(pipeline):
        raise ConfigError(f"perturbation: the pipeline {name!r} is no function")
    return pipeline


def _texts(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(t, str) and t for t in value):
        raise ConfigError(f"perturbation: {key} must be a list of texts, got {value!r}")
    return tuple(value)


_SCENARIOS: dict[str, tuple[str | None, str | None]] = {
    **{f"shale_{kind}": (kind, None) for kind in _IMAGE_KINDS},
    **{f"shale_{kind}": (None, kind) for kind in _WORDING_KINDS},
    **{f"shale_{kind}_p": (kind, "pfx") for kind in _IMAGE_KINDS},
}

PRESETS: dict[str, Induction] = {
    name: Induction(name=name, image=image, wording=wording) for name, (image, wording) in _SCENARIOS.items()
}

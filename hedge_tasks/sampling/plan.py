"""The sampling plan of a question: settings from the YAML and the command line, expanded into draws.

Protocol of HEDGE §4.2-4.4: one baseline at T = 0.1 and n answers at T = 1 on the clean image, n answers at T = 1 on n
differently perturbed images, n = 10.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from hedge_tasks.data.answers import Condition, Draw
from hedge_tasks.data.inside import parts_of
from hedge_tasks.io.records import Above0, AtLeastOne, Count, Items, Settings, Share
from hedge_tasks.perturb import Noise, build_noise

CONTRAST = "contrast"
"""Name of contrastive decoding between two prompts, in the record of a run."""

_LIMITS = ("max_new_tokens", "decoding", "top_p", "top_k", "min_p", "until")
"""Generation settings that are handed to the model as they are."""

NOT_OF_THE_ANSWER = (
    "n",
    "n_noisy",
    "strength",
    "max_failed",
    "on_filtered",
    "image_check",
    "probe",
    "self_reading",
    "inside",
)
"""Settings that shape no answer by themselves (the strength is part of the perturbation's own settings)."""

MOST_ALTERNATIVES = 20
"""Servers of OpenAI's API give no more."""

_IGNORED = ("do_sample", "num_beams", "max_gen_toks")
"""Keys that other tasks of the same command need on `--gen_kwargs`; every draw here decides on its own."""

_AtLeast0 = Annotated[float, Field(ge=0)]


class SamplingPlan(Settings):
    """How many answers, how hot, on which images.

    Attributes:
        n: number of clean answers, and of noisy ones unless `n_noisy` says otherwise. 0 draws the baseline answer
            alone: what an evaluation says of the model is there, detectors that look at samples have no number.
        n_noisy: number of noisy answers; None means n. 0 leaves VASE undefined.
        temperature: of the clean and noisy answers.
        baseline_temperature: of the baseline answer.
        perturbation: of the noisy draws: a preset's name, or a mapping as `build_noise` reads it.
        strength: scales every range of the perturbation; 1 leaves it as it is.
        seed: base seed; another one gives an independent sample.
        decoding: "pure" is sampling at the temperature and nothing else; "model" is what the model's own
            `generation_config` says of top_p, top_k, min_p and penalties (hedge §4.4: "each model's default decoding
            parameters"). Either way a repetition penalty that the model documents stays, since it is part of the model.
        max_new_tokens, until: limits of the answer, not of a thought before it in case of `until`. `\\n` and `\\t` in a
            text of `until` are a line break and a tab.
        top_p, top_k, min_p: in place of what `decoding` says. None leaves that.
        max_failed: documents that may be left out because a draw of theirs is refused for good: a number, or a share
            (below 1) of the task's documents. More of them end the run.
        on_filtered: "fail" takes a reply that a content filter stopped for a failed draw, "record" for a refusal.
        image_check: documents whose baseline is drawn once more on a blank picture and on another document's, which
            tells how far the answers depend on the picture at all.
        probe: whether a few draws that count in no score first show how the model samples.
        max_image_side: pictures with a longer side than so many pixels are made smaller, before any perturbation, so
            that all models start from the same picture (hedge §6.5 names their preprocessing as a confounder). None
            leaves them as they are.
        perturb_at: pictures with a longer side than so many pixels are made smaller before they are perturbed; clean
            ones stay as they are. At the side that the model makes of them the noise reaches it whole; of a larger
            picture it averages much of the noise away, and perturbing costs in proportion to its pixels.
            Other pictures, and so other numbers. None perturbs every pixel.
        guided: whether the model may only write one of the answers that a question offers, in tasks that have such
            questions: a mask over the logits in `hedge_hf`, structured outputs elsewhere.
        self_reading: whether the model is asked, by forced passes, which of the offered answers its own baseline reply
            is, where words leave that open and its adapter can. No draw is another one for it.
        inside: parts of the model that are kept for detectors that look inside, such as "states+attention", or "all";
            see `hedge_tasks.data.inside`. No draw is another one for it.
        alternatives: keep with the baseline answer its tokens, each with its log-probability and so many of the
            likeliest tokens in its place, at most 20 (servers give no more); 0 keeps the tokens alone. Scores of claims
            without a draw look at them (`hedge claims`).
    """

    n: Count = 10
    n_noisy: Count | None = None
    temperature: _AtLeast0 = 1.0
    baseline_temperature: _AtLeast0 = 0.1
    perturbation: Any = "hedge"
    strength: _AtLeast0 = 1.0
    seed: Count = 0
    max_new_tokens: AtLeastOne = 512
    decoding: Literal["pure", "model"] = "pure"
    top_p: Annotated[Above0, Field(le=1)] | None = None
    top_k: AtLeastOne | None = None
    min_p: Annotated[Share, Field(lt=1)] | None = None
    until: Items[str] = ()
    max_failed: _AtLeast0 = 0
    on_filtered: Literal["fail", "record"] = "fail"
    image_check: Count = 0
    probe: bool = True
    max_image_side: AtLeastOne | None = None
    perturb_at: AtLeastOne | None = None
    guided: bool = False
    self_reading: bool = True
    inside: str | bool = False
    alternatives: Annotated[Count, Field(le=MOST_ALTERNATIVES)] | None = None

    @field_validator("until", mode="before")
    @classmethod
    def _texts(cls, until: Any) -> Any:
        texts = (until,) if isinstance(until, str) else until or ()
        return tuple(map(_unescaped, filter(None, texts)))

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.n == 0 and self.noisy_count:
            raise ValueError(f"n_noisy: {self.n_noisy} noisy answers have no clean ones (n: 0) to be compared with")
        if self.max_failed >= 1 and not self.max_failed.is_integer():
            raise ValueError(f"max_failed: expected an integer, or a share below 1, got {self.max_failed}")
        parts_of(self.inside)
        _ = self.noise  # an unknown preset or a strength beyond the limits fails here, not at the first noisy draw
        return self

    @classmethod
    def from_generation_kwargs(cls, kwargs: Mapping[str, Any]) -> SamplingPlan:
        """Build from lmms-eval's `generation_kwargs`, the YAML's with those of `--gen_kwargs` on top.

        Raises:
            ConfigError: a key is unknown (names the nearest valid one) or a value makes no sense.
        """
        return cls.read({key: value for key, value in kwargs.items() if key not in _IGNORED})

    @property
    def noisy_count(self) -> int:
        return self.n if self.n_noisy is None else self.n_noisy

    @property
    def noise(self) -> Noise:
        """The perturbation of the noisy draws at its strength."""
        return build_noise(self.perturbation).scaled(self.strength)

    def limits(self) -> dict[str, Any]:
        """Settings of `generate` that are the same for every draw; the model's defaults are left out."""
        return {name: value for name in _LIMITS if (value := getattr(self, name)) not in (None, ())}

    def allowed_failures(self, n_documents: int) -> int:
        """How many of a task's documents may be left out."""
        return int(self.max_failed * n_documents) if self.max_failed < 1 else int(self.max_failed)

    def settings(self) -> dict[str, Any]:
        noise = self.noise.settings()
        settings = {**self.model_dump(), "n_noisy": self.noisy_count, "until": list(self.until), "perturbation": noise}
        # Only where they are on: they are no part of the definition of answers that were sampled without.
        off = [n for n in ("max_image_side", "perturb_at", "guided", "inside") if not settings[n]]
        off += ["alternatives"] if self.alternatives is None else []
        return {key: value for key, value in settings.items() if key not in off}

    def draws(self, document: str) -> list[Draw]:
        """All draws of one document, baseline first, then clean, then noisy.

        Args:
            document: key of the document's content; see `draw_seed`.
        """
        noise = self.noise.name
        baseline = self._draw(document, "baseline", 0, self.baseline_temperature)
        clean = [self._draw(document, "clean", i, self.temperature) for i in range(self.n)]
        noisy = [self._draw(document, "noisy", i, self.temperature, noise) for i in range(self.noisy_count)]
        return [baseline, *clean, *noisy]

    def _draw(
        self, document: str, condition: Condition, index: int, temperature: float, noise: str | None = None
    ) -> Draw:
        return Draw(condition, index, temperature, draw_seed(self.seed, document, condition, index), noise)


def _unescaped(stop: str) -> str:
    """Return a text that ends answers with the blanks that a command line cannot hold: `\\n` is a line break."""
    return stop.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")


def draw_seed(base: int, document: str, condition: str, index: int | str) -> int:
    """Seed of one draw: a 63-bit hash of base seed, document content, condition and index.

    It knows nothing of the number of draws, of their order or of the batch, so raising n keeps the first draws, and
    the same draw sees the same perturbed image on every machine and for every model.
    """
    key = "\0".join((str(base), document, condition, str(index)))
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little") >> 1


@dataclass(frozen=True)
class SecondStage:
    """Questions that follow from a document's first answers, as data that a request carries.

    Attributes:
        name: of a registered stage; see `hedge_tasks.sampling.second_stage`.
        plan: of every further question; one object for all documents, because the hook shares what follows from it.
        options: what else the stage needs to know, ready for JSON.
    """

    name: str
    plan: SamplingPlan
    options: Mapping[str, Any] = field(default_factory=dict)

"""Contrastive decoding between two prompts: pushes what a model writes towards the one or the other.

VOPE (arXiv 2511.13420), section 4.4 and appendix C, after VCD (Leng et al. 2024).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from hedge_tasks.errors import ConfigError
from hedge_tasks.io.options import finite, scalar
from hedge_tasks.io.records import Settings
from hedge_tasks.models.decoding import SharedPrefill, select_rows
from hedge_tasks.sampling.plan import CONTRAST
from hedge_tasks.sampling.prompts import Prompt, load_prompt
from hedge_tasks.sampling.requests import DrawRequest

_FORM = "expected PROMPT:OTHER:ALPHA, such as vope/writing:vope/captioning:0.5"


@dataclass(frozen=True)
class Contrast:
    """Which draws are contrasted, with what, and how strongly.

    Attributes:
        prompt: name of the prompt of the draws; all others are sampled as ever.
        other: the prompt they are contrasted with.
        alpha: 0 changes nothing; above 0 the answers move away from the other prompt's, below 0 towards them, and at -1
            they are the other prompt's.
    """

    prompt: str
    other: Prompt
    alpha: float

    @classmethod
    def parse(cls, text: object) -> Contrast:
        """Read the model argument `contrast`.

        Raises:
            ConfigError: it is of another form, a prompt is unknown, or a number makes no sense.
        """
        if str(text).count(":") != 2:
            raise ConfigError(f"contrast: {_FORM}; got {text!r}")
        first, second, number = str(text).split(":")
        prompt, other = load_prompt(first.strip()), load_prompt(second.strip())
        if prompt.name == other.name:
            raise ConfigError(f"contrast: {prompt.name} cannot be contrasted with itself")
        return cls(prompt.name, other, finite("contrast: alpha", scalar(number)))

    @property
    def settings(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"name": CONTRAST, "prompt": self.prompt, "other": self.other.name, "alpha": self.alpha}

    @property
    def identity(self) -> str:
        """The settings of it that shape an answer."""
        return f"{self.prompt}:{self.other}:{self.alpha:g}"

    def applies_to(self, draw: DrawRequest) -> bool:
        return draw.request.prompt.name == self.prompt

    def messages(self, draw: DrawRequest, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the other prompt's conversation for a draw, with the very same pictures."""
        parts = [part for message in messages for part in message["content"]]
        return self.other.messages(draw.wording(), [part["url"] for part in parts if part["type"] == "image"])


def contrasted(logits: torch.Tensor, other_logits: torch.Tensor, alpha: float, beta: float = 0.0) -> torch.Tensor:
    r"""Logits of contrastive decoding, float32, shape (..., vocabulary).

    .. math:: (1 + \alpha) \operatorname{logit}(y \mid v, x) - \alpha \operatorname{logit}(y \mid v, x')

    Source: VOPE, equation 5, with the writing prompt as :math:`x` and the captioning prompt as :math:`x'`. Tokens with
    :math:`p(y \mid v, x) < \beta \max_w p(w \mid v, x)` get minus infinity (VCD's adaptive plausibility constraint).

    Args:
        logits, other_logits: after the prompt and after the other prompt, shape (..., vocabulary).
    """
    logits, other_logits = logits.float(), other_logits.float()
    if alpha == 0:
        mixed = logits
    elif alpha == -1:
        mixed = other_logits  # exactly: the sum would leave rounding behind
    else:
        mixed = (1 + alpha) * logits - alpha * other_logits
    return plausible(mixed, logits, beta)


def plausible(mixed: torch.Tensor, logits: torch.Tensor, beta: float) -> torch.Tensor:
    """Contrasted logits, minus infinity where the model's own find a token less likely than beta times the likeliest.

    Args:
        mixed: contrasted logits, shape (..., vocabulary).
        logits: the model's own.
        beta: 0 leaves all tokens.
    """
    if beta == 0:
        return mixed
    return mixed.masked_fill(logits < logits.max(dim=-1, keepdim=True).values + math.log(beta), -torch.inf)


class Method(Settings):
    """Decoding in another way than sampling from the model's own logits."""

    name: ClassVar[str]
    needs_pictures: ClassVar[bool] = True

    @property
    def settings(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"name": self.name, **self.model_dump(mode="json")}


class Wrapped:
    """A model that is called, and asked for anything else, as the one in it."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


@dataclass
class _Pair:
    """State of the rows under both prompts; to the decoding loop it looks like the state of one."""

    main: Any
    other: Any
    contrast: Contrast

    @property
    def rows(self) -> torch.Tensor:
        return self.main.rows

    @property
    def ids(self) -> torch.Tensor:
        return self.main.ids

    @property
    def logits(self) -> torch.Tensor:
        return contrasted(self.main.logits, self.other.logits, self.contrast.alpha)

    def select(self, rows: torch.Tensor) -> _Pair:
        return _Pair(self.main.select(rows), self.other.select(rows), self.contrast)


class Caches:
    """Two caches that lose and repeat their rows together."""

    def __init__(self, main: Any, other: Any) -> None:
        self.main, self.other = main, other

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        select_rows(self.main, indices)
        select_rows(self.other, indices)


class ContrastiveDecoding(SharedPrefill):
    """Reads both prompts once, and decodes all draws from the difference. Every token costs two passes.

    Args:
        model: as for `SharedPrefill`.
        contrast: how the two are mixed.
        other_inputs: processed prompts to contrast with, one for each prompt given to `decode`, in their order.
    """

    def __init__(self, model: Any, contrast: Contrast, other_inputs: Mapping[str, Any]) -> None:
        super().__init__(model)
        self._contrast = contrast
        self._other_inputs = other_inputs

    def prefill(self, inputs: Mapping[str, Any], owners: Sequence[int]) -> tuple[Any, Any]:
        main, cache = super().prefill(inputs, owners)
        other, other_cache = super().prefill(self._other_inputs, owners)
        return _Pair(main, other, self._contrast), Caches(cache, other_cache)

    def advance(self, state: Any, cache: Any, tokens: torch.Tensor) -> Any:
        main = super().advance(state.main, cache.main, tokens)
        other = super().advance(state.other, cache.other, tokens)
        return _Pair(main, other, self._contrast)

"""The paper's checkers: VQAScore, and reading of written words."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from PIL import Image

from hedge_tasks.data.answers import Answer
from hedge_tasks.errors import ConfigError
from hedge_tasks.io import options
from hedge_tasks.llm.loading import resolve_model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.pictures.base import PictureQuestion
from hedge_tasks.replies.text import normalise

_SHAPES_NOTHING = (
    *("base_url", "api_key", "num_concurrent", "timeout", "max_retries", "retry_backoff_s"),
    *("wait_for_server", "draws_per_request"),
    *("batch_size", "max_batch_size", "draws_per_batch", "device", "device_map"),
)
"""Arguments of adapters that are no part of the name: where the model is, and how fast it is asked."""


class VqaScore:
    """P(yes) to "Does this figure show '...'? Please answer yes or no." (Lin et al. 2024, VQAScore).

    The score is p(Yes) / (p(Yes) + p(No)) at temperature 1, of forced passes. VQAScore itself takes p(Yes) alone, of a
    model that was trained to say nothing but these two words; a chat model has other beginnings ("The figure ..."), and
    their share says nothing about the picture.

    Args:
        adapter: One of our adapters for lmms-eval that makes forced passes, such as `hedge_hf`.
        arguments: As for lmms-eval's `--model_args`.

    Raises:
        ConfigError: There is no such adapter, or it makes no forced passes.
    """

    def __init__(self, adapter: str = "hedge_hf", **arguments: Any) -> None:
        from hedge_tasks.models import adapter_class

        if "api_key" in arguments:
            raise ConfigError("checker vqascore: a key belongs into the environment (OPENAI_API_KEY)")
        adapter_type = adapter_class(options.text("adapter", adapter))
        if not hasattr(adapter_type, "forced_logprobs"):
            raise ConfigError(f"adapter {adapter!r} makes no forced passes")
        self._prompt = load_template("hedge_tasks.making.pictures", "vqascore")
        named = sorted((key, value) for key, value in arguments.items() if key not in _SHAPES_NOTHING)
        if "pretrained" in arguments:
            arguments["pretrained"] = resolve_model(str(arguments["pretrained"]))
        self._model = adapter_type(**arguments)
        listed = ",".join(f"{key}={value}" for key, value in named)
        self.name = f"vqascore:{adapter},{listed},prompt={self._prompt.digest[:8]}"

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | str | None]:
        """As `Checker.check`."""
        words = self._prompt.reply_schema["enum"]
        pairs = zip(pictures, questions, strict=True)
        turns = [self._prompt.conversation({"statement": question.statement}, [picture]) for picture, question in pairs]
        passes = self._model.forced_logprobs([turn for turn in turns for _ in words], [*words] * len(turns))
        return [_score(*pair) for pair in zip(passes[::2], passes[1::2], strict=True)]


def _score(yes: Answer | str, no: Answer | str) -> float | str | None:
    if isinstance(yes, str) or isinstance(no, str):
        return next(text or "a forced pass failed" for text in (yes, no) if isinstance(text, str))
    return p_yes(*(_logprob(answer) for answer in (yes, no)))


def _logprob(answer: Answer) -> float | None:
    """Log-probability of the whole answer, in nats."""
    return None if answer.mean_logprob is None else answer.mean_logprob * max(answer.n_tokens or 1, 1)


def p_yes(yes: float | None, no: float | None) -> float | None:
    """p(yes) / (p(yes) + p(no)) of two log-probabilities; None where either is unknown, or both are impossible.

    Example:
        >>> import math
        >>> round(p_yes(math.log(0.6), math.log(0.2)), 12)
        0.75
    """
    if yes is None or no is None or yes == no == -math.inf:
        return None
    return 1 / (1 + math.exp(min(no - yes, 700)))


class WordReading:
    """Whether the words that have to stand in a picture can be read there, by RapidOCR: PaddleOCR's models for words in
    scenes, through ONNX; their weights lie in its package. Of anything but words it cannot say.

    Raises:
        ConfigError: It is not installed; says how.
    """

    def __init__(self) -> None:
        try:
            import rapidocr_onnxruntime
        except ImportError:
            raise ConfigError("checker ocr: needs RapidOCR: pip install 'hedge-tasks[ocr]'") from None
        self.name = f"ocr:rapidocr {version('rapidocr-onnxruntime')}"
        self._engine = rapidocr_onnxruntime.RapidOCR()

    def check(self, pictures: Sequence[Image.Image], questions: Sequence[PictureQuestion]) -> list[float | None]:
        """As `Checker.check`."""
        return [self._score(*pair) for pair in zip(pictures, questions, strict=True)]

    def _score(self, picture: Image.Image, question: PictureQuestion) -> float | None:
        words = normalise(question.statement)
        if question.kind != "text" or not words:
            return None
        lines, _ = self._engine(np.asarray(picture)[:, :, ::-1])  # blue, green, red
        return likeness(words, [str(text) for _, text, _ in lines or ()])


def likeness(expected: str, lines: Sequence[str]) -> float:
    """Similarity of what is written in a picture and what should be: of all lines together, or of the best one.

    Case, punctuation and breaks of lines do not count. It is twice the letters in common by the length of both
    (difflib's ratio), 0 to 1.

    Example:
        >>> likeness("hell", ["Hello"]), likeness("EXIT", ["exit", "keep clear"]), likeness("hell", [])
        (0.8888888888888888, 1.0, 0.0)
    """
    texts = [normalise(text) for text in (" ".join(lines), *lines)]
    return max(difflib.SequenceMatcher(None, normalise(expected), text, autojunk=False).ratio() for text in texts)

"""Which tokens may come next, where a reply must be JSON of a schema: a mask from llguidance (extra `[schema]`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from loguru import logger

from hedge_tasks.errors import ConfigError


def installed() -> bool:
    """Whether replies can be kept to a schema; where not, says once what to install."""
    try:
        import llguidance  # noqa: F401
    except ImportError:
        _say_once()
        return False
    return True


class SchemaContinuations:
    """The tokens that may follow, so that a reply becomes JSON of a schema; as `Continuations` for a few texts.

    Every reply has one of its own: it remembers how far the reply has come.

    Args:
        tokenizer: Of the model, one of Hugging Face's fast ones.
        schema: JSON schema.
        ends: Tokens that end an answer.
        size: Of the vocabulary, as the model's scores have it.

    Raises:
        ConfigError: The schema is none that can be enforced, or the tokenizer is no fast one.
    """

    def __init__(self, tokenizer: Any, schema: Mapping[str, Any], ends: Collection[int], size: int) -> None:
        import llguidance

        self._ends = np.array(sorted(ends), dtype=np.int64)
        self._size = size
        # Without blanks that a model could go on with for ever.
        options: Any = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
        grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)
        self._matcher = llguidance.LLMatcher(_tokens_of(tokenizer, tuple(sorted(ends)), size), grammar)
        if self._matcher.is_error():
            raise ConfigError(f"this schema cannot be enforced: {self._matcher.get_error()}")
        self._written: list[int] = []

    def after(self, tokens: Sequence[int]) -> npt.NDArray[np.int64]:
        """Return the tokens that may follow those chosen so far; the ends where the reply is complete.

        Args:
            tokens: All of them, each time; what comes after an end does not count.
        """
        ends = set(self._ends.tolist())
        length = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
        if length < len(tokens):
            return self._ends
        if list(tokens[: len(self._written)]) != self._written:
            self._matcher.reset()
            self._written = []
        for token in tokens[len(self._written) :]:
            self._matcher.consume_token(token)
        self._written = list(tokens)
        if self._matcher.is_stopped() or self._matcher.is_error():
            return self._ends
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        return np.flatnonzero(bits[: self._size])


@lru_cache(maxsize=2)
def _tokens_of(tokenizer: Any, ends: tuple[int, ...], size: int) -> Any:
    """Return the tokenizer as llguidance reads it, which takes a second."""
    import llguidance.hf

    try:
        return llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(size, len(tokenizer)), eos_token=list(ends))
    except ValueError as error:
        raise ConfigError(f"replies of this model cannot be kept to a schema: {error}") from error


@lru_cache(maxsize=1)
def _say_once() -> None:
    logger.info("replies are read, and not kept to their schema as they are written: pip install 'hedge-tasks[schema]'")

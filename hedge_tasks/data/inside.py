"""Arrays from inside a model as it reads a question and an answer, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from hedge_tasks.errors import check_names

PARTS: Mapping[str, str] = {
    "states": "hidden states of the baseline answer at a few depths and places",
    "attention": "where each head looks while the baseline answer is said",
    "logits": "summaries of the next-token distribution at each token of the baseline answer",
    "sentences": "hidden states of each sentence of the baseline answer, at the same depths",
    "draws": "hidden state and logits of each clean answer, by a pass each",
}
"""Parts that can be kept, and asked for with `inside`."""

PLACES = ("question", "image", "first", "last", "mean")
"""Last token before the answer, last token of the picture, first and last of the answer, mean over the answer."""

SENTENCE_PLACES = ("last", "mean")
"""Last token of a sentence, mean over its tokens."""

DEPTHS = (0.5, 0.75, 1.0)
"""Shares of the model's depth at which states are kept."""

HEADS = ("image", "question", "answer", "image_entropy", "lookback")
"""Columns of `heads`: shares of attention on image tokens, on the rest of the prompt and on the answer so far; entropy
over image tokens, as a share of the largest there could be; lookback ratio (Chuang et al. 2024, 2407.07071)."""

TOP = 10
LOGITS = ("logprob", "entropy", "uniform_divergence", "free_energy", "logit", *(f"top{i}" for i in range(1, TOP + 1)))
"""Columns of `logits`: log-probability of the token, entropy, divergence of the uniform distribution from the model's,
log-sum-exp of the logits, logit of the token, and the largest log-probabilities; all in nats."""

ARRAYS: Mapping[str, tuple[str, ...]] = {
    "states": ("states",),
    "attention": ("heads", "previous", "image_shares"),
    "logits": ("logits",),
    "sentences": ("sentence_states", "sentence_spans"),
    "draws": ("draw_states", "draw_logits"),
}
"""Arrays of each part:

- `states`: (layers, places, width), half precision; NaN where there is no such place, as without a picture.
- `heads`: (layers, heads, columns), means over the tokens of the answer; NaN for the image without one.
- `previous`: (layers, tokens), attention of the position that says a token to the token before, by the head of each
  layer that looks there most (Vazhentsev et al. 2025, 2505.20045); NaN for the first token.
- `image_shares`: (tokens,), on image tokens, the mean over layers and heads.
- `logits`: (tokens, columns).
- `sentence_states`: (sentences, layers, sentence places, width), half precision.
- `sentence_spans`: (sentences, 2), first character of each in the answer, and the one behind its last.
- `draw_states`: (n, width), half precision, at the last token in the middle of the model.
- `draw_logits`: (n, columns), the mean over tokens.
"""

Inside = Mapping[str, npt.NDArray[Any]]
"""Arrays by name, as in `ARRAYS`."""


def parts_of(setting: str | bool) -> frozenset[str]:
    """The parts that a setting asks for.

    Raises:
        ConfigError: there is no such part; names the nearest one.

    Example:
        >>> sorted(parts_of("states+logits")), parts_of(False), parts_of(True) == parts_of("all") == set(PARTS)
        (['logits', 'states'], frozenset(), True)
    """
    if isinstance(setting, bool):
        return frozenset(PARTS) if setting else frozenset()
    names = [name.strip() for name in str(setting).split("+") if name.strip()]
    check_names("part to be kept from inside the model", names, (*PARTS, "all"))
    return frozenset(PARTS) if "all" in names else frozenset(names)

"""The NLI classifier: a transformers sequence classification model that knows three relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from loguru import logger

from hedge_tasks.clustering.base import map_in_batches
from hedge_tasks.clustering.models import load_or_explain
from hedge_tasks.clustering.nli import Pair, Relation
from hedge_tasks.errors import ConfigError

_STEMS = {"contradict": Relation.CONTRADICTION, "neutral": Relation.NEUTRAL, "entail": Relation.ENTAILMENT}


class NliModel:
    """Classifies (premise, hypothesis) pairs with a loaded model.

    Args:
        model: A ``...ForSequenceClassification`` model of transformers, in evaluation mode.
        tokenizer: Its tokenizer.

    Raises:
        ConfigError: If the model's labels are not exactly the three relations.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        self._relations = relations_by_index(model.config.id2label)
        self._max_tokens = token_limit(model.config, tokenizer)

    def classify(self, pairs: Sequence[Pair], *, batch_size: int) -> list[Relation]:
        """The most likely relation of each pair, in the order of the pairs."""
        return map_in_batches(
            self._classify_batch,
            pairs,
            batch_size=batch_size,
            key=lambda pair: (len(pair[0]) + len(pair[1]), pair),
            description="Comparing answers (NLI)",
        )

    def _classify_batch(self, pairs: list[Pair]) -> list[Relation]:
        import torch

        inputs = self._tokenizer(
            [premise for premise, _ in pairs],
            [hypothesis for _, hypothesis in pairs],
            truncation="longest_first",
            max_length=self._max_tokens,
            padding=True,
            return_tensors="pt",
        ).to(self._model.device)
        with torch.inference_mode():
            logits = self._model(**inputs).logits
        if not torch.isfinite(logits).all():
            raise FloatingPointError("the NLI model returned NaN or infinity; in half precision, try dtype=float32")
        return [self._relations[index] for index in logits.argmax(dim=-1).tolist()]


@lru_cache(maxsize=1)
def load_nli_model(model: str, revision: str | None, device: str, dtype: str) -> NliModel:
    """Load an NLI model.

    The last one is kept, so that clustering question by question, or with and without the question, loads it once;
    ``load_nli_model.cache_clear()`` frees it.

    Raises:
        ModelUnavailableError: If it cannot be loaded.
        ConfigError: If its labels are not exactly contradiction, neutral and entailment.
    """
    logger.info("Loading the NLI model {} on {}", model, device)
    return load_or_explain(lambda source: _load(source, revision, device, dtype), model, revision, kind="NLI")


def read_config(model: str, revision: str | None) -> Any:
    """Configuration of an NLI model, checked.

    Raises:
        ModelUnavailableError: If it cannot be loaded.
        ConfigError: If its labels are not exactly contradiction, neutral and entailment.
    """
    return load_or_explain(lambda source: _config(source, revision), model, revision, kind="NLI")


def _config(source: str, revision: str | None) -> Any:
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(source, revision=revision, trust_remote_code=False)
    relations_by_index(config.id2label)
    return config


def _load(source: str, revision: str | None, device: str, dtype: str) -> NliModel:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    _config(source, revision)  # before gigabytes of weights are fetched for nothing
    origin: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(source, **origin)
    model = AutoModelForSequenceClassification.from_pretrained(source, dtype=getattr(torch, dtype), **origin)
    return NliModel(model.to(device).eval(), tokenizer)


def relations_by_index(id2label: Mapping[int, str]) -> dict[int, Relation]:
    """What each output of the model means, from the names of its labels, whatever their case.

    Raises:
        ConfigError: If the labels are not exactly contradiction, neutral and entailment.
    """
    relations = {int(index): _relation(label) for index, label in id2label.items()}
    if len(relations) != len(Relation) or set(relations.values()) != set(Relation):
        raise ConfigError(
            f"this is no usable NLI model: its labels are {', '.join(map(repr, id2label.values()))}, but they must be "
            "contradiction, neutral and entailment, each once (`id2label` in the model's config.json)"
        )
    return {index: relation for index, relation in relations.items() if relation is not None}


def _relation(label: object) -> Relation | None:
    name = str(label).strip().casefold()
    return next((relation for stem, relation in _STEMS.items() if name.startswith(stem)), None)


def token_limit(config: Any, tokenizer: Any) -> int | None:
    """The longest input in tokens; ``None`` if neither model nor tokenizer has a limit.

    A tokenizer saved without a limit reports an astronomical one, hence the minimum with the model's.
    """
    positions = getattr(config, "max_position_embeddings", None) or 0
    limits = [limit for limit in (tokenizer.model_max_length, positions) if 0 < limit < 10**9]
    return min(limits, default=None)

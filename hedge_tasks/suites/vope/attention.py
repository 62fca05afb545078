"""Attention to the image while an object is said (section 4.6): of descriptions, of imaginations, and as a detector.

Experimental: needs the model that wrote the stories, in `hedge_hf`, and one pass over each story with eager attention.
The image attention weight of an object is the share of attention on image tokens, averaged over layers and heads, over
the tokens of a mention and over all mentions in the story. The paper does not say over which layers, heads and tokens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.detectors.pipeline import auroc_of_pairs
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import estimate_mean
from hedge_tasks.suites.vope.extraction import mentions, places
from hedge_tasks.suites.vope.judge import (
    FALSE_DESCRIPTION,
    FALSE_IMAGINATION,
    HALLUCINATED,
    TRUE_DESCRIPTION,
    TRUE_IMAGINATION,
)

DESCRIBED = (TRUE_DESCRIPTION, FALSE_DESCRIPTION)
IMAGINED = (TRUE_IMAGINATION, FALSE_IMAGINATION)

Token = tuple[int, int, float]
"""Begin and end of a token in a text, and the share of attention on image tokens as it is said."""


@dataclass(frozen=True)
class AttendedObject:
    """One object of a story.

    Attributes:
        story, group: id of the story, and of its image.
        word: as in the run's record of the object.
        kind: one of `judge.SETS`; None where its recheck could not be read.
        weight: image attention weight, a share in [0, 1].
        mentions: how often the story mentions it.
    """

    story: str
    group: str
    word: str
    kind: str | None
    weight: float
    mentions: int


@dataclass(frozen=True)
class WordWeights:
    """One point of Figure 9: mean weights of a word where it is described and where it is imagined."""

    word: str
    described: float
    imagined: float
    n_described: int
    n_imagined: int


@dataclass(frozen=True)
class AttentionNumbers:
    """Summary of the attention weights.

    Attributes:
        means: mean weight with its standard error between images, by set and for "described" and "imagined".
        words: Figure 9, words that are in both conditions.
        imagined: ROC-AUC of (1 - weight) for "the object is imagined, not described": the paper's claim.
        hallucinated: the same for "the model is wrong about the object", over all objects.
        hallucinated_described: over described objects alone.
    """

    means: Mapping[str, Number]
    words: tuple[WordWeights, ...]
    imagined: Number
    hallucinated: Number
    hallucinated_described: Number


def object_weights(text: str, tokens: Sequence[Token]) -> dict[str, tuple[float, int]]:
    """Image attention weight of every object that a text mentions, and its number of mentions.

    Args:
        text: the story.
        tokens: that it was said in, with their places in the text.

    Returns:
        By word; mentions that cannot be found in the text as it was written are left out.
    """
    weights: dict[str, list[float]] = defaultdict(list)
    found_mentions = mentions(text)
    for mention, place in zip(found_mentions, places(text, found_mentions), strict=True):
        of_mention = [share for start, end, share in tokens if place and start < place[1] and end > place[0]]
        if of_mention:
            weights[mention.word].append(sum(of_mention) / len(of_mention))
    return {word: (sum(values) / len(values), len(values)) for word, values in weights.items()}


def attended(
    stories: Sequence[tuple[str, str, str, Mapping[str, str | None]]], tokens_of: Callable[[str, str], Sequence[Token]]
) -> list[AttendedObject]:
    """Return the objects of stories with their weights.

    Args:
        stories: id, group, text and the set of every object by its word.
        tokens_of: id and text of a story -> its tokens.
    """
    objects = []
    for id, group, text, kinds in stories:
        weights = object_weights(text, tokens_of(id, text))
        objects += [AttendedObject(id, group, word, kinds[word], *weights[word]) for word in kinds if word in weights]
    return objects


def numbers_of(objects: Sequence[AttendedObject]) -> AttentionNumbers:
    """Means by set, Figure 9, and how well little attention tells imagination and hallucination."""
    read = [entry for entry in objects if entry.kind is not None]
    sets = {kind: (kind,) for kind in (*DESCRIBED, *IMAGINED)} | {"described": DESCRIBED, "imagined": IMAGINED}

    def auroc(entries: Sequence[AttendedObject], positive: Sequence[str]) -> Number:
        return auroc_of_pairs([(1 - entry.weight, int(entry.kind in positive), entry.group) for entry in entries])

    return AttentionNumbers(
        means={name: _mean([entry for entry in read if entry.kind in kinds]) for name, kinds in sets.items()},
        words=_words(read),
        imagined=auroc(read, IMAGINED),
        hallucinated=auroc(read, HALLUCINATED),
        hallucinated_described=auroc([entry for entry in read if entry.kind in DESCRIBED], HALLUCINATED),
    )


def _mean(objects: Sequence[AttendedObject]) -> Number:
    return estimate_mean([entry.weight for entry in objects], [entry.group for entry in objects])


def _words(objects: Sequence[AttendedObject]) -> tuple[WordWeights, ...]:
    by_word: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for entry in objects:
        by_word[entry.word][entry.kind in IMAGINED].append(entry.weight)
    in_both = {word: pair for word, pair in sorted(by_word.items()) if all(pair)}
    return tuple(
        WordWeights(word, sum(d) / len(d), sum(i) / len(i), len(d), len(i)) for word, (d, i) in in_both.items()
    )


def kinds_of(verdict: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the set of every object of a story by its word, as the run's verdict has it."""
    return {str(entry["word"]): entry["kind"] for entry in verdict.get("objects") or [] if isinstance(entry, Mapping)}

"""A random sample of documents for experts, in proportion to the judge's labels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hedge_tasks.errors import ConfigError
from hedge_tasks.statistics.base import IntArray

_TITLES = {1: "judged hallucinated", 0: "judged supported", None: "without a label"}

_FEWEST = 5
"""Labels that a stratum is to get at least; a smaller one is drawn together with the largest."""


class Strata(NamedTuple):
    """Documents that are drawn alike.

    Attributes:
        stratum: of each document, shape `(n,)`.
        titles: of each stratum.
        take: documents to draw in each, in proportion to its size.
    """

    stratum: IntArray
    titles: tuple[str, ...]
    take: tuple[int, ...]

    def drawn(self, chance: random.Random) -> list[int]:
        """Return the documents of a draw, by their places."""
        parts = enumerate(self.take)
        return [i for h, n in parts for i in chance.sample(np.flatnonzero(self.stratum == h).tolist(), n)]


def strata_of(judged: Sequence[int | None], n: int) -> Strata:
    """Divide documents by the judge's label, and `n` labels among them in proportion.

    Whether a stratum stands alone is known before any label: it does where it gets 5 of them.

    Raises:
        ConfigError: there are no documents, or no labels to give.

    Example:
        >>> strata = strata_of([1] * 30 + [0] * 68 + [None] * 2, 20)
        >>> strata.titles, strata.take
        (('judged supported or without a label', 'judged hallucinated'), (14, 6))
    """
    if not judged or n < 1:
        raise ConfigError(f"--budget {n} of {len(judged)} documents: there is nothing to label")
    n = min(n, len(judged))
    labels = sorted(_TITLES, key=lambda label: -judged.count(label))
    alone = [label for label in labels if judged.count(label) * n >= _FEWEST * len(judged)] or labels[:1]
    number = {label: alone.index(label) if label in alone else 0 for label in labels}
    stratum = np.array([number[label] for label in judged], dtype=np.int64)
    titles = [" or ".join(_TITLES[x] for x in labels if number[x] == h and x in judged) for h in range(len(alone))]
    shares = np.bincount(stratum, minlength=len(alone)) * n / len(judged)
    take = np.floor(shares).astype(np.int64)
    take[np.argsort(take - shares, kind="stable")[: n - int(take.sum())]] += 1
    return Strata(stratum, tuple(titles), tuple(take.tolist()))

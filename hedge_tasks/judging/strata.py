"""Strata of an audit: by the judge's label, its basis and the score, and how many labels each of them gets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hedge_tasks.errors import ConfigError, unknown
from hedge_tasks.statistics.base import FloatArray, IntArray, codes_of, levels_of, quantile_of
from hedge_tasks.statistics.designs import LEAST, allocate

PURPOSES = ("auroc", "compare", "policy", "rate")

_HALLUCINATED = {1: 0.6, 0: 0.1, None: 0.5}
"""Rate of hallucinated answers by the judge's label that a plan reckons with: a wrong guess costs labels, no bias."""

_PER_STRATUM = 6
"""Labels that a part of a cell is worth having for."""

_MOST_PARTS = 4

SCARCE = 12
"""Labels of the rarer kind below which intervals are long, and labels alone may have none."""


class Strata(NamedTuple):
    """Which documents are drawn alike.

    Attributes:
        stratum: of each document, shape `(n,)`.
        titles: of each stratum.
        take: documents to draw in each.
    """

    stratum: IntArray
    titles: tuple[str, ...]
    take: tuple[int, ...]


def strata_of(
    scores: FloatArray,
    judged: Sequence[int | None],
    basis: Sequence[str],
    n: int,
    *,
    purpose: str = "auroc",
    other: FloatArray | None = None,
    floor: float | None = None,
) -> Strata:
    """Divide documents into strata and `n` labels among these, more where a label changes the number more.

    Args:
        scores: shape `(n,)`, without nan.
        judged: the judge's label of each document.
        basis: what it rests on, such as the rule of the judge, or that the reply was read softly.
        n: labels.
        purpose: one of `PURPOSES`.
        other: scores of the detector to compare with, for "compare".
        floor: share of a proportional draw that every stratum gets at least. By default half; all of it for "policy",
            whose test needs documents that were drawn alike (`hedge_tasks.guard.by_experts`).

    Raises:
        ConfigError: the purpose is unknown, or the labels are too few for two of either label.
    """
    if purpose not in PURPOSES:
        raise unknown("purpose of an audit", purpose, PURPOSES)
    chances = np.array([_HALLUCINATED[label] for label in judged])
    weights = _weights(scores, chances, purpose, other)
    needs = np.sqrt(chances * (1 - chances)) * weights
    stratum, titles = _divided(_cells(judged, basis, n), scores, needs, n, "score")
    sizes = np.bincount(stratum)
    least = (1.0 if purpose == "policy" else 0.5) if floor is None else floor
    if n < LEAST * len(sizes):
        raise ConfigError(f"--budget {n}: at least {LEAST * len(sizes)} labels are needed here")
    spreads = np.sqrt(np.bincount(stratum, needs**2) / sizes)
    return Strata(stratum, titles, tuple(allocate(sizes.tolist(), spreads.tolist(), n, floor=least)))


def strata_of_images(
    scores: FloatArray,
    judged: Sequence[int | None],
    images: IntArray,
    n: int,
    *,
    purpose: str = "auroc",
    other: FloatArray | None = None,
) -> Strata:
    """Divide images, which are drawn with all of their documents, into strata; `take` counts images.

    Args:
        images: image of each document, whole numbers from 0 without gaps, shape `(n,)`.
        n: labels; the images that are drawn have about so many documents.
        scores, judged, purpose, other: as for `strata_of`.

    Raises:
        ConfigError: as `strata_of`.
    """
    if purpose not in PURPOSES:
        raise unknown("purpose of an audit", purpose, PURPOSES)
    chances = np.array([_HALLUCINATED[label] for label in judged])
    needs = chances * (1 - chances) * _weights(scores, chances, purpose, other) ** 2
    n_documents = np.bincount(images)
    of_image = np.sqrt(np.bincount(images, needs))
    kinds = [{1: 0, None: 1, 0: 2}[label] for label in judged]
    first = np.full(len(n_documents), 2)
    np.minimum.at(first, images, kinds)
    names = ("any judged hallucinated", "any without a label", "all judged supported")
    cells = {name: np.flatnonzero(first == kind) for kind, name in enumerate(names) if (first == kind).any()}
    stratum, titles = _divided(cells, of_image, of_image, n / float(n_documents.mean()), "weight")
    sizes = np.bincount(stratum)
    documents = np.bincount(stratum, n_documents) / sizes
    spreads = np.sqrt(np.bincount(stratum, of_image**2) / sizes / documents)
    floor = 1.0 if purpose == "policy" else 0.5

    def allocation(m: int) -> list[int]:
        return allocate(sizes.tolist(), spreads.tolist(), m, floor=floor)

    low = int(np.minimum(sizes, LEAST).sum())
    if float((np.minimum(sizes, LEAST) * documents).sum()) > n:
        needed = math.ceil(float((np.minimum(sizes, LEAST) * documents).sum()))
        raise ConfigError(f"--budget {n}: about {needed} labels are needed here, where images are drawn whole")
    high = max(low, min(n, len(n_documents)))
    while low < high:  # as many images as the labels are enough for
        middle = (low + high + 1) // 2
        fits = float(np.dot(allocation(middle), documents)) <= n + 0.5
        low, high = (middle, high) if fits else (low, middle - 1)
    return Strata(stratum[images], titles, tuple(allocation(low)))


def _divided(
    cells: Mapping[str, IntArray], values: FloatArray, needs: FloatArray, n: float, word: str
) -> tuple[IntArray, tuple[str, ...]]:
    """The stratum of each unit, and the titles of the strata: parts of the cells by the value of their members.

    Args:
        cells: by title, numbers of units.
        values: that a cell is divided by, shape `(units,)`.
        needs: how many labels each unit needs, beside the others, shape `(units,)`.
        n: labels in all.
        word: for the value, in titles.
    """
    stratum = np.zeros(len(values), dtype=np.int64)
    titles: list[str] = []
    whole = float(needs.sum()) or 1.0
    for title, members in cells.items():
        labels = n * float(needs[members].sum()) / whole
        parts = _parts(values[members], int(min(_MOST_PARTS, max(1, labels // _PER_STRATUM))))
        for part in np.unique(parts):
            stratum[members[parts == part]] = len(titles)
            titles.append(title if parts.max() == 0 else f"{title}, {word} {part + 1} of {parts.max() + 1}")
    return stratum, tuple(titles)


def _cells(judged: Sequence[int | None], basis: Sequence[str], n: int) -> dict[str, IntArray]:
    """Documents by the judge's label and its basis; rare bases of a label are one cell."""
    names = {1: "judged hallucinated", 0: "judged supported", None: "without a label"}
    labels = [names[label] for label in judged]
    cells: dict[str, IntArray] = {}
    for label in dict.fromkeys(labels):
        members = np.array([i for i, own in enumerate(labels) if own == label])
        codes = codes_of([basis[i] for i in members], len(members), "basis")
        sizes = np.bincount(codes)
        enough = sizes * n >= _PER_STRATUM * len(judged) if n else sizes > 0
        common = [code for code in range(len(sizes)) if enough[code]]
        rare = members[~np.isin(codes, common)]
        for code in common:
            cell = members[codes == code]
            cells[f"{label} ({basis[int(cell[0])]})" if basis[int(cell[0])] else label] = cell
        if len(rare):
            cells[f"{label} (other)" if common else label] = rare
    return cells


def _parts(scores: FloatArray, n: int) -> IntArray:
    """Number of the quantile range of each score; equal scores are in one."""
    levels = levels_of(scores)
    edges = np.unique(np.quantile(levels, np.linspace(0, 1, n + 1)[1:-1]))
    return np.unique(np.searchsorted(edges, levels, "right"), return_inverse=True)[1].astype(np.int64)


def _weights(scores: FloatArray, chances: FloatArray, purpose: str, other: FloatArray | None) -> FloatArray:
    """How much the number changes with the label of each document."""
    if purpose == "rate":
        return np.ones(len(scores))
    if purpose == "policy":
        # What a policy lets through has low scores; no threshold is known yet.
        levels = levels_of(scores)
        return np.where(levels <= np.median(levels), 1.0, 0.3)
    effects = _effects(scores, chances)
    if purpose == "compare":
        if other is None:
            raise ConfigError("--for compare: name the detector to compare with (--against)")
        effects = effects - _effects(other, chances)
    sizes = np.abs(effects)
    # No document counts for nothing: an effect is near 0 only as far as the guessed chances are right.
    least = 0.25 * math.sqrt(float((sizes**2).mean()))
    return np.maximum(sizes, least or 1.0)


def _effects(scores: FloatArray, chances: FloatArray) -> FloatArray:
    """Change of the AUROC with the label of each document, where the labels are as likely as guessed."""
    levels = levels_of(scores)
    n1, n0 = float(chances.sum()), float((1 - chances).sum())
    at1, at0 = np.bincount(levels, chances), np.bincount(levels, 1 - chances)
    below, above = (np.cumsum(at0) - at0 / 2)[levels] / n0, 1 - (np.cumsum(at1) - at1 / 2)[levels] / n1
    area = float((chances * below).sum()) / n1
    effects: FloatArray = (below - area) / n1 - (above - area) / n0
    return effects


def expected_rarer(judged: Sequence[int | None], n: int) -> float:
    """Return how many of `n` labels at random would be of the rarer kind, if the judge errs as a plan reckons."""
    rate = float(np.mean([_HALLUCINATED[label] for label in judged]))
    return n * min(rate, 1 - rate)


def expected_width(
    scores: FloatArray,
    judged: Sequence[int | None],
    strata: Strata,
    purpose: str,
    other: FloatArray | None = None,
    images: IntArray | None = None,
) -> float:
    """Return the width of the 95 % interval that the labels buy for this run, if the judge errs as a plan reckons.

    Args:
        scores, judged, purpose, other: as for `strata_of`.
        strata: what that gave.
        images: of each document, where these are drawn whole.
    """
    chances = np.array([_HALLUCINATED[label] for label in judged])
    n = len(scores)
    if purpose in ("rate", "policy"):
        effects = (
            np.full(n, 1 / n) if purpose == "rate" else 2 / n * (levels_of(scores) <= np.median(levels_of(scores)))
        )
    else:
        effects = _effects(scores, chances)
        effects = effects if other is None else effects - _effects(other, chances)
    variances = chances * (1 - chances) * effects**2
    stratum_of_unit = strata.stratum
    if images is not None:
        stratum_of_unit = stratum_of_unit[np.unique(images, return_index=True)[1]]
    sizes, take = np.bincount(stratum_of_unit), np.array(strata.take)
    means = np.bincount(strata.stratum, variances) / sizes
    return 2 * quantile_of(0.95) * math.sqrt(float((sizes**2 * (1 - take / sizes) * means / take).sum()))

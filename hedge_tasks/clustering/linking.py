"""Clusters from the relations of pairs, found with as few questions to the NLI model as possible.

A *linker* is the clustering of one answer set in the making: given the relations known so far, it names the pairs
to classify next, or none when its clusters are settled. `settle` goes round with all linkers at once, so that the model
gets large batches, and no pair of texts is asked about twice, whichever answer sets it occurs in.

What a linker asks, and when, never changes its clusters: they are a function of its texts and of all their relations,
those that nobody asked for included.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from hedge_tasks.clustering.exact import normalise
from hedge_tasks.clustering.relations import Classifier, Pair, Relation, Relations, Rule

# How many pairs are asked before it is known that they matter. Asking early saves rounds, that is, fills the batches
# when there are few answer sets; asking late saves forward passes.
_LOOK_AHEAD = 2
_DECIDED_PER_EARLY_PAIR = 4

# Two indices into the texts of an answer set.
Edge = tuple[int, int]


class Linker(Protocol):
    """The clustering of one answer set in the making."""

    def next_pairs(self, relations: Relations) -> list[Pair]:
        """Return the pairs to classify next, none of them known; empty when the clusters are settled."""

    def labels(self) -> list[int]:
        """Return a label of the cluster of each text, once the clusters are settled."""


class ComponentLinker:
    """Connected components of the graph whose edges are the equivalent pairs of texts.

    A second direction is asked only if the first leaves the pair open, and no pair is asked that is connected already.
    Each round asks a spanning forest of what may still be connected, the most similar texts first, and besides, from
    the other end, a share of as many pairs as were found not to be equivalent so far. The more of them there are, the
    less likely is it that a pair is asked in vain; and the number of rounds then grows with the logarithm of the number
    of texts.

    Args:
        texts: Distinct texts.
        rule: When two texts are equivalent.
        order: All pairs of indices `i < j`, in the order in which they are asked.
    """

    def __init__(self, texts: Sequence[str], rule: Rule, order: Iterable[Edge]) -> None:
        self._texts, self._rule = texts, rule
        self._labels = list(range(len(texts)))
        # One number a pair: an object each would be most of the memory.
        self._open = _packed(order, len(texts))
        self._refused = 0

    def next_pairs(self, relations: Relations) -> list[Pair]:
        undecided = []
        for i, j in _unpacked(self._open, len(self._texts)):
            verdict = self._verdict(relations, i, j)
            if verdict:
                self._labels = _joined(self._labels, i, j)
            elif verdict is None:
                undecided.append((i, j))
            else:
                self._refused += 1
        undecided = [(i, j) for i, j in undecided if self._labels[i] != self._labels[j]]
        self._open = _packed(undecided, len(self._texts))
        return self._pairs_of_round(relations, undecided)

    def labels(self) -> list[int]:
        return self._labels

    def _pairs_of_round(self, relations: Relations, undecided: Iterable[Edge]) -> list[Pair]:
        forest: list[Edge] = []
        rest: list[Edge] = []
        possible = self._labels
        for i, j in undecided:
            (forest if possible[i] != possible[j] else rest).append((i, j))
            possible = _joined(possible, i, j)
        # From the end: what is least similar will hardly ever be connected by other pairs, and has to be asked anyway.
        early = rest[len(rest) - min(len(rest), self._refused // _DECIDED_PER_EARLY_PAIR) :]
        return [_missing(relations, self._texts[i], self._texts[j])[0] for i, j in forest + early]

    def _verdict(self, relations: Relations, i: int, j: int) -> bool | None:
        return self._rule.verdict(*_both_ways(relations, self._texts[i], self._texts[j]))


class VetoLinker:
    """Equivalent pairs merge clusters, unless a contradiction vetoes it.

    The pairs of texts are visited in the given order. An equivalent pair merges the clusters that its texts are in at
    that moment, unless some text of the one cluster and some text of the other contradict each other in at least one
    direction. (Greedy agglomeration with cannot-link constraints: no cluster ever holds a contradiction.)

    Clusters between which one contradiction is known can never merge, so nothing more is asked about their texts; that
    usually saves more than looking for contradictions inside the clusters costs.

    Args:
        texts: Distinct texts.
        rule: When two texts are equivalent.
        order: All pairs of indices `i < j`, in the order in which they are visited.
    """

    def __init__(self, texts: Sequence[str], rule: Rule, order: Iterable[Edge]) -> None:
        self._texts, self._rule = texts, rule
        self._order = _packed(order, len(texts))
        self._next = 0
        self._label = list(range(len(texts)))
        self._members = [[i] for i in range(len(texts))]

    def next_pairs(self, relations: Relations) -> list[Pair]:
        self._advance(relations)
        pairs: list[Pair] = []
        possible = self._label
        look_ahead = _LOOK_AHEAD + self._next // _DECIDED_PER_EARLY_PAIR
        for i, j in _unpacked(self._order[self._next :], len(self._texts)):
            if len(pairs) >= look_ahead:
                break
            if possible[i] != possible[j] and (missing := self._undecided(relations, i, j)):
                possible = _joined(possible, i, j)
                pairs += missing
        return pairs

    def labels(self) -> list[int]:
        return list(self._label)

    def _advance(self, relations: Relations) -> None:
        """Visit pairs up to the first one whose fate is not known."""
        for i, j in _unpacked(self._order[self._next :], len(self._texts)):
            if self._undecided(relations, i, j):
                return
            self._next += 1
            if self._merges(relations, i, j):
                self._merge(self._label[i], self._label[j])

    def _undecided(self, relations: Relations, i: int, j: int) -> list[Pair]:
        """Relations to ask for before the fate of the pair is known; empty if it is."""
        if self._label[i] == self._label[j] or self._vetoed(relations, i, j):
            return []
        equivalent = self._equivalent(relations, i, j)
        if equivalent is None:
            return _missing(relations, self._texts[i], self._texts[j])[:1]
        return [pair for a, b in self._across(i, j) for pair in _missing(relations, a, b)[:1]] if equivalent else []

    def _merges(self, relations: Relations, i: int, j: int) -> bool:
        return (
            self._label[i] != self._label[j]
            and not self._vetoed(relations, i, j)
            and self._equivalent(relations, i, j) is True
        )

    def _merge(self, target: int, source: int) -> None:
        for i in self._members[source]:
            self._label[i] = target
        self._members[target] += self._members[source]
        self._members[source] = []

    def _equivalent(self, relations: Relations, i: int, j: int) -> bool | None:
        return self._rule.verdict(*_both_ways(relations, self._texts[i], self._texts[j]))

    def _vetoed(self, relations: Relations, i: int, j: int) -> bool:
        return any(Relation.CONTRADICTION in _both_ways(relations, a, b) for a, b in self._across(i, j))

    def _across(self, i: int, j: int) -> Iterator[Pair]:
        for x in self._members[self._label[i]]:
            for y in self._members[self._label[j]]:
                yield self._texts[x], self._texts[y]


def _joined(labels: list[int], i: int, j: int) -> list[int]:
    """Labels in which the clusters of two texts are one; the smaller label is that of both."""
    low, high = sorted((labels[i], labels[j]))
    return [low if label == high else label for label in labels]


def settle(linkers: Sequence[Linker], classify: Classifier, prior: Iterable[Relations]) -> None:
    """Classify the pairs that the linkers name, of all linkers together, until all are settled. No pair is asked twice.

    Args:
        linkers: The clusterings in the making; afterwards their labels can be read.
        classify: Called with distinct, sorted pairs.
        prior: The known relations of the texts of each linker, in their order. A linker asks other pairs when it knows
            more; given all that it knew when it was settled once, it asks nothing.

    Raises:
        ValueError: If the classifier does not return one relation for each pair.
    """
    relations: dict[Pair, Relation] = {}
    unsettled = []
    for linker, known in zip(linkers, prior, strict=True):
        if linker.next_pairs(known):
            unsettled.append(linker)
            relations.update(known)
    while unsettled:
        requests = [(linker, linker.next_pairs(relations)) for linker in unsettled]
        unsettled = [linker for linker, pairs in requests if pairs]
        # Sorted, so that what the model sees does not depend on the order of answers or answer sets.
        pairs_to_classify = sorted({pair for _, pairs in requests for pair in pairs})
        relations.update(checked(classify, pairs_to_classify))


def checked(classify: Classifier, pairs: Sequence[Pair]) -> dict[Pair, Relation]:
    """The relations of the pairs.

    Raises:
        ValueError: If the classifier does not return one relation for each pair.
    """
    relations = classify(pairs) if pairs else []
    if len(relations) != len(pairs):
        raise ValueError(f"the classifier returned {len(relations)} relations for {len(pairs)} pairs")
    if wrong := next((r for r in relations if not isinstance(r, Relation)), None):
        raise ValueError(f"the classifier returned {wrong!r}, which is no Relation")
    return dict(zip(pairs, relations, strict=True))


def most_similar_first(texts: Sequence[str], similarity: Callable[[int, int], float]) -> list[Edge]:
    """All pairs of indices `i < j` by falling similarity; among equally similar ones, in the order of the texts.

    Example:
        >>> most_similar_first(["a", "b", "c"], lambda i, j: float((i, j) == (1, 2)))
        [(1, 2), (0, 1), (0, 2)]
    """
    return sorted(itertools.combinations(range(len(texts)), 2), key=lambda edge: -similarity(*edge))


def lexical_similarity(texts: Sequence[str]) -> Callable[[int, int], float]:
    """Dice coefficient of two texts' words and character trigrams, between 0 and 1; needs no model.

    Example:
        >>> similarity = lexical_similarity(["the left lung", "Left lung.", "pneumonia"])
        >>> round(similarity(0, 1), 2), similarity(0, 2)
        (0.85, 0.0)
    """
    features = [_features(text) for text in texts]

    def similarity(i: int, j: int) -> float:
        if not (features[i] or features[j]):
            return 1.0
        return 2 * len(features[i] & features[j]) / (len(features[i]) + len(features[j]))

    return similarity


def _features(text: str) -> frozenset[str]:
    plain = f" {normalise(text)} "
    return frozenset(plain.split()).union(plain[i : i + 3] for i in range(len(plain) - 2))


def _both_ways(relations: Relations, a: str, b: str) -> tuple[Relation | None, Relation | None]:
    """The relations of a pair in both directions; None for one that is not known."""
    return relations.get((a, b)), relations.get((b, a))


def _missing(relations: Relations, a: str, b: str) -> list[Pair]:
    """The directions of a pair that are unknown. The first one is the same wherever the pair occurs."""
    first, second = (a, b) if a <= b else (b, a)
    return [pair for pair in ((first, second), (second, first)) if pair not in relations]


def _packed(edges: Iterable[Edge], n: int) -> array[int]:
    return array("I", (i * n + j for i, j in edges))


def _unpacked(packed: array[int], n: int) -> Iterator[Edge]:
    return (divmod(number, n) for number in packed)

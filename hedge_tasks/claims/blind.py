"""Facts about claims that need no look at the image or at a draw about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from hedge_tasks.claims.base import FloatArray
from hedge_tasks.data.words import words


def is_negated(text: str) -> bool:
    """Whether a claim denies something.

    Example:
        >>> is_negated("No effusion is seen."), is_negated("A notable effusion.")
        (True, False)
    """
    from hedge_tasks.replies.clauses import DENIED, clauses

    return any(clause.polarity == DENIED for clause in clauses(text))


def rarity(
    claims: Sequence[Sequence[str]], answers: Sequence[str], groups: Sequence[Hashable]
) -> list[FloatArray | None]:
    """How rare the words of each claim are in the answers about other images; no labels are needed.

    Args:
        claims: texts of each answer's claims.
        answers: texts of the answers.
        groups: image of each answer; answers about one image are not "other".

    Returns:
        For each answer, shape (K,): the mean over a claim's different words of the share of other images' answers that
        lack it; 1 for a claim without words. None where there is no other image.
    """
    lists = [frozenset(words(answer)) for answer in answers]
    everywhere = Counter(word for own_words in lists for word in own_words)
    of_group: dict[Hashable, Counter[str]] = {}
    sizes = Counter(groups)
    for own_words, group in zip(lists, groups, strict=True):
        of_group.setdefault(group, Counter()).update(own_words)
    rarities: list[FloatArray | None] = []
    for texts, group in zip(claims, groups, strict=True):
        others = len(answers) - sizes[group]
        mine = of_group[group]
        rarities.append(_rarity(texts, everywhere, mine, others) if others else None)
    return rarities


def _rarity(texts: Sequence[str], everywhere: Counter[str], mine: Counter[str], others: int) -> FloatArray:
    values = []
    for text in texts:
        different = sorted(set(words(text)))
        missing = [1.0 - (everywhere[word] - mine[word]) / others for word in different]
        values.append(sum(missing) / len(missing) if missing else 1.0)
    return np.array(values, dtype=np.float64)


def other_image(groups: Sequence[Hashable]) -> list[int | None]:
    """For each answer the place of another one, about another image: the next that there is, going round.

    Example:
        >>> other_image(["a", "a", "b"]), other_image(["a"])
        ([2, 2, 0], [None])
    """
    n = len(groups)
    return [next((j % n for j in range(i + 1, i + n) if groups[j % n] != groups[i]), None) for i in range(n)]

"""Groups of documents that are not independent, found from their pictures and from their numbers.

Questions about one picture, rotations of one question, and rows of one patient are wrong together. Taken for
independent they make every standard error too small, and nobody sees it. So groups are found: rows that share a picture
(its bytes, or its name where there are no bytes), rows whose numbers say that they are rotations of one item, and rows
that share what a column says, are one group, with all that these are connected with in turn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.data.union_find import UnionFind

ROTATION = 10**6
"""CircularEval's step in the number of an item with every rotation of its options (MMBench, Liu et al. 2023)."""

_NUMBER = re.compile(r"([0-9]{1,12})(\.[A-Za-z]{2,5})?$")


@dataclass(frozen=True)
class Grouping:
    """The groups of documents.

    Attributes:
        groups: of each document; None for one that shares nothing and has no name of a group.
        declared: number of groups that a column names; None where none does.
    """

    groups: tuple[str | None, ...]
    declared: int | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups; a document without one is alone."""
        return count_groups(self.groups)

    def settings(self) -> dict[str, Any]:
        """Return what a run records."""
        return {"found": self.n_groups, **({} if self.declared is None else {"declared": self.declared})}


def count_groups(groups: Sequence[str | None]) -> int:
    """Return the number of groups, counting documents without one as one each.

    Example:
        >>> count_groups(["a", None, "a", None])
        3
    """
    return len({group for group in groups if group is not None}) + sum(group is None for group in groups)


def find_groups(declared: Sequence[str | None] | None, *keys: Sequence[str | None]) -> Grouping:
    """Join the documents that share any of several keys, directly or through others.

    Args:
        declared: the group of each document by a column; None for no such column.
        keys: keys of each document, such as the digest of its picture; None where it has none.

    Returns:
        The groups, each named by the first of its documents' first key.

    Example:
        >>> find_groups(["p1", "p2", "p3"], ["x", "x", "y"]).groups
        ('p1', 'p1', 'p3')
    """
    columns = [*([] if declared is None else [declared]), *keys]
    n = len(columns[0]) if columns else 0
    components = UnionFind(n)
    for column in columns:
        first: dict[str, int] = {}
        for i, key in enumerate(column):
            if key is not None:
                components.union(i, first.setdefault(key, i))
    names = _names([components.find(i) for i in range(n)], columns)
    return Grouping(tuple(names), None if declared is None else count_groups(declared))


def _names(roots: Sequence[int], columns: Sequence[Sequence[str | None]]) -> list[str | None]:
    """The first key of each component that a column has, columns in order; two components never share a name."""
    named: dict[int, str] = {}
    taken = set[str]()
    for column in columns:
        for root, key in zip(roots, column, strict=True):
            if key is not None and root not in named:
                while key in taken:  # another may be called so with its mark
                    key += "'"
                named[root] = key
                taken.add(key)
    return [named.get(root) for root in roots]


def rotated_items(names: Sequence[str | None], questions: Sequence[str | None]) -> list[str | None]:
    """Return the item that each document is a rotation of, by CircularEval's numbers; None for one that is alone.

    The number `i + k * 10**6` is a rotation of item `i`. Other data sets have large numbers, too: rows are joined only
    where item `i` itself is there and asks the same question. Without the words of the questions all large numbers
    have to have their item.

    Args:
        names: names that end in a number, such as ids or `images/1000241.png`.
        questions: the words of the questions, without their options; the options of rotations may differ.

    Example:
        >>> rotated_items(["x/7.png", "x/1000007.png", "x/1000008.png"], ["Which?"] * 3)
        ['x/7', 'x/7', None]
    """
    placed = [_numbered(name) for name in names]
    items = {item: question for item, question in zip(placed, questions, strict=True) if item and item[1] < ROTATION}
    bases = [(item[0], item[1] % ROTATION) if item else None for item in placed]
    complete = all(base in items for base in bases if base)
    rotated = [
        base if base in items and items[base] == question and (question is not None or complete) else None
        for base, question in zip(bases, questions, strict=True)
    ]
    sizes = Counter(rotated)
    return [f"{base[0]}{base[1]}" if base and sizes[base] > 1 else None for base in rotated]


def _numbered(name: str | None) -> tuple[str, int] | None:
    match = None if name is None else _NUMBER.search(name)
    return None if match is None or name is None else (name[: match.start()], int(match[1]))


def effective_groups(groups: Sequence[Hashable]) -> float:
    r"""Return how many groups of equal size would be worth as many as these, :math:`(\sum_g m_g)^2 / \sum_g m_g^2`.

    Carter, Schnepel & Steigerwald 2017 (Review of Economics and Statistics 99(4)) for what varies only between groups.

    Example:
        >>> effective_groups("aaab")
        1.6
    """
    sizes = list(Counter(groups).values())
    return sum(sizes) ** 2 / sum(size**2 for size in sizes) if sizes else 0.0


def missed_text(grouping: Mapping[str, Any]) -> str | None:
    """Return what a declared column of groups misses, in words; None where it misses nothing.

    Args:
        grouping: as `Grouping.settings` has it.
    """
    declared, n_found = grouping.get("declared"), grouping.get("found")
    if not isinstance(declared, int) or not isinstance(n_found, int) or n_found >= declared:
        return None
    return (
        f"the column of groups names {declared:,} where there are {n_found:,}: documents of different groups show the "
        "same picture or are rotations of one question; intervals take the groups that were found"
    )

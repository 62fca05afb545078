"""Disjoint sets, for whatever joins what belongs together."""

from __future__ import annotations


class UnionFind:
    """Disjoint sets of the numbers 0 .. n-1.

    Example:
        >>> sets = UnionFind(3)
        >>> sets.union(2, 0), sets.union(0, 2)
        (True, False)
        >>> [sets.find(i) for i in range(3)]
        [0, 1, 0]
    """

    def __init__(self, n: int) -> None:
        self._parent = list(range(n))

    def find(self, x: int) -> int:
        """Return the representative of the set that `x` is in: its smallest member."""
        while self._parent[x] != x:
            self._parent[x] = self._parent[self._parent[x]]
            x = self._parent[x]
        return x

    def union(self, a: int, b: int) -> bool:
        """Merge the sets of `a` and `b`; return whether they were two."""
        a, b = sorted((self.find(a), self.find(b)))
        self._parent[b] = a
        return a != b

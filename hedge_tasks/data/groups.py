"""Groups of documents that are not independent, found from what they show and from what a column says.

Questions about one picture and rows of one patient are wrong together. Taken for independent they make every standard
error too small, and nobody sees it. So groups are found: rows that share a picture (its bytes, or its name where there
are no bytes), and rows that share what a column says, are one group, with all that these are connected with in turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence


def count_groups(groups: Sequence[str | None]) -> int:
    """Return the number of groups, counting documents without one as one each.

    Example:
        >>> count_groups(["a", None, "a", None])
        3
    """
    return len({group for group in groups if group is not None}) + sum(group is None for group in groups)


def find_groups(*columns: Sequence[str | None] | None) -> tuple[str | None, ...]:
    """Join the documents that share any of several keys, directly or through others.

    Args:
        columns: the key of each document, None where it has none: its declared group, then such as the digest of its
            picture. None for a column that is not there.

    Returns:
        The groups, each named by the first key of its documents in the first column that has one; None for a document
        without any key.

    Example:
        >>> find_groups(["p1", "p2", "p3"], ["x", "x", "y"])
        ('p1', 'p1', 'p3')
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    there = [column for column in columns if column is not None]
    n = len(there[0]) if there else 0
    # documents and keys are the nodes of a graph, in which each document is beside its keys
    nodes = dict[tuple[int, str], int]()
    placed = [(i, (c, key)) for c, column in enumerate(there) for i, key in enumerate(column) if key is not None]
    beside = [nodes.setdefault(key, n + len(nodes)) for _, key in placed]
    shape = (n + len(nodes), n + len(nodes))
    graph = coo_array(([True] * len(placed), ([i for i, _ in placed], beside)), shape, dtype=bool)
    _, parts = connected_components(graph, directed=False)
    names, taken = dict[int, str](), set[str]()
    for i, (_, name) in placed:
        if parts[i] not in names:
            while name in taken:  # another may be called so with its mark
                name += "'"
            names[parts[i]] = name
            taken.add(name)
    return tuple(map(names.get, parts[:n]))


def effective_groups(groups: Sequence[Hashable]) -> float:
    r"""Return how many groups of equal size would be worth as many as these, :math:`(\sum_g m_g)^2 / \sum_g m_g^2`.

    Carter, Schnepel & Steigerwald 2017 (Review of Economics and Statistics 99(4)) for what varies only between groups.

    Example:
        >>> effective_groups("aaab")
        1.6
    """
    sizes = list(Counter(groups).values())
    return sum(sizes) ** 2 / sum(size**2 for size in sizes) if sizes else 0.0

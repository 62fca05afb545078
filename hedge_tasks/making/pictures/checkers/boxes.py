"""Reading of boxes around objects: how many there are, and how they stand to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OVERLAP = 0.5
"""Intersection over union from which on two boxes of one name are one object."""

APART = 0.1
"""Intersection over union from which on two objects are beside or above each other no more (T2I-CompBench)."""

INSIDE = 0.9
"""Share of a box that lies in another one which holds it."""


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels, the origin at the upper left, and how surely it holds what was looked for."""

    left: float
    top: float
    right: float
    bottom: float
    score: float = 1.0

    @property
    def area(self) -> float:
        return max(self.right - self.left, 0.0) * max(self.bottom - self.top, 0.0)

    @property
    def center(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


def shared_area(first: Box, second: Box) -> float:
    width = min(first.right, second.right) - max(first.left, second.left)
    height = min(first.bottom, second.bottom) - max(first.top, second.top)
    return max(width, 0.0) * max(height, 0.0)


def overlap(first: Box, second: Box) -> float:
    """Intersection over union, 0 to 1.

    Example:
        >>> overlap(Box(0, 0, 2, 1), Box(1, 0, 3, 1))
        0.3333333333333333
    """
    shared = shared_area(first, second)
    union = first.area + second.area - shared
    return shared / union if union > 0 else 0.0


def distinct(boxes: Sequence[Box], *, most: float = OVERLAP) -> list[Box]:
    """One box an object, the surest first: of two that overlap by `most` or more the surer one stays."""
    surest: list[Box] = []
    for box in sorted(boxes, key=lambda box: (-box.score, box.left, box.top, box.right, box.bottom)):
        if all(overlap(box, other) < most for other in surest):
            surest.append(box)
    return surest


_NAMES = {
    "left": ("left", "left of", "to the left of", "on the left of", "on the left side of"),
    "right": ("right", "right of", "to the right of", "on the right of", "on the right side of"),
    "above": ("above", "over", "on top of", "on the top of"),
    "below": ("below", "under", "beneath", "underneath", "on the bottom of"),
    "inside": ("inside", "in", "within"),
}
_RELATIONS = {words: name for name, several in _NAMES.items() for words in several}


def relation_named(words: str) -> str | None:
    """The relation that words stand for; None for one that boxes say nothing about, such as `behind`.

    Example:
        >>> relation_named("to the left of"), relation_named("behind")
        ('left', None)
    """
    return _RELATIONS.get(" ".join(words.lower().split()))


def holds(relation: str, subject: Box, object_: Box) -> bool:
    """Whether two boxes stand in a relation.

    Left, right, above and below as in T2I-CompBench (Huang et al. 2023, section 3.2): the centres differ that way, and
    more that way than across, and the boxes overlap by less than a tenth. Inside: nine tenths of the subject's box lie
    in the object's, which is the larger one.
    """
    if relation == "inside":
        return subject.area < object_.area and shared_area(subject, object_) >= INSIDE * subject.area > 0
    x, y = (a - b for a, b in zip(subject.center, object_.center, strict=True))
    across, along = (y, x) if relation in ("left", "right") else (x, y)
    sign = -1 if relation in ("left", "above") else 1
    return sign * along > abs(across) and overlap(subject, object_) < APART

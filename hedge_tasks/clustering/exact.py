"""Clustering by exact match of the normalised texts: no model, no threshold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.clustering.base import distinct_texts
from hedge_tasks.io import options

# Punctuation to Unicode, but part of what an answer says: "5%" is not "5", "C#" is not "C".
_MEANINGFUL = frozenset("%‰#")
# A sign or a decimal point that begins a number: "-5" is not "5".
_NUMBER_START = re.compile(r"-?\.?\d")


@dataclass(frozen=True)
class ExactClustering:
    """Two answers are the same when their normalised texts are (see `normalise`).

    A question in front of the answers changes nothing here, and is ignored.

    Args:
        closed: the answers are of a closed set, such as the options of a question: different ones contradict each
            other. Detectors that need NLI relations then have them, without a model.

    Raises:
        ConfigError: it is neither true nor false.
    """

    closed: bool = False
    name: str = field(default="exact", init=False)

    def __post_init__(self) -> None:
        options.flag("closed", self.closed)

    def cluster(self, answer_sets: Sequence[Sequence[str]], questions: Sequence[str] | None = None) -> list[list[int]]:
        """Cluster each answer set by itself; see `ClusteringBackend`."""
        distinct_texts(answer_sets, questions)  # the same input errors as every other backend
        return [
            answers.cluster_ids([normalise(text) for text in answers.texts]) for answers in distinct_texts(answer_sets)
        ]

    def check(self) -> None:
        """Nothing can be missing."""

    def settings(self) -> dict[str, Any]:
        """Return what decides the clustering."""
        closed = {"closed": True} if self.closed else {}
        return {"backend": self.name, "normalisation": "NFKC, casefold, whitespace, surrounding punctuation"} | closed

    @property
    def knows_probabilities(self) -> bool:
        """Whether relations of the answers are known, which they are in a closed set; see `GivesRelations`."""
        return self.closed

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Probabilities of contradiction, neutral and entailment, shape `(pairs, 3)`: each 0 or 1."""
        equal = [normalise(premise) == normalise(hypothesis) for premise, hypothesis in pairs]
        return np.array([(not is_equal, 0, is_equal) for is_equal in equal], dtype=np.float32).reshape(-1, 3)


def normalise(text: str) -> str:
    """Unicode NFKC, case folded, runs of whitespace made one space, surrounding punctuation stripped.

    Signs that belong to what is said stay: a percent or number sign, the sign or decimal point of a number. A text of
    nothing but punctuation is left as it is.

    Example:
        >>> normalise('  "Left  Lung."  ')
        'left lung'
        >>> normalise("-5 %.")
        '-5 %'
    """
    # Folding can undo the normal form and normalising can bring back capitals, hence twice.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    collapsed = " ".join(folded.split())
    return _strip_punctuation(collapsed) or collapsed


def _strip_punctuation(text: str) -> str:
    start, end = 0, len(text)
    while start < end and _is_outer(text[start]) and not _starts_number(text, start):
        start += 1
    while end > start and _is_outer(text[end - 1]):
        end -= 1
    return text[start:end]


def _is_outer(character: str) -> bool:
    return character.isspace() or (unicodedata.category(character)[0] == "P" and character not in _MEANINGFUL)


def _starts_number(text: str, start: int) -> bool:
    return _NUMBER_START.match(text, start) is not None

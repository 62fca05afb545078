"""Checks that a wrong answer has to pass: its length, that it means something else than the true one, and that it
deceives.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy.typing as npt

from hedge_tasks.errors import ConfigError
from hedge_tasks.llm.models import Model
from hedge_tasks.llm.template import load_template
from hedge_tasks.making.asking import Asking
from hedge_tasks.making.gate.refuse import refused
from hedge_tasks.making.medhallu.questions import SourceQuestion

NLI_MODEL = "microsoft/deberta-large-mnli"
"""The paper's NLI model (section 4)."""

TOLERANCE = 0.1
"""Share of the true answer's length by which a wrong one may be shorter or longer (section 4)."""

SAME_MEANING = 0.75
"""Entailment in both directions from which on two answers mean the same (sections 4 and 4.3)."""

LEAST_JUDGES = 3
_ROOM = "hedge_tasks.making.medhallu"


def allowed_length(answer: str) -> tuple[int, int]:
    """Least and most characters of a wrong answer to stand beside a true one.

    Example:
        >>> allowed_length("x" * 100)
        (90, 110)
    """
    return math.ceil(len(answer) * (1 - TOLERANCE)), math.floor(len(answer) * (1 + TOLERANCE))


class TextFault(NamedTuple):
    """A fault of a wrong answer that no model is needed for.

    Attributes:
        step: In two words, for counting.
        sentence: For people and for the critic.
    """

    step: str
    sentence: str


def text_fault(question: SourceQuestion, answer: str) -> TextFault | None:
    """Return why a text is no wrong answer, or has the wrong length; None where neither."""
    instructions = load_template(_ROOM, "candidate").system
    if reason := refused(answer, question.answer, question.question, instructions):
        return TextFault(reason, f"It is no wrong answer: {reason}.")
    least, most = allowed_length(question.answer)
    length = len(answer)
    if least <= length <= most:
        return None
    step = "too short" if length < least else "too long"
    return TextFault(step, f"It has {length} characters; it must have between {least} and {most}.")


class MutualEntailment(Protocol):
    """Entailment between texts."""

    def both_ways(self, first: str, second: str) -> tuple[float, float]:
        """Probability that the first entails the second, and that the second entails the first."""


class NliMutualEntailment:
    """Entailment by an NLI model of transformers, computed once a pair: it is kept in the cache of NLI clustering.

    Args:
        model, revision, device, dtype: As `NliClustering` takes them.
    """

    def __init__(
        self, model: str = NLI_MODEL, revision: str | None = None, device: str | None = None, dtype: str = "float32"
    ) -> None:
        from hedge_tasks.clustering.nli_source import NliSource

        self.model = model
        self._source = NliSource(model, revision, device, dtype, batch_size=16, batch_tokens=4096)
        self._lock = threading.Lock()

    def both_ways(self, first: str, second: str) -> tuple[float, float]:
        with self._lock:
            (_, _, forth), (_, _, back) = self._source.probabilities([(first, second), (second, first)])
        return forth, back


class TextSimilarity(Protocol):
    """Similarity of texts."""

    def cosine(self, first: str, second: str) -> float:
        """Between -1 and 1."""

    def embed(self, texts: list[str]) -> npt.ArrayLike:
        """Vectors of any norm, one a text."""


class EmbeddingSimilarity:
    """Cosine of sentence embeddings."""

    def __init__(self, model: str | None = None, device: str | None = None) -> None:
        from hedge_tasks.llm.encoders import DEFAULT_MODEL

        self.model = model or DEFAULT_MODEL
        self._device = device
        self._lock = threading.Lock()

    def embed(self, texts: list[str]) -> npt.ArrayLike:
        """Vectors of any norm, one a text."""
        from hedge_tasks.llm.encoders import load_encoder
        from hedge_tasks.llm.loading import default_device

        with self._lock:
            return load_encoder(self.model, None, default_device(self._device))(texts)

    def cosine(self, first: str, second: str) -> float:
        from hedge_tasks.llm.encoders import unit_vectors

        vector_1, vector_2 = unit_vectors(self.embed([first, second]))
        return float(vector_1 @ vector_2)


@dataclass(frozen=True)
class Vote:
    """Vote of one judge, asked in both orders.

    Attributes:
        judge: Its name.
        picked: Whether it took the wrong answer for the more accurate one: where that stood first, and where it stood
            second. None where its replies could not be read.
    """

    judge: str
    picked: tuple[bool | None, bool | None]

    @property
    def fooled(self) -> bool:
        """Whether it was deceived in both orders: a judge that goes by the place of an answer does not count."""
        return self.picked == (True, True)

    @property
    def by_place(self) -> bool:
        """Whether the place decided."""
        return None not in self.picked and self.picked[0] != self.picked[1]

    def to_dict(self) -> dict[str, Any]:
        first, second = self.picked
        return {"judge": self.judge, "picked_first": first, "picked_second": second, "fooled": self.fooled}


def check_judges(judges: Sequence[Model]) -> None:
    """Refuse too few judges.

    Raises:
        ConfigError: There are fewer than `LEAST_JUDGES`.
    """
    if len(judges) < LEAST_JUDGES:
        raise ConfigError(f"judges: expected at least {LEAST_JUDGES} models, got {len(judges)}")


def votes_on(question: SourceQuestion, wrong: str, judges: Sequence[Model], asking: Asking) -> tuple[Vote, ...]:
    """Votes: which answer each judge takes for the more accurate one, asked in both orders and without the knowledge.

    Raises:
        Unfinished: A judge did not reply.
    """
    prompt = load_template(_ROOM, "judge")
    votes = []
    for judge in judges:
        picked: list[bool | None] = []
        for place in (1, 2):
            answers = (wrong, question.answer) if place == 1 else (question.answer, wrong)
            fields = {"question": question.question, "answer_1": answers[0], "answer_2": answers[1]}
            reply = asking.ask("judge", judge, prompt, fields)
            picked.append(None if reply is None else reply["more_accurate"] == place)
        votes.append(Vote(judge.name, (picked[0], picked[1])))
    return tuple(votes)


def difficulty(votes: Sequence[Vote]) -> str | None:
    """hard where all judges were deceived, medium where several were, easy where one was; None where none was."""
    fooled = sum(vote.fooled for vote in votes)
    if fooled == 0:
        return None
    return "hard" if fooled == len(votes) else "medium" if fooled > 1 else "easy"

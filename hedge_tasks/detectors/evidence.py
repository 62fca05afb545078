"""Evidence: what is known of the answers to one question, computed once and shared by all detectors.

Labels are not part of it: a detector never sees what it is measured against.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from hedge_tasks.claims.base import NEUTRAL, ClaimEvidence
from hedge_tasks.clustering.relations import Pair
from hedge_tasks.data.answers import NOISY, OPTION, Answer, AnswerSet
from hedge_tasks.data.inside import HEADS, LOGITS, Inside
from hedge_tasks.detectors.distribution import entropy

FloatArray = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.floating[Any]]
Result = TypeVar("Result")

# Pairs of texts -> probabilities of contradiction, neutral and entailment, shape (pairs, 3).
Probabilities = Callable[[Sequence[Pair]], npt.ArrayLike]

# Distinct texts of each question -> cosine similarities of all pairs of them, shape (u, u) each.
Cosines = Callable[[Sequence[Sequence[str]]], Sequence[npt.NDArray[np.float64]]]

# Log-probability and relevance of each token of an answer.
Relevances = Sequence[tuple[float, float]]


INSIDE_ARRAYS: Mapping[str, frozenset[str]] = {
    "hidden_states": frozenset({"states"}),
    "attention": frozenset({"heads", "previous"}),
    "image_attention": frozenset({"heads"}),
    "token_logits": frozenset({"logits"}),
    "baseline_token_logprobs": frozenset({"logits"}),
    "baseline_token_entropies": frozenset({"logits"}),
    "draw_states": frozenset({"draw_states"}),
    "draw_logits": frozenset({"draw_logits"}),
}
"""Needs that arrays from inside the model meet, with their names."""

_COLUMNS: Mapping[str, tuple[str, ...]] = {"heads": HEADS, "logits": LOGITS, "draw_logits": LOGITS}
"""Columns of arrays from inside the model, their last axis."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence on the answers to one question.

    Everything is in the order baseline, clean, noisy; k = 1 + n + m answers in all.

    Attributes:
        texts: of the answers, length k.
        n_clean: n, how many of them are clean samples.
        cluster_ids: from a clustering of all k answers.
        mean_logprobs: mean token log-probabilities, nats per token, shape (k,); NaN where one is not known.
        n_tokens: numbers of tokens, shape (k,); NaN where one is not known.
        relations: probabilities of contradiction, neutral and entailment, shape (k, k, 3), `[i, j]` with answer i as
            premise and answer j as hypothesis. Equal texts entail each other with probability 1; see
            `relation_matrices`.
        cosines: cosine similarities of the answers' embeddings, shape (k, k); of equal texts 1.
        question: what was asked.
        forced: by name, log-probabilities of whole texts that the model was made to say, in nats; see
            `hedge_tasks.sampling.forced`.
        claims: of the baseline answer, with their support by the other answers.
        token_logprobs: log-probabilities of the baseline answer's tokens, in nats; None where they are not known.
        token_entropies: entropies of the model's next token at each of them, in nats, over the likeliest tokens that
            the model told; None where it told none.
        relevances: log-probability (nats) and relevance of each token of each answer, length k, None for answers where
            they are not known; see `hedge_tasks.detectors.relevance`.
        inside: arrays from inside the model, by name; see `hedge_tasks.data.inside`.

    Raises:
        ValueError: a length or shape is not that of the answers.
    """

    texts: tuple[str, ...]
    n_clean: int
    cluster_ids: tuple[int, ...] | None = None
    mean_logprobs: FloatArray = field(default_factory=lambda: np.empty(0))
    n_tokens: FloatArray = field(default_factory=lambda: np.empty(0))
    relations: Matrix | None = None
    cosines: Matrix | None = None
    question: str | None = None
    forced: Mapping[str, float] = field(default_factory=dict)
    claims: ClaimEvidence | None = None
    token_logprobs: tuple[float, ...] | None = None
    token_entropies: tuple[float, ...] | None = None
    relevances: tuple[Relevances | None, ...] | None = None
    inside: Inside = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.texts, str) or not 0 <= self.n_clean < len(self.texts):
            raise ValueError(f"{len(self.texts)} texts cannot be a baseline answer and {self.n_clean} clean ones")
        k = len(self.texts)
        for name in ("mean_logprobs", "n_tokens"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.full(k, np.nan))
        shapes = {"mean_logprobs": (k,), "n_tokens": (k,), "relations": (k, k, 3), "cosines": (k, k)}
        shapes |= {"cluster_ids": (k,), "relevances": (k,)}
        for name, shape in shapes.items():
            value = getattr(self, name)
            seen = (len(value),) if isinstance(value, tuple) else getattr(value, "shape", shape)
            if seen != shape:
                raise ValueError(f"{name} must have shape {shape} for {k} answers, got {seen}")
        for name in ("draw_states", "draw_logits"):
            if name in self.inside and len(self.inside[name]) != self.n_clean:
                raise ValueError(f"there are {name} of {len(self.inside[name])} of {self.n_clean} clean answers")

    @property
    def n_noisy(self) -> int:
        """m, how many of the answers are noisy samples."""
        return len(self.texts) - 1 - self.n_clean

    @property
    def clean(self) -> slice:
        """Where the clean samples are among all answers."""
        return slice(1, 1 + self.n_clean)

    @property
    def noisy(self) -> slice:
        """Where the noisy samples are among all answers."""
        return slice(1 + self.n_clean, len(self.texts))

    @property
    def baseline_id(self) -> int:
        """Cluster id of the baseline answer."""
        return self._ids[0]

    @property
    def clean_ids(self) -> tuple[int, ...]:
        """Cluster ids of the clean samples."""
        return self._ids[self.clean]

    @property
    def noisy_ids(self) -> tuple[int, ...]:
        """Cluster ids of the noisy samples."""
        return self._ids[self.noisy]

    @cached_property
    def summed_logprobs(self) -> FloatArray:
        """Log-probabilities of the whole answers, mean times number of tokens, in nats, shape (k,)."""
        # An answer of no tokens has probability 1, whatever its mean is said to be.
        return self.n_tokens * np.where(self.n_tokens == 0, 0.0, self.mean_logprobs)

    @property
    def weighted(self) -> bool:
        """Whether every sample has a log-probability. Half of them is as good as none: weights are uniform then."""
        return not np.isnan(self.mean_logprobs[1:]).any()

    @cached_property
    def offers(self) -> frozenset[str]:
        """Which of `hedge_tasks.detectors.base.NEEDS` are met."""
        first, known, counted = 1 + self.n_clean, ~np.isnan(self.mean_logprobs), ~np.isnan(self.n_tokens)
        relevances, options = self.relevances, [name for name in self.forced if name.startswith(OPTION)]
        met = {
            "clean": self.n_clean > 0,
            "noisy": self.n_noisy > 0,
            "clusters": self.cluster_ids is not None,
            "baseline_logprob": known[0],
            "baseline_tokens": counted[0],
            "clean_logprobs": known[1:first].all(),
            "clean_tokens": counted[1:first].all(),
            "noisy_logprobs": known[first:].all(),
            "noisy_tokens": counted[first:].all(),
            "relations": self.relations is not None,
            "cosines": self.cosines is not None,
            "question": self.question is not None,
            "baseline_token_logprobs": self.token_logprobs is not None,
            "baseline_token_entropies": self.token_entropies is not None,
            "baseline_relevance": relevances is not None and relevances[0] is not None,
            "clean_relevance": relevances is not None and self.n_clean > 0 and None not in relevances[self.clean],
            "forced_blank": "blank" in self.forced,
            "forced_reworded": "reworded" in self.forced,
            "forced_truth": {"true", "false"} <= self.forced.keys(),
            "forced_options": len(options) > 1,
            "forced_noisy": len(options) > 1 and any(name.startswith(NOISY) for name in self.forced),
            "claims": self.claims is not None and bool(self.claims.claims),
            "contradictions": self.claims is not None and bool(self.claims.claims) and self.claims.contradicts,
        }
        # Of the answer's tokens it is known already: `evidence_of` has taken that from the logits.
        met |= {need: self.inside.keys() >= names for need, names in INSIDE_ARRAYS.items() if need not in met}
        if met["image_attention"]:
            met["image_attention"] = not np.isnan(self.inside["heads"]).any()
        return frozenset(need for need, is_met in met.items() if is_met)

    def inside_column(self, array: str, column: str) -> FloatArray:
        """Return one column of an array from inside the model, in double precision.

        Args:
            array: `heads`, `logits` or `draw_logits`.
            column: One of `hedge_tasks.data.inside.HEADS` or `LOGITS`.
        """
        return np.asarray(self.inside[array], dtype=np.float64)[..., _COLUMNS[array].index(column)]

    def shared(self, function: Callable[[Evidence], Result]) -> Result:
        """Return what the function makes of this evidence, computed once: several detectors look at one graph."""
        if function not in self._results:
            self._results[function] = function(self)
        return cast(Result, self._results[function])

    @cached_property
    def _results(self) -> dict[Callable[[Evidence], Any], Any]:
        return {}

    @property
    def _ids(self) -> tuple[int, ...]:
        if self.cluster_ids is None:
            raise ValueError("the answers are not clustered")
        return self.cluster_ids


def evidence_of(
    answer_set: AnswerSet,
    *,
    relations: Matrix | None = None,
    cosines: Matrix | None = None,
    claims: ClaimEvidence | None = None,
    relevances: tuple[Relevances | None, ...] | None = None,
    inside: Inside | None = None,
) -> Evidence:
    """Return the evidence of an answer set, with its cluster ids where it has any.

    Args:
        relations, cosines: Of its answers; see `relation_matrices` and `placed_cosines`.
        claims: Of its baseline answer, with their support by at least these draws.
        relevances: Of the tokens of its answers.
        inside: Arrays from inside the model; those of clean answers that the set no longer has are cut off. Where the
            whole next-token distribution is known, entropies are of that.
    """
    answers = answer_set.answers
    arrays = {} if inside is None else _with_draws(inside, len(answer_set.clean))
    tokens = answer_set.baseline.tokens
    logits = arrays.get("logits")
    return Evidence(
        texts=tuple(answer_set.texts),
        n_clean=len(answer_set.clean),
        cluster_ids=answer_set.cluster_ids,
        mean_logprobs=_floats(answer.mean_logprob for answer in answers),
        n_tokens=_floats(answer.n_tokens for answer in answers),
        relations=relations,
        cosines=cosines,
        question=answer_set.question,
        forced={
            name: answer.mean_logprob * answer.n_tokens if answer.n_tokens else 0.0
            for name, answer in answer_set.forced.items()
            if answer.mean_logprob is not None and answer.n_tokens is not None
        },
        claims=None if claims is None else claims.with_draws(len(answer_set.clean), len(answer_set.noisy)),
        token_logprobs=tuple(p for _, p in tokens) if tokens is not None else _column(logits, "logprob"),
        token_entropies=_entropies(answer_set.baseline) if logits is None else _column(logits, "entropy"),
        relevances=relevances,
        inside=arrays,
    )


def _with_draws(inside: Inside, n_clean: int) -> Inside:
    """Return the arrays, those of draws for the first clean answers only."""
    return {name: array[:n_clean] if name.startswith("draw_") else array for name, array in inside.items()}


def _column(logits: npt.NDArray[Any] | None, name: str) -> tuple[float, ...] | None:
    return None if logits is None else tuple(np.asarray(logits, dtype=np.float64)[:, LOGITS.index(name)].tolist())


def _entropies(answer: Answer) -> tuple[float, ...] | None:
    """Return the entropy of the next token at each token of an answer, over those that the model reported."""
    if answer.tokens is None or answer.alternatives is None or not all(answer.alternatives):
        return None
    pairs = zip(answer.tokens, answer.alternatives, strict=True)
    # The token itself may be among them, or not.
    logprobs = [dict((token, *others)) for token, others in pairs]
    weights = [np.exp(np.array([*by_token.values()])) for by_token in logprobs]
    return tuple(entropy(row / row.sum()) if row.sum() > 0 else 0.0 for row in weights)


def relation_matrices(answers: Sequence[Sequence[str]], probabilities: Probabilities) -> list[Matrix]:
    """Return NLI probabilities of all pairs of answers to each question.

    A text entails itself with probability 1 whatever a model says of the two: lm-polygraph asks the model instead, so
    that unanimous answers do not get the lowest score there. An empty answer says nothing, so it is neutral to all
    others, and no model sees it.

    Args:
        answers: The texts of each question.
        probabilities: Called once with all ordered pairs of different non-empty texts, none of them twice.

    Returns:
        For each question an array of shape (k, k, 3), float32; see `Evidence.relations`.

    Example:
        >>> says_no = lambda pairs: [(0.75, 0.25, 0.0) for pair in pairs]
        >>> [matrix] = relation_matrices([["yes", "no", "no", ""]], says_no)
        >>> matrix[0, 1].tolist(), matrix[1, 2].tolist(), matrix[0, 3].tolist()
        ([0.75, 0.25, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    """
    pairs = dict.fromkeys(pair for texts in answers for pair in _pairs(texts))
    rows = np.asarray(probabilities(list(pairs)), dtype=np.float32) if pairs else np.empty((0, 3), np.float32)
    place = {pair: i for i, pair in enumerate(pairs)}
    return [_relations(texts, rows, place) for texts in answers]


def placed_cosines(answers: Sequence[Sequence[str]], cosines: Cosines) -> list[Matrix]:
    """Return cosine similarities of all pairs of answers to each question.

    Args:
        answers: The texts of each question.
        cosines: Called once with the different non-empty texts of each question. An empty answer has similarity 1 to
            itself and to other empty ones, 0 to all others.

    Returns:
        For each question an array of shape (k, k), float32; exactly 1 for equal texts.
    """
    different = list(map(_different, answers))
    matrices = []
    for texts, distinct, matrix in zip(answers, different, cosines(different), strict=True):
        place = {text: i for i, text in enumerate(distinct)}
        index = np.array([place.get(text, -1) for text in texts])
        placed = np.zeros((len(texts), len(texts)))
        filled = np.ix_(index >= 0, index >= 0)
        placed[filled] = np.clip(matrix[np.ix_(index[index >= 0], index[index >= 0])], -1.0, 1.0)
        placed[_equal(texts)] = 1.0
        matrices.append(placed.astype(np.float32))
    return matrices


def _different(texts: Sequence[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _pairs(texts: Sequence[str]) -> Iterable[Pair]:
    return permutations(_different(texts), 2)


def _relations(texts: Sequence[str], rows: Matrix, place: dict[Pair, int]) -> Matrix:
    k = len(texts)
    index = np.array([place.get((premise, hypothesis), -1) for premise in texts for hypothesis in texts]).reshape(k, k)
    matrix = np.zeros((k, k, 3), dtype=np.float32)
    matrix[..., NEUTRAL] = 1.0
    matrix[index >= 0] = rows[index[index >= 0]]
    matrix[_equal(texts)] = (0.0, 0.0, 1.0)
    return matrix


def _equal(texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which pairs are of equal texts; all empty ones are equal."""
    numbers: dict[str, int] = {}
    index = np.array([numbers.setdefault(text.strip() and text, len(numbers)) for text in texts])
    equal: npt.NDArray[np.bool_] = index[:, None] == index
    return equal


def _floats(values: Iterable[float | None]) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)

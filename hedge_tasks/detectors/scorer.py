"""A scorer: one clustering and what the scores under it need besides. Each of its scores is a detector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from loguru import logger

from hedge_tasks.claims.base import ClaimEvidence
from hedge_tasks.clustering import build_backend
from hedge_tasks.clustering.base import ClusteringBackend, GivesCosines, GivesRelations
from hedge_tasks.clustering.model_outputs import ModelOutputs, ReusesOutputs
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.data.inside import Inside
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.evidence import (
    INSIDE_ARRAYS,
    Evidence,
    Relevances,
    evidence_of,
    placed_cosines,
    relation_matrices,
)
from hedge_tasks.detectors.pipeline import USUAL, Scores, cluster_answer_sets, questions_of, score_clustered
from hedge_tasks.detectors.relevance import token_relevances
from hedge_tasks.detectors.thresholds import Gather, cluster_by_choice, take_choice
from hedge_tasks.errors import ConfigError, check_names
from hedge_tasks.io.progress import progress

if TYPE_CHECKING:
    from hedge_tasks.clustering.embedding import EmbeddingClustering
    from hedge_tasks.detectors.thresholds.choice import Chosen, ThresholdChoice

# Of the recorded settings, those that say where something came from, and those that are not the backend's.
_NOT_OPTIONS = frozenset(
    {"backend", "with_question", "question_position", "alpha", "source", "embedding_source", "normalisation"}
    | {"chosen", "detectors"}
)

_RELEVANCE = {"baseline_relevance", "clean_relevance"}

_AT_A_TIME = 512

ClaimSource = Callable[[], Mapping[str, ClaimEvidence]]
"""Looks up what is known of the claims of a run's answers, by their id, where a detector asks for it."""

InsideSource = Callable[[frozenset[str]], Mapping[str, Inside]]
"""Looks up arrays from inside the model by their names, where detectors ask for them: by the id of the answers."""

POSITIONS = ("before", "after")
"""Where the question is put."""


@dataclass(frozen=True)
class Scorer:
    """How answers become scores.

    Attributes:
        name: in results; of a run's own the name of the filter pipeline.
        backend: groups the answers.
        with_question: whether the question is put to each answer for that.
        question_position: "before" each answer (HEDGE §3.1.2) or "after" it (the caption of its Table 2).
        alpha: weight of the clean-noisy gap in VASE.
        choice: how the threshold of embedding clustering is chosen; None where the backend has a fixed one or none.
        detectors: names of those that score.
        claims: what is known of the answers' claims.
        inside: what is known of the model from inside.
    """

    name: str
    backend: ClusteringBackend
    with_question: bool = False
    alpha: float = 1.0
    choice: ThresholdChoice | None = None
    detectors: tuple[str, ...] = USUAL
    question_position: str = "before"
    claims: ClaimSource | None = field(default=None, compare=False, repr=False)
    inside: InsideSource | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_names("question_position", [self.question_position], POSITIONS)
        if not isfinite(self.alpha):
            raise ConfigError(f"alpha: expected a finite number, got {self.alpha}")

    @classmethod
    def build(
        cls,
        name: str,
        backend: str,
        options: Mapping[str, Any] | None = None,
        *,
        with_question: bool = False,
        alpha: float = 1.0,
        question_position: str = "before",
    ) -> Scorer:
        """Build from a backend's name and options, `threshold: cross-fit` and its like among them.

        Raises:
            ConfigError: a name, option or value is unknown or makes no sense; names the nearest valid one.
        """
        backend_options, choice = take_choice(backend, options or {})
        built = build_backend(backend, **backend_options)
        return cls(name, built, with_question, alpha, choice, question_position=question_position)

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Scorer:
        """Build from the settings that a run recorded for one of its filter pipelines.

        Raises:
            ConfigError: the run used a model object that only existed in its process, or the settings are none that a
                scorer records: names what is wrong.
        """
        if str(settings.get("model", "")).startswith("custom:"):
            raise ConfigError(
                f"{name}: the run clustered with {settings['model']}, which is not a model on disk or hub"
            )
        options = {key: value for key, value in settings.items() if key not in _NOT_OPTIONS and value is not None}
        if not isinstance(settings.get("backend"), str) or not isinstance(settings.get("with_question"), bool):
            raise ConfigError(f"{name}: no clustering is recorded there")
        scoring = {"with_question": settings["with_question"], "alpha": settings.get("alpha", 1.0)}
        scoring["question_position"] = settings.get("question_position", "before")
        try:
            scorer = cls.build(name, settings["backend"], options, **scoring)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ConfigError(f"{name}: the recorded settings make no clustering ({error})") from error
        # Options such as where to compute are the business of whoever computes, not of a file.
        if foreign := options.keys() - scorer.settings().keys():
            raise ConfigError(f"{name}: {min(foreign)!r} is no setting that a run records")
        return scorer.with_detectors(_installed(settings))

    def settings(self) -> dict[str, Any]:
        chosen = self.choice.settings() if self.choice else {}
        settings = {"with_question": self.with_question, **self.backend.settings(), **chosen, "alpha": self.alpha}
        others = [name for name in self.detectors if name not in USUAL]
        if self.with_question and self.question_position != "before":
            settings["question_position"] = self.question_position
        return {**settings, "detectors": others} if others else settings

    def with_detectors(self, names: Sequence[str]) -> Scorer:
        """Return the same with these detectors besides the usual ones."""
        return replace(self, detectors=tuple(dict.fromkeys((*USUAL, *names))))

    def with_outputs(self, outputs: ModelOutputs) -> Scorer:
        """Return the same that asks its models only for other outputs; see `hedge_tasks.clustering.model_outputs`."""
        if not isinstance(self.backend, ReusesOutputs):
            return self
        return replace(self, backend=self.backend.with_outputs(outputs))

    def cluster(self, answer_sets: Sequence[AnswerSet], *, gather: Gather = list) -> list[AnswerSet]:
        """Give every answer set its cluster ids; see `cluster_with_outcome`."""
        return self.cluster_with_outcome(answer_sets, gather=gather)[0]

    def cluster_with_outcome(
        self, answer_sets: Sequence[AnswerSet], *, gather: Gather = list
    ) -> tuple[list[AnswerSet], Chosen | None]:
        """Cluster, and say which thresholds were chosen where they are.

        Args:
            answer_sets: all of a run, since a threshold is chosen on them; of this process, where there are several.
            gather: brings what the choice needs from all processes together.

        Where no document has a sample (`n: 0`), the baseline answer is a cluster of its own, and no model is asked.
        """
        if not any(gather([len(answer_set.answers) > 1 for answer_set in answer_sets])):
            return [answer_set.with_clusters([0]).with_choice(False, {}) for answer_set in answer_sets], None
        if self.choice is None:
            behind = self.question_position == "after"
            clustered = cluster_answer_sets(answer_sets, self.backend, with_question=self.with_question, behind=behind)
            return [answer_set.with_choice(False, {}) for answer_set in clustered], None
        questions = self.questions(answer_sets)
        return cluster_by_choice(
            answer_sets,
            cast("EmbeddingClustering", self.backend),
            self.choice,
            questions=questions,
            alpha=self.alpha,
            gather=gather,
        )

    def questions(self, answer_sets: Sequence[AnswerSet]) -> list[str] | None:
        """Return the questions as a clustering takes them; None where the answers are clustered alone."""
        return questions_of(answer_sets, behind=self.question_position == "after") if self.with_question else None

    def look_ahead(self, answer_sets: Sequence[AnswerSet], sizes: Sequence[int]) -> None:
        """Cluster the first answers of each question, so that what its model says of them is known as well.

        As many clean as noisy ones, for sweeps; and either alone, for detectors that pay for nothing else.

        Few pairs are asked for a clustering (see `hedge_tasks.clustering.linking`), and fewer answers may need others.
        A backend that compares all pairs has them all.
        """
        if not isinstance(self.backend, GivesRelations) or not sizes:
            return
        shapes = [shape for n in sizes for shape in ((n, n), (n, 0), (0, n))]
        cut = [
            replace(a, clean=a.clean[:n], noisy=a.noisy[:m], cluster_ids=None) for n, m in shapes for a in answer_sets
        ]
        self.backend.cluster([answers.texts for answers in cut], self.questions(cut))

    def score(self, answer_sets: Sequence[AnswerSet]) -> list[Scores]:
        """Cluster and score."""
        options: dict[str, Any] = {"alpha": self.alpha, "claims": self.claims, "inside": self.inside}
        return score_all(self.cluster(answer_sets), self.backend, self.detectors, **options)


def score_all(
    clustered: Sequence[AnswerSet],
    backend: ClusteringBackend | None,
    detectors: Sequence[str] = USUAL,
    *,
    alpha: float = 1.0,
    claims: ClaimSource | None = None,
    inside: InsideSource | None = None,
) -> list[Scores]:
    """Score answer sets that have cluster ids, with all that their backend's model can tell the detectors.

    The model is asked only where a detector needs what it gives: cosine similarities from embeddings, probabilities
    of all pairs from NLI. Both are of the answers alone, also where they were clustered with the question.

    Args:
        backend: what they were clustered with; None where that is not known.
        claims: what is known of the answers' claims.
        inside: what is known of the model from inside.
    """
    evidence = evidence_for(clustered, backend, detectors, claims=claims, inside=inside)
    steps = progress(zip(clustered, evidence, strict=True), total=len(clustered), name="Scoring", unit="question")
    return [score_clustered(a, alpha=alpha, detectors=detectors, evidence=e) for a, e in steps]


def evidence_for(
    answer_sets: Sequence[AnswerSet],
    backend: ClusteringBackend | None,
    detectors: Sequence[str],
    *,
    claims: ClaimSource | None = None,
    inside: InsideSource | None = None,
) -> Iterator[Evidence]:
    """The evidence that detectors look at, with all that the backend's model can tell them; see `score_all`.

    In blocks: the relations of all questions at once would fill the memory.
    """
    needs = frozenset(need for name in detectors for need in registry.get(name).needs)
    if all(len(answer_set.answers) == 1 for answer_set in answer_sets):
        # Of a single answer there is nothing to relate, and no model has to be here for it.
        needs &= {"baseline_relevance", *INSIDE_ARRAYS}
    claims_by_id = claims() if claims is not None and "claims" in needs else {}
    arrays = frozenset(name for need, names in INSIDE_ARRAYS.items() if need in needs for name in names)
    inside_by_id = inside(arrays) if inside is not None and arrays else {}
    for start in range(0, len(answer_sets), _AT_A_TIME):
        block = answer_sets[start : start + _AT_A_TIME]
        for answer_set, cosine, relation, relevance in zip(block, *_by_model(block, backend, needs), strict=True):
            own: dict[str, Any] = {"claims": claims_by_id.get(answer_set.id), "inside": inside_by_id.get(answer_set.id)}
            yield evidence_of(answer_set, relations=relation, cosines=cosine, relevances=relevance, **own)


def _by_model(
    block: Sequence[AnswerSet], backend: ClusteringBackend | None, needs: frozenset[str]
) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Return cosines, relations and relevances of each question, as far as they are needed and the model gives them."""
    texts = [answer_set.texts for answer_set in block]
    cosines: Sequence[Any] = [None] * len(block)
    relations, relevances = cosines, cosines
    if "cosines" in needs and isinstance(backend, GivesCosines):
        cosines = placed_cosines(texts, backend.cosines)
    if needs & _RELEVANCE and isinstance(backend, GivesCosines):
        relevances = _relevances(block, backend, needs)
    if "relations" in needs and isinstance(backend, GivesRelations) and backend.knows_probabilities:
        relations = relation_matrices(texts, backend.probabilities)
    return cosines, relations, relevances


def _relevances(
    block: Sequence[AnswerSet], embedder: GivesCosines, needs: frozenset[str]
) -> list[tuple[Relevances | None, ...]]:
    """Return the relevances of the tokens of baseline answers, clean ones, or both; None for all other answers."""
    chosen = [("baseline_relevance" in needs) * [a.baseline] + ("clean_relevance" in needs) * [*a.clean] for a in block]
    by_answer = token_relevances([(a.question, own) for a, own in zip(block, chosen, strict=True)], embedder.cosines)
    first = 0 if "baseline_relevance" in needs else 1
    return [
        (*[None] * first, *known, *[None] * (len(a.answers) - first - len(known)))
        for a, known in zip(block, by_answer, strict=True)
    ]


def _installed(settings: Mapping[str, Any]) -> list[str]:
    """Return the further detectors that a run was scored with, as far as they are installed."""
    installed = registry.names()
    recorded = settings.get("detectors") or []
    if not isinstance(recorded, list):
        raise ConfigError(f"detectors: expected a list of names, got {recorded!r}")
    names = [str(name) for name in recorded]
    if gone := [name for name in names if name not in installed]:
        logger.warning("detectors that are not installed here are left out: {}", ", ".join(gone))
    return [name for name in names if name in installed]

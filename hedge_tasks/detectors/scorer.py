"""A scorer: one clustering and what the scores under it need besides. Each of its scores is a detector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.clustering import ClusteringBackend, build_backend
from hedge_tasks.clustering.embedding import EmbeddingClustering
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import Scores, cluster_answer_sets, questions_of, score_clustered
from hedge_tasks.detectors.thresholds import Chosen, Gather, ThresholdChoice, cluster_by_choice, take_choice
from hedge_tasks.errors import ConfigError

# Of the recorded settings, those that say where something came from, and those that are not the backend's.
_NOT_OPTIONS = frozenset({"backend", "with_question", "alpha", "source", "embedding_source", "normalisation", "chosen"})


@dataclass(frozen=True)
class Scorer:
    """How answers become scores.

    Attributes:
        name: in results; of a run's own the name of the filter pipeline.
        backend: groups the answers.
        with_question: whether the question is put in front of each answer for that.
        alpha: weight of the clean-noisy gap in VASE.
        choice: how the threshold of embedding clustering is chosen; None where the backend has a fixed one or none.
    """

    name: str
    backend: ClusteringBackend
    with_question: bool = False
    alpha: float = 1.0
    choice: ThresholdChoice | None = None

    @classmethod
    def build(
        cls,
        name: str,
        backend: str,
        options: Mapping[str, Any] | None = None,
        *,
        with_question: bool = False,
        alpha: float = 1.0,
    ) -> Scorer:
        """Build from a backend's name and options, `threshold: cross-fit` and its like among them.

        Raises:
            ConfigError: a name, option or value is unknown or makes no sense; names the nearest valid one.
        """
        rest, choice = take_choice(backend, options or {})
        return cls(name, build_backend(backend, **rest), with_question, alpha, choice)

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Scorer:
        """Build from the settings that a run recorded for one of its filter pipelines.

        Raises:
            ConfigError: the run used a model object that only existed in its process, or the settings are none that a
                scorer records: names what is wrong.
        """
        for key in ("model", "nli_model", "embedding_model"):
            if str(settings.get(key, "")).startswith("custom:"):
                raise ConfigError(
                    f"{name}: the run clustered with {settings[key]}, which is not a model on disk or hub"
                )
        options = {key: value for key, value in settings.items() if key not in _NOT_OPTIONS and value is not None}
        if not isinstance(settings.get("backend"), str) or not isinstance(settings.get("with_question"), bool):
            raise ConfigError(f"{name}: no clustering is recorded there")
        asked = {"with_question": settings["with_question"], "alpha": settings.get("alpha", 1.0)}
        try:
            scorer = cls.build(name, settings["backend"], options, **asked)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ConfigError(f"{name}: the recorded settings make no clustering ({error})") from error
        # Options such as where to compute are the business of whoever computes, not of a file.
        if foreign := options.keys() - scorer.settings().keys():
            raise ConfigError(f"{name}: {min(foreign)!r} is no setting that a run records")
        return scorer

    def settings(self) -> dict[str, Any]:
        chosen = self.choice.settings() if self.choice else {}
        return {"with_question": self.with_question, **self.backend.settings(), **chosen, "alpha": self.alpha}

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
        """
        if self.choice is None:
            clustered = cluster_answer_sets(answer_sets, self.backend, with_question=self.with_question)
            return [answer_set.with_choice(False, {}) for answer_set in clustered], None
        assert isinstance(self.backend, EmbeddingClustering)
        questions = questions_of(answer_sets) if self.with_question else None
        options: dict[str, Any] = {"questions": questions, "alpha": self.alpha, "gather": gather}
        return cluster_by_choice(answer_sets, self.backend, self.choice, **options)

    def score(self, answer_sets: Sequence[AnswerSet]) -> list[Scores]:
        return [score_clustered(answer_set, alpha=self.alpha) for answer_set in self.cluster(answer_sets)]

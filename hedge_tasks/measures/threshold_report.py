"""Effects of tuning on one run: the AUROC at every threshold, and how much better the oracle looks than it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.pipeline import detection_auroc, score_clustered
from hedge_tasks.detectors.scorer import Scorer
from hedge_tasks.detectors.thresholds import (
    METHODS,
    AurocCurve,
    Chosen,
    ThresholdChoice,
    auroc_curve,
    choose,
    profile_documents,
    with_errors,
)
from hedge_tasks.detectors.thresholds.choice import best_of, why_not
from hedge_tasks.errors import ConfigError
from hedge_tasks.numbers import Number


@dataclass(frozen=True)
class Tried:
    """One way of choosing: what it chose, and the AUROC it reports."""

    choice: ThresholdChoice
    chosen: Chosen
    estimate: Number


@dataclass(frozen=True)
class TuningReport:
    """The curve and every way of choosing.

    Attributes:
        curve: AUROC of the target over all labelled documents at every threshold.
        best: threshold in the middle of the curve's best step.
        tried: by way of choosing: cross-fit, tuned, label-free, oracle.
        fixed: AUROC at the fallback threshold.
    """

    curve: AurocCurve
    best: float
    tried: dict[str, Tried]
    fixed: Number

    @property
    def overstatement(self) -> float | None:
        """AUROC of the oracle minus that of cross-fitting."""
        oracle, honest = (self.tried[name].estimate.value for name in ("oracle", "cross-fit"))
        return None if oracle is None or honest is None else oracle - honest

    @property
    def spread(self) -> float:
        """Largest minus smallest threshold of the folds."""
        thresholds = [part.threshold for part in self.tried["cross-fit"].chosen.parts]
        return max(thresholds) - min(thresholds)


def tuning_report(answer_sets: Sequence[AnswerSet], scorer: Scorer, choice: ThresholdChoice) -> TuningReport:
    """Choose a threshold in every way, from one pass over the answers.

    Args:
        answer_sets: of a run, with labels.
        scorer: embedding clustering; a threshold or choice of its own plays no role.
        choice: target, range, search and seed.

    Raises:
        ConfigError: the scorer does not cluster by embeddings, or the labels allow no choice.
    """
    from hedge_tasks.clustering import EmbeddingClustering

    backend = scorer.backend
    if not isinstance(backend, EmbeddingClustering):
        raise ConfigError(
            f"{scorer.name}: only the clustering 'embed' has a threshold to tune, this one is {backend.name!r}"
        )
    trees = backend.dendrograms([a.texts for a in answer_sets], scorer.questions(answer_sets))
    profiles = profile_documents(answer_sets, trees, low=choice.low, high=choice.high, alpha=scorer.alpha)
    labelled = sorted((p for p in profiles if p.label is not None), key=lambda p: p.id)
    if reason := why_not(labelled, choice.target, choice.per_class):
        raise ConfigError(f"no threshold can be tuned: {reason}")

    def auroc(chosen: Chosen) -> Number:
        scores = [
            score_clustered(
                answers.with_clusters(tree.cluster_ids(chosen.thresholds[answers.id])).with_choice(
                    answers.id in chosen.held_out, chosen.errors
                ),
                alpha=scorer.alpha,
            )
            for answers, tree in zip(answer_sets, trees, strict=True)
        ]
        return detection_auroc(scores, choice.target)

    tried = {}
    for name in METHODS:
        way = replace(choice, method=name)
        chosen = with_errors(choose(profiles, way), profiles, way)
        tried[name] = Tried(way, chosen, auroc(chosen))
    fixed = auroc(Chosen({a.id: choice.fallback for a in answer_sets}))
    curve = auroc_curve(labelled, choice.target, choice.low)
    return TuningReport(curve, best_of(curve), tried, fixed)

"""A detector as an `evaluate.Metric`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features, Value

from hedge_tasks.clustering import build_backend
from hedge_tasks.clustering.base import ClusteringBackend
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors import registry
from hedge_tasks.detectors.pipeline import cluster_answer_sets, cluster_open
from hedge_tasks.detectors.scorer import score_all
from hedge_tasks.detectors.units import detection_auroc
from hedge_tasks.io import options as check
from hedge_tasks.measures.evaluate.auroc import result_of
from hedge_tasks.measures.evaluate.checked import CheckedMetric
from hedge_tasks.measures.evaluate.columns import answer_sets_of, labels_of, with_labels

USAGE = """
Args:
    predictions: for each question the answers of the model: `{"baseline": answer, "clean": [answers], "noisy":
        [answers]}`, and any of `id`, `question`, `group`, `question_type`, `label`, `cluster_ids`; or a list of
        answers, of which the first is the baseline; or a `hedge_tasks.AnswerSet`. An answer is a text, or `{"text",
        "mean_logprob", "n_tokens"}`.
    references: for each question 1 where the baseline answer is hallucinated, 0 where it is not, None where nobody
        knows. Without them there are scores and no AUROC.
    clustering: how answers become meanings: `embed` (the default), `nli`, `exact` or a backend. Not asked
        where a prediction has `cluster_ids`.
    with_question: put the question in front of each answer, for clustering.
    alpha: weight of the contrast, in detectors that have one.
    Further arguments are options of the clustering, such as `threshold=0.85`.

Returns:
    NAME: the score of each question, the higher the more likely it is hallucinated; None where it is undefined.
    NAME_mean: over those that have one.
    NAME_left_out: position -> why there is no score, where some have none.
    NAME_auroc and NAME_auroc_stderr, _interval, _n, _reason, where there are references.
"""


class DetectorMetric(CheckedMetric):
    """One detector, named as in `hedge_tasks.detectors`.

    Args:
        detector: its name.
        options: of every `evaluate.Metric`.

    Raises:
        ConfigError: there is no such detector; names the nearest one.
    """

    def __init__(self, detector: str, **options: Any) -> None:
        self.detector = registry.get(detector)
        super().__init__(config_name=detector, **options)
        self._module_info.module_name = detector  # evaluate goes by the class, and `combine` by this

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=f"{self.detector.title}\n\n{self.detector.explanation}",
            citation=self.detector.source,
            inputs_description=USAGE.replace("NAME", self.detector.name),
            features=Features({"predictions": Value("string"), "references": Value("int64")}),
            license="Apache-2.0",
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add the answers to some questions.

        Raises:
            DataError: something is no answer or no label; names the place. Nothing is added then.
        """
        answer_sets = answer_sets_of(predictions, first=len(self))
        labels = with_labels(answer_sets, labels_of(references, len(answer_sets)))
        super().add_batch(predictions=[a.to_json() for a in answer_sets], references=labels)

    def compute(
        self,
        *,
        predictions: Any = None,
        references: Any = None,
        clustering: str | ClusteringBackend = "embed",
        with_question: bool = False,
        alpha: float = 1.0,
        **options: Any,
    ) -> dict[str, Any] | None:
        """Score the questions that were added, and these.

        Raises:
            ConfigError: an option is unknown or makes no sense; names the nearest one.
            DataError: as `add_batch`; or there is no question.
        """
        # All options before anything is taken in: an error leaves what was added as it was.
        backend = build_backend(clustering, **options) if isinstance(clustering, str) else clustering
        settings = {"with_question": check.flag("with_question", with_question), "alpha": check.finite("alpha", alpha)}
        return self.compute_checked(predictions, references, backend=backend, **settings)

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[int | None],
        *,
        backend: ClusteringBackend,
        with_question: bool,
        alpha: float,
    ) -> dict[str, Any]:
        name = self.detector.name
        both = zip(predictions, references, strict=True)
        answer_sets = [AnswerSet.from_json(text).with_label(label) for text, label in both]
        clustered = cluster_open(answer_sets, lambda a: cluster_answer_sets(a, backend, with_question=with_question))
        scores = score_all(clustered, backend, (name,), alpha=alpha)
        numbers = [s[name] for s in scores]
        defined = [number for number in numbers if number is not None]
        result: dict[str, Any] = {name: numbers, f"{name}_mean": math.fsum(defined) / len(defined) if defined else None}
        if len(defined) < len(numbers):
            result[f"{name}_left_out"] = {i: s.left_out[name] for i, s in enumerate(scores) if name in s.left_out}
        if any(label is not None for label in references):
            estimate = detection_auroc(scores, name)
            result |= {f"{name}_{key}": value for key, value in result_of(estimate).items()}
        return result

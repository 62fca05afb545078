"""How well scores tell hallucinated answers from supported ones, as an `evaluate.Metric`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import evaluate
from datasets import Features, Value

from hedge_tasks.detectors.units import Unit, detection_auroc
from hedge_tasks.errors import DataError, unknown
from hedge_tasks.measures.evaluate.checked import CheckedMetric
from hedge_tasks.measures.evaluate.columns import as_list, labels_of, scores_of
from hedge_tasks.numbers import Number
from hedge_tasks.statistics import auroc, estimate_auroc

AUROC = "detection_auroc"

_OPTIONS = ("confidence",)

USAGE = """
Args:
    predictions: a score for each answer, the higher the more likely it is hallucinated.
    references: 1 where it is hallucinated, 0 where it is not; answers with None are not counted.
    groups: what answers share, such as an image, in the order in which they were added; the error is between them.
    confidence: of the interval.

Returns:
    auroc: ROC-AUC; None where it is undefined, with auroc_reason.
    auroc_stderr, auroc_interval: standard error and confidence interval.
    auroc_n, auroc_n_hallucinated: what was counted.
"""


def result_of(estimate: Number) -> dict[str, Any]:
    """Return an estimate as a metric's result, ready for JSON."""
    result: dict[str, Any] = {
        "auroc": estimate.value,
        "auroc_stderr": estimate.stderr,
        "auroc_interval": None if estimate.interval is None else list(estimate.interval),
        "auroc_n": estimate.n,
        "auroc_n_hallucinated": estimate.n_positive,
    }
    return result if estimate.reason is None else {**result, "auroc_reason": estimate.reason}


class DetectionAuroc(CheckedMetric):
    """ROC-AUC of any score against hallucination labels, with standard error and interval."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=inspect.getdoc(auroc) or "",
            citation="DeLong et al. 1988; Obuchowski 1997",
            inputs_description=USAGE,
            features=Features({"predictions": Value("float64"), "references": Value("int64")}),
            license="Apache-2.0",
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Add scores and labels.

        Raises:
            DataError: something is no number or no label; names the place. Nothing is added then.
        """
        scores = scores_of(predictions)
        if references is None:
            raise DataError("references are missing: an AUROC needs labels")
        super().add_batch(predictions=scores, references=labels_of(references, len(scores)))

    def compute(
        self, *, predictions: Any = None, references: Any = None, groups: Any = None, **options: Any
    ) -> dict[str, Any] | None:
        """AUROC over what was added, and these.

        Raises:
            ConfigError: an option is unknown; names the nearest one.
            DataError: as `add_batch`; or there is nothing, or `groups` are more or fewer.
        """
        for option in options:
            if option not in _OPTIONS:
                raise unknown("option of detection_auroc", option, ("groups", *_OPTIONS))
        estimate_auroc([0.0, 1.0], [0, 1], **options)  # refuses values that make no sense
        return self.compute_checked(predictions, references, groups=groups, **options)

    def _compute(
        self,
        predictions: Sequence[float | None],
        references: Sequence[int | None],
        *,
        groups: Any = None,
        **options: Any,
    ) -> dict[str, Any]:
        named = [None] * len(predictions) if groups is None else as_list(groups, "groups")
        if len(named) != len(predictions):
            raise DataError(f"{len(predictions)} predictions and {len(named)} groups")
        texts = [None if group is None else str(group) for group in named]
        rows = zip(predictions, references, texts, strict=True)
        units = [Unit("", label, group, numbers={AUROC: score}) for score, label, group in rows]
        return result_of(detection_auroc(units, AUROC, **options))

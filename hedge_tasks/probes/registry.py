"""The fitted detectors, by name. A further method is one file with `fit` and `score`, and an entry here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from hedge_tasks.errors import unknown
from hedge_tasks.probes import linear, mahalanobis
from hedge_tasks.probes.base import FittedDetector

_ALL = (
    FittedDetector(
        "linear_probe",
        "Linear probe of the answer's last token",
        place="last",
        target="labels",
        source="Azaria and Mitchell 2023 (2304.13734), SAPLMA, in its linear form",
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "mean_probe",
        "Linear probe of the answer's mean state",
        place="mean",
        target="labels",
        source="as linear_probe, over the mean of the answer's tokens",
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "question_probe",
        "Linear probe before the answer begins",
        place="question",
        target="labels",
        source="HALP (2026): hidden states before a token is said, in its linear form",
        before=True,
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "image_probe",
        "Linear probe of the picture's last token",
        place="image",
        target="labels",
        source="HALP (2026), states of the picture, in its linear form",
        before=True,
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "entropy_probe",
        "Semantic entropy probe of the answer's last token",
        place="last",
        target="entropy",
        source="Kossen et al. 2024 (2406.15927), section 4",
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "question_entropy_probe",
        "Semantic entropy probe before the answer begins",
        place="question",
        target="entropy",
        source="Kossen et al. 2024 (2406.15927), section 4, token before generating",
        before=True,
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "lookback_lens",
        "Lookback Lens",
        place="lookback",
        array="heads",
        target="labels",
        source="Chuang et al. 2024 (2407.07071), ratios of all heads, the mean over the whole answer",
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "image_attention_probe",
        "Linear probe of the attention to the image",
        place="image",
        array="heads",
        target="labels",
        source="as lookback_lens, over each head's share of attention on image tokens",
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "relative_mahalanobis",
        "Relative Mahalanobis distance",
        place="mean",
        target="labels",
        source="Ren et al. 2023 (2209.15558), equations 1-3",
        fit=mahalanobis.fit,
        score=mahalanobis.score,
    ),
    FittedDetector(
        "mahalanobis",
        "Mahalanobis distance",
        place="mean",
        target="labels",
        source="Lee et al. 2018 (1807.03888), of the supported answers alone",
        fit=mahalanobis.fit,
        score=mahalanobis.score_alone,
    ),
)

_OF_CLAIMS = (
    FittedDetector(
        "claim_linear_probe",
        "Linear probe of the sentence's last token",
        place="last",
        array="sentence_states",
        target="labels",
        source="as linear_probe, of each sentence",
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "claim_mean_probe",
        "Linear probe of the sentence's mean state",
        place="mean",
        array="sentence_states",
        target="labels",
        source="as mean_probe, over the sentence's tokens",
        fit=linear.fit,
        score=linear.score,
    ),
    FittedDetector(
        "claim_mahalanobis",
        "Relative Mahalanobis distance of the sentence",
        place="mean",
        array="sentence_states",
        target="labels",
        source="as relative_mahalanobis, of each sentence",
        fit=mahalanobis.fit,
        score=mahalanobis.score,
    ),
)

FITTED_CLAIMS: Mapping[str, FittedDetector] = MappingProxyType({one.name: one for one in _OF_CLAIMS})
"""Fitted detectors of sentences."""

FITTED: Mapping[str, FittedDetector] = MappingProxyType({one.name: one for one in _ALL})
"""Fitted detectors of whole answers."""


def fitted(name: str) -> FittedDetector:
    """The fitted detector of a name.

    Raises:
        ConfigError: there is none; names the nearest one.
    """
    if name not in FITTED:
        raise unknown("fitted detector", name, FITTED)
    return FITTED[name]

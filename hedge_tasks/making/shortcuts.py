"""Shortcuts in a set: how well wrong answers are told from true ones by what says nothing about truth.

The released MedHallu's wrong answers are shorter than the true ones (204 against 268 characters in the median), and
their length alone has an AUROC of 0.70.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.errors import ConfigError
from hedge_tasks.numbers import Number, format_number
from hedge_tasks.statistics import UndefinedStatistic, estimate_auroc

FOLDS = 5
ALARM = 0.6
"""AUROC from which on a shortcut is one, provided that its interval excludes one half."""


def shortcuts(
    true: Sequence[str], wrong: Sequence[str], *, embed: Callable[[list[str]], npt.ArrayLike] | None = None
) -> dict[str, Number | str]:
    """AUROC of telling wrong answers from true ones without their questions.

    `length`: in characters; the side of it that is wrong is the one that the means say. `words` and `meaning`:
    logistic regressions over TF-IDF of words and over sentence embeddings, cross-fitted, so that no model has seen
    either answer of the question that it is read on.

    Args:
        true, wrong: The two answers of each question, in the same order.
        embed: Texts to vectors; None leaves `meaning` out.

    Returns:
        By shortcut the estimate, grouped by question, or the reason why there is none.
    """
    if len(true) != len(wrong):
        raise ConfigError(f"{len(true)} true and {len(wrong)} wrong answers")
    texts = [*true, *wrong]
    labels = np.repeat([0, 1], len(true))
    groups = [*range(len(true)), *range(len(true))]
    lengths = np.array([len(text) for text in texts], dtype=float)
    scores: dict[str, Callable[[], npt.ArrayLike]] = {
        "length": lambda: lengths if np.mean(lengths[labels == 1]) > np.mean(lengths[labels == 0]) else -lengths,
        "words": lambda: _cross_fitted(_words(texts), labels, np.array(groups)),
    }
    if embed is not None:
        scores["meaning"] = lambda: _cross_fitted(np.asarray(embed(texts)), labels, np.array(groups))
    estimates: dict[str, Number | str] = {}
    for name, score in scores.items():
        try:
            estimates[name] = estimate_auroc(score(), labels, groups=groups)
        except (UndefinedStatistic, ValueError) as reason:
            estimates[name] = str(reason)
    return estimates


def alarms(estimates: Mapping[str, Number | str]) -> list[str]:
    """Sentences about the shortcuts that are open."""
    return [
        f"{name} alone, without the question, tells wrong answers from true ones with an AUROC of "
        f"{format_number(estimate, interval=True)}"
        for name, estimate in estimates.items()
        if isinstance(estimate, Number)
        and estimate.value is not None
        and estimate.interval is not None
        and estimate.value >= ALARM
        and estimate.interval[0] > 0.5
    ]


def _words(texts: Sequence[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(min_df=2, sublinear_tf=True).fit_transform(texts)


def _cross_fitted(features: Any, labels: npt.NDArray[np.int64], groups: npt.NDArray[np.int64]) -> npt.ArrayLike:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold, cross_val_predict

    folds = min(FOLDS, len(set(groups.tolist())))
    if folds < 2:
        raise ValueError("there are fewer than two questions")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        chances = cross_val_predict(
            LogisticRegression(max_iter=1000),
            features,
            labels,
            groups=groups,
            cv=GroupKFold(folds, shuffle=True, random_state=0),
            method="predict_proba",
        )
    probabilities: npt.ArrayLike = chances[:, 1]
    return probabilities

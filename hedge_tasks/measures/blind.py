"""Blind baselines: what is known of an answer without a look at the picture or a draw, which detectors have to beat.

A score that does no better finds out which questions are hard or which wording is usual, not what the model knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.detectors.probes.folds import cross_fitting_folds, group_names
from hedge_tasks.detectors.units import Labelled
from hedge_tasks.errors import DataError
from hedge_tasks.statistics import Comparison
from hedge_tasks.statistics.base import IntArray

BLIND_TEXT, BLIND_QUESTION, LENGTH, CLAIM_TEXT = "blind_text", "blind_question", "length", "claim_text"
TITLES: Mapping[str, str] = {
    BLIND_TEXT: "wording of question and answer",
    BLIND_QUESTION: "wording of the question",
    LENGTH: "length of the answer",
    CLAIM_TEXT: "wording of the claim",
}
"""Blind baselines that are no detectors: classifiers, cross-fitted by image, and a length in tokens, else words."""

SIGNIFICANT = 0.05
"""Level of the tests that sentences rest on."""


def beats(comparison: Comparison | None, p: float | None) -> bool:
    """Return whether the first of two detectors is better by more than chance.

    Args:
        comparison: its ROC-AUC less the other's.
        p: p-value of the difference, adjusted for all that are compared.
    """
    gained = comparison is not None and (comparison.difference or 0.0) > 0
    return gained and p is not None and p < SIGNIFICANT


def blind_scores(
    answer_sets: Sequence[AnswerSet], labels: Sequence[int | None]
) -> tuple[dict[str, list[float | None]], dict[str, str]]:
    """Return the scores of each blind baseline, None where a document has no label; and why others have none.

    Args:
        answer_sets: of all documents.
        labels: of these; what has none is neither learned from nor scored.
    """
    places = [i for i, label in enumerate(labels) if label is not None]
    known_labels = np.array([labels[i] for i in places], dtype=np.int64)
    sets = [answer_sets[i] for i in places]
    groups = group_names((a.group, a.id) for a in sets)
    makers: dict[str, Callable[[], list[float]]] = {
        BLIND_TEXT: lambda: text_scores([f"{a.question or ''}\n{a.baseline.text}" for a in sets], known_labels, groups),
        BLIND_QUESTION: lambda: text_scores([_question(a) for a in sets], known_labels, groups),
        LENGTH: lambda: lengths(sets),
    }
    scores: dict[str, list[float | None]] = {}
    left_out: dict[str, str] = {}
    for name, make in makers.items():
        try:
            values = dict(zip(places, make(), strict=True))
        except DataError as error:
            left_out[name] = str(error)
            continue
        scores[name] = [values.get(i) for i in range(len(answer_sets))]
    return scores, left_out


def turned_to_best(column: Labelled) -> Labelled:
    """Return a blind baseline, its sign turned where the ROC-AUC is below 0.5, as anyone with labels would do."""
    value = column.auroc().value
    return column.turned if value is not None and value < 0.5 else column


def text_scores(texts: Sequence[str], labels: IntArray, groups: Sequence[str], seed: int = 0) -> list[float]:
    """Return the probability of each text's being hallucinated by its wording alone, from texts of other groups.

    Args:
        texts, labels, groups: of one length.
        seed: of the folds.

    Raises:
        DataError: no classifier can be fitted.
    """
    return list(_text_scores(tuple(texts), tuple(labels.tolist()), tuple(groups), seed))


@lru_cache(maxsize=8)  # every clustering of a run asks for the same
def _text_scores(texts: tuple[str, ...], labels: tuple[int, ...], groups: tuple[str, ...], seed: int) -> list[float]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    y, documents = np.array(labels, dtype=np.int64), np.array(texts, dtype=object)
    values = np.empty(len(y))
    for train, test in cross_fitting_folds(y, groups, seed):
        # Single characters are words, too, in scripts without spaces.
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
        model = make_pipeline(words, LogisticRegression(max_iter=2000))
        try:
            model.fit(documents[train], y[train])
        except ValueError as error:  # no word in any of them
            raise DataError(f"no classifier can be fitted ({error})") from error
        values[test] = model.predict_proba(documents[test])[:, 1]
    probabilities: list[float] = np.round(values, 9).tolist()
    return probabilities


def _question(answers: AnswerSet) -> str:
    if answers.question is None:
        raise DataError("a document has no question")
    return answers.question


def lengths(sets: Sequence[AnswerSet]) -> list[float]:
    """Return the length of each judged answer in tokens, or in words where the tokens of one are not known."""
    tokens = [answers.baseline.n_tokens for answers in sets]
    if all(tokens):
        return [float(n or 0) for n in tokens]
    return [float(len(answers.baseline.text.split())) for answers in sets]

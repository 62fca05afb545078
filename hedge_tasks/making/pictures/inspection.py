"""Verdicts on pictures from the scores of checkers, and from people where these leave a doubt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hedge_tasks.judging.review import ReviewItem
from hedge_tasks.making.pictures.base import ALPHA, BETA, Checker, PictureQuestion, PictureVerdict, verdict_of
from hedge_tasks.making.pictures.store import BATCH, PictureStore, StoredPicture
from hedge_tasks.numbers import format_value

CLAIM = "Does the picture show this?"
KEYS = ("yes, take it", "no, leave it out")
"""People's answers: `1` rejects the picture, `0` accepts it."""


def inspect(
    store: PictureStore,
    checkers: Sequence[Checker],
    pictures: Sequence[StoredPicture],
    questions: Sequence[Sequence[PictureQuestion]],
    *,
    alpha: float = ALPHA,
    beta: float = BETA,
    floor: float = 0.0,
    batch: int = BATCH,
) -> list[PictureVerdict]:
    """Return the verdicts on pictures, generated or noisy. One checker after the other goes over all of them.

    Args:
        store: Where scores are kept.
        pictures: Generated, or any others (`StoredPicture.of`).
        questions: What is asked about each of them; the scores of all its questions make one mean.
        alpha, beta, floor: As `verdict_of`.
        batch: Pictures that a checker is given at a time.

    Returns:
        One verdict a picture. With several questions the names of its scores hold the question.

    Raises:
        HedgeError: A checker failed; what it said before is kept.
    """
    pairs = list(zip(pictures, questions, strict=True))
    places = [i for i, (_, own) in enumerate(pairs) for _ in own]
    repeated_pictures = [picture for picture, own in pairs for _ in own]
    all_questions = [question for _, own in pairs for question in own]
    scores: list[dict[str, float | None]] = [{} for _ in pictures]
    for checker in checkers:
        checker_scores = store.check(checker, repeated_pictures, all_questions, batch=batch)
        for i, question, score in zip(places, all_questions, checker_scores, strict=True):
            several = len(questions[i]) > 1
            name = f"{checker.name} [{question.kind}: {question.statement}]" if several else checker.name
            scores[i][name] = score
    return [verdict_of(picture_scores, alpha=alpha, beta=beta, floor=floor) for picture_scores in scores]


def review_items(
    ids: Sequence[str], pictures: Sequence[StoredPicture], statements: Sequence[str], verdicts: Sequence[PictureVerdict]
) -> Iterator[ReviewItem]:
    """The pictures in doubt, for `write_review`.

    Args:
        ids: Under which the labels are stored.
        statements: What each picture has to show.
    """
    for name, picture, statement, verdict in zip(ids, pictures, statements, verdicts, strict=True):
        if verdict.outcome == "review":
            score_lines = "\n".join(f"{checker}: {_number(score)}" for checker, score in verdict.scores.items())
            texts = {"Has to show": statement, "In doubt because": verdict.reason, "Scores": score_lines}
            yield ReviewItem(name, texts, CLAIM, [picture.open()])


def with_label(verdict: PictureVerdict, label: int | None) -> PictureVerdict:
    """A verdict with the label of people, if it was left to them.

    Args:
        label: 1 rejects, 0 accepts; None without a label.
    """
    if verdict.outcome != "review" or label is None:
        return verdict
    if label == 1:
        return replace(verdict, outcome="rejected", reason="people say that it does not show it")
    return replace(verdict, outcome="accepted", reason="")


def _number(score: float | None) -> str:
    return format_value(score, missing="cannot say")

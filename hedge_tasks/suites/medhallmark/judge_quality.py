"""How well a judge finds the categories that people gave (as in Table 5), how stable it is, and what needs no judge.

Of the released labels 475 belong to answers with a reference: 364 conventional and 111 counterfactual ones. All
counterfactual answers are labelled prompt-induced, and only three answers are correct, so that a judge should be
compared with what can be had for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hedge_tasks.errors import DataError
from hedge_tasks.io import options
from hedge_tasks.judging.base import Case, Judge
from hedge_tasks.numbers import Number
from hedge_tasks.statistics.rates import estimate_rate
from hedge_tasks.suites.medhallmark.released import CATEGORIES, MedHallMarkItem

Guess = Sequence[str | None]
"""The category of each answer; None where there is none."""


@dataclass(frozen=True)
class CategoryAgreement:
    """Categories against those of people.

    Attributes:
        n: answers.
        judged: those with a category.
        accuracy: share of all answers with people's category; one that was not judged is wrong.
        recall: by category, share of people's answers of it that were found; None where people gave none.
        precision: by category, share of the answers called so that people call so, too; None where none was.
    """

    name: str
    n: int
    judged: int
    accuracy: float
    recall: Mapping[str, float | None]
    precision: Mapping[str, float | None]


@dataclass(frozen=True)
class JudgeQuality:
    """A judge's rounds, baselines, and the share of answers that got the same category in every round.

    Attributes:
        rounds: one a round.
        baselines: the largest class; the kind of question (counterfactual: prompt-induced, else the largest class
            among the others); the rule judge, whose "hallucinated" is taken for the largest class.
        consistency: undefined with a single round.
    """

    rounds: tuple[CategoryAgreement, ...]
    baselines: tuple[CategoryAgreement, ...]
    consistency: Number


def labelled_items(items: Sequence[MedHallMarkItem]) -> list[MedHallMarkItem]:
    """Return the items with a human label and a reference.

    Raises:
        DataError: there is none.
    """
    with_label = [item for item in items if item.category is not None and item.reference]
    if not with_label:
        raise DataError("Med-HallMark: no item has both a human label and a reference")
    return with_label


def agreement(name: str, items: Sequence[MedHallMarkItem], guess: Guess) -> CategoryAgreement:
    """Compare categories with those of people."""
    people = [item.category for item in items]
    right = Counter(truth for truth, guessed in zip(people, guess, strict=True) if truth == guessed)
    n_by_people, n_by_guess = Counter(people), Counter(guess)
    return CategoryAgreement(
        name,
        len(items),
        sum(guessed is not None for guessed in guess),
        sum(right.values()) / len(items),
        {category: _share(right[category], n_by_people[category]) for category in CATEGORIES},
        {category: _share(right[category], n_by_guess[category]) for category in CATEGORIES},
    )


def judge_quality(
    items: Sequence[MedHallMarkItem],
    judge: Judge,
    *,
    rounds: int = 3,
    images: Callable[[MedHallMarkItem], Sequence[Any]] | None = None,
) -> JudgeQuality:
    """Ask a judge for the category of every labelled answer, several times anew.

    Args:
        items: those without a human label or a reference are left out.
        judge: it should name the paper's categories, and must not keep labels from one round to the next.
        images: loads the pictures of an item, for judges that look at them.

    Raises:
        ConfigError: fewer than one round.
        DataError: no item can be compared.
    """
    options.count("rounds", rounds, at_least=1)
    items = labelled_items(items)
    cases = [_case(item, images) for item in items]
    by_round = [[verdict.category for verdict in judge.judge(cases)] for _ in range(rounds)]
    unchanged = [len(set(answers)) == 1 and answers[0] is not None for answers in zip(*by_round, strict=True)]
    # Questions on one picture are judged alike.
    consistency = estimate_rate(unchanged, groups=[item.image for item in items])
    return JudgeQuality(
        tuple(agreement(f"{judge.name}, round {i}", items, guess) for i, guess in enumerate(by_round, 1)),
        baselines(items),
        consistency if rounds > 1 else Number.undefined("there is a single round"),
    )


def baselines(items: Sequence[MedHallMarkItem]) -> tuple[CategoryAgreement, ...]:
    """Baselines that need no judge of categories; see `JudgeQuality`. Classes are counted in these very items."""
    from hedge_tasks.judging import build_judge

    largest = _largest(items)
    not_induced = [item for item in items if item.category != "prompt_induced"]
    usual = _largest(not_induced) if not_induced else largest
    by_kind = ["prompt_induced" if item.id.startswith("counterfactual") else usual for item in items]
    labels = [verdict.label for verdict in build_judge("rule").judge([_case(item, None) for item in items])]
    by_rule = [None if label is None else usual if label else "correct" for label in labels]
    return (
        agreement(f"always {largest}", items, [largest] * len(items)),
        agreement("kind of question", items, by_kind),
        agreement("rule judge", items, by_rule),
    )


def _largest(items: Sequence[MedHallMarkItem]) -> str:
    [(category, _)] = Counter(item.category for item in items if item.category is not None).most_common(1)
    return category


def _case(item: MedHallMarkItem, images: Callable[[MedHallMarkItem], Sequence[Any]] | None) -> Case:
    load = None if images is None else lambda: images(item)
    key = None if images is None else item.image
    return Case(item.id, item.question, item.reference, item.answer or "", images=load, image_key=key)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

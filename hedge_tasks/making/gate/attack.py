"""Solvers that need no skill, and the floor of a set: how far one gets that looks at neither picture nor truth.

Every rule is learnt on four fifths of the groups and read on the others, so that nothing is solved by heart.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedge_tasks.errors import DataError
from hedge_tasks.making.gate.refuse import DECLINES, MARKER, folded
from hedge_tasks.numbers import FOUR_DIGITS, Number, format_number, format_value
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.statistics.rates import estimate_rate

FOLDS = 5
FEWEST = 10
"""Items of a stratum below which nothing can be learnt about it."""

CONFIDENCE = 0.8
"""Confidence of the intervals that are held against the bound: nine in ten of what lies at the bound is let pass."""

FLOOR_TITLE = "Floor: what is solved without skill"

_NEGATION = re.compile(r"\b(?:no|not|never|none|neither|nor|without|cannot|isn't|aren't|wasn't|don't|doesn't)\b", re.I)


@dataclass(frozen=True)
class AttackedItem:
    """One question as a solver sees it.

    Attributes:
        label: What is right: an outcome, a letter, yes or no.
        question, answer, reference: As far as whoever is evaluated sees them; empty where not.
        options: Texts of options by letter.
        asserted: The outcome that a prefix says; None without a prefix.
        group: Items of one group are learnt from or read, never both.
        stratum: Items of one kind, which get a floor of their own.
    """

    label: str
    question: str = ""
    answer: str = ""
    reference: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    asserted: str | None = None
    group: str = ""
    stratum: str = ""


@dataclass(frozen=True)
class Attack:
    """Result of the battery on one stratum.

    Attributes:
        stratum: Its name.
        n: Items.
        chance: Of guessing: one by the number of outcomes.
        bound: What no solver may surely exceed.
        scores: Share of items that each solver gets right; of two outcomes the larger of this and what is left to 1.
    """

    stratum: str
    n: int
    chance: float
    bound: float
    scores: Mapping[str, Number]

    @property
    def floor(self) -> tuple[str, Number] | None:
        """The best solver and its score."""
        defined = {name: score for name, score in self.scores.items() if score.value is not None}
        return max(defined.items(), key=lambda item: item[1].value or 0.0) if defined else None

    @property
    def open(self) -> bool:
        """Whether the floor is surely above the bound."""
        return any(s.interval is not None and s.interval[0] > self.bound for s in self.scores.values())

    def to_dict(self) -> dict[str, Any]:
        scores = {name: [score.value, score.interval] for name, score in self.scores.items()}
        return {"n": self.n, "chance": self.chance, "bound": self.bound, "scores": scores}


def attack(items: Sequence[AttackedItem], *, bound: float | None = None) -> list[Attack]:
    """Run the battery on every stratum.

    Args:
        bound: Share of items that a solver may get right; None: halfway between guessing and everything.
    """
    strata: dict[str, list[AttackedItem]] = {}
    for item in items:
        strata.setdefault(item.stratum, []).append(item)
    return [_attack(name, mine, bound) for name, mine in sorted(strata.items())]


def check_floors(attacks: Sequence[Attack]) -> None:
    """Refuse a set that needs no skill.

    Raises:
        DataError: A floor is surely above its bound; names solver and stratum.
    """
    for result in attacks:
        if result.open and result.floor is not None:
            name, score = result.floor
            where = f" of {result.stratum}" if result.stratum else ""
            share = format_number(score, FOUR_DIGITS, interval=True)
            raise DataError(
                f"solver {name!r} gets {share} of the {result.n} items{where} right without skill; "
                f"at most {format_value(result.bound, FOUR_DIGITS)} is allowed (--floor raises it)"
            )


def floors_by_stratum(attacks: Sequence[Attack]) -> dict[str, dict[str, Any]]:
    """Return results as JSON values by stratum; one stratum without a name is "all"."""
    return {result.stratum or "all": result.to_dict() for result in attacks}


def floor_rows(attacks: Sequence[Attack]) -> tuple[Sequence[str], list[list[str]]]:
    """Header and rows of a card's table."""
    rows = []
    for result in attacks:
        name, score = result.floor or ("none", Number(None, reason=f"fewer than {FEWEST} items"))
        floor = format_number(score, FOUR_DIGITS, interval=True) if score.value is not None else str(score.reason)
        chance, bound = (format_value(value, FOUR_DIGITS) for value in (result.chance, result.bound))
        rows.append([result.stratum or "all", str(result.n), chance, name, floor, bound])
    return ("stratum", "items", "guessing", "best solver without skill", "floor", "bound"), rows


def _attack(stratum: str, items: Sequence[AttackedItem], bound: float | None) -> Attack:
    outcomes = {item.label for item in items}
    if outcomes & {"Yes", "No"}:
        outcomes |= {"Yes", "No"}
    for item in items:
        outcomes |= set(item.options)
    chance = 1 / max(2, len(outcomes))
    scores = {}
    if len(items) >= FEWEST:
        groups = [item.group or str(place) for place, item in enumerate(items)]
        for name, solver in SOLVERS.items():
            guesses = solver(items, groups)
            if guesses is not None:
                right = np.array([guess == item.label for guess, item in zip(guesses, items, strict=True)], dtype=float)
                # Of two outcomes who is always wrong knows as much as who is always right.
                right = 1 - right if len(outcomes) == 2 and right.mean() < 0.5 else right
                scores[name] = estimate_rate(right, groups=groups, confidence=CONFIDENCE)
    return Attack(stratum, len(items), chance, (1 + chance) / 2 if bound is None else bound, scores)


# --- solvers ----------------------------------------------------------------------------------------------------------

Guesses = Sequence[str] | None
Solver = Callable[[Sequence[AttackedItem], Sequence[str]], Guesses]


def _learnt(features: Callable[[Sequence[AttackedItem]], Any | None], *, text: bool = False) -> Solver:
    def solve(items: Sequence[AttackedItem], groups: Sequence[str]) -> Guesses:
        matrix = features(items)
        if matrix is None:
            return None
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GroupKFold
        from sklearn.tree import DecisionTreeClassifier

        labels = np.array([item.label for item in items])
        folds = min(FOLDS, len(set(groups)))
        if folds < 2:
            return None
        guesses = labels.copy()
        for learnt, read in GroupKFold(folds).split(labels, labels, groups):
            if len(set(labels[learnt])) == 1:
                guesses[read] = labels[learnt][0]
                continue
            model = LogisticRegression(max_iter=500) if text else DecisionTreeClassifier(max_depth=2, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                guesses[read] = model.fit(matrix[learnt], labels[learnt]).predict(matrix[read])
        return [str(guess) for guess in guesses]

    return solve


def _column(value: Callable[[AttackedItem], float], applies: Callable[[AttackedItem], object]) -> Solver:
    def features(items: Sequence[AttackedItem]) -> Any | None:
        return np.array([[value(item)] for item in items]) if any(applies(item) for item in items) else None

    return _learnt(features)


def _texts(text_of: Callable[[AttackedItem], str], *, rule: bool = False, **units: Any) -> Solver:
    def features(items: Sequence[AttackedItem]) -> Any | None:
        texts = [text_of(item) for item in items]
        if len(set(texts)) < 2:
            return None
        from sklearn.feature_extraction.text import TfidfVectorizer

        try:
            return TfidfVectorizer(min_df=2, sublinear_tf=True, **units).fit_transform(texts)
        except ValueError:  # no word stands in two of them
            return None

    return _learnt(features, text=not rule)


def _prior(items: Sequence[AttackedItem], groups: Sequence[str]) -> Guesses:
    [(commonest, _)] = Counter(item.label for item in items).most_common(1)
    return [commonest] * len(items)


def _of_options(choose: Callable[[Mapping[str, str]], str]) -> Solver:
    def solve(items: Sequence[AttackedItem], groups: Sequence[str]) -> Guesses:
        return [choose(item.options) for item in items] if all(item.options for item in items) else None

    return solve


def _prefixed(*, believe: bool) -> Solver:
    def solve(items: Sequence[AttackedItem], groups: Sequence[str]) -> Guesses:
        if not any(item.asserted for item in items):
            return None
        labels = sorted({item.label for item in items} | {str(item.asserted) for item in items if item.asserted})
        return [
            item.asserted or labels[0] if believe else next((o for o in labels if o != item.asserted), labels[0])
            for item in items
        ]

    return solve


def _copies(item: AttackedItem) -> float:
    words, others = set(folded(item.answer).split()), set(folded(item.reference).split())
    return len(words & others) / max(1, len(words | others))


def _text_of(item: AttackedItem) -> str:
    return " ".join([item.question, item.answer, *item.options.values()])


def _signs(*, rule: bool) -> Solver:
    def spelt(item: AttackedItem) -> str:
        return item.answer and f"^{item.answer}$".replace(" ", "_")

    return _texts(spelt, rule=rule, analyzer="char", ngram_range=(1, 3), lowercase=False)


SOLVERS: Mapping[str, Solver] = {
    "prior": _prior,
    "length": _column(lambda item: len(item.answer or item.question), lambda item: True),
    "equals the reference": _column(
        lambda item: folded(item.answer) == folded(item.reference), lambda item: item.reference and item.answer
    ),
    "copy of the reference": _column(_copies, lambda item: item.reference and item.answer),
    "refusal words": _column(
        lambda item: bool(unanswered(item.answer) or DECLINES.search(item.answer) or MARKER.search(item.answer)),
        lambda item: item.answer,
    ),
    "negation": _column(lambda item: len(_NEGATION.findall(item.answer or item.question)), lambda item: True),
    "blind text": _texts(_text_of, ngram_range=(1, 2)),
    "spelling": _signs(rule=False),
    "a single sign": _signs(rule=True),
    "wording of the question": _texts(lambda item: item.question, ngram_range=(1, 2)),
    "longest option": _of_options(lambda options: max(options, key=lambda letter: len(options[letter]))),
    "what the prefix says": _prefixed(believe=True),
    "what the prefix says is wrong": _prefixed(believe=False),
}
"""Solvers by the name on the card. The place of the right option is what `prior` goes by."""

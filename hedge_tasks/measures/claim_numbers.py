"""What a detector of claims is worth on labelled claims: AUROC over all and within the answer, top claim, flagging.

Tables of a run, rows of lmms-eval's table and submissions take their numbers from here, so that they are one number.
Intervals are clustered by image: claims of an answer are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hedge_tasks.claims.base import ClaimNumbers
from hedge_tasks.claims.labels import label_of
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import DataError
from hedge_tasks.measures.fusion import cross_fitting_folds
from hedge_tasks.numbers import Number
from hedge_tasks.scoring.claims import ScoredAnswer, ScoredClaims, groups_of
from hedge_tasks.statistics import StratifiedAuroc, estimate_auroc, estimate_mean, estimate_rate, stratified_auroc

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

TEXT = "claim_text"
"""Name of the blind baseline that is fitted: a classifier of the claims' wording, cross-fitted by image."""


@dataclass(frozen=True)
class Labelled:
    """The labelled claims of a run whose support is known, in one line.

    Attributes:
        labels: 1 = hallucinated, 0 = supported, shape (N,).
        answers: number of each claim's answer, shape (N,).
        groups: image of each claim, length N.
        texts: of the claims.
        places: (answer, claim) of each.
        n_claims: of the run in all.
        n_silent: on how many of them the reference is silent.
        n_unknown: how many are left out because their support is not known.
        n_unused: labelled spans that lie over no claim.
    """

    labels: IntArray
    answers: IntArray
    groups: tuple[str, ...]
    texts: tuple[str, ...] = ()
    places: tuple[tuple[int, int], ...] = ()
    n_claims: int = 0
    n_silent: int = 0
    n_unknown: int = 0
    n_unused: int = 0


@dataclass(frozen=True)
class Top:
    """Of answers with both kinds of claims: how often the claim of the highest score is a hallucinated one.

    Attributes:
        rate: how often; claims that share the highest score count by their mean label.
        chance: the same of a claim picked at random.
        above: their difference, paired by answer.
    """

    rate: Number
    chance: Number
    above: Number


@dataclass(frozen=True)
class Flagged:
    """What flagging the claims of the highest scores gives.

    Attributes:
        share: of the claims flagged: at least what was asked for, more where claims share a score.
        threshold: least score of a flagged one.
        precision: share of the flagged claims that are hallucinated.
        recall: share of the hallucinated claims that are flagged.
    """

    share: float
    threshold: float
    precision: Number
    recall: Number


def labelled_claims(scored: ScoredClaims, *, silent: str = "unlabelled", errors: str = "all") -> Labelled:
    """The claims of a run that have a label and known support."""
    groups = groups_of([one.answers for one in scored.answers])
    labels, answers, images, texts, places = [], [], [], [], []
    n_silent = n_unknown = 0
    for i, one in enumerate(scored.answers):
        for k, (claim, found, known) in enumerate(zip(one.claims, one.labels.labels, one.known, strict=True)):
            n_silent += found is not None and found.silent
            label = label_of(found, silent=silent, errors=errors)
            if label is None:
                continue
            if not known:
                n_unknown += 1
                continue
            labels.append(label)
            answers.append(i)
            images.append(groups[i])
            texts.append(claim.text)
            places.append((i, k))
    return Labelled(
        np.array(labels, dtype=np.int64),
        np.array(answers, dtype=np.int64),
        tuple(images),
        tuple(texts),
        tuple(places),
        sum(len(one.claims) for one in scored.answers),
        n_silent,
        n_unknown,
        sum(one.labels.unused for one in scored.answers),
    )


def column(answers: Sequence[ScoredAnswer], name: str, data: Labelled) -> FloatArray:
    """The scores of a detector for the labelled claims, NaN where there is none."""
    nothing = np.empty(0)
    of = [one.scores.get(name, nothing) for one in answers]
    return np.array([of[i][k] if len(of[i]) else math.nan for i, k in data.places], dtype=np.float64)


def text_scores(data: Labelled, seed: int = 0) -> tuple[FloatArray | None, str]:
    """Probability that a claim is hallucinated by its wording alone, from claims about other images; or why none.

    Args:
        seed: of the folds.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    try:
        folds = cross_fitting_folds(data.labels, data.groups, seed)
    except DataError as error:
        return None, str(error)
    found = np.empty(len(data.labels))
    texts = np.array(data.texts, dtype=object)
    for train, test in folds:
        # Single characters are words, too, in scripts without spaces.
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\b\w+\b")
        model = make_pipeline(words, LogisticRegression(max_iter=2000))
        try:
            model.fit(texts[train], data.labels[train])
        except ValueError as error:  # no word in any of them
            return None, f"no classifier can be fitted ({error})"
        found[test] = model.predict_proba(texts[test])[:, 1]
    return np.round(found, 9), ""


def fault_of(values: FloatArray) -> str | None:
    """Why the scores of the labelled claims have no AUROC; None where they may have one."""
    if missing := int(np.isnan(values).sum()):
        return f"{missing} of {len(values)} labelled claims have no such score"
    if len(values) > 1 and np.ptp(values) == 0:
        return "every labelled claim has the same score"
    return None


def pooled(values: FloatArray, data: Labelled) -> Number:
    """AUROC over all claims."""
    return estimate_auroc(values, data.labels, groups=data.groups, method="delong")


def within(values: FloatArray, data: Labelled) -> StratifiedAuroc:
    """AUROC within answers."""
    return stratified_auroc(values, data.labels, data.answers.tolist(), groups=data.groups, each=False)


def _mixed(data: Labelled) -> BoolArray:
    """Which claims stand in an answer that has both kinds."""
    n = int(data.answers.max()) + 1
    wrong, all_of = np.bincount(data.answers, data.labels, n), np.bincount(data.answers, minlength=n)
    found: BoolArray = ((wrong > 0) & (wrong < all_of))[data.answers]
    return found


def turned(values: FloatArray, data: Labelled) -> bool:
    """Whether a blind baseline is turned round: whoever has labels would do so with one below 0.5."""
    found = pooled(values, data).value
    return found is not None and found < 0.5


def top_claim(values: FloatArray, data: Labelled) -> Top | None:
    """How often the top claim of a mixed answer is wrong; None where there is no mixed answer."""
    rates, chances, groups = [], [], []
    for chosen in of_answers(data, _mixed(data)):
        labels, scores = data.labels[chosen], values[chosen]
        rates.append(float(labels[scores == scores.max()].mean()))
        chances.append(float(labels.mean()))
        groups.append(data.groups[chosen[0]])
    if not rates:
        return None
    above = np.array(rates) - np.array(chances)
    return Top(estimate_mean(rates, groups), estimate_mean(chances, groups), estimate_mean(above, groups))


def of_answers(data: Labelled, used: BoolArray | None = None) -> list[IntArray]:
    """Positions of the claims of each answer, of those that are used."""
    places = np.arange(len(data.labels)) if used is None else np.flatnonzero(used)
    if not len(places):
        return []
    ordered = places[np.argsort(data.answers[places], kind="stable")]
    starts = np.flatnonzero(np.diff(data.answers[ordered])) + 1
    return np.split(ordered, starts)


def flagged(values: FloatArray, data: Labelled, share: float) -> Flagged | None:
    """Precision and recall where the claims of the highest scores are flagged, at least this share of them."""
    if not (data.labels == 1).any():
        return None
    count = max(1, math.ceil(share * len(values) - 1e-9))
    threshold = float(np.sort(values)[::-1][count - 1])
    chosen = values >= threshold
    wrong = data.labels == 1
    groups = np.array(data.groups, dtype=object)
    return Flagged(
        float(chosen.mean()),
        threshold,
        estimate_rate(wrong[chosen].astype(float), groups=groups[chosen].tolist()),
        estimate_rate(chosen[wrong].astype(float), groups=groups[wrong].tolist()),
    )


# --- by answer, for rows of a table -----------------------------------------------------------------------------------


def claim_numbers(
    scored: ScoredClaims, *, silent: str, errors: str, text: bool = False, why_unlabelled: str = ""
) -> dict[str, ClaimNumbers]:
    """The labelled claims of every answer in numbers, by the answer's id.

    Args:
        silent, errors: see `hedge_tasks.claims.labels.label_of`.
        text: whether the classifier of their wording is fitted, too; its scores are those of `TEXT`.
        why_unlabelled: said where no claim has a label.
    """
    data = labelled_claims(scored, silent=silent, errors=errors)
    unlabelled = "" if len(data.labels) else why_unlabelled or "no claim has a label"
    names = list(dict.fromkeys(name for one in scored.answers for name in one.scores))
    columns = {name: column(scored.answers, name, data) for name in names}
    left_out = dict(scored.left_out)
    if text and len(data.labels):
        values, reason = text_scores(data)
        if values is None:
            left_out[TEXT] = reason
        else:
            columns[TEXT] = values
    groups = groups_of([one.answers for one in scored.answers])
    places = {int(data.answers[of[0]]): of for of in of_answers(data)}
    nothing = np.empty(0, dtype=np.int64)
    found = {}
    for i, (one, group) in enumerate(zip(scored.answers, groups, strict=True)):
        mine = places.get(i, nothing)
        labels = tuple(data.labels[mine].tolist())
        scores = {name: tuple(values[mine].tolist()) for name, values in columns.items()}
        found[one.answers.id] = ClaimNumbers(group, labels, scores, left_out, unlabelled)
    return found


def together(numbers: Sequence[ClaimNumbers]) -> tuple[Labelled, dict[str, FloatArray]]:
    """The labelled claims of some answers in one line, and the scores of every detector that all of these have."""
    answers = [i for i, one in enumerate(numbers) for _ in one.labels]
    labels = [label for one in numbers for label in one.labels]
    groups = tuple(one.group for one in numbers for _ in one.labels)
    labelled = [one for one in numbers if one.labels]
    names = [name for name in (labelled[0].scores if labelled else ()) if all(name in one.scores for one in labelled)]
    columns = {name: np.array([v for one in labelled for v in one.scores[name]], dtype=np.float64) for name in names}
    return Labelled(np.array(labels, dtype=np.int64), np.array(answers, dtype=np.int64), groups), columns


def blind_columns(columns: Mapping[str, FloatArray], data: Labelled) -> dict[str, FloatArray]:
    """The blind baselines among the scores that have an AUROC, each turned the way in which it is better."""
    blind = {n: v for n, v in columns.items() if (n == TEXT or get(n).blind) and fault_of(v) is None}
    return {name: -values if turned(values, data) else values for name, values in blind.items()}

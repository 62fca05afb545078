"""Detectors of claims side by side: how well each finds the hallucinated claims of long answers, and blind baselines.

Two AUROCs: over all claims, and within the answer, where only claims of one answer are compared. What merely knows
which answers are bad, or where in an answer errors stand, is good at one of them. Intervals and tests are clustered by
image: claims of an answer are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hedge_tasks.claims.labels import label_of
from hedge_tasks.detectors.base import Detector
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.runs.claims import ScoredAnswer, ScoredClaims, groups_of, with_draws
from hedge_tasks.runs.fusion import cross_fitting_folds
from hedge_tasks.statistics import (
    Comparison,
    Estimate,
    Mean,
    StratifiedAuroc,
    compare_scores,
    compare_within,
    estimate_auroc,
    estimate_mean,
    estimate_rate,
    holm,
    stratified_auroc,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

TEXT = "claim_text"
"""Name of the blind baseline that is fitted: a classifier of the claims' wording, cross-fitted by image."""

FLAGGED = 0.2
"""Share of the claims that is flagged, where nobody says otherwise."""

_SIZES = (1, 2, 3, 5, 10, 20, 30, 50)
_CURVE = ("claim_radflag", "claim_luq", "claim_contradiction")


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
    texts: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    n_claims: int
    n_silent: int
    n_unknown: int
    n_unused: int


@dataclass(frozen=True)
class Top:
    """Of answers with both kinds of claims: how often the claim of the highest score is a hallucinated one.

    Attributes:
        rate: how often; claims that share the highest score count by their mean label.
        chance: the same of a claim picked at random.
        above: their difference, paired by answer.
    """

    rate: Mean
    chance: Mean
    above: Mean


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
    precision: Estimate
    recall: Estimate


@dataclass(frozen=True)
class ClaimRow:
    """One detector of claims on one run.

    Attributes:
        detector, title: its name, and what it is called.
        draws: answers a question that it costs besides the baseline answer.
        blind: whether it sees neither image nor draws.
        reversed: a blind baseline whose AUROC is below 0.5 is turned round: whoever has labels would do so.
        estimate: AUROC over all claims.
        within: AUROC within answers.
        top, flagged: see there; None where they are undefined.
        against_blind: AUROC less that of the best blind baseline, and within answers less that of the best one there;
            None for blind ones.
        p_holm: of both, each adjusted for all detectors that are not blind.
    """

    detector: str
    title: str
    draws: int
    blind: bool
    reversed: bool
    estimate: Estimate
    within: StratifiedAuroc
    top: Top | None
    flagged: Flagged | None
    against_blind: tuple[Comparison | None, Comparison | None] = (None, None)
    p_holm: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class AnswerRow:
    """The mean or maximum over an answer's claims as a detector of whole answers.

    Attributes:
        detector: such as `claim_luq_mean`.
        estimate: AUROC against the answers' labels.
        spearman: rank correlation with the share of hallucinated claims; None where it is undefined.
    """

    detector: str
    estimate: Estimate
    spearman: float | None


@dataclass(frozen=True)
class CurvePoint:
    """AUROCs of a detector with the first n draws."""

    detector: str
    n: int
    estimate: Estimate
    within: StratifiedAuroc


@dataclass(frozen=True)
class ClaimTable:
    """Everything about a run scored by claim.

    Attributes:
        scored: the run.
        labelled: its labelled claims.
        rows: detectors, the best first, blind ones behind them.
        left_out: detector -> why it is not there.
        best_blind: names of the best blind baseline over all claims and within answers; None where there is none.
        answers: mean and maximum over claims.
        curve: by number of draws.
        answer_label: what the labels of whole answers are.
        covered: share of the answers' text that lies in a claim, on average.
        unlocated: claims that the decomposition could not place.
    """

    scored: ScoredClaims
    labelled: Labelled
    rows: tuple[ClaimRow, ...]
    left_out: Mapping[str, str]
    best_blind: tuple[str | None, str | None]
    answers: tuple[AnswerRow, ...]
    curve: tuple[CurvePoint, ...]
    answer_label: str
    covered: float
    unlocated: int
    settings: Mapping[str, object] = field(default_factory=dict)


def claim_table(
    scored: ScoredClaims,
    *,
    silent: str = "unlabelled",
    errors: str = "all",
    flag: float = FLAGGED,
    seed: int = 0,
) -> ClaimTable:
    """Measure every detector of claims against the labels, and compare it with the best blind baseline.

    Args:
        silent, errors: see `hedge_tasks.claims.labels.label_of`.
        flag: share of the claims that is flagged, in (0, 1).
        seed: of the folds of the text classifier.

    Raises:
        ConfigError: a value makes no sense.
        DataError: no claim has a label.
    """
    if not 0 < flag < 1:
        raise ConfigError(f"flag: expected a share between 0 and 1, got {flag}")
    data = labelled_claims(scored, silent=silent, errors=errors)
    if not len(data.labels):
        raise DataError(f"{scored.title}: none of {data.n_claims} claims has a label that counts and known support")
    columns, left_out = _columns(scored, data)
    text, reason = _text_classifier(data, seed)
    if text is None:
        left_out[TEXT] = reason
    else:
        columns[TEXT] = text
    rows = [_row(name, values, scored, data, flag) for name, values in columns.items()]
    best = _best_blind(rows)
    rows = _against(rows, columns, best, data)
    ordered = sorted(rows, key=lambda row: (row.blind, -(row.estimate.value or 0.0), row.detector))
    answer_rows, answer_label = _answer_rows(scored, data, columns, silent, errors)
    weights = [one.covered for one in scored.decomposed]
    return ClaimTable(
        scored,
        data,
        tuple(ordered),
        {**scored.left_out, **left_out},
        best,
        answer_rows,
        tuple(_curve(scored, data)),
        answer_label,
        sum(weights) / len(weights),
        sum(one.unlocated for one in scored.decomposed),
        {"silent": silent, "errors": errors, "flag": flag},
    )


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


def _columns(scored: ScoredClaims, data: Labelled) -> tuple[dict[str, FloatArray], dict[str, str]]:
    names = dict.fromkeys(name for one in scored.answers for name in one.scores)
    columns, left_out = {}, {}
    for name in names:
        values = column(scored.answers, name, data)
        if missing := int(np.isnan(values).sum()):
            left_out[name] = f"{missing} of {len(values)} labelled claims have no such score"
        elif np.ptp(values) == 0 and len(values) > 1:
            left_out[name] = "every labelled claim has the same score"
        else:
            columns[name] = values
    return columns, left_out


def _text_classifier(data: Labelled, seed: int) -> tuple[FloatArray | None, str]:
    """Probability that a claim is hallucinated by its wording alone, from claims about other images."""
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


def _row(name: str, values: FloatArray, scored: ScoredClaims, data: Labelled, flag: float) -> ClaimRow:
    detector = None if name == TEXT else get(name)
    blind = detector is None or detector.blind
    estimate = _pooled(values, data)
    turned = blind and estimate.value is not None and estimate.value < 0.5
    if turned:
        values = -values
        estimate = _pooled(values, data)
    return ClaimRow(
        name,
        "Text classifier" if detector is None else detector.label,
        _draws(detector, scored),
        blind,
        turned,
        estimate,
        _within(values, data),
        top_claim(values, data),
        flagged(values, data, flag),
    )


def _draws(detector: Detector | None, scored: ScoredClaims) -> int:
    n, m = (min((getattr(one.evidence, key) for one in scored.answers), default=0) for key in ("n_clean", "n_noisy"))
    return 0 if detector is None else detector.draws(n, m)


def _pooled(values: FloatArray, data: Labelled) -> Estimate:
    return estimate_auroc(values, data.labels, groups=data.groups, method="delong")


def _within(values: FloatArray, data: Labelled) -> StratifiedAuroc:
    return stratified_auroc(values, data.labels, data.answers.tolist(), groups=data.groups, each=False)


def _mixed(data: Labelled) -> BoolArray:
    """Which claims stand in an answer that has both kinds."""
    n = int(data.answers.max()) + 1
    wrong, all_of = np.bincount(data.answers, data.labels, n), np.bincount(data.answers, minlength=n)
    found: BoolArray = ((wrong > 0) & (wrong < all_of))[data.answers]
    return found


def top_claim(values: FloatArray, data: Labelled) -> Top | None:
    """How often the top claim of a mixed answer is wrong; None where there is no mixed answer."""
    rates, chances, groups = [], [], []
    for chosen in _of_answers(data, _mixed(data)):
        labels, scores = data.labels[chosen], values[chosen]
        rates.append(float(labels[scores == scores.max()].mean()))
        chances.append(float(labels.mean()))
        groups.append(data.groups[chosen[0]])
    if not rates:
        return None
    above = np.array(rates) - np.array(chances)
    return Top(estimate_mean(rates, groups), estimate_mean(chances, groups), estimate_mean(above, groups))


def _of_answers(data: Labelled, used: BoolArray) -> list[IntArray]:
    """Positions of the claims of each answer."""
    places = np.flatnonzero(used)
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


def _best_blind(rows: Sequence[ClaimRow]) -> tuple[str | None, str | None]:
    def best(value: Callable[[ClaimRow], float | None]) -> str | None:
        found = {row.detector: v for row in rows if row.blind and (v := value(row)) is not None}
        return max(sorted(found), key=found.__getitem__) if found else None

    return best(lambda row: row.estimate.value), best(lambda row: row.within.value)


def _against(
    rows: Sequence[ClaimRow],
    columns: Mapping[str, FloatArray],
    best: tuple[str | None, str | None],
    data: Labelled,
) -> list[ClaimRow]:
    """The rows with their paired comparison with the best blind baselines."""
    turned = {row.detector for row in rows if row.reversed}

    def of(name: str) -> FloatArray:
        return -columns[name] if name in turned else columns[name]

    pooled, within = {}, {}
    for row in rows:
        if row.blind:
            continue
        if best[0] is not None:
            pooled[row.detector] = compare_scores(of(row.detector), of(best[0]), data.labels, groups=data.groups)
        if best[1] is not None:
            strata = data.answers.tolist()
            within[row.detector] = compare_within(
                of(row.detector), of(best[1]), data.labels, strata, groups=data.groups
            )
    adjusted = [dict(zip(c, holm([one.p_value for one in c.values()]), strict=True)) for c in (pooled, within)]
    return [
        ClaimRow(
            **{
                **vars(row),
                "against_blind": (pooled.get(row.detector), within.get(row.detector)),
                "p_holm": (adjusted[0].get(row.detector), adjusted[1].get(row.detector)),
            }
        )
        for row in rows
    ]


def _answer_rows(
    scored: ScoredClaims, data: Labelled, columns: Mapping[str, FloatArray], silent: str, errors: str
) -> tuple[tuple[AnswerRow, ...], str]:
    """Mean and maximum over all claims of an answer, labelled or not, against the answer's label."""
    from scipy.stats import spearmanr

    wrong = {int(data.answers[chosen[0]]): float(data.labels[chosen].mean()) for chosen in _of_answers_all(data)}
    own = all(scored.answers[i].answers.label is not None for i in wrong)
    told = "labels of the answers" if own else "whether any labelled claim is hallucinated"
    labels = {i: (scored.answers[i].answers.label or 0) if own else int(share > 0) for i, share in wrong.items()}
    groups = groups_of([one.answers for one in scored.answers])
    places = sorted(wrong)
    found = []
    for name in columns:
        if name == TEXT or get(name).blind:
            continue
        for how, function in (("mean", np.mean), ("max", np.max)):
            values = np.array([function(_known(scored.answers[i], name)) for i in places], dtype=np.float64)
            estimate = estimate_auroc(
                values, [labels[i] for i in places], groups=[groups[i] for i in places], method="delong"
            )
            shares = [wrong[i] for i in places]
            varied = len(places) > 2 and np.ptp(values) > 0 and np.ptp(shares) > 0
            correlation = float(spearmanr(values, shares).statistic) if varied else None
            found.append(AnswerRow(f"{name}_{how}", estimate, correlation))
    return tuple(found), told


def _of_answers_all(data: Labelled) -> list[IntArray]:
    return _of_answers(data, np.ones(len(data.labels), dtype=np.bool_))


def _known(answer: ScoredAnswer, name: str) -> FloatArray:
    values = answer.scores[name]
    return values[~np.isnan(values)]


def _curve(scored: ScoredClaims, data: Labelled) -> list[CurvePoint]:
    most = min((one.evidence.n_clean for one in scored.answers), default=0)
    names = [name for name in _CURVE if any(name in one.scores for one in scored.answers)]
    points = []
    for n in (*(size for size in _SIZES if size < most), most):
        if not n or not names:
            continue
        cut = [with_draws(one, n, names) for one in scored.answers]
        for name in names:
            values = column(cut, name, data)
            if not np.isnan(values).any():
                points.append(CurvePoint(name, n, _pooled(values, data), _within(values, data)))
    return points

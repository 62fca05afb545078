"""Detectors of claims side by side: how well each finds the hallucinated claims of long answers, and blind baselines.

Two AUROCs: over all claims, and within the answer, where only claims of one answer are compared. What merely knows
which answers are bad, or where in an answer errors stand, is good at one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hedge_tasks.detectors.base import Detector
from hedge_tasks.detectors.pipeline import auroc_of_pairs
from hedge_tasks.detectors.registry import get
from hedge_tasks.errors import ConfigError, DataError
from hedge_tasks.measures.claim_numbers import (
    TEXT,
    Flagged,
    Labelled,
    Top,
    column,
    fault_of,
    flagged,
    labelled_claims,
    of_answers,
    pooled,
    text_scores,
    top_claim,
    turned,
    within,
)
from hedge_tasks.numbers import Number
from hedge_tasks.scoring.claims import ScoredAnswer, ScoredClaims, groups_of, with_draws
from hedge_tasks.statistics import Comparison, StratifiedAuroc, compare_scores, compare_within, holm

FloatArray = npt.NDArray[np.float64]

FLAGGED = 0.2
"""Share of the claims that is flagged, where nobody says otherwise."""

_SIZES = (1, 2, 3, 5, 10, 20, 30, 50)
_CURVE = ("claim_radflag", "claim_luq", "claim_contradiction")


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
    estimate: Number
    within: StratifiedAuroc
    top: Top | None
    flagged: Flagged | None
    against_blind: tuple[Comparison | None, Comparison | None] = (None, None)
    p_holm: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class AnswerRow:
    """The mean or maximum over an answer's claims as a detector of whole answers.

    Attributes:
        detector: such as `claims_luq_mean`, which is registered; others are only here.
        estimate: AUROC against the answers' labels.
        spearman: rank correlation with the share of hallucinated claims; None where it is undefined.
    """

    detector: str
    estimate: Number
    spearman: float | None


@dataclass(frozen=True)
class CurvePoint:
    """AUROCs of a detector with the first n draws."""

    detector: str
    n: int
    estimate: Number
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
    text, reason = text_scores(data, seed)
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


def _columns(scored: ScoredClaims, data: Labelled) -> tuple[dict[str, FloatArray], dict[str, str]]:
    names = dict.fromkeys(name for one in scored.answers for name in one.scores)
    columns, left_out = {}, {}
    for name in names:
        values = column(scored.answers, name, data)
        if fault := fault_of(values):
            left_out[name] = fault
        else:
            columns[name] = values
    return columns, left_out


def _row(name: str, values: FloatArray, scored: ScoredClaims, data: Labelled, flag: float) -> ClaimRow:
    detector = None if name == TEXT else get(name)
    blind = detector is None or detector.blind
    reversed_ = blind and turned(values, data)
    if reversed_:
        values = -values
    return ClaimRow(
        name,
        "Text classifier" if detector is None else detector.label,
        _draws(detector, scored),
        blind,
        reversed_,
        pooled(values, data),
        within(values, data),
        top_claim(values, data),
        flagged(values, data, flag),
    )


def _draws(detector: Detector | None, scored: ScoredClaims) -> int:
    n, m = (min((getattr(one.evidence, key) for one in scored.answers), default=0) for key in ("n_clean", "n_noisy"))
    return 0 if detector is None else detector.draws(n, m)


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
    reversed_ = {row.detector for row in rows if row.reversed}

    def of(name: str) -> FloatArray:
        return -columns[name] if name in reversed_ else columns[name]

    over_all, inside = {}, {}
    for row in rows:
        if row.blind:
            continue
        if best[0] is not None:
            over_all[row.detector] = compare_scores(of(row.detector), of(best[0]), data.labels, groups=data.groups)
        if best[1] is not None:
            strata = data.answers.tolist()
            inside[row.detector] = compare_within(
                of(row.detector), of(best[1]), data.labels, strata, groups=data.groups
            )
    adjusted = [dict(zip(c, holm([one.p_value for one in c.values()]), strict=True)) for c in (over_all, inside)]
    return [
        ClaimRow(
            **{
                **vars(row),
                "against_blind": (over_all.get(row.detector), inside.get(row.detector)),
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

    wrong = {int(data.answers[chosen[0]]): float(data.labels[chosen].mean()) for chosen in of_answers(data)}
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
            # As for every detector of answers, so that a number has one interval.
            pairs = [
                (None if np.isnan(v) else float(v), labels[i], groups[i]) for v, i in zip(values, places, strict=True)
            ]
            estimate = auroc_of_pairs(pairs)
            shares = [wrong[i] for i in places]
            varied = len(places) > 2 and np.ptp(values) > 0 and np.ptp(shares) > 0
            correlation = float(spearmanr(values, shares).statistic) if varied else None
            found.append(AnswerRow(f"claims_{name.removeprefix('claim_')}_{how}", estimate, correlation))
    return tuple(found), told


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
                points.append(CurvePoint(name, n, pooled(values, data), within(values, data)))
    return points

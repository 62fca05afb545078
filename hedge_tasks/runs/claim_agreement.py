"""Agreement of a judge's verdicts on all claims of a draw in one call with those on each claim by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedge_tasks.claims.entailment import SupportQuery
from hedge_tasks.claims.entailment.judge import VERDICTS, JudgeEntailment
from hedge_tasks.data.answers import AnswerSet
from hedge_tasks.errors import DataError
from hedge_tasks.numbers import THREE_DIGITS, Number, format_interval, format_number
from hedge_tasks.runs.claims import Supported, groups_of
from hedge_tasks.statistics import estimate_mean
from hedge_tasks.statistics.agreement import Agreement, cohen_kappa

_WORDS = tuple(sorted(VERDICTS, key=lambda word: VERDICTS[word]))


@dataclass(frozen=True)
class JointAgreement:
    """Verdicts of joint calls against those of single ones, on the same claims and draws.

    Attributes:
        calls: joint calls that were compared.
        verdicts: claims of these calls.
        unknown: those of them without a verdict in one of the two ways; they are in no number.
        same: share of equal verdicts, with its error between images.
        kappa: Cohen's, with an interval between images.
        differ: (joint verdict, single verdict) -> how often, of those that differ.
    """

    calls: int
    verdicts: int
    unknown: int
    same: Number
    kappa: Agreement
    differ: dict[tuple[str, str], int]

    def __str__(self) -> str:
        if self.same.value is None:
            return f"joint calls against single ones: no verdict to compare in {self.calls} calls"
        interval = self.same.interval
        bounds = f" {format_interval((max(interval[0], 0), min(interval[1], 1)))}" if interval else ""
        lines = [
            f"joint calls against single ones: {THREE_DIGITS(self.same.value)}{bounds} of {self.same.n} verdicts "
            f"in {self.calls} calls are equal, Cohen's kappa {format_number(self.kappa)}"
        ]
        lines += [f"  {n} x {joint} together, {single} alone" for (joint, single), n in sorted(self.differ.items())]
        return "\n".join(lines + ([f"  {self.unknown} verdicts unknown"] if self.unknown else []))


def joint_agreement(
    answer_sets: Sequence[AnswerSet],
    supported: Sequence[Supported],
    engine: JudgeEntailment,
    n: int,
    *,
    seed: int = 0,
) -> JointAgreement:
    """Ask about the claims of n random joint calls once more, each claim by itself.

    Args:
        supported: the support by the joint calls.
        engine: that made them.
        n: fewer where there are fewer calls with several claims.
        seed: of the choice.

    Raises:
        DataError: no call had several claims.
    """
    if engine.claims_a_call < 2:
        raise DataError("every claim is asked about by itself already")
    chosen = _chosen(answer_sets, supported, n, seed)
    claims = [tuple(dict.fromkeys(_texts(supported[i]))) for i, _ in chosen]
    queries = [SupportQuery(c, (_draws(answer_sets[i])[j],)) for c, (i, j) in zip(claims, chosen, strict=True)]
    alone = engine.singly().support(queries)
    groups = groups_of(answer_sets)
    pairs: list[tuple[int | None, int | None, str]] = []
    for (i, j), texts, single in zip(chosen, claims, alone, strict=True):
        joint = np.concatenate([supported[i].clean, supported[i].noisy], axis=1)[:, j]
        row = {text: k for k, text in reversed(list(enumerate(_texts(supported[i]))))}
        pairs += [(_verdict(joint[row[text]]), _verdict(single[k, 0]), groups[i]) for k, text in enumerate(texts)]
    return _compared(len(chosen), pairs)


def _chosen(
    answer_sets: Sequence[AnswerSet], supported: Sequence[Supported], n: int, seed: int
) -> list[tuple[int, int]]:
    """Return the answer and draw, as places, of the calls that are compared."""
    calls = {
        (tuple(_texts(support)), draw): (i, j)
        for i, (answers, support) in enumerate(zip(answer_sets, supported, strict=True))
        if len(set(_texts(support))) > 1
        for j, draw in enumerate(_draws(answers))
        if draw.strip()
    }
    if not calls:
        raise DataError("no draw was asked about several claims in one call")
    places = sorted(calls.values())
    taken = np.random.default_rng(seed).permutation(len(places))[:n]
    return [places[i] for i in sorted(taken.tolist())]


def _texts(support: Supported) -> list[str]:
    return [claim.text for claim in support.decomposed.claims if claim.text.strip()]


def _draws(answers: AnswerSet) -> list[str]:
    return [answer.text for answer in (*answers.clean, *answers.noisy)]


def _verdict(row: np.ndarray) -> int | None:
    return None if np.isnan(row).any() else int(row.argmax())


def _compared(calls: int, pairs: Sequence[tuple[int | None, int | None, str]]) -> JointAgreement:
    """Compare pairs of a joint and a single verdict, each with the image of the answer."""
    known = [(a, b, group) for a, b, group in pairs if a is not None and b is not None]
    same = estimate_mean([float(a == b) for a, b, _ in known], [group for *_, group in known])
    kappa = cohen_kappa([a for a, _, _ in known], [b for _, b, _ in known], groups=[group for *_, group in known])
    differ: dict[tuple[str, str], int] = {}
    for a, b, _ in known:
        if a != b:
            differ[_WORDS[a], _WORDS[b]] = differ.get((_WORDS[a], _WORDS[b]), 0) + 1
    return JointAgreement(calls, len(pairs), len(pairs) - len(known), same, kappa, differ)

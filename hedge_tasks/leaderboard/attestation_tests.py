"""Tests of an entry's answers against what their model was found to say of them, and the verdict that follows.

All of it is computed from the submission and the numbers of a statement, so that a reader computes the same again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hedge_tasks.data.answers import Answer
from hedge_tasks.leaderboard.attestation_records import AttestedDocument, FreshDraw, ReplayTest, Verdict
from hedge_tasks.leaderboard.stated import has_texts, logprob_in, present, recorded_decoding
from hedge_tasks.leaderboard.submission import answer_set_of
from hedge_tasks.numbers import Format, count_of
from hedge_tasks.statistics.draws import verdict_on

LEVEL = 0.001
"""Of every test that has a p-value; and of how many honest answers may be off, where tokens are ambiguous."""

PERMUTATIONS = 9_999

FEWEST_REPEATS = 10
"""Pairs of equal answers, below which a test of equal texts says nothing."""

LOGPROBS, SEEDS, DRAWS = "log-probabilities", "seeds", "draws against their log-probabilities"
AGAIN = "drawn again with the same seeds"
BASELINE, CLEAN, NOISY = "baseline answers drawn anew", "clean answers drawn anew", "noisy answers drawn anew"
LIKELY, COPIES = "likelihood of answers drawn anew", "noisy answers that are copies"

ROUNDING: Mapping[str, tuple[float, float]] = {
    "float64": (2e-4, 2e-3),
    "float32": (2e-4, 2e-3),
    "float16": (0.02, 0.15),
    "bfloat16": (0.1, 0.4),
}
"""By dtype the least and the largest tolerance, in nats a token; between them it is `FACTOR` times what is found."""

MARGINS: Mapping[str, tuple[float, float]] = {
    "float64": (1e-3, 1e-2),
    "float32": (1e-3, 1e-2),
    "float16": (0.1, 0.6),
    "bfloat16": (0.4, 1.5),
}
"""The same of a seed's margin, in nats of the raw distribution (the margin times the temperature)."""

_UNKNOWN_DTYPE = "bfloat16"
FACTOR = 3.0
"""Times the largest deviation of the answers that were drawn for the statement."""

_REPEATS = Format(digits=3)

_STABLE = 0.9
"""Share of answers that an engine has to give again to be called bit-stable."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Case:
    """A document: what the entry states of its answers, and what was found."""

    stated: Sequence[Answer]
    n_clean: int
    attested: AttestedDocument


def outcomes_of(
    submission: Mapping[str, Any], documents: Sequence[AttestedDocument], *, dtype: str | None, seed: int
) -> dict[str, ReplayTest]:
    """Run every test of a statement; return the outcomes by name.

    Args:
        submission: the entry.
        documents: what was found, of documents of the entry.
        dtype: of the weights.
        seed: of the permutations.
    """
    by_id = {document["id"]: document for document in submission["documents"]}
    sets = {attested.id: answer_set_of(by_id[attested.id]) for attested in documents}
    cases = [_Case(sets[attested.id].answers, len(sets[attested.id].clean), attested) for attested in documents]
    rng = np.random.default_rng(seed)
    tests = {LOGPROBS: _logprobs(cases, dtype)}
    sampled_here, has_margins = _sampled_here(submission), _has_margins(cases)
    if sampled_here or has_margins:
        tests[SEEDS] = _seeds(cases, dtype, _temperatures(submission))
    if not sampled_here:
        tests[AGAIN] = _same_seeds(cases)
    if not sampled_here and has_margins and tests[SEEDS].state == "contradicted":
        # Somebody else's engine may have chosen the tokens: then it is the one to be asked.
        reason = f"{tests[SEEDS].reason}; the entry does not say that this package chose its tokens"
        tests[SEEDS] = tests[SEEDS].replaced(state="not met", reason=reason)
    tests[DRAWS] = _draws(submission, cases)
    tests[BASELINE] = _permuted(_baselines(cases), rng, "the baseline answer's place among those drawn anew")
    tests[CLEAN] = _permuted(_clean(cases), rng, "equal texts within and between")
    tests[NOISY] = _permuted(_noisy(cases), rng, "equal texts within and between, on the same noisy pictures")
    tests[COPIES] = _permuted(_copies(cases), rng, "noisy answers that are clean ones as well")
    tests[LIKELY] = _permuted(_likelihoods(cases), rng, "log-probabilities within and between")
    return tests


def verdict_of(tests: Mapping[str, ReplayTest]) -> Verdict:
    """The verdict of all tests together.

    Answers are replayed where nothing contradicts it, and both that the model finds them as likely as stated (or gives
    the like, where it tells no log-probabilities) and that they are draws, by their seeds or beside others, was tested.
    """
    states = {name: test.state for name, test in tests.items()}
    if "contradicted" in states.values():
        return "contradicted"
    if "not met" in states.values():
        return "not verifiable"
    are_draws = any(states.get(name) == "holds" for name in (SEEDS, AGAIN, CLEAN, LIKELY))
    theirs = states[LOGPROBS] == "holds" or (states[CLEAN] == "holds" and states[BASELINE] == "holds")
    return "replayed" if are_draws and theirs else "not verifiable"


# --- answers one by one -----------------------------------------------------------------------------------------------


def _logprobs(cases: Sequence[_Case], dtype: str | None) -> ReplayTest:
    """Compare the stated log-probabilities with those that the model computes."""
    honest = [_deviation_of_fresh(draw) for draw in _fresh_draws(cases) if draw.logprob is not None]
    tolerance = _tolerance(ROUNDING, dtype, [value for value in present(honest) if math.isfinite(value)])
    deviations: list[list[float | None]] = [[], []]
    for case in cases:
        attested = case.attested
        triples = zip(case.stated, attested.logprobs, attested.n_tokens, attested.end_logprobs, strict=True)
        for i, (answer, logprob, n, end) in enumerate(triples):
            triple = (answer.mean_logprob, answer.n_tokens, answer.end_logprob)
            deviations[i > 0].append(_deviation(triple, (logprob_in(logprob), n, logprob_in(end))))
    if all(value is None for group in deviations for value in group):
        return _untestable("there are no log-probabilities to compare")
    # Where drawing again gives the same, no token can be ambiguous.
    reason = "nats a token from what the model finds"
    return _counted(deviations, honest, tolerance, reason, exact=_has_margins(cases))


def _fresh_draws(cases: Sequence[_Case]) -> list[FreshDraw]:
    return [draw for case in cases for draws in case.attested.fresh.values() for draw in draws]


def _has_margins(cases: Sequence[_Case]) -> bool:
    """Whether the engine says what the seeds choose."""
    return any(margin is not None for case in cases for margin in case.attested.margins)


def _seeds(cases: Sequence[_Case], dtype: str | None, temperatures: tuple[float, float]) -> ReplayTest:
    """Whether the seeds of the draws choose the answers."""
    at = {"baseline": temperatures[0], "clean": temperatures[1], "noisy": temperatures[1]}
    honest = [
        None if draw.margin is None else draw.margin * (at[kind] or 1.0)
        for case in cases
        for kind, group in case.attested.fresh.items()
        for draw in group
    ]
    tolerance = _tolerance(MARGINS, dtype, present(honest))
    margins: list[list[float | None]] = [[], []]
    for case in cases:
        for i, (margin, equal) in enumerate(zip(case.attested.margins, case.attested.equal, strict=True)):
            own = 0.0 if equal else None if margin is None else margin * ((temperatures[i > 0]) or 1.0)
            margins[i > 0].append(own)
    if all(value is None for group in margins for value in group):
        return _untestable("the engine does not tell what seeds choose")
    return _counted(margins, honest, tolerance, "nats behind what their seed chooses", exact=True)


def _same_seeds(cases: Sequence[_Case]) -> ReplayTest:
    """Whether somebody else's engine gives the answers again, where it is bit-stable.

    Another machine or version may choose other tokens for the same seeds, so that nothing is contradicted.
    """
    honest = present(draw.equal for draw in _fresh_draws(cases))
    ours = present(equal for case in cases for equal in case.attested.equal)
    if not honest or not ours:
        return _untestable("the engine takes no seeds")
    unequal, off = honest.count(False), ours.count(False)
    if unequal > (1 - _STABLE) * len(honest):
        unstable = f"of {len(honest)} answers {unequal} are others when drawn twice"
        return _untestable(f"the engine is not bit-stable: {unstable}")
    allowed = _quantile(len(ours), (unequal + 1) / (len(honest) + 2))
    return ReplayTest(
        state="holds" if off <= allowed else "not met",
        reason=f"{off} of {count_of(len(ours), 'answer')} are others when drawn again, {allowed} may be",
        statistic=float(off),
        allowed=float(allowed),
        p_value=None,
        n=len(ours),
    )


def _counted(
    values: Sequence[Sequence[float | None]],
    honest: Sequence[float | None],
    tolerance: float,
    what: str,
    *,
    exact: bool,
) -> ReplayTest:
    """Compare how many answers are beyond a tolerance with how many honest ones would be.

    A text may be written in other tokens than those that were drawn: as many may be off as honest answers are, by what
    was drawn for the statement. Baseline answers decide labels: of them none may be, unless honest ones were.

    Args:
        values: of the baseline answers, and of the draws.
        honest: of answers drawn for the statement.
        tolerance: that an answer is off beyond.
        what: is measured, for people.
        exact: whether of draws, too, none may be off, unless honest ones were.
    """
    known_honest = present(honest)
    beyond = sum(value > tolerance for value in known_honest)
    rate = beyond / len(known_honest) if known_honest else 0.0
    rates = (rate, rate if exact else (beyond + 1) / (len(known_honest) + 2))
    off, allowed, n, wrong = 0, 0, 0, False
    for group, rate in zip(values, rates, strict=True):
        known_values = present(group)
        mine, most = sum(value > tolerance for value in known_values), _quantile(len(known_values), rate)
        off, allowed, n, wrong = off + mine, allowed + most, n + len(known_values), wrong or mine > most
    reason = f"{off} of {count_of(n, 'answer')} more than {tolerance:g} {what}"
    return ReplayTest(
        state="contradicted" if wrong else "holds",
        reason=f"{reason}; {allowed} may be, as of {len(known_honest)} drawn for this statement {beyond} are",
        statistic=float(off),
        allowed=tolerance,
        p_value=None,
        n=n,
    )


def _quantile(n: int, rate: float) -> int:
    """Return how many of `n` answers may be off at `LEVEL`, if each is off with this rate."""
    from scipy.special import bdtr

    most = 0
    while most < n and rate > 0 and bdtr(most, n, rate) < 1 - LEVEL:
        most += 1
    return most


def _deviation(stated: tuple[Any, Any, Any], reading: tuple[Any, Any, Any]) -> float | None:
    """Return the largest difference of mean and end log-probability: infinite for other tokens, None without."""
    if stated[0] is None or reading[0] is None:
        return None
    if stated[1] is not None and reading[1] is not None and stated[1] != reading[1]:
        return math.inf
    ends = [abs(stated[2] - reading[2])] if None not in (stated[2], reading[2]) else []
    # Two impossible answers do not differ; nan is more than any tolerance.
    apart = [0.0 if stated[0] == reading[0] else abs(stated[0] - reading[0]), *ends]
    return max((math.inf if math.isnan(gap) else gap for gap in apart), default=0.0)


def _deviation_of_fresh(draw: FreshDraw) -> float | None:
    return _deviation(
        _stated_by_draw(draw), (logprob_in(draw.reread), draw.reread_n_tokens, logprob_in(draw.reread_end))
    )


def _stated_by_draw(draw: FreshDraw) -> tuple[float | None, int | None, float | None]:
    return logprob_in(draw.logprob), draw.n_tokens, logprob_in(draw.end_logprob)


def _range(table: Mapping[str, tuple[float, float]], dtype: str | None) -> tuple[float, float]:
    return table.get(dtype or "", table[_UNKNOWN_DTYPE])


def _tolerance(table: Mapping[str, tuple[float, float]], dtype: str | None, honest: Sequence[float]) -> float:
    least, most = _range(table, dtype)
    inside = [value for value in honest if value <= most]
    return min(max(least, FACTOR * max(inside, default=0.0)), most)


def _sampled_here(submission: Mapping[str, Any]) -> bool:
    """Whether the entry states that this package chose the tokens, so that seeds say which."""
    return recorded_decoding(submission["settings"]).get("sampled_here") is True


def _temperatures(submission: Mapping[str, Any]) -> tuple[float, float]:
    sampling = submission["settings"].get("sampling") or {}
    settings = (sampling.get("baseline_temperature", 0.1), sampling.get("temperature", 1.0))
    baseline, draws = (float(value) if isinstance(value, (int, float)) else 1.0 for value in settings)
    return baseline, draws


# --- draws against their own log-probabilities ------------------------------------------------------------------------


def _draws(submission: Mapping[str, Any], cases: Sequence[_Case]) -> ReplayTest:
    """Whether clean answers come as often as their log-probabilities say: of all documents where their texts are in the
    submission, else of those that were picked."""
    if has_texts(submission):
        clean = [answer_set_of(document).clean for document in submission["documents"]]
    else:
        clean = [_with_digests(case)[1 : 1 + case.n_clean] for case in cases]
    verdict = verdict_on(clean, recorded_decoding(submission["settings"]), LEVEL)
    if verdict.state == "not verifiable":
        return _untestable(verdict.reason or "")
    counts = [_REPEATS(count) for count in (verdict.repeats, verdict.expected) if count is not None]
    repeats = "{} repeats of an answer, {} expected".format(*counts) if len(counts) == 2 else ""
    return ReplayTest(
        state="contradicted" if verdict.state == "contradicted" else "holds",
        reason=verdict.reason or repeats,
        statistic=verdict.t,
        allowed=None,
        p_value=verdict.p_value,
        n=verdict.documents,
    )


def _with_digests(case: _Case) -> tuple[Answer, ...]:
    """The stated answers with digests for their texts: enough to see which are equal."""
    return tuple(replace(answer, text=text) for answer, text in zip(case.stated, case.attested.texts, strict=True))


# --- beside answers that are drawn anew -------------------------------------------------------------------------------

Statistic = Callable[[np.random.Generator, int], Array]
"""The statistic under as many permutations, the first of which changes nothing; a document's share of it."""


@dataclass(frozen=True)
class _Share:
    """A document's share of a test.

    Attributes:
        statistic: under permutations.
        repeats: pairs of equal answers, without which equal texts say nothing; None for a test that needs none.
    """

    statistic: Statistic
    repeats: int | None = None


def _permuted(documents: Sequence[_Share], rng: np.random.Generator, what: str) -> ReplayTest:
    """A permutation test whose permutations stay within documents; large is suspicious."""
    if not documents:
        return _untestable("nothing was drawn anew that could tell")
    if sum(FEWEST_REPEATS if share.repeats is None else share.repeats for share in documents) < FEWEST_REPEATS:
        return _untestable("answers hardly ever repeat")
    total = np.sum([document.statistic(rng, PERMUTATIONS + 1) for document in documents], axis=0)
    # Sums in another order differ in their last digits.
    p_value = float(np.mean(total >= total[0] - 1e-9))
    return ReplayTest(
        state="contradicted" if p_value < LEVEL else "holds",
        reason=what,
        statistic=float(total[0]),
        allowed=None,
        p_value=p_value,
        n=len(documents),
    )


def _baselines(cases: Sequence[_Case]) -> list[_Share]:
    """Test whether few baseline answers drawn anew equal the entry's, although they equal each other."""
    shares = []
    for case in cases:
        fresh = [draw.text for draw in case.attested.fresh.get("baseline", ())]
        if fresh:
            texts = [case.attested.texts[0], *fresh]
            alike = _equal(texts)
            shares.append(_Share(_random_place(-alike.sum(axis=1)), _repeats(alike)))
    return shares


def _random_place(values: Array) -> Statistic:
    """A value at a place that any of the values might have had; the first is the entry's."""

    def statistic(rng: np.random.Generator, n: int) -> Array:
        places = rng.integers(len(values), size=n)
        places[0] = 0
        return values[places]

    return statistic


def _clean(cases: Sequence[_Case]) -> list[_Share]:
    shares = []
    for case in cases:
        ours, fresh = case.attested.texts[1 : 1 + case.n_clean], [d.text for d in case.attested.fresh.get("clean", ())]
        if min(len(ours), len(fresh)) > 1:
            alike = _equal([*ours, *fresh])
            shares.append(_Share(_two_samples(len(ours), alike), _repeats(alike)))
    return shares


def _likelihoods(cases: Sequence[_Case]) -> list[_Share]:
    """Compare log-probabilities of clean answers with those drawn anew: chosen draws would differ."""
    shares = []
    for case in cases:
        ours = [_total(a.mean_logprob, a.n_tokens, a.end_logprob) for a in case.stated[1 : 1 + case.n_clean]]
        fresh = [_total(*_stated_by_draw(draw)) for draw in case.attested.fresh.get("clean", ())]
        finite = [[value for value in present(values) if math.isfinite(value)] for values in (ours, fresh)]
        if min(map(len, finite)) > 1:
            values = np.array([*finite[0], *finite[1]])
            shares.append(_Share(_two_samples(len(finite[0]), -np.abs(values[:, None] - values[None, :]))))
    return shares


def _total(mean: float | None, n: int | None, end: float | None) -> float | None:
    return None if mean is None or n is None else mean * n + (end or 0.0)


def _equal(texts: Sequence[str]) -> Array:
    return np.array([[float(a == b) for b in texts] for a in texts])


def _repeats(alike: Array) -> int:
    """Number of pairs of equal answers."""
    return round((alike.sum() - np.trace(alike)) / 2)


def _two_samples(n: int, alike: Array) -> Statistic:
    """How much more alike answers are within two samples than between them, without the pairs of one with itself."""
    size = len(alike)
    kernel = alike - np.diag(np.diag(alike))

    def statistic(rng: np.random.Generator, times: int) -> Array:
        order = np.argsort(rng.random((times, size)), axis=1)
        order[0] = np.arange(size)
        first = np.zeros((times, size))
        np.put_along_axis(first, order[:, :n], 1.0, axis=1)
        second = 1.0 - first
        m = size - n
        within = _sums(first, first, kernel) / (n * (n - 1)) + _sums(second, second, kernel) / (m * (m - 1))
        sums: Array = within - 2 * _sums(first, second, kernel) / (n * m)
        return sums

    return statistic


def _sums(a: Array, b: Array, kernel: Array) -> Array:
    sums: Array = ((a @ kernel) * b).sum(axis=1)
    return sums


def _noisy(cases: Sequence[_Case]) -> list[_Share]:
    """Of each noisy picture the entry's answer and one drawn anew, which may change places."""
    shares = []
    for ours, fresh in map(_noisy_pairs, cases):
        if len(ours) > 1:
            kernel = _equal([*ours, *fresh])
            shares.append(_Share(_swapped(len(ours), kernel - np.diag(np.diag(kernel))), _repeats(kernel)))
    return shares


def _noisy_pairs(case: _Case) -> tuple[list[str], list[str]]:
    ours, fresh = list(case.attested.texts[1 + case.n_clean :]), [d.text for d in case.attested.fresh.get("noisy", ())]
    return (ours, fresh) if len(ours) == len(fresh) else ([], [])


def _swapped(n: int, kernel: Array) -> Statistic:
    # Two answers on one picture are no pair within or between samples.
    kernel = kernel * (1 - np.eye(2 * n, k=n) - np.eye(2 * n, k=-n))

    def statistic(rng: np.random.Generator, times: int) -> Array:
        signs = _signs(rng, times, n)
        weights = np.concatenate([signs, -signs], axis=1) / n
        return _sums(weights, weights, kernel)

    return statistic


def _signs(rng: np.random.Generator, times: int, n: int) -> Array:
    signs: Array = np.where(rng.integers(2, size=(times, n)) > 0, 1.0, -1.0)
    signs[0] = 1.0
    return signs


def _copies(cases: Sequence[_Case]) -> list[_Share]:
    """Test whether noisy answers are among the clean ones more often than noisy answers drawn anew."""
    shares = []
    for case in cases:
        clean = case.attested.texts[1 : 1 + case.n_clean]
        ours, fresh = (np.array([clean.count(t) / max(len(clean), 1) for t in texts]) for texts in _noisy_pairs(case))
        if len(ours) and len(clean):
            shares.append(_Share(_swapped_sum(ours - fresh)))
    return shares


def _swapped_sum(differences: Array) -> Statistic:
    def statistic(rng: np.random.Generator, times: int) -> Array:
        sums: Array = _signs(rng, times, len(differences)) @ differences
        return sums

    return statistic


def _untestable(reason: str) -> ReplayTest:
    return ReplayTest(state="not verifiable", reason=reason[:500], statistic=None, allowed=None, p_value=None, n=0)

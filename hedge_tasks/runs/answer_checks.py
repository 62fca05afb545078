"""Answers of a run held against each other: is what a server sent what it was asked for?

A server may answer about another document, send the same draws twice, or refuse one kind of picture, and every table
looks like any other. Each check tells one such way from what honest models do, at a stated level or above a stated
share; one that could not have told anything is "not verifiable", never passed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from hedge_tasks.clustering.exact import normalise
from hedge_tasks.data.answers import Answer, AnswerSet, log_probability
from hedge_tasks.numbers import PERCENT, THREE_DIGITS, WHOLE_PERCENT
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.statistics.base import FloatArray
from hedge_tasks.statistics.draws import State

ALPHA = 1e-3
"""Level of each test."""

FEWEST_DOCUMENTS = 20
_MOST_READ = 500
"""Documents whose words are read for refusals, spread over the run."""

_LIKE = {"clean": 0.5, "noisy": 0.25}
"""A document's draws are at least this share as like its baseline answer as they are like each other. The baseline
answer is near their mode, so that clean ones are more like it; noise may change what is said."""

SOME, MANY = 0.1, 0.5
"""Shares above which an oddity is worth a word, and above which the numbers cannot be relied on."""

_SHORT = 4
_ECHO_WORDS = 4
"""Words of a question with which an answer that has them all repeats it."""

_BOTH_EVEN, _ALL_EVEN, _SELDOM = 0.8, 0.4, 1e-4
_FEWEST_TELLING = 10
_SLACK, _STAKES = 1.1, (0.05, 0.1, 0.2, 0.4, 0.8)
_MOST_COUNT, _MOST_NATS = 100.0, 50.0
"""A rare spelling of a text in other tokens would count too much."""


@dataclass(frozen=True)
class AnswerCheck:
    """One check of a run's answers.

    Attributes:
        name: what was looked at.
        state: what came of it.
        text: what contradicts, or why nothing could be told; empty where nothing contradicts.
        unreliable: whether the run's numbers cannot be relied on because of it.
    """

    name: str
    state: State = "not contradicted"
    text: str = ""
    unreliable: bool = False


def answer_checks(
    answer_sets: Sequence[AnswerSet], decoding: Mapping[str, Any], *, read: bool = False
) -> Iterator[AnswerCheck]:
    """Yield every check that a run's draws call for; none where nothing was sampled.

    Args:
        answer_sets: of the run.
        decoding: how the draws were made, as a run has it under `sampled`.
        read: the texts are what was read in replies, so that one text may stand for many.
    """
    drawn = [name for name in ("clean", "noisy") if any(getattr(a, name) for a in answer_sets)]
    for name in drawn:
        yield _own_document(answer_sets, name)
        yield _lengths(answer_sets, name)
        yield _beside(answer_sets, name)
        yield _as_likely(answer_sets, name, decoding, read=read)
        if doubled := _doubled(answer_sets, name):
            yield AnswerCheck(f"each {name} answer drawn anew", "contradicted", doubled, True)
    if len(drawn) == 2:
        yield _copies(answer_sets)
    if drawn:
        yield _echoes(answer_sets)


def _own_document(answer_sets: Sequence[AnswerSet], name: str) -> AnswerCheck:
    """Are a document's draws like its own baseline answer, more than like those of others?

    Likeness is the cosine of the words that answers have. Only where draws of one document are more alike than draws of
    others can anything be told.
    """
    what = f"{name} answers belong to their documents"
    texts = [[text for a in getattr(s, name) if (text := normalise(a.text))] for s in answer_sets]
    usable = [
        (normalise(s.baseline.text), draws) for s, draws in zip(answer_sets, texts, strict=True) if len(draws) > 1
    ]
    usable = [(baseline, draws) for baseline, draws in usable if baseline]
    if len(usable) < FEWEST_DOCUMENTS:
        return AnswerCheck(what, "not verifiable", f"only {len(usable)} documents have several answers with words")
    to_baseline, to_each_other = _likeness(usable)
    if _p_below(-to_each_other) >= ALPHA:
        return AnswerCheck(what, "not verifiable", "answers to one document are no more alike than to others")
    if _p_below(to_baseline - _LIKE[name] * to_each_other) >= ALPHA:
        return AnswerCheck(what)
    text = (
        f"the {name} answers are not about their own documents: they are like each other, and no more like their own "
        f"baseline answer than {WHOLE_PERCENT(max(to_baseline.mean() / to_each_other.mean(), 0.0))} of that"
    )
    return AnswerCheck(what, "contradicted", text, True)


def _likeness(usable: Sequence[tuple[str, list[str]]]) -> tuple[FloatArray, FloatArray]:
    """How much more draws are like their own baseline answer, and like each other, than those of other documents are.

    Returns:
        Differences in the cosine of their words, both of shape `(n,)`.
    """
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    sizes = np.array([len(draws) for _, draws in usable])
    vectors = normalize(
        CountVectorizer(analyzer=str.split, binary=True, dtype=np.float64).fit_transform(
            [*(baseline for baseline, _ in usable), *(text for _, draws in usable for text in draws)]
        )
    )
    n = len(usable)
    owner = np.repeat(np.arange(n), sizes)
    sums = csr_matrix((np.ones(len(owner)), (owner, np.arange(len(owner)))), shape=(n, len(owner))) @ vectors[n:]
    means = sums.multiply(1 / sizes[:, None]).tocsr()
    total = np.asarray(means.sum(axis=0)).ravel()
    own = np.asarray(vectors[:n].multiply(means).sum(axis=1)).ravel()
    squares = np.asarray(means.multiply(means).sum(axis=1)).ravel()
    to_baseline = own - (vectors[:n] @ total - own) / (n - 1)
    within = (squares * sizes**2 - sizes) / (sizes * (sizes - 1))
    return to_baseline, within - (means @ total - squares) / (n - 1)


def _p_below(values: FloatArray) -> float:
    """Return the one-sided p-value of a mean below 0 (Student's t-test)."""
    from scipy.stats import ttest_1samp

    if np.ptp(values) < 1e-12:  # no spread, of which a t-test makes nan
        return 0.0 if values.mean() < -1e-9 else 1.0
    return float(ttest_1samp(values, 0.0, alternative="less").pvalue)


def _lengths(answer_sets: Sequence[AnswerSet], name: str) -> AnswerCheck:
    """Are all of a document's draws cut short beside its baseline answer? One letter for a letter is not."""
    lengths = [
        (len(normalise(s.baseline.text)), max(len(normalise(a.text)) for a in getattr(s, name)))
        for s in answer_sets
        if s.baseline.text and any(a.text for a in getattr(s, name))
    ]
    short = [0 < longest <= max(baseline // _SHORT, 1) < baseline for baseline, longest in lengths]
    text = f"every {name} answer is at most a quarter as long as the baseline answer"
    return _share_check(f"lengths of {name} answers", short, text)


def _echoes(answer_sets: Sequence[AnswerSet]) -> AnswerCheck:
    """Do answers repeat the question before they answer it, or in place of that?"""
    flags = []
    for s in answer_sets:
        question = normalise(s.question or "")
        if len(question.split()) >= _ECHO_WORDS:
            flags += [question in normalise(a.text) for a in s.answers]
    return _share_check("answers without their question", flags, "answers repeat the question", of_what="answers")


def _share_check(name: str, flags: Sequence[bool], text: str, *, of_what: str = "documents") -> AnswerCheck:
    """Judge a share by what is worth a word, and by what makes numbers unreliable."""
    if len(flags) < FEWEST_DOCUMENTS:
        return AnswerCheck(name, "not verifiable", f"only {len(flags)} {of_what} tell")
    share = sum(flags) / len(flags)
    if share <= SOME:
        return AnswerCheck(name)
    return AnswerCheck(name, "contradicted", f"{text} in {sum(flags)} of {len(flags)} {of_what}", share > MANY)


def _beside(answer_sets: Sequence[AnswerSet], name: str) -> AnswerCheck:
    """Are there more refusals, cut or filtered answers, or copies of one text, than on the same documents before?

    Noisy answers are held against clean ones, clean ones against baseline answers: a share that is higher by more than
    `SOME`, in more documents than chance has it (an exact sign test).
    """
    from scipy.stats import binomtest

    what = f"{name} answers beside {'baseline' if name == 'clean' else 'clean'} ones"
    pairs = [
        (getattr(s, name), (s.clean if name == "noisy" else ()) or (s.baseline,))
        for s in answer_sets[:: -(-len(answer_sets) // _MOST_READ)]
        if getattr(s, name)
    ]
    if len(pairs) < FEWEST_DOCUMENTS:
        return AnswerCheck(what, "not verifiable", f"only {len(pairs)} documents tell")
    for kind, is_so in _oddities(pairs):
        differences = [_share_of(draws, is_so) - _share_of(before, is_so) for draws, before in pairs]
        more, fewer = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
        mean = sum(differences) / len(differences)
        if mean > SOME and binomtest(more, more + fewer, alternative="greater").pvalue < ALPHA:
            shares = [sum(_share_of(pair[i], is_so) for pair in pairs) / len(pairs) for i in (0, 1)]
            text = f"{PERCENT(shares[0])} of the {name} answers {kind}, of those before {PERCENT(shares[1])}"
            return AnswerCheck(what, "contradicted", text, mean > MANY)
    return AnswerCheck(what)


def _oddities(
    pairs: Sequence[tuple[Sequence[Answer], Sequence[Answer]]],
) -> Iterator[tuple[str, Callable[[Answer], bool]]]:
    before = {a.text for _, answers in pairs for a in answers}
    declined = {text: unanswered(text) is not None for text in {*before, *(a.text for d, _ in pairs for a in d)}}
    yield "are refused or empty", lambda a: declined[a.text]
    yield "were cut or filtered", lambda a: a.finish in ("length", "filtered")
    # A model that prefers "yes" may say "no" whenever it is drawn again: one answer before is too few to tell.
    documents = Counter(text for draws, _ in pairs for text in {a.text for a in draws} - before)
    if documents and any(len(answers) > 1 for _, answers in pairs):
        [(common, _)] = documents.most_common(1)
        yield "are one and the same text, whatever the document", lambda a: a.text == common


def _share_of(answers: Sequence[Answer], is_so: Callable[[Answer], bool]) -> float:
    return sum(map(is_so, answers)) / len(answers)


def _copies(answer_sets: Sequence[AnswerSet]) -> AnswerCheck:
    """Are the noisy answers the clean ones again, whatever their order?

    Of a model that does not see the picture both are draws of one distribution: pooled and dealt out at random, they
    are equal as sets with a probability that is counted exactly, and of a model that sees it more seldom.
    """
    what = "noisy answers are draws of their own"
    equal, chances = [], []
    for s in answer_sets:
        m = min(len(s.clean), len(s.noisy))
        clean, noisy = (Counter(a.text for a in draws[:m]) for draws in (s.clean, s.noisy))
        if m:
            pooled = clean + noisy
            even = all(count % 2 == 0 for count in pooled.values())
            ways = math.prod(math.comb(count, count // 2) for count in pooled.values()) / math.comb(2 * m, m)
            equal.append(clean == noisy)
            chances.append(ways if even else 0.0)
    if _p_at_least(len(chances), [_equal_if_copied(s) for s in answer_sets if s.clean and s.noisy]) >= ALPHA:
        return AnswerCheck(what, "not verifiable", "there are too few different answers to a question")
    if _p_at_least(sum(equal), chances) >= ALPHA:
        return AnswerCheck(what)
    text = f"the noisy answers are the clean ones again in {sum(equal)} of {len(equal)} documents"
    return AnswerCheck(what, "contradicted", text, True)


def _equal_if_copied(answers: AnswerSet) -> float:
    """The chance that two halves are equal where the noisy answers are the clean ones."""
    m = min(len(answers.clean), len(answers.noisy))
    counts = Counter(a.text for a in answers.clean[:m]).values()
    return math.prod(math.comb(2 * count, count) for count in counts) / math.comb(2 * m, m)


def _p_at_least(k: int, chances: Sequence[float]) -> float:
    """Return the probability of k or more successes of independent trials, each with its own chance."""
    certain = sum(chance == 1 for chance in chances)
    distribution = np.ones(1)
    for chance in chances:
        if 0 < chance < 1:
            distribution = np.convolve(distribution, (1 - chance, chance))
    return float(distribution[max(k - certain, 0) :].sum())


def _as_likely(answer_sets: Sequence[AnswerSet], name: str, decoding: Mapping[str, Any], *, read: bool) -> AnswerCheck:
    """Do texts that are named before they are drawn come as often as their log-probabilities say?

    A text that is named beforehand comes with probability p and then counts 1 / p: once a draw in the mean, whatever p
    is, also where each noisy answer is of another distribution. Texts that come more often count more, and bets on that
    win. The baseline answer's text is named before all draws, the clean answers' before the noisy ones.
    """
    what = f"{name} answers as often as they are likely"
    if read or decoding.get("asked") != "pure" or decoding.get("temperature") != 1 or decoding.get("restricted"):
        return AnswerCheck(what, "not verifiable", "the draws are not known to be pure samples at temperature 1")
    baseline = [{_path(s.baseline)} for s in answer_sets]
    others = [{*map(_path, s.clean)} - own for s, own in zip(answer_sets, baseline, strict=True)]
    tried = [("answers with the baseline answer's text come", _counts(answer_sets, name, baseline))]
    if name == "noisy":
        tried.append(("answers with other clean answers' texts come", _counts(answer_sets, name, others)))
    else:
        absent = [count for s in answer_sets if (count := _counted_absence(s)) is not None]
        tried.append(("documents without the baseline answer's text come", absent))
    if all(len(counts) < _FEWEST_TELLING for _, counts in tried):
        return AnswerCheck(what, "not verifiable", "too few answers have log-probabilities")
    for whose, counts in tried:
        if _is_won(counts):
            times = f"{whose} {THREE_DIGITS(sum(counts) / len(counts))} times as often as they are likely"
            return AnswerCheck(
                what, "contradicted", f"the {name} answers contradict their log-probabilities: {times}", True
            )
    return AnswerCheck(what)


def _counts(answer_sets: Sequence[AnswerSet], name: str, texts: Sequence[Collection[Hashable]]) -> list[float]:
    """By document that tells, the draws that are one of its named texts, each counted 1 / p."""
    counted = (_counted(getattr(s, name), named) for s, named in zip(answer_sets, texts, strict=True))
    return [count for count in counted if count is not None]


def _counted_absence(answers: AnswerSet) -> float | None:
    """That no clean draw is the baseline answer's text, counted one by its probability: 1 in the mean."""
    logprob = log_probability(answers.baseline)
    if logprob is None or not answers.baseline.text or not all(map(_telling, answers.clean)):
        return None
    if any(a.text == answers.baseline.text for a in answers.clean):
        return 0.0
    absent = -math.expm1(min(logprob, -1 / _MOST_COUNT))
    return min(absent ** -len(answers.clean), _MOST_COUNT)


def _is_won(counts: Sequence[float]) -> bool:
    """Whether bets win that counts are at most 1 in the mean."""
    won = [float(np.log1p(stake * (np.array(counts) - _SLACK)).sum()) for stake in _STAKES]
    return bool(counts) and float(np.logaddexp.reduce(won)) - math.log(len(_STAKES)) > -math.log(_SELDOM)


def _path(answer: Answer) -> Hashable:
    """Return what is known of an answer's tokens."""
    return answer.text, answer.n_tokens, answer.finish


def _counted(draws: Sequence[Answer], texts: Collection[Hashable]) -> float | None:
    """The answers that are one of some texts, each counted 1 / p, by draw and text: at most 1 in the mean."""
    usable = [a for a in draws if _telling(a) and a.n_tokens is not None]
    if not texts or not usable:
        return None
    nats = [(a.mean_logprob or 0) * (a.n_tokens or 0) + (a.end_logprob or 0) for a in usable if _path(a) in texts]
    return sum(min(math.exp(min(-value, _MOST_NATS)), _MOST_COUNT) for value in nats) / (len(usable) * len(texts))


def _telling(answer: Answer) -> bool:
    """Whether a text's log-probability is known, and is the same each time: behind other thoughts it is another."""
    return answer.mean_logprob is not None and answer.thought is None and bool(answer.text)


def _doubled(answer_sets: Sequence[AnswerSet], name: str) -> str | None:
    """Return where fewer draws are there several times. Honest draws repeat themselves, but seldom all equally often.

    Of two different answers both counts are even (or share another divisor) in up to four fifths of honest questions,
    of three and more in less than two fifths.
    """
    counts = [Counter(a.text for a in getattr(s, name)) for s in answer_sets]
    pairs = [gcd(*counter.values()) > 1 for counter in counts if len(counter) == 2]
    several = [gcd(*counter.values()) > 1 for counter in counts if len(counter) > 2]
    mostly = len(several) >= _FEWEST_TELLING and sum(several) > MANY * len(several)
    chance = _BOTH_EVEN ** len(pairs) * _ALL_EVEN ** len(several)
    if not mostly and (not all(pairs) or not all(several) or chance >= _SELDOM):
        return None
    flags = several if mostly else [*pairs, *several]
    return f"every {name} answer is there several times in {sum(flags)} of {len(flags)} documents that tell"

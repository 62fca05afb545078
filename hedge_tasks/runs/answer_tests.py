"""Answers of a run held against each other: is what a server sent what it was asked for?

A server may answer about another document, send the same draws twice, or refuse one kind of picture, and every table
looks like any other. Each test tells one such way from what honest models do, at a stated level or above a stated
share; one that could not have told anything is "not verifiable", never passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any

import numpy as np

from hedge_tasks.clustering.exact import normalise
from hedge_tasks.data.answers import AnswerSet, log_probability
from hedge_tasks.numbers import PERCENT
from hedge_tasks.replies.declining import unanswered
from hedge_tasks.runs.health_tests import HealthTest, Sampled, share_test
from hedge_tasks.statistics.base import FloatArray

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

_ECHO_WORDS = 4
"""Words of a question with which an answer that has them all repeats it."""

_EVEN = 0.8
"""Most honest questions with several answers whose counts share a divisor, as where every draw is there twice."""

_EQUAL = 2 / 3
"""Most that two halves of draws are equal by chance, where there are different ones among them."""

_BLOCKS = 4
"""Parts of a run in its order, each tested alone: a fault may begin late."""

_COOL = 0.5
"""A temperature below which the baseline answer is likelier than most draws."""

_LIKELIER = 0.25
"""Most draws that are likelier than it; half are where it is drawn as they are."""


def answer_tests(run: Sampled) -> Iterator[HealthTest]:
    """Yield every test that a run's draws call for; none where nothing was sampled."""
    answer_sets = run.answer_sets
    drawn = [name for name in ("clean", "noisy") if any(getattr(a, name) for a in answer_sets)]
    for name in drawn:
        yield _own_document(answer_sets, name)
        yield _beside(answer_sets, name)
        counts = [Counter(a.text for a in getattr(s, name)) for s in answer_sets]
        doubled = [gcd(*count.values()) > 1 for count in counts if len(count) > 1]
        yield _coincidence(f"each {name} answer drawn anew", doubled, _EVEN, f"every {name} answer is there twice")
    if len(drawn) == 2:
        yield _copies(answer_sets)
    if drawn:
        yield from _likeliest(answer_sets, (run.settings.get("sampling") or {}).get("baseline_temperature"))
        questions = [(normalise(s.question or ""), s) for s in answer_sets]
        echoes = [q in normalise(a.text) for q, s in questions if len(q.split()) >= _ECHO_WORDS for a in s.answers]
        name, text = "answers without their question", "answers repeat the question"
        yield from share_test(name, sum(echoes), len(echoes), text, SOME, MANY, FEWEST_DOCUMENTS)


def _own_document(answer_sets: Sequence[AnswerSet], name: str) -> HealthTest:
    """Are a document's draws like its own baseline answer, more than like those of others?

    Likeness is the cosine of the words that answers have. Only where draws of one document are more alike than draws of
    others can anything be told.
    """
    what = f"{name} answers belong to their documents"
    usable = [
        (baseline, draws)
        for s in answer_sets
        if (baseline := normalise(s.baseline.text))
        and len(draws := [text for a in getattr(s, name) if (text := normalise(a.text))]) > 1
    ]
    n = len(usable)
    if n < FEWEST_DOCUMENTS:
        return HealthTest(what, "not verifiable", f"only {n} documents have several answers with words")
    to_baseline, to_each_other = likeness(usable)
    if _p_below(-to_each_other) >= ALPHA:
        return HealthTest(what, "not verifiable", "answers to one document are no more alike than to others")
    blocks = np.array_split(np.arange(n), min(_BLOCKS, n // FEWEST_DOCUMENTS))
    parts = [np.arange(n), *(block for block in blocks if _p_below(-to_each_other[block]) < ALPHA)]
    lead = to_baseline - _LIKE[name] * to_each_other
    p, part = min(((_p_below(lead[part]), part) for part in parts), key=lambda tested: tested[0])
    if p >= ALPHA / len(parts):
        return HealthTest(what, "not contradicted")
    where = f"{name} answers of documents {part[0] + 1} to {part[-1] + 1}"
    text = f"{where} may be those of others: they are like each other and unlike their own baseline answer"
    return HealthTest(what, "contradicted", text, True)


def likeness(usable: Sequence[tuple[str, list[str]]]) -> tuple[FloatArray, FloatArray]:
    """How much more draws are like their own baseline answer, and like each other, than those of other documents are.

    Returns:
        Differences in the cosine of their words, both of shape `(n,)`.
    """
    from scipy.sparse import csr_matrix
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    texts = [*(baseline for baseline, _ in usable), *(text for _, draws in usable for text in draws)]
    words = CountVectorizer(analyzer=str.split, binary=True, dtype=np.float64).fit_transform(texts)
    n, vectors, sizes = len(usable), normalize(words), np.array([len(draws) for _, draws in usable])
    ends = np.cumsum(sizes)
    owner = csr_matrix((np.ones(ends[-1]), np.arange(ends[-1]), [0, *ends]), shape=(n, ends[-1]))
    means = (owner @ vectors[n:]).multiply(1 / sizes[:, None]).tocsr()
    total = np.asarray(means.sum(axis=0)).ravel()

    def to_own_and_others(rows: Any) -> tuple[FloatArray, FloatArray]:
        own = np.asarray(rows.multiply(means).sum(axis=1)).ravel()
        return own, (rows @ total - own) / (n - 1)

    own, others = to_own_and_others(vectors[:n])
    squares, apart = to_own_and_others(means)
    return own - others, (squares * sizes**2 - sizes) / (sizes * (sizes - 1)) - apart


def _p_below(values: FloatArray) -> float:
    """Return the one-sided p-value of a mean below 0 (Student's t-test)."""
    from scipy.stats import ttest_1samp

    if np.ptp(values) < 1e-12:  # no spread, of which a t-test makes nan
        return 0.0 if values.mean() < -1e-9 else 1.0
    return float(ttest_1samp(values, 0.0, alternative="less").pvalue)


def _beside(answer_sets: Sequence[AnswerSet], name: str) -> HealthTest:
    """Are there more refusals, or copies of one text, than on the same documents before?

    Noisy answers are held against clean ones, clean ones against baseline answers: a share that is higher by more than
    `SOME`, in more documents than chance has it (an exact sign test).
    """
    from scipy.stats import binomtest

    what = f"{name} answers beside {'baseline' if name == 'clean' else 'clean'} ones"
    pairs = [
        [[a.text for a in side] for side in (draws, (s.clean if name == "noisy" else ()) or (s.baseline,))]
        for s in answer_sets[:: -(-len(answer_sets) // _MOST_READ)]
        if (draws := getattr(s, name))
    ]
    if len(pairs) < FEWEST_DOCUMENTS:
        return HealthTest(what, "not verifiable", f"only {len(pairs)} documents tell")
    for kind, texts in _odd_texts(pairs):
        shares = np.array([[sum(text in texts for text in side) / len(side) for side in pair] for pair in pairs])
        own, others = shares.T
        rise = own.mean() - others.mean()
        more, less = (own > others).sum(), (own < others).sum()
        if rise > SOME and binomtest(more, more + less, alternative="greater").pvalue < ALPHA:
            text = f"{PERCENT(own.mean())} of the {name} answers {kind}, of those before {PERCENT(others.mean())}"
            return HealthTest(what, "contradicted", text, bool(rise > MANY))
    return HealthTest(what, "not contradicted")


def _odd_texts(pairs: Sequence[Sequence[Sequence[str]]]) -> Iterator[tuple[str, set[str]]]:
    """Yield what may be odd about draws, beside those before, and the texts that are so."""
    now, before = ({text for pair in pairs for text in pair[i]} for i in (0, 1))
    yield "are refused or empty", {text for text in now | before if unanswered(text) is not None}
    # A model that prefers "yes" may say "no" whenever it is drawn again: one answer before is too few to tell.
    documents = Counter(text for draws, _ in pairs for text in {*draws} - before)
    if documents and any(len(others) > 1 for _, others in pairs):
        yield "are one and the same text, whatever the document", {documents.most_common(1)[0][0]}


def _copies(answer_sets: Sequence[AnswerSet]) -> HealthTest:
    """Are the noisy answers the clean ones again, whatever their order?

    Of a model that does not see the picture both are draws of one distribution: pooled and dealt out at random, halves
    with different answers are equal as sets in at most two of three cases, and of a model that sees it more seldom.
    """
    equal = []
    for s in answer_sets:
        m = min(len(s.clean), len(s.noisy))
        clean, noisy = (Counter(a.text for a in draws[:m]) for draws in (s.clean, s.noisy))
        if len(clean | noisy) > 1:
            equal.append(clean == noisy)
    text = "the noisy answers are the clean ones again"
    return _coincidence("noisy answers are draws of their own", equal, _EQUAL, text)


def _likeliest(answer_sets: Sequence[AnswerSet], temperature: float | None) -> Iterator[HealthTest]:
    """Is the baseline answer likelier than another draw, in all or by token, as where it is no random draw itself?

    Nothing is known of answers from elsewhere, whose temperature is not recorded.
    """
    if temperature is None or temperature >= _COOL:
        return
    likelier = []
    for pair in ((s.baseline, s.clean[0]) for s in answer_sets if s.clean and s.clean[0].text != s.baseline.text):
        values = [v for a in pair for v in (log_probability(a, with_end=False), a.mean_logprob) if v is not None]
        if len(values) == 4:
            likelier.append(values[0] < values[2] and values[1] < values[3])
    text = "a draw is likelier than the baseline answer"
    yield _coincidence("baseline answers are not drawn at random", likelier, _LIKELIER, text)


def _coincidence(name: str, flags: Sequence[bool], most: float, text: str) -> HealthTest:
    """Test whether something is so more often than honest draws have it at most (an exact binomial test)."""
    from scipy.stats import binomtest

    if most ** len(flags) >= ALPHA:
        return HealthTest(name, "not verifiable", f"only {len(flags)} documents have different answers")
    if binomtest(sum(flags), len(flags), most, alternative="greater").pvalue >= ALPHA:
        return HealthTest(name, "not contradicted")
    return HealthTest(name, "contradicted", f"{text} in {sum(flags)} of {len(flags)} documents that tell", True)

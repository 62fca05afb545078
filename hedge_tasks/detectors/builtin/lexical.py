"""How much the wording of the samples differs."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence

from hedge_tasks.data.words import words
from hedge_tasks.detectors.evidence import Evidence
from hedge_tasks.detectors.registry import register

# More pairs of different texts than 20 draws, or 100, can have; beyond, a sample of that many pairs is compared.
MOST_PAIRS = 5_000


def lexical_disagreement(clean_answers: Sequence[str]) -> float:
    r"""One minus the mean pairwise ROUGE-L of the clean answers: how much their wording differs.

    .. math::
        1 - \frac{2}{n (n - 1)} \sum_{i < j} \frac{2 \, \mathrm{LCS}(a_i, a_j)}{|a_i| + |a_j|}

    where LCS is the length of the longest common subsequence of the two token lists, so that each summand is the
    ROUGE-L F-measure (:math:`F_1`; Lin 2004). Lexical similarity in this form is the baseline of Kuhn et al. 2023 and
    of lm-polygraph; this is its complement. Tokens are the runs of letters and digits of the case-folded text in any
    script; unlike the `rouge-score` package we do not stem, which it does for English only.

    Args:
        clean_answers: The texts of the clean answers, length `n >= 1`.

    Returns:
        A number in `[0, 1]`. A single answer disagrees with nothing: 0.0. Two answers without any token count as
        equal.

    Raises:
        ValueError: If there is no answer, or a bare string is given.

    Example:
        >>> lexical_disagreement(["a small left effusion", "small left effusion", "small left effusion"])
        0.0952...
        >>> lexical_disagreement(["Pneumonia."])
        0.0
    """
    if isinstance(clean_answers, str):
        raise ValueError("clean_answers must be a sequence of answers, got one string")
    if not len(clean_answers):
        raise ValueError("clean_answers is empty: there must be at least one clean answer")
    counts = Counter(tuple(words(answer)) for answer in clean_answers)
    n = counts.total()
    texts = sorted(counts)
    pairs = math.comb(len(texts), 2)
    if not pairs:
        return 0.0
    if pairs <= MOST_PAIRS:
        weighed = ((counts[a] * counts[b], 1.0 - _rouge_l(a, b)) for a, b in itertools.combinations(texts, 2))
        return math.fsum(weight * distance for weight, distance in weighed) / math.comb(n, 2)
    return _sampled_disagreement(texts, counts)


def _sampled_disagreement(texts: Sequence[tuple[str, ...]], counts: Counter[tuple[str, ...]]) -> float:
    """The same from some pairs of answers, always the same ones, whatever the order of the answers."""
    answers = [text for text in texts for _ in range(counts[text])]
    dice = random.Random(0)
    pairs = [dice.sample(range(len(answers)), 2) for _ in range(MOST_PAIRS)]
    return math.fsum(1.0 - _rouge_l(answers[i], answers[j]) for i, j in pairs) / MOST_PAIRS


def _rouge_l(a: Sequence[str], b: Sequence[str]) -> float:
    """ROUGE-L F1 of two token lists."""
    if a == b:
        return 1.0
    return 2 * _lcs_length(a, b) / (len(a) + len(b))


def _lcs_length(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence, one row of the usual table in one operation on its bits.

    Bit i of `row` is 0 where the table's row steps up at column i. An answer from outside may have a hundred thousand
    tokens. Source: Crochemore et al. 2001, A fast and practical bit-vector algorithm for the LCS problem, IPL 80(6).
    """
    places: dict[str, int] = {}
    for i, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << i
    ones = (1 << len(a)) - 1
    row = ones
    for token in b:
        matches = row & places.get(token, 0)
        row = (row + matches | row - matches) & ones
    return len(a) - row.bit_count()


@register(
    "lexical",
    "Lexical disagreement",
    short="lexical disagreement",
    needs=("clean",),
    source="Kuhn et al. 2023; Lin et al. 2024",
)
def lexical(evidence: Evidence) -> float:
    r"""One minus the mean pairwise ROUGE-L of the clean answers.

    .. math::
        1 - \frac{2}{n (n - 1)} \sum_{i < j} \mathrm{ROUGE}_L(a_i, a_j)

    One plus lm-polygraph's LexicalSimilarity, which stems English words, drops everything but ASCII letters and digits
    (an answer in another script is unlike itself), and is not a number for a single sample.

    Args:
        evidence: With clean answers.

    Example:
        >>> round(lexical(Evidence(("a", "left lung", "the left lung"), 2)), 4)
        0.2
    """
    return lexical_disagreement(evidence.texts[evidence.clean])
